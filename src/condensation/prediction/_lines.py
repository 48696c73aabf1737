"""The lines of a layer from what its neurons see, by the optimizer that trains it, and how far they are known.

Gradient flow, gradient descent and neuron-normalised descent have the lines of the sphere, sign descent and early Adam
those of the cube: each optimizer takes the steepest step in its own ball.
"""

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._precision import precision
from ..activations import Activation, derivatives_at_zero, label, multiplicity
from ..errors import InputError
from ..losses import Loss
from ..networks import Dense, Model
from ..optimizers import Adam, Muon, Optimizer, RMSprop, SignGD
from ..theory import (
    CubeDirections,
    Directions,
    coefficient,
    cube_directions,
    effective_residual,
    extremal_directions,
    stationary_directions,
)
from ..theory._fate import kink_slopes
from ..theory._leading import evaluate
from ..theory._tensor import integer_power
from ._deep import LayerField

LEADING_ERROR = 0.05
CLEAR_GAP = 0.3  # of the values of several outputs, below which the second one is told
ONE_FIELD = 1 - 1e-9  # a share of the common field from which on it is the only one


class LayerLines(NamedTuple):
    """The lines of a layer, and what they are computed from."""

    directions: Directions | CubeDirections
    residual: Float[np.ndarray, "samples *outputs"]  # without a constant that is learned first
    outputs: Float[np.ndarray, "units *outputs"] | None  # output weights once that is learned; None in deeper layers
    note: str


def by_signs(optimizer: Optimizer | None) -> bool:
    """Whether an optimizer moves each coordinate by its sign, in the initial stage at least."""
    return isinstance(optimizer, Adam | RMSprop | SignGD)


def output_residual(model: Model, x: ArrayLike, y: ArrayLike, loss: Loss) -> Float[np.ndarray, "samples outputs"]:
    """What each output of each sample pulls with: -n dL/df; y - f for half the mean squared error."""
    outputs, targets = model(np.asarray(x)), np.asarray(y, float)
    with precision("float64"):
        pull = jax.grad(lambda f: loss(f, jnp.asarray(targets)) * len(targets))(jnp.asarray(outputs, float))
        return -np.asarray(pull)


def layer_lines(
    model: Model, field: LayerField, x: ArrayLike, y: ArrayLike, loss: Loss, optimizer: Optimizer | None
) -> LayerLines:
    """The lines of one hidden layer of a dense network; of gradient flow where no optimizer is given."""
    network, activation, inputs = model.network, field.activation, field.inputs
    assert isinstance(network, Dense)
    weights, notes = model.weights(field.layer), []
    if len(network.hidden) == 1:
        whole = output_residual(model, x, y, loss)
        a: np.ndarray | None = model.parameters["output.weight"].astype(float).T
        if network.outputs == 1:
            whole, a = whole[:, 0], a[:, 0]
    else:
        whole, a = field.residual, None
    if np.linalg.norm(whole) == 0:
        raise InputError(f"{field.layer} sees no residual: there is nothing to learn, and no direction to go to")
    p, slopes = multiplicity(activation), kink_slopes(activation)
    if p is None:
        if slopes is None:
            coefficient(activation)  # which says what is missing
        if len(network.hidden) > 1:
            raise InputError(
                f"{label(activation)} of {field.layer} has no multiplicity: its lines are known for one hidden layer"
            )
        assert slopes is not None
        directions = extremal_directions(inputs, slopes[0] * whole, slopes[1] / slopes[0], starts=1000)
        if by_signs(optimizer):
            notes.append(f"what {label(activation)} does under steps by sign is not known: these are gradient flow's")
    elif by_signs(optimizer):  # there no constant is learned first, as all weights move at one speed
        seen, note = _moved(inputs, whole, a, optimizer) if p == 1 and a is not None else (inputs, "")
        directions = cube_directions(seen, whole, p)
        notes.append(note)
    else:
        if a is not None and derivatives_at_zero(activation, 0)[0]:
            effective = effective_residual(inputs, whole, activation, len(a))
            whole, a = effective.residual, effective.outputs(a)
            notes.append(effective.note)
        directions = stationary_directions(inputs, whole, p)
        notes.append(gap_note(directions))
    if isinstance(optimizer, Muon) and (p != 1 or np.ndim(whole) > 1):
        notes.append("beyond one output and multiplicity 1 Muon's lines are not known: these are gradient flow's")
    if a is None and field.share < ONE_FIELD:
        directions = replace(directions, certified=False)
        notes.append(f"{field.share:.1%} of the field is common to all neurons, and the lines hold that far")
    error = leading_size(inputs, weights, activation)[1] if p is not None else 0.0
    if error > LEADING_ERROR:
        notes.append(f"the weights are not small: the leading order, which the lines rest on, is off by {error:.0%}")
    return LayerLines(directions, whole, a, "; ".join(filter(None, notes)))


def _moved(
    inputs: Float[np.ndarray, "samples inputs"],
    residual: Float[np.ndarray, "samples *outputs"],
    a: Float[np.ndarray, "units *outputs"],
    optimizer: Optimizer | None,
) -> tuple[Float[np.ndarray, "samples inputs"], str]:
    """The inputs, zero where the optimizer's eps keeps all weights from moving, and what is to be said of these.

    A weight whose gradient is far below eps takes steps of lr |g| / eps, however much its sign would say. Such an input
    is a bias where classes are of equal size: the residuals then add up to what rounding leaves.
    """
    eps = getattr(optimizer, "eps", 0.0)
    field = inputs.T @ residual.reshape(len(inputs), -1) / len(inputs)
    gradient = np.abs(field @ a.reshape(len(a), -1).T).mean(axis=1)
    still = gradient < eps
    if not still.any():
        return inputs, ""
    if still.all():
        return (
            inputs,
            f"all gradients are below eps = {eps:g}: the first steps are not by sign, and may go elsewhere",
        )
    few = np.flatnonzero(still).tolist()
    named = f"{', '.join(map(str, few[:5]))}{', ...' if len(few) > 5 else ''}"
    told = (
        f"the gradient by the inputs {named} is below eps = {eps:g}: their weights hardly move, and are 0 on the line"
    )
    return np.where(still, 0.0, inputs), told


def gap_note(directions: Directions | CubeDirections) -> str:
    """A sentence where the lines of gradient flow at multiplicity 1 have no clear gap; else nothing."""
    if directions.p > 1 or directions.count < 2 or isinstance(directions, CubeDirections) or directions.spaces:
        return ""
    gap = 1 - directions.values[1] / directions.values[0]
    slowly = f"the first line grows {gap:.0%} faster than the second: units come to it only as slowly"
    return slowly if gap < CLEAR_GAP else ""


def leading_size(
    inputs: Float[np.ndarray, "samples inputs"], weights: Float[np.ndarray, "units inputs"], activation: Activation
) -> tuple[float, float]:
    """Largest |z| = |w.x| of a layer, and the relative error of the leading order.

    >>> size, error = leading_size(np.ones((1, 1)), np.array([[0.1]]), "tanh")
    >>> size, round(error, 5)  # z^3/3 beside z
    (0.1, 0.00332)
    """
    p, c = coefficient(activation)
    z = weights @ inputs.T
    moving = c / p * integer_power(z, p)
    difference = evaluate(activation, z) - derivatives_at_zero(activation, 0)[0] - moving
    return float(np.abs(z).max()), float(np.linalg.norm(difference) / max(np.linalg.norm(moving), 1e-300))
