"""The mean effect of dropout: against the mean over all masks, and a NumPy loop."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest

from condensation import GD, Arrays, Conv, Dense, Every, Experiment, GradientFlow, Init, InputError, Loss, Normal, train
from condensation.training._program import dropout_penalty

SHARE = 0.3


def experiment(outputs=1, **changes):
    stream = np.random.default_rng(1)
    data = Arrays(stream.normal(size=(5, 2)), stream.normal(size=(5, outputs)))
    made = Experiment(
        Dense((2, 4, outputs), "tanh"), Init(Normal(0.8)), data, GD(0.1), 4, save=Every(1), dropout_penalty=SHARE
    )
    return made.replace(**changes)


@pytest.mark.parametrize("outputs", [1, 3])
def test_it_is_what_dropout_adds_in_the_mean_over_all_masks(outputs):
    run = train(experiment(outputs), 1, progress=False)
    (x, y), model = run.data(0), run.model(0, 0)
    a, h = model.parameters["output.weight"], np.tanh(np.c_[x, np.ones(len(x))] @ model.weights(1).T)

    def loss(hidden):
        return 0.5 * np.mean(((hidden @ a.T - y) ** 2).sum(1))

    mean = 0.0
    # masks of one sample at a time suffice: the loss is a sum over samples
    for mask in product((0, 1), repeat=4):
        chance = (1 - SHARE) ** sum(mask) * SHARE ** (4 - sum(mask))
        mean += chance * loss(h * np.array(mask) / (1 - SHARE))
    assert float(dropout_penalty(jnp.asarray(a), jnp.asarray(h.T), SHARE)) == pytest.approx(mean - loss(h), rel=1e-6)
    assert float(dropout_penalty(jnp.asarray(a), jnp.asarray(h.T), SHARE, "sum")) == pytest.approx(
        5 * (mean - loss(h)), rel=1e-6
    )


def test_a_loop_in_numpy_takes_the_same_steps():
    run = train(experiment(), 2, progress=False)
    for seed in (0, 1):
        x, y = run.data(seed)
        inputs, n = np.c_[x, np.ones(len(x))], len(x)
        w, a = run.weights("dense1", 0, seed), run.parameters_at(0, seed)["output.weight"][0]
        for step in range(4):
            h = np.tanh(inputs @ w.T)
            error, factor = (h @ a - y[:, 0]) / n, SHARE / (1 - SHARE) / n
            back = error[:, None] * a + factor * a**2 * h
            da = error @ h + factor * a * (h**2).sum(0)
            w, a = w - 0.1 * (back * (1 - h**2)).T @ inputs, a - 0.1 * da
            np.testing.assert_allclose(run.weights("dense1", step + 1, seed), w, atol=1e-13)
            np.testing.assert_allclose(run.parameters_at(step + 1, seed)["output.weight"][0], a, atol=1e-13)
        assert run.loss[seed, 3] == pytest.approx(0.5 * np.mean((run.output(x, 3, seed) - y) ** 2))  # without it


def test_it_travels_as_text_and_is_told():
    own = experiment(data=Arrays(np.eye(2), np.ones((2, 1))))
    plain = own.to_plain()
    assert plain["dropout_penalty"] == SHARE
    assert "dropout 0.3" in own.describe()["penalty"]
    assert "penalty" not in own.replace(dropout_penalty=None).describe()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"dropout_penalty": 1.0}, "below 1"),
        ({"dropout_penalty": 0.0}, "above 0"),
        ({"network": Dense((2, 4, 1), dropout=0.5)}, "in the place of"),
        ({"network": Conv((1, 8, 8), (2,), 3, outputs=1)}, "dense networks"),
        ({"loss": Loss("squared_error")}, "mse"),
        ({"optimizer": GradientFlow(0.1)}, "no dropout_penalty"),
    ],
)
def test_it_is_refused_where_it_means_nothing(changes, told):
    with pytest.raises(InputError, match=told):
        experiment(**changes)


def test_it_is_not_mixed_in_one_ensemble():
    with pytest.raises(InputError, match="dropout_penalty"):
        train([experiment(), experiment(dropout_penalty=0.1)], 1, progress=False)
