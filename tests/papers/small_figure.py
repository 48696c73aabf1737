"""A figure observed on short trainings of its own experiments: enough to see that all of it can be computed."""

from condensation import Geometric, train
from condensation.papers import FIGURES
from condensation.papers._figure import Available
from condensation.papers._trainings import untrained


def observed(name, steps=40, seeds=2, only=None, **changes):
    """The figure on runs of so few steps, and the same untrained."""
    figure, often, runs = FIGURES[name], Geometric(5), {}
    for key, experiment in figure.experiments("quick").items():
        if only is None or key in only:
            short = experiment.replace(steps=steps, save=often, record=often, **changes)
            runs[key] = train(short, seeds, progress=False)
    return figure(Available(runs)), figure(Available({key: untrained(run) for key, run in runs.items()}))


def judged(figure):
    """Whether each claim of a figure holds in each seed, by key; reasons are asked for too."""
    found = {}
    for claim in figure.claims:
        found[claim.key] = figure.measured(claim.key).holds(claim.rule)
        if callable(claim.why):
            assert claim.why(figure)
    return found
