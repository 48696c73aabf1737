"""Shapes in signatures are checked while testing; ``unchecked`` lets bad input through to our own errors."""

import re
import signal
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


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the files that import PyTorch where it is not installed: the extra [test] does without it."""
    if collection_path.suffix != ".py" or find_spec("torch"):
        return None
    needs = re.search(r"^(import|from) torch\b", collection_path.read_text(encoding="utf-8"), re.MULTILINE)
    return True if needs else None
