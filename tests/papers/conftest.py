"""Figures observed on runs that are trained once for all tests of a worker."""

import pytest

from condensation.papers import FIGURES, PaperFigure, Variant
from condensation.papers._legacy import Lab, Recipe
from condensation.papers._trainings import untrained


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    return Lab(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def runs_of(lab):
    """The runs of a figure by name."""
    return lambda name: lab.gather(FIGURES[name].experiments("quick"))


@pytest.fixture(scope="session")
def measured_of(runs_of):
    """What is measured of a figure's claims, by id, and the rule and whether it is about training of each."""

    def measure(name, moved=True):
        figure, runs = FIGURES[name], runs_of(name)
        runs = runs if moved else {key: untrained(run) for key, run in runs.items()}
        if isinstance(figure, Recipe):
            values = figure.measure(runs, Variant())
            return {s.id: (values[s.id], s.expected, s.trained) for s in figure.statements if s.id in values}
        observed: PaperFigure = figure(runs)
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
