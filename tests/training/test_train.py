import functools
import subprocess
import sys
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from condensation import (  # fmt: skip
    GD,
    Adam,
    Arrays,
    Dense,
    Evenly,
    Every,
    Experiment,
    Geometric,
    Init,
    InputError,
    Loss,
    Normal,
    NormalisedGD,
    Seed,
    sine_sum,
    train,
    two_waves,
)
from condensation.training import Diverged, GradientBelowEps
from condensation.training import _engine as engine

train_module = sys.modules[train.__module__]

DATA = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
TANH = Experiment(Dense((5, 50, 1)), Init(Normal(0.005)), DATA, Adam(1e-3), 200, save=Every(50))


def same(one, other) -> bool:
    return all(np.array_equal(one.parameters[name], other.parameters[name]) for name in one.parameters)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_seed_does_not_depend_on_its_company(dtype):
    experiment = TANH.replace(dtype=dtype)
    crowd, alone = train(experiment, 5), train(experiment, [3])
    for name in crowd.parameters:
        assert crowd.parameters[name].dtype == dtype
        np.testing.assert_array_equal(crowd.parameters[name][3], alone.parameters[name][0])


def test_what_is_saved_does_not_change_the_numbers():
    plain = train(TANH, 2)
    for save, record in ((Every(1), Every(1)), (Geometric(5), Evenly(2)), (Every(50), Every(7))):
        other = train(TANH.replace(save=save, record=record), 2)
        np.testing.assert_array_equal(other.weights(1, 200), plain.weights(1, 200))
        common = np.intersect1d(other.recorded, plain.recorded)
        ours, theirs = (t.loss[:, np.isin(t.recorded, common)] for t in (other, plain))
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("block", [2, 4, 8])
def test_a_batch_of_networks_trains_like_single_ones(block, monkeypatch):
    """The way a GPU is used, run here on the CPU: full batches, a last one that is padded."""
    experiment = TANH.replace(save=Every(10), record=Every(10))
    single = train(experiment, 5)
    monkeypatch.setattr(train_module, "run", functools.partial(engine.run, block=block))
    batched = train(experiment, 5)
    np.testing.assert_allclose(batched.loss, single.loss, rtol=1e-11)
    for name, values in batched.parameters.items():
        np.testing.assert_allclose(values, single.parameters[name], atol=1e-10)


def test_several_experiments_train_as_one_ensemble():
    rates = [1e-4, 1e-3, 1e-2]
    together = train(TANH.vary("optimizer.learning_rate", rates), 2)
    for trajectory, experiment in zip(together, TANH.vary("optimizer.learning_rate", rates), strict=True):
        assert trajectory.experiment == experiment
        assert same(trajectory, train(experiment, 2))
    small, large = train(TANH.vary("init.hidden.std", [1e-4, 1e-2]), 2)
    np.testing.assert_allclose(small.weights(1, 0) * 100, large.weights(1, 0))


def test_recorded_loss_and_gradient_are_those_of_the_saved_weights():
    trajectory = train(TANH.replace(save=Every(100)), 1)
    x, y = trajectory.data(0)
    for step in (0, 100, 200):
        f = trajectory.output(x, step, 0)
        w, a = trajectory.weights("dense1", step, 0), trajectory.parameters_at(step, 0)["output.weight"][0]
        z = np.tanh(np.c_[x, np.ones(len(x))] @ w.T)
        np.testing.assert_allclose(f[:, 0], z @ a, rtol=1e-10)
        at = np.flatnonzero(trajectory.recorded == step)[0]
        assert trajectory.loss[0, at] == pytest.approx(((f - y) ** 2).mean() / 2, rel=1e-12)
        gradient = ((f - y) * z).mean(axis=0)
        assert trajectory.gradient["output.weight"][0, at] == pytest.approx(np.abs(gradient).mean(), rel=1e-8)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_users_jax_configuration_is_not_touched(dtype):
    before = jax.config.read("jax_enable_x64")
    trajectory = train(TANH.replace(dtype=dtype, steps=50), 2)
    assert trajectory.loss.dtype == dtype
    assert jax.config.read("jax_enable_x64") == before
    assert jnp.ones(2).dtype == jnp.float32


