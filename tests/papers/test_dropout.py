"""Noise: that an untrained network fulfils nothing, and that dropout and R1 condense where small batches do not."""

import pytest
import small_figure as small

from condensation.papers import judge


@pytest.mark.parametrize("name", [pytest.param("dropout-few", marks=pytest.mark.trials), "dropout-line"])
def test_a_network_that_hardly_moved_fulfils_nothing(name):
    figure, control = small.observed(name, steps=10, seeds=1)
    small.judged(figure)
    assert not any(any(holds) for holds in small.judged(control).values())
    assert figure.draw().pictures


@pytest.mark.trials
def test_dropout_and_its_mean_effect_condense_and_batches_labels_and_decay_do_not(measured_of):
    def verdict(key, name="dropout-few"):
        values, rule, _ = measured_of(name)[f"{name}-{key}"]
        return judge(values.holds(rule))

    assert {verdict(key) for key in ("dropout", "penalty", "none", "batches")} == {"reproduced"}
    assert {verdict(key) for key in ("labels", "decay")} == {"not reproduced"}
    assert verdict("penalty", "dropout-line") == "reproduced"
