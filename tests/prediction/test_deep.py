"""What the layers of a deep network see, against its gradient."""

import jax
import numpy as np
import pytest

from condensation import Conv, Dense, Init, InputError, Loss, Model, Normal, sine_sum
from condensation.prediction import layer_fields
from condensation.seeds import Seed
from condensation.theory import stationary_directions

FIG4 = Dense((3, *[18] * 5, 1), ("x2_tanh", "x_tanh", "sigmoid", "tanh", "softplus"), residual=True)
DATA = sine_sum(4, 12, 1, dim=3, n=80, low=-4, high=2)
NETWORKS = {
    "two layers": Dense((3, 10, 1)),
    "several outputs": Dense((3, 10, 2), "x_tanh", output_bias=True),
    "figure 4": FIG4,
    "no bias": Dense((3, 7, 6, 1), "softplus", bias=False),
    "concatenated": Dense((3, 7, 6, 5, 1), concatenated=True),
}


def model_of(network, std, seed=0):
    return Model(network, Init(Normal(std)).draw(network, np.random.default_rng(seed)))


def data_of(network, seed=0):
    x, y = DATA.draw(Seed(seed, seed))
    return x, np.repeat(y, network.outputs, axis=1) * np.arange(1, network.outputs + 1)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", NETWORKS)
@pytest.mark.parametrize("loss", [Loss(), Loss("mse", "sum")], ids=["mean", "sum"])
def test_the_velocity_is_the_negative_gradient(kind, loss):
    model = model_of(NETWORKS[kind], 0.3)
    x, y = data_of(model.network)
    with jax.enable_x64(True):
        gradient = jax.grad(lambda values: loss(model.network.assemble(values)(x), jax.numpy.asarray(y)))(
            model.parameters
        )
        gradient = {name: np.asarray(value) for name, value in gradient.items()}
    for name, field in layer_fields(model, x, y, loss).items():
        np.testing.assert_allclose(
            field.velocity(model.weights(name)), -model.layer(name).units(gradient), rtol=1e-9, atol=1e-12
        )


def test_one_hidden_layer_has_one_field():
    model = model_of(Dense((3, 10, 1)), 0.1)
    x, y = data_of(model.network)
    field = layer_fields(model, x, y)["dense1"]
    assert field.share == pytest.approx(1)
    residual, a = (y - model(x))[:, 0], model.parameters["output.weight"][0]
    np.testing.assert_allclose(np.outer(field.residual, field.outputs), np.outer(residual, a), atol=1e-12)
    inputs = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    ours, theirs = field.directions(), stationary_directions(inputs, residual, 1)
    assert abs(ours.directions[0] @ theirs.directions[0]) == pytest.approx(1)


def test_factors_are_common_to_all_neurons_behind_multiplicity_one_only():
    """p = 1 everywhere: one field as the weights shrink. x tanh x behind a layer: not, without skips."""
    x, y = data_of(FIG4)
    shares = {}
    for activation in ("tanh", "x_tanh"):
        network = Dense((3, 12, 12, 1), activation, bias=False)  # a bias alone would be common to all samples
        for std in (1e-1, 1e-2):
            fields = layer_fields(model_of(network, std), x, y)
            shares[activation, std] = fields["dense1"].share
            assert fields["dense2"].share == pytest.approx(1)
    assert 1 - shares["tanh", 1e-2] < 0.01 * (1 - shares["tanh", 1e-1])
    assert shares["x_tanh", 1e-2] < 0.99


def test_skips_carry_the_field_to_every_layer_of_figure_4():
    x, y = data_of(FIG4)
    fields = layer_fields(model_of(FIG4, 0.01), x, y)
    assert list(fields) == [f"dense{k}" for k in range(1, 6)]
    assert all(field.share > 0.99 for field in fields.values())
    for k, p in enumerate((3, 2, 1, 1, 1)):
        assert fields[f"dense{k + 1}"].directions(starts=50).p == p


def test_what_has_no_field_is_said():
    x, y = data_of(FIG4)
    conv = Conv((1, 4, 4), (2,), 3, 1)
    with pytest.raises(InputError, match="for dense networks, not for Conv"):
        layer_fields(model_of(conv, 0.1), x, y)
    with pytest.raises(InputError, match=r"x must be samples x 3 and y samples x 1, not \(80, 3\) and \(79, 1\)"):
        layer_fields(model_of(FIG4, 0.1), x, y[:-1])
    field = layer_fields(model_of(Dense((3, 4, 1), "relu"), 0.1), x, y)["dense1"]
    with pytest.raises(InputError, match="relu of dense1 has no multiplicity"):
        field.directions()
