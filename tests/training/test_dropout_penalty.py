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


@pytest.mark.parametrize("kind", ["plain", "residual", "concatenated"])
def test_of_deeper_networks_it_is_dropout_of_the_neurons_of_the_last_hidden_layer_alone(kind):
    """A step against central differences of the mean loss over all masks."""
    network = Dense((2, 3, 3, 2), "tanh", output_bias=True, **({} if kind == "plain" else {kind: True}))
    run = train(experiment(2, network=network, steps=1, save=Every(1)), 1, progress=False)
    x, y = run.data(0)
    start, end = run.parameters_at(0, 0), run.parameters_at(1, 0)

    def mean_loss(values):
        first = np.tanh(x @ values["dense1.weight"].T + values["dense1.bias"])
        last = np.tanh(first @ values["dense2.weight"].T + values["dense2.bias"])
        mean = 0.0
        for mask in product((0, 1), repeat=3):
            kept = last * np.array(mask) / (1 - SHARE)
            h = {"plain": kept, "residual": kept + first, "concatenated": np.c_[first, kept]}[kind]
            loss = 0.5 * np.mean(((h @ values["output.weight"].T + values["output.bias"] - y) ** 2).sum(1))
            mean += (1 - SHARE) ** sum(mask) * SHARE ** (3 - sum(mask)) * loss
        return mean

    for name, value in start.items():
        for place in np.ndindex(value.shape):
            up, down = value.copy(), value.copy()
            up[place] += 1e-5
            down[place] -= 1e-5
            slope = (mean_loss(start | {name: up}) - mean_loss(start | {name: down})) / 2e-5
            assert (value[place] - end[name][place]) / 0.1 == pytest.approx(slope, abs=1e-8), (name, place)


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
