"""Noise: that an untrained network fulfils nothing, and that dropout and R1 condense where small batches do not."""

import numpy as np
import pytest
import small_figure as small

from condensation import find_lines
from condensation.papers import judge


@pytest.mark.parametrize("name", [pytest.param("dropout-few", marks=pytest.mark.trials), "dropout-line"])
def test_a_network_that_hardly_moved_fulfils_nothing(name):
    figure, control = small.observed(name, steps=10, seeds=1)
    small.judged(figure)
    assert not any(any(holds) for holds in small.judged(control).values())
    assert figure.draw().pictures


def test_what_carries_the_output_is_weighed_by_what_each_neuron_adds():
    figure, _ = small.observed("dropout-line", steps=10, seeds=2, only=("none",))
    run = figure.runs["none"]
    for k, seed in enumerate(run.seeds):
        model = run.model(10, seed)
        added = np.abs(model.parameters["output.weight"][0])[:, None] * model.weights(1)
        lines = find_lines(added)
        assert figure.carried["none"].orientations[k, -1] == lines.orientations
        assert figure.carried["none"].cover[k, -1] == pytest.approx(lines.cover)


@pytest.mark.trials
def test_dropout_and_its_mean_effect_condense_and_batches_labels_and_decay_do_not(measured_of):
    def verdict(key, name="dropout-few"):
        values, rule, _ = measured_of(name)[f"{name}-{key}"]
        return judge(values.holds(rule))

    assert {verdict(key) for key in ("dropout", "penalty", "none", "batches")} == {"reproduced"}
    assert {verdict(key) for key in ("labels", "decay")} == {"not reproduced"}
    assert verdict("penalty", "dropout-line") == "reproduced"