def test_float32_follows_float64():
    wide, narrow = (train(TANH.replace(dtype=dtype), 3) for dtype in ("float64", "float32"))
    np.testing.assert_allclose(narrow.weights(1, 50), wide.weights(1, 50), atol=1e-4)


def test_a_diverging_seed_stops_and_the_others_go_on():
    x, y = np.ones((4, 1)), np.ones(4)
    stable = Experiment(Dense((1, 4, 1), "x2_tanh"), Init(Normal(1.0)), Arrays(x, y), GD(0.01), 400, save=Every(20))
    with pytest.warns(Diverged, match=r"Seed\(data=0, init=0\) was not finite at step"):
        good, bad = train([stable, stable.replace(**{"optimizer.learning_rate": 30.0})], 1)
    assert same(good, train(stable, 1))
    assert not good.diverged
    end = bad.diverged[Seed(0, 0)]
    assert np.isfinite(bad.loss[0, bad.recorded < end]).all()
    assert np.isnan(bad.loss[0, bad.recorded >= end]).all()
    kept = bad.saved[bad.saved < end]
    assert np.isfinite(bad.weights(1, int(kept[-1]), 0)).all()
    with pytest.raises(InputError, match=f"seed 0 diverged at step {end}; its last saved step is {kept[-1]}"):
        bad.weights(1, 400, 0)


def test_gradients_below_adams_eps_are_warned_of_and_recorded():
    network = Dense((3, *[18] * 5, 1), ("x2_tanh", "x_tanh", "sigmoid", "tanh", "softplus"), residual=True)
    data = sine_sum(4, 12, 1, dim=3, n=80, low=-4, high=2)
    experiment = Experiment(network, Init(Normal(0.01)), data, Adam(4e-5), 5)
    with pytest.warns(GradientBelowEps, match="below Adam's eps 1e-08 in dense2.weight"):
        trajectory = train(experiment, 2)
    assert (trajectory.gradient["dense2.weight"] < 1e-8).any()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(experiment.replace(**{"optimizer.eps": 1e-30}), 2)


def test_neuron_normalised_steps_have_one_length_along_the_gradient():
    experiment = Experiment(Dense((5, 50, 2), "tanh"), Init(Normal(0.005)), Arrays(*two_outputs()), GD(1e-3), 1)
    plain, normal = train(experiment, 1), train(experiment.replace(optimizer=NormalisedGD(1e-3)), 1)

    def moves(t):
        hidden = t.weights(1, 1, 0) - t.weights(1, 0, 0)
        out = (t.parameters_at(1, 0)["output.weight"] - t.parameters_at(0, 0)["output.weight"]).T
        return np.concatenate([hidden, out], axis=1)

    lengths = np.linalg.norm(moves(normal), axis=1)
    np.testing.assert_allclose(lengths, 1e-3, rtol=1e-9)
    unit = moves(plain) / np.linalg.norm(moves(plain), axis=1, keepdims=True)
    np.testing.assert_allclose(moves(normal) / 1e-3, unit, atol=1e-9)


def two_outputs():
    x, y = DATA.draw(Seed(0, 0))
    return x, np.concatenate([y, y**2], axis=1)


def test_a_neuron_without_gradient_stays():
    x, y = -np.ones((4, 1)), np.ones(4)
    experiment = Experiment(
        Dense((1, 30, 1), "relu", bias=False), Init(Normal(1.0)), Arrays(x, y), NormalisedGD(0.1), 1
    )
    trajectory = train(experiment, 1)
    dead = trajectory.weights(1, 0, 0)[:, 0] > 0
    assert 0 < dead.sum() < 30
    np.testing.assert_array_equal(trajectory.weights(1, 1, 0)[dead], trajectory.weights(1, 0, 0)[dead])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neuron_normalised_steps_survive_tiny_gradients(dtype):
    tiny = {"float32": 1e-10, "float64": 1e-100}[dtype]
    experiment = Experiment(Dense((5, 50, 1), "x2_tanh"), Init(Normal(tiny)), DATA, NormalisedGD(1e-3), 1, dtype=dtype)
    trajectory = train(experiment, 1)
    moved = np.linalg.norm(trajectory.weights(1, 1, 0).astype(float), axis=1)
    assert np.median(moved) > 1e-4


