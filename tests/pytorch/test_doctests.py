"""The examples in docstrings of the PyTorch room, which the ordinary tests leave out."""

import doctest
import importlib
import pkgutil

import pytest

import condensation.pytorch

pytestmark = pytest.mark.pytorch
MODULES = [module.name for module in pkgutil.walk_packages(condensation.pytorch.__path__, "condensation.pytorch.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0
