import numpy as np
import pytest

from condensation import Dense, Init, InputError, Normal
from condensation.networks import DenseNetwork


def by_hand(network: Dense, parameters: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """One sample at a time, one neuron at a time."""
    functions = {"tanh": np.tanh, "relu": lambda z: max(z, 0), "x_tanh": lambda z: z * np.tanh(z)}
    outputs = []
    for sample in x:
        h = list(sample)
        for k, activation in enumerate(network.activations, 1):
            w, b = parameters[f"dense{k}.weight"], parameters.get(f"dense{k}.bias", np.zeros(network.widths[k]))
            dot = lambda row: sum(a * c for a, c in zip(row, h, strict=True))  # noqa: B023, E731
            new = [functions[activation](dot(row) + d) for row, d in zip(w, b, strict=True)]
            h = [a + c for a, c in zip(new, h, strict=True)] if network.residual and k > 1 else new
        bias = parameters.get("output.bias", np.zeros(network.outputs))
        outputs.append([sum(row * h) + d for row, d in zip(parameters["output.weight"], bias, strict=True)])
    return np.array(outputs)


@pytest.mark.parametrize(
    "network",
    [
        Dense((3, 7, 1), "tanh"),
        Dense((3, 7, 5, 2), ("x_tanh", "relu"), output_bias=True),
        Dense((2, 6, 6, 6, 3), ("tanh", "x_tanh", "relu"), residual=True),
        Dense((6, 6, 6, 1), "tanh", residual=True, bias=False),
    ],
)
def test_outputs_are_those_of_a_plain_loop(network):
    stream = np.random.default_rng(0)
    parameters = Init(Normal(0.5)).draw(network, stream)
    x = stream.normal(size=(4, network.inputs))
    made = network.assemble({name: value.astype(np.float32) for name, value in parameters.items()})
    assert isinstance(made, DenseNetwork)
    np.testing.assert_allclose(made(x.astype(np.float32)), by_hand(network, parameters, x), rtol=2e-5, atol=2e-6)


def test_units_have_the_bias_as_last_input():
    layer = Dense((2, 3, 1)).layers[0]
    parameters = {"dense1.weight": np.arange(6.0).reshape(3, 2), "dense1.bias": np.array([10.0, 20, 30])}
    np.testing.assert_array_equal(layer.units(parameters), [[0, 1, 10], [2, 3, 20], [4, 5, 30]])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (((5, 1),), "at least one hidden layer"),
        (((5, 0, 1),), "whole number of at least 1, not 0"),
        (((5, 4, 1), "tahn"), "did you mean 'tanh'"),
        (((5, 4, 4, 1), ("tanh",)), "1 activations were given for 2 hidden layers"),
        (((5, 4, 3, 1), "tanh", True), "hidden layers of one width"),
    ],
)
def test_a_network_that_cannot_be_is_refused(arguments, said):
    with pytest.raises(InputError, match=said):
        Dense(*arguments)
