"""Shapes in signatures are checked while testing; ``unchecked`` lets bad input through to our own errors."""

import signal
from collections.abc import Iterator

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
