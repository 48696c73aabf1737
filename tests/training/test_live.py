"""A training that is asked for its moments gives the numbers of ``train``."""

from itertools import pairwise

import numpy as np
import pytest

from condensation import (
    GD,
    Adam,
    At,
    Conv,
    Dense,
    Experiment,
    GradientFlow,
    Images,
    Init,
    Loss,
    Normal,
    NormalisedGD,
    train,
    two_waves,
)
from condensation.training import Live

STEPS = (0, 1, 2, 9, 40)


def one(optimizer, **changes):
    base = Experiment(Dense((1, 6, 1), "x_tanh"), Init(Normal(0.1)), two_waves(), optimizer, 40, save=At(STEPS))
    return base.replace(**changes)


@pytest.mark.trials
@pytest.mark.parametrize("optimizer", [Adam(1e-2), GD(0.1), NormalisedGD(1e-2), GradientFlow(0.1)])
def test_moments_are_those_of_train(optimizer):
    experiment = one(optimizer)
    trajectory, live = train(experiment, seeds=[3]), Live(experiment, 3)
    moments = [live.first(), *(live.advance(b - a) for a, b in pairwise(STEPS))]
    exact = 0 if not isinstance(optimizer, GradientFlow) else 1e-9
    for k, (moment, step) in enumerate(zip(moments, STEPS, strict=True)):
        assert moment.step == step
        for name, value in moment.parameters.items():
            np.testing.assert_allclose(value, trajectory.parameters[name][0, k], rtol=exact, atol=0)
        at = list(trajectory.recorded).index(step)
        np.testing.assert_allclose(moment.loss, trajectory.loss[0, at], rtol=1e-12)
    if isinstance(optimizer, GradientFlow):
        assert moments[-1].curves["time"] == pytest.approx(4.0)


def test_how_the_steps_are_cut_changes_nothing():
    whole, cut = Live(one(Adam(1e-2)), 0), Live(one(Adam(1e-2)), 0)
    last = [cut.advance(k) for k in (1, 1, 5, 13)][-1]
    for name, value in whole.advance(20).parameters.items():
        np.testing.assert_array_equal(value, last.parameters[name])


def test_a_time_limit_shortens_the_way_and_is_no_limit_in_the_end():
    live, asked = Live(one(Adam(1e-3)), 0), 10**6
    first = live.advance(asked, seconds=0.01)
    assert 0 < first.step < asked
    later = [live.advance(asked, seconds=0.01).step for _ in range(20)]
    assert later == sorted(set(later))


def test_a_convolutional_network_goes_step_by_step():
    network, start = Conv((1, 8, 8), (3,), 3, 10), Init(Normal(0.01), convolution=Normal(0.01))
    experiment = Experiment(
        network, start, Images("digits", n=20), GD(0.1), 6, loss=Loss("cross_entropy"), save=At((0, 2, 6))
    )
    trajectory, live = train(experiment), Live(experiment)
    assert live.first().curves["accuracy"] == trajectory.accuracy[0, 0]
    for k, moment in ((1, live.advance(2)), (2, live.advance(4))):
        np.testing.assert_array_equal(moment.parameters["conv1.weight"], trajectory.parameters["conv1.weight"][0, k])


def test_divergence_is_seen():
    live = Live(one(GD(1e6)), 0)
    assert live.first().finite
    assert not live.advance(40).finite
