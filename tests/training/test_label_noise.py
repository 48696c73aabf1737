"""Label noise: fresh Gaussian numbers on the targets of each step, against its definition and a NumPy loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from condensation import (  # fmt: skip
    GD,
    Adam,
    Arrays,
    At,
    Conv,
    Dense,
    Every,
    Experiment,
    GradientFlow,
    Init,
    InputError,
    Loss,
    Normal,
    Seed,
    sweep,
    train,
)
from condensation.derivatives import jacobian, residuals
from condensation.training import _engine
from condensation.training._train import member_of, program_of

STD = 0.3


def experiment(steps: int = 6, **changes) -> Experiment:
    stream = np.random.default_rng(1)
    data = Arrays(stream.normal(size=(5, 2)), stream.normal(size=(5, 1)))
    network = Dense((2, 3, 1), "linear", bias=False)
    made = Experiment(network, Init(Normal(0.5)), data, GD(0.1), steps, save=Every(1), label_noise=STD)
    return made.replace(**changes)


def noise_of(step: int, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """The noise of a step, from the key of the training: by number 2, then by the step."""
    with jax.enable_x64(True):
        key = jax.random.fold_in(jnp.asarray(Seed(seed, seed).training_key(), jnp.uint32), 2)
        return STD * np.asarray(jax.random.normal(jax.random.fold_in(key, step), shape))


def test_a_loop_in_numpy_takes_the_same_steps():
    run = train(experiment(), 2)
    x, y = run.data(0)
    for seed in (0, 1):
        w, a = (run.parameters_at(0, seed)[name] for name in ("dense1.weight", "output.weight"))
        for step in range(6):
            h = x @ w.T
            error = (h @ a.T - y - noise_of(step, y.shape, seed)) / len(y)
            w, a = w - 0.1 * (error @ a).T @ x, a - 0.1 * error.T @ h
            np.testing.assert_allclose(run.parameters_at(step + 1, seed)["dense1.weight"], w, atol=1e-13)
            np.testing.assert_allclose(run.parameters_at(step + 1, seed)["output.weight"], a, atol=1e-13)
        assert run.loss[seed, 3] == pytest.approx(  # on the true targets
            0.5 * np.mean((run.output(x, 3, seed) - y) ** 2), rel=1e-12
        )


def test_the_mean_gradient_is_that_of_the_true_targets_and_its_variance_that_of_the_noise():
    """At a rate so small that the weights do not move, each step shows one gradient."""
    steps, rate = 3000, 1e-9
    run = train(experiment(steps, **{"optimizer.learning_rate": rate}), 1)
    weights = run.parameters["output.weight"][0, :, 0]
    seen = -np.diff(weights, axis=0) / rate
    model, (x, y) = run.model(0, 0), run.data(0)
    slopes = jacobian(model, x)["output.weight"][:, 0, 0]
    mean = -residuals(model, x, y)[:, 0] @ slopes / len(x)
    covariance = STD**2 * slopes.T @ slopes / len(x) ** 2
    error = np.sqrt(np.diag(covariance) / steps)
    assert (np.abs(seen.mean(axis=0) - mean) < 4.5 * error).all()
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    np.testing.assert_allclose(np.cov(seen.T) / scale, covariance / scale, atol=4.5 * np.sqrt(2 / steps))


def test_none_is_no_noise_and_an_ensemble_may_differ_in_it():
    plain, zero = train(experiment(label_noise=None), 1), experiment(label_noise=0.0)
    together = train([zero, experiment()], 2)
    alone = train(experiment(), [1])
    for name, value in plain.parameters_at(6, 0).items():
        np.testing.assert_array_equal(together[0].parameters_at(6, 0)[name], value)
        np.testing.assert_array_equal(together[1].parameters_at(6, 1)[name], alone.parameters_at(6, 1)[name])
        assert np.abs(together[1].parameters_at(6, 0)[name] - value).max() > 1e-4
    with pytest.raises(InputError, match="must all have label_noise, or none of them: 0 is a noise that adds nothing"):
        train([experiment(label_noise=None), experiment()])


def test_a_sweep_has_it_as_an_axis(tmp_path):
    table = sweep(experiment(), {"label_noise": [0.0, STD]}, "change", seeds=2, n_jobs=1, out=tmp_path)
    expected = [train(experiment(label_noise=std), 2).loss[:, -1].tolist() for std in (0.0, STD)]
    assert table.rows["loss"].to_pylist() == [loss for losses in expected for loss in losses]


def test_a_batch_of_networks_has_each_ones_noise():
    """As on a GPU: several networks go through one call."""
    chosen = experiment(batch_size=2)
    members = [member_of(chosen, Seed(k, k)) for k in range(3)]
    program, steps = program_of([chosen], members), np.arange(7)
    one, three = (_engine.run(program, members, _engine.RunPlan(steps, steps), block=block) for block in (1, 3))
    for alone, beside in zip(one, three, strict=True):
        for name, value in alone.weights.items():
            np.testing.assert_allclose(beside.weights[name], value, atol=1e-13)
    assert np.abs(one[0].weights["output.weight"][-1] - one[1].weights["output.weight"][-1]).max() > 1e-3


def test_a_run_goes_on_to_the_same_bits(tmp_path):
    """Stopped in the middle by a reporter that raises; with batches and Adam, in a network with convolutions too."""
    stream = np.random.default_rng(0)
    images = Arrays(stream.normal(size=(6, 1, 4, 4)), np.eye(2)[stream.integers(2, size=6)])
    made = Experiment(
        Conv((1, 4, 4), (2,), 3, 2), Init(Normal(0.5)), images, Adam(0.01), 40, Loss("cross_entropy"),
        save=At((40,)), record=Every(1), batch_size=3, label_noise=0.1,
    )  # fmt: skip

    class Stop(Exception):
        pass

    def stop(progress):
        if progress.done >= 10:
            raise Stop

    with pytest.raises(Stop):
        train(made, 1, out=tmp_path, progress=stop)
    went_on, whole = train(made, 1, out=tmp_path), train(made, 1)
    for name, value in whole.parameters_at(40, 0).items():
        np.testing.assert_array_equal(went_on.parameters_at(40, 0)[name], value)
    np.testing.assert_array_equal(went_on.loss, whole.loss)
    assert whole.curves["accuracy"].shape == (1, 41)


def test_it_is_told_and_comes_back_and_what_cannot_be_is_refused(tmp_path):
    made = experiment()
    np.savez(tmp_path / "data.npz", x=made.data.x, y=made.data.y)
    filed = made.replace(data=Arrays.load("data.npz", tmp_path))
    assert Experiment.from_toml(filed.to_toml(), tmp_path).label_noise == STD
    assert filed.fingerprint() == made.fingerprint() != made.replace(label_noise=None).fingerprint()
    assert made.describe()["label noise"] == "N(0, 0.3²), anew at each step"
    assert "label noise" not in made.replace(label_noise=None).describe()
    with pytest.raises(InputError, match="label_noise must be a finite number of at least 0, not -1"):
        experiment(label_noise=-1.0)
    with pytest.raises(InputError, match="gradient flow has no steps at which labels could be noisy: no label_noise"):
        experiment(optimizer=GradientFlow(0.1))
