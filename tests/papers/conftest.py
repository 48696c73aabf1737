"""Runs of the synthetic figures, trained once for all tests of a worker."""

import pytest

from condensation.papers.lab import Lab
from condensation.papers.make import RECIPES


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    return Lab(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def runs_of(lab):
    """The runs of a figure by name."""
    return lambda name: lab.gather(RECIPES[name].experiments("quick"))