def test_progress_adds_up():
    seen = []
    train(TANH, 3, progress=seen.append)
    assert seen[-1].done == seen[-1].total
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert all(p.loss > 0 and p.left >= 0 for p in seen)


def test_printed_progress_in_a_log_is_ten_lines_at_most(capsys):
    train(TANH, 1, progress=True)
    said = capsys.readouterr().err
    assert "100%" in said
    assert "loss" in said
    assert 1 <= said.count("\n") <= 10


def test_an_interrupt_stops_the_workers():
    """A real Ctrl-C in a process of its own, received by a worker's thread: it ends by KeyboardInterrupt."""
    code = (
        "import signal, threading\n"
        "from condensation import *\n"
        "d = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)\n"
        "e = Experiment(Dense((5, 50, 1)), Init(Normal(0.005)), d, GD(1e-3), 50_000_000, save=Evenly(3))\n"
        "once = iter([signal.SIGINT])\n"
        "def interrupt(_):\n"
        "    assert threading.current_thread() is not threading.main_thread()\n"
        "    [signal.pthread_kill(threading.get_ident(), number) for number in once]\n"
        "train(e, 4, progress=interrupt)"
    )
    ended = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, timeout=300)
    assert "KeyboardInterrupt" in ended.stderr
    assert ended.returncode != 0


def test_a_reporter_that_fails_stops_the_training():
    def stop(_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        train(TANH.replace(steps=50_000_000, save=Evenly(3)), 4, progress=stop)
    assert not [t for t in threading.enumerate() if t.name.startswith("ThreadPoolExecutor") and t.is_alive()]


def test_the_end_of_the_initial_stage():
    trajectory = train(TANH.replace(steps=1000, record=Every(1)), 3)
    for loss, end in zip(trajectory.loss, trajectory.initial_stage_end(), strict=True):
        assert end is not None
        assert loss[end] <= 0.7 * loss[0] < loss[end - 1]
    assert train(TANH.replace(steps=5), 2).initial_stage_end() == (None, None)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda t: t.weights("dense2", 0), "unknown layer 'dense2'; did you mean 'dense1'"),
        (lambda t: t.weights(3, 0), "unknown layer 3; known: dense1, output, 1 to 2"),
        (lambda t: t.weights(1, 7), "step 7 was not saved; saved are 0, 50, 100, 150, 200"),
        (lambda t: t.weights(1, 0, 9), "seed 9 was not run; the seeds are 0, 1"),
        (lambda t: t.output(np.ones((3, 2)), 0, 0), r"a sample of this network has shape \(5,\), not \(2,\)"),
        (lambda t: t.accuracy, "has no accuracy"),
        (lambda t: t.weights(1, 0, view="kernel"), "unknown view of the layer dense1 'kernel'; known: neuron"),
    ],
)
def test_what_a_trajectory_does_not_hold_is_named(ask, said):
    with pytest.raises(InputError, match=said):
        ask(train(TANH, 2))


@pytest.mark.parametrize(
    ("experiments", "said"),
    [
        ([], "at least one experiment"),
        ([TANH, TANH.replace(steps=100)], "their steps is 200 and 100"),
        ([TANH, TANH.replace(dtype="float32")], "their dtype is float64 and float32"),
        ([TANH, TANH.replace(**{"optimizer.b1": 0.5})], "their optimizer is .*b1=0.9.* and .*b1=0.5"),
        ([TANH, TANH.replace(data=sine_sum(1, 1, 0, dim=5, n=9, low=0, high=1))], r"data of one shape, not .*\(9, 5\)"),
        ([TANH.replace(data=two_waves())], r"samples of shape \(1,\) and 1 outputs, the network \(5,\) and 1"),
        ([TANH.replace(loss=Loss("cross_entropy"))], "with K of them labels 0 to K-1 can be the targets"),
        ([TANH.replace(batch_size=81)], "a batch of 81 samples is asked for, but there are only 80"),
    ],
)
def test_what_cannot_be_trained_is_refused(experiments, said):
    with pytest.raises(InputError, match=said):
        train(experiments, 1)
