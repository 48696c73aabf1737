"""Learning rates that are small enough, and schedules of the same moments."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from condensation import (  # fmt: skip
    GD,
    Adam,
    Arrays,
    At,
    Conv,
    Cosine,
    Dense,
    Evenly,
    Every,
    Experiment,
    Geometric,
    GradientFlow,
    Init,
    InputError,
    Loss,
    Muon,
    Normal,
    NormalisedGD,
    ResNet,
    Seed,
    SignGD,
    StepDecay,
    Warmup,
    load_run,
    sine_sum,
    train,
)
from condensation.runs import run_folder
from condensation.saving import stretched
from condensation.schedules import Constant
from condensation.training import StillRising, train_pairs, train_with_backoff
from condensation.training import _work as work
from condensation.training._backoff import rises, with_half_rate

DATA = sine_sum(1, 2, 0.5, dim=2, n=16, low=-1, high=1)
BASE = Experiment(Dense((2, 6, 1), bias=False), Init(Normal(0.5)), DATA, GD(40.0), 50, save=Every(10), record=Every(1))


@np.errstate(over="ignore", invalid="ignore")
def by_hand(experiment: Experiment, seed: Seed) -> tuple[float, int, np.ndarray, np.ndarray, np.ndarray]:
    """Gradient descent that halves, in NumPy: rate, steps, losses of the recorded times, and the last weights."""
    x, y = experiment.data.draw(seed)
    assert isinstance(experiment.optimizer, GD)
    rate, times = experiment.optimizer.learning_rate, 1
    while True:
        start = experiment.init.draw(experiment.network, seed.init_stream())
        w, a = start["dense1.weight"], start["output.weight"]
        losses: list[float] = []
        for step in range(experiment.steps * times + 1):
            h = np.tanh(x @ w.T)
            error = h @ a.T - y
            if step % times == 0:
                losses.append((error**2).mean() / 2)
            back = error @ a * (1 - h**2) / len(x)
            if step < experiment.steps * times:
                w, a = w - rate * back.T @ x, a - rate * error.T @ h / len(x)
        if all(later <= loss * (1 + 1e-9) for loss, later in pairwise(losses)):
            return rate, experiment.steps * times, np.array(losses), w, a
        rate, times = rate / 2, times * 2


def test_rates_are_those_of_a_loop_by_hand():
    experiment = BASE.replace(**{"optimizer.learning_rate": 5.0})
    pairs = [(experiment, Seed(k, k)) for k in range(6)]
    rates = set()
    for (_, seed), trajectory in zip(pairs, train_with_backoff(pairs), strict=True):
        rate, steps, losses, w, a = by_hand(experiment, seed)
        assert trajectory.experiment.optimizer == GD(rate)
        assert trajectory.experiment.steps == steps
        assert trajectory.seeds == (seed,)
        np.testing.assert_allclose(trajectory.loss[0], losses, rtol=1e-9)
        np.testing.assert_allclose(trajectory.weights(1, steps, seed), w, atol=1e-9)
        np.testing.assert_allclose(trajectory.parameters_at(steps, seed)["output.weight"], a, atol=1e-9)
        rates.add(rate)
    assert rates == {2.5, 1.25, 0.625}


def test_each_network_of_an_ensemble_ends_as_it_would_alone():
    """Different rates and initial weights, some of which need no back-off."""
    experiments = [BASE.replace(**{"optimizer.learning_rate": rate, "init.hidden.std": std})
                   for rate, std in ((0.1, 0.5), (5.0, 0.5), (5.0, 1.0))]  # fmt: skip
    pairs = [(one, Seed(k, k)) for one in experiments for k in range(1, 3)]
    together = train_with_backoff(pairs)
    assert together[0].experiment == experiments[0]
    for pair, trajectory in zip(pairs, together, strict=True):
        [alone] = train_with_backoff([pair])
        assert alone.experiment == trajectory.experiment
        [again] = train_pairs([(trajectory.experiment, pair[1])])  # what it says can be run again
        for other in (alone, again):
            np.testing.assert_array_equal(other.loss, trajectory.loss)
            np.testing.assert_array_equal(other.history(1), trajectory.history(1))
    assert len({trajectory.experiment.fingerprint() for trajectory in together}) > 3


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_time_is_kept(dtype):
    """Recorded and saved steps mean the same moments, so that the weights are those of gradient flow."""
    experiment = BASE.replace(dtype=dtype, save=Geometric(4), record=Evenly(7), steps=53)
    [found] = train_with_backoff([(experiment, Seed(0, 0))])
    ours = found.experiment.optimizer
    assert isinstance(ours, GD)
    assert ours.learning_rate < 40
    np.testing.assert_array_equal(found.recorded * ours.learning_rate, 40.0 * np.array(experiment.recorded_steps()))
    np.testing.assert_array_equal(found.saved * ours.learning_rate, 40.0 * np.array(experiment.saved_steps()))
    fine = experiment
    for _ in range(12):
        fine = with_half_rate(fine)
    flow = train(experiment.replace(optimizer=GradientFlow(40.0), dtype="float64"), 1)
    close = train(fine, 1)
    np.testing.assert_allclose(close.history(1), flow.history(1), atol=0.01)
    assert np.abs(close.loss - flow.loss).max() < 0.1 * np.abs(found.loss - flow.loss).max()


def test_a_network_that_rises_after_all_backoffs_is_named():
    wild = BASE.replace(**{"optimizer.learning_rate": 1000.0})
    with pytest.warns(StillRising, match=r"Seed\(data=3, init=4\) still rises with the learning rate 250, halved 2"):
        [found] = train_with_backoff([(wild, Seed(3, 4))], backoffs=2)
    assert found.experiment.optimizer == GD(250.0)
    assert rises(found)


def test_a_network_that_diverges_is_halved():
    data = Arrays(np.ones((4, 1)), np.ones(4))
    bad = Experiment(Dense((1, 4, 1), "x2_tanh"), Init(Normal(1.0)), data, GD(30.0), 400, save=Every(20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert train(bad, 1).diverged
    [found] = train_with_backoff([(bad, Seed(0, 0))])
    assert not found.diverged
    assert np.isfinite(found.loss).all()
    with pytest.warns(StillRising):
        assert train_with_backoff([(bad, Seed(0, 0))], backoffs=0)[0].diverged


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_fitted_network_does_not_rise_by_rounding(dtype):
    """Samples that are fitted to the last bit: there the loss goes up and down by more than the tolerance of it."""
    stream = np.random.default_rng(0)
    data = Arrays(stream.normal(size=(3, 2)), stream.normal(size=3))
    experiment = BASE.replace(data=data, dtype=dtype, steps=4000, **{"optimizer.learning_rate": 0.2})
    [found] = train_with_backoff([(experiment, Seed(0, 0))])
    assert found.experiment == experiment
    loss = found.loss[0].astype(float)
    assert loss[-1] < 1e-10 * loss[0]
    assert (loss[1:] > 1.001 * loss[:-1]).any()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "optimizer",
    [
        Adam(0.1),
        NormalisedGD(0.3),
        SignGD(0.05),
        Muon(0.5),
        GD(60.0, schedule=Cosine(40)),
        GD(60.0, schedule=Warmup(9)),
    ],
    ids=lambda optimizer: optimizer.kind,
)
def test_every_rate_can_be_halved(optimizer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        [found] = train_with_backoff([(BASE.replace(optimizer=optimizer), Seed(0, 0))], backoffs=3)
    ours = found.experiment
    times = ours.steps // BASE.steps
    assert times > 1
    expected = replace(
        optimizer, learning_rate=optimizer.learning_rate / times, schedule=optimizer.schedule.stretched(times)
    )
    assert ours.optimizer == expected


def test_runs_are_kept_and_found_again(tmp_path, monkeypatch):
    pairs = [(BASE, Seed(k, k)) for k in range(3)]
    first = train_with_backoff(pairs, out=tmp_path)
    monkeypatch.setattr(work.Work, "advance", None)
    again = train_with_backoff(pairs, out=tmp_path)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.loss, other.loss)
        loaded = load_run(run_folder(tmp_path, one.experiment))
        assert loaded.experiment == one.experiment
        assert one.seeds[0] in loaded.seeds


IMAGES = Arrays(np.zeros((4, 1, 8, 8)), np.eye(2)[[0, 1, 0, 1]])


@pytest.mark.parametrize(
    ("experiment", "backoffs", "said"),
    [
        (BASE.replace(optimizer=GradientFlow(0.1)), 10, "gradient flow has no learning rate to halve"),
        (BASE.replace(batch_size=4), 10, "with batch_size=4 the loss rises by chance"),
        (BASE.replace(**{"network.dropout": 0.1}), 10, "with dropout the loss rises by chance"),
        (BASE.replace(optimizer=GD(0.1, weight_decay=0.01)), 10, "weight_decay=0.01 the loss is not what is descended"),
        (Experiment(ResNet((1, 8, 8), 2, (4,), channels=(2,), depth=1, stem="small"), Init(Normal(0.1)), IMAGES,
                    GD(0.1), 4, Loss("cross_entropy")), 10, "with batch norm"),
        (BASE.replace(dtype="tf32"), 10, "use float32 or float64"),
        (BASE, -1, "backoffs must be a whole number of at least 0, not -1"),
        (BASE.replace(steps=2**22), 10, "cannot be doubled 10 times, to below 2\\^31: use backoffs=8"),
    ],
)  # fmt: skip
def test_what_cannot_be_halved_is_refused(experiment, backoffs, said):
    with pytest.raises(InputError, match=said):
        train_with_backoff([(BASE, Seed(0, 0)), (experiment, Seed(0, 0))], backoffs=backoffs)


def test_convolutions_can_be_halved():
    stream = np.random.default_rng(0)
    images = Arrays(stream.normal(size=(8, 1, 6, 6)), np.eye(2)[stream.integers(2, size=8)])
    network = Conv((1, 6, 6), channels=(2,), kernel=3, outputs=2)
    experiment = Experiment(network, Init(Normal(0.3)), images, GD(50.0), 20, Loss("cross_entropy"), save=Every(5))
    [found] = train_with_backoff([(experiment, Seed(0, 0))])
    assert found.experiment.steps > 20
    assert not rises(found)


LASTS = st.integers(1, 400)
SCHEDULES = st.one_of(
    st.builds(Every, st.integers(1, 500)),
    st.builds(Evenly, st.integers(2, 500)),
    st.builds(Geometric, st.integers(1, 20)),
)


@given(schedule=SCHEDULES, last=LASTS, factor=st.integers(1, 8))
def test_stretched_schedules_name_the_same_moments(schedule, last, factor):
    assert stretched(schedule, factor, last).steps(factor * last) == [factor * step for step in schedule.steps(last)]


@given(chosen=st.lists(st.integers(0, 400)), extra=st.integers(0, 50), factor=st.integers(1, 8))
def test_stretched_lists_name_the_same_moments(chosen, extra, factor):
    schedule, last = At(tuple(chosen)), max(chosen, default=1) + extra
    assert stretched(schedule, factor, last).steps(factor * last) == [factor * step for step in schedule.steps(last)]


@given(schedule=SCHEDULES, last=LASTS, times=st.integers(1, 4))
def test_stretching_twice_is_stretching_once(schedule, last, times):
    once, twice = stretched(schedule, 2 * times, last), stretched(stretched(schedule, 2, last), times, 2 * last)
    assert once.steps(2 * times * last) == twice.steps(2 * times * last)


def test_a_constant_rate_stays():
    assert Constant().stretched(2) == Constant()


@given(
    parts=st.one_of(
        st.tuples(st.just(Cosine), st.integers(1, 60), st.floats(0, 1)),
        st.tuples(st.just(StepDecay), st.lists(st.integers(1, 60), min_size=1, max_size=4), st.floats(0.125, 1)),
        st.tuples(st.just(Warmup), st.integers(1, 60)),
    ),
    step=st.integers(0, 80),
    factor=st.integers(1, 8),
)
def test_stretched_rates_have_the_same_factor_at_the_same_time(parts, step, factor):
    kind, first, *rest = parts
    rate = kind(tuple(first) if isinstance(first, list) else first, *rest)
    ours, theirs = float(rate.stretched(factor).factor(factor * step)), float(rate.factor(step))
    within = 1 / rate.steps if isinstance(rate, Warmup) else 0  # a first step is lower if steps are shorter
    assert theirs - within - 1e-6 <= ours <= theirs + 1e-6
