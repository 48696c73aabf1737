import numpy as np
import pytest

import condensation as c
from condensation.theory.trial import compare_optimizers

DATA = c.sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)


def scores(activation, seeds, **options):
    experiment = c.Experiment(c.Dense((5, 50, 1), activation), c.Start(c.Normal(5e-5)), DATA, c.GD(1.0), steps=1)
    rows = compare_optimizers(experiment, seeds, **options)
    return {kind: [row for row in rows if row.optimizer == kind] for kind in dict.fromkeys(r.optimizer for r in rows)}


def mean(rows, name):
    return np.mean([getattr(row.accuracy, name) for row in rows])


@pytest.mark.trials
def test_equal_speeds_bring_all_neurons_to_their_lines_and_adam_brings_them_to_others():
    found = scores("x_tanh", seeds=3, steps=1000)
    assert list(found) == ["gradient_flow", "gd", "normalised_gd", "adam"]
    for rows in found.values():
        assert all(0.99 <= row.loss_ratio + 1e-5 < 1.001 for row in rows)
    assert mean(found["gradient_flow"], "orientations") < 0.3  # only a few have grown
    assert mean(found["normalised_gd"], "orientations") > 0.75
    assert mean(found["normalised_gd"], "nearest") > 0.95  # a random guess: 0.25
    assert mean(found["adam"], "lines") < 0.3


def test_other_networks_are_refused_in_a_sentence():
    experiment = c.Experiment(c.Dense((5, 5, 5, 1)), c.Start(c.Normal(5e-5)), DATA, c.GD(1.0), steps=1)
    with pytest.raises(c.InputError, match="one hidden layer and one output"):
        compare_optimizers(experiment, 1)
