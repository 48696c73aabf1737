"""Shapes in signatures are checked while testing; ``unchecked`` lets bad input through to our own errors."""

import re
import signal
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings
from jaxtyping import config, install_import_hook

install_import_hook("condensation", "shapes.checked")
settings.register_profile("condensation", deadline=None, derandomize=True)
settings.load_profile("condensation")


@pytest.fixture
def unchecked() -> Iterator[None]:
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:  # of a background job, or of nohup; children would inherit it
        signal.signal(number, handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a test with the mark ``sampled(k)``, those but one in k go to the trials."""
    cases = Counter[str]()
    for item in items:
        mark = item.get_closest_marker("sampled")
        if mark is not None and item.get_closest_marker("trials") is None:
            name = item.nodeid.partition("[")[0]
            if cases[name] % mark.args[0]:
                item.add_marker("trials")
            cases[name] += 1


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the files that import a library which is not installed: the extra [test] does without these.

    A ``conftest.py`` has no examples to collect, and two of one name from two folders clash.
    """
    if collection_path.name == "conftest.py":
        return True
    missing = "|".join(name for name in ("torch", "onnx", "h5py", "gguf", "tflite", "foreign") if not _is_there(name))
    if collection_path.suffix != ".py" or not missing:
        return None
    needs = re.search(rf"^(import|from) ({missing})\b", collection_path.read_text(encoding="utf-8"), re.MULTILINE)
    return True if needs else None


def _is_there(name: str) -> bool:
    """Whether a library is installed; ``foreign`` makes files with several."""
    return all(find_spec(own) for own in (("onnx", "h5py", "gguf", "tflite") if name == "foreign" else (name,)))
