"""Figures observed on runs that are trained once for all tests of a worker."""

from functools import cache

import pytest

from condensation.papers import FIGURES
from condensation.papers._trainings import training_of, untrained


@pytest.fixture(scope="session")
def run_of(tmp_path_factory):
    """The run of an experiment, with as many seeds as at the quick scale."""
    folder = tmp_path_factory.mktemp("runs")
    return cache(lambda experiment: training_of(experiment, folder, "quick", None).run()[0])


@pytest.fixture(scope="session")
def runs_of(run_of):
    """The runs of a figure by name."""
    return lambda name: {key: run_of(each) for key, each in FIGURES[name].experiments("quick").items()}


@pytest.fixture(scope="session")
def measured_of(runs_of):
    """What is measured of a figure's claims, by id, and the rule and whether it is about training of each."""

    def measure(name, moved=True):
        figure, runs = FIGURES[name], runs_of(name)
        observed = figure(runs if moved else {key: untrained(run) for key, run in runs.items()})
        return {
            figure.claim_id(claim.key): (observed.measured(claim.key), claim.rule, claim.trained)
            for claim in figure.claims
        }

    return measure


@pytest.fixture(scope="session")
def share_of(measured_of):
    """In which share of the seeds a claim holds, by its figure's name and its key."""

    def share(name, key):
        values, rule, _ = measured_of(name)[f"{name}-{key}"]
        return sum(values.holds(rule)) / len(values.values)

    return share
