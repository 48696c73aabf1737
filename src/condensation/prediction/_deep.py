r"""Layers of a deep network (FC eq. 10): the inputs a layer sees, and what the later layers pass back to it.

A neuron of layer k with input weight w moves by gradient flow as
$\dot w_j = \frac1n \sum_i B_{ij}\, \sigma'(w_j \cdot x^{[k-1]}_i)\, x^{[k-1]}_i$ with the *factors*
$B_{ij} = -\partial \ell_i / \partial h^{[k]}_{ij}$, n x m; for one hidden layer $B_{ij} = r_i a_j$. Only if B has rank
one, $B_{ij} = \rho_i \beta_j$, do all neurons of the layer see one field, that of the residual $\rho$, which is the
hypothesis behind the paper's Proposition 1. The share of its top singular value, $s_1^2 / \sum_k s_k^2$, says how far
that holds; the layer's predicted lines are those of $\rho = s_1$ times its left singular vector, and $\beta$ takes the
place of the output weights.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._precision import precision
from ..activations import Activation, get_activation, label, multiplicity
from ..data._labels import as_targets
from ..errors import InputError
from ..losses import Loss
from ..networks import Dense, Model
from ..theory import Directions, stationary_directions


@dataclass(frozen=True, eq=False)
class LayerField:
    r"""What the neurons of one layer see: $\dot w_j = \frac1n \sum_i B_{ij}\, \sigma'(w_j \cdot x_i)\, x_i$.

    Attributes:
        layer: its name.
        activation: its activation.
        inputs: $x^{[k-1]}$, the bias's 1 last where the layer has one.
        factors: B, samples x neurons.

    >>> r, a = np.array([3.0, 4.0]), np.array([0.6, 0.8])
    >>> field = LayerField("dense1", "tanh", np.eye(2), np.outer(r, a))  # one hidden layer: B = r a^T
    >>> round(field.share, 12), field.residual.round(12), field.outputs.round(12)
    (1.0, array([3., 4.]), array([0.6, 0.8]))
    """

    layer: str
    activation: Activation
    inputs: Float[np.ndarray, "samples inputs"]
    factors: Float[np.ndarray, "samples neurons"]

    @property
    def share(self) -> float:
        """Share of the top singular value of the factors: 1 where all neurons see one field."""
        values = np.linalg.svd(self.factors, compute_uv=False)
        return float(values[0] ** 2 / (values**2).sum()) if values[0] > 0 else 0.0

    @property
    def residual(self) -> Float[np.ndarray, " samples"]:
        """The common residual rho, of norm s_1; its sign makes the sum of beta positive."""
        return self._top()[0]

    @property
    def outputs(self) -> Float[np.ndarray, " neurons"]:
        """The neurons' effective output weights beta, of norm 1."""
        return self._top()[1]

    def _top(self) -> tuple[np.ndarray, np.ndarray]:
        left, values, right = np.linalg.svd(self.factors, full_matrices=False)
        sign = -1.0 if right[0].sum() < 0 else 1.0
        return sign * values[0] * left[:, 0], sign * right[0]

    def velocity(self, weights: Float[np.ndarray, "neurons inputs"]) -> Float[np.ndarray, "neurons inputs"]:
        """The exact velocity of each neuron's input weight under gradient flow."""
        with jax.enable_x64(True):
            z = jnp.asarray(weights @ self.inputs.T)
            slope = np.asarray(jax.jvp(get_activation(self.activation), (z,), (jnp.ones_like(z),))[1])
        return (slope * self.factors.T) @ self.inputs / len(self.inputs)

    def directions(self, **options: int) -> Directions:
        """The lines that the common field predicts for this layer."""
        p = multiplicity(self.activation)
        if p is None:
            raise InputError(
                f"{label(self.activation)} of {self.layer} has no multiplicity: `extremal_directions` is for relu"
            )
        return stationary_directions(self.inputs, self.residual, p, **options)


def layer_fields(model: Model, x: ArrayLike, y: ArrayLike, loss: Loss | None = None) -> dict[str, LayerField]:
    """What each hidden layer of a dense network sees: of any depth, residual or not.

    Args:
        model: the network with its parameters, initial ones or those of any step.
        x: samples x inputs.
        y: targets, samples x outputs.
        loss: half the mean squared error if not given. A summed loss is n times the mean one: its factors are.
    """
    network, loss = model.network, loss or Loss()
    if not isinstance(network, Dense):
        raise InputError(f"layers' fields are for dense networks, not for {type(network).__name__}")
    points, targets = np.asarray(x, float), np.asarray(as_targets(np.asarray(y), network.outputs, loss), float)
    if points.ndim != 2 or points.shape[1] != network.inputs or targets.shape != (len(points), network.outputs):
        raise InputError(
            f"x must be samples x {network.inputs} and y samples x {network.outputs}, not {points.shape} and "
            f"{targets.shape}"
        )
    with precision("float64"):
        parameters = {name: np.asarray(value, float) for name, value in model.parameters.items()}
        passed, read = _compiled_factors(network, loss)(parameters, points, targets)
    fields = {}
    for layer, activation, seen, back in zip(network.layers, network.activations, read, passed, strict=False):
        inputs = _with_bias(np.asarray(seen).T, layer.has_bias)
        fields[layer.name] = LayerField(layer.name, activation, inputs, -np.asarray(back).T)
    return fields


def layer_inputs(model: Model, x: ArrayLike) -> dict[str, Float[np.ndarray, "samples inputs"]]:
    """What each hidden layer of a dense network reads, the bias's 1 last where the layer has one.

    >>> ones = {"dense1.weight": np.ones((2, 1)), "dense1.bias": np.ones(2), "output.weight": np.ones((1, 2))}
    >>> model = Model(Dense((1, 2, 1)), ones)
    >>> layer_inputs(model, [[3.0]])["dense1"]
    array([[3., 1.]])
    """
    network, points = model.network, np.asarray(x, float)
    if not isinstance(network, Dense):
        raise InputError(f"layers' inputs are for dense networks, not for {type(network).__name__}")
    *hidden, _ = network.layers
    if len(hidden) == 1:
        return {hidden[0].name: _with_bias(points, hidden[0].has_bias)}
    with precision("float64"):
        read = _trace(network)({name: np.asarray(value, float) for name, value in model.parameters.items()}, points)
    pairs = zip(hidden, read, strict=False)
    return {layer.name: _with_bias(np.asarray(seen).T, layer.has_bias) for layer, seen in pairs}


@lru_cache(maxsize=32)
def _compiled_factors(network: Dense, loss: Loss) -> Any:
    """What the later layers pass back to each hidden layer, and what each reads, both neurons x samples."""

    def measured(shifts: list[jax.Array], parameters: Any, x: jax.Array, y: jax.Array) -> tuple[jax.Array, Any]:
        outputs, read = network.assemble(parameters).trace(x, shifts=shifts)
        return loss(outputs, y) * len(x), read

    def factors(parameters: Any, x: jax.Array, y: jax.Array) -> Any:
        nothing = [jnp.zeros((width, len(x))) for width in network.hidden]
        return jax.grad(measured, has_aux=True)(nothing, parameters, x, y)

    return jax.jit(factors)


@lru_cache(maxsize=32)
def _trace(network: Dense) -> Any:
    return jax.jit(lambda parameters, x: network.assemble(parameters).trace(x)[1])


def _with_bias(inputs: np.ndarray, has_bias: bool) -> np.ndarray:
    return np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1) if has_bias else inputs
