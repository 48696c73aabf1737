"""Clusters and samples: orientations by hand, the target by its formula, nothing holds for an untrained network."""

import numpy as np
import pytest
import small_figure as small

from condensation.papers import judge
from condensation.papers._figure import Available
from condensation.papers.overview import Clusters, Samples
from condensation.papers.overview.samples import target


class Counted(Clusters):
    counts = np.array([[9, 1, 2, 3], [9, 1, 3, 2], [9, 2, 2, 2]])


def test_a_fall_and_a_number_that_stays_are_told_apart():
    figure = Counted(Available({}))
    assert figure.least_change.tolist() == [1, -1, -1]
    assert figure.measured("grows").holds(figure.claim("grows").rule) == (True, True, False)


def test_the_target_is_the_sum_of_three_shifted_neurons():
    x = np.random.default_rng(0).normal(size=(7, 5))
    expected = sum(np.tanh(0.6 * x[:, s] + 0.8 * x[:, s + 1] + x[:, s + 2]) for s in range(3))
    np.testing.assert_allclose(target()(x)[:, 0], expected, atol=1e-12)
    kernels = [each for name, each in Samples.experiments("quick").items() if name.startswith("conv, 1,")]
    assert sum(np.prod(shape) for layer in kernels[0].network.layers for shape in layer.parameters.values()) == 7


def test_orientations_are_those_of_the_neurons_that_carry_the_output():
    figure, control = small.observed("overview-clusters", steps=60)
    for each in (figure, control):
        assert not any(map(any, small.judged(each).values()))
    assert figure.counts.min() >= 1
    assert figure.draw().pictures


@pytest.mark.trials
def test_few_samples_are_not_enough_and_orientations_grow(measured_of):
    def verdict(name, key):
        values, rule, _ = measured_of(name)[f"{name}-{key}"]
        return judge(values.holds(rule))

    assert verdict("overview-clusters", "grows") == "reproduced"
    assert verdict("overview-samples", "dense-30-few") == "reproduced"
    assert verdict("overview-samples", "dense-30-more") in ("reproduced", "partly")
