"""Trainings of tests are measured at every due step, however short they are; tests of the budget set it themselves."""

from contextlib import suppress

import pytest


@pytest.fixture(autouse=True)
def _every_due_step(monkeypatch):
    with suppress(ImportError, AttributeError):  # without PyTorch
        monkeypatch.setattr("condensation.pytorch._watch.BUDGET", None)
