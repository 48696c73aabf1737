r"""Neuron pursuit (Kumar and Haupt): a network that grows by a neuron at a time, trained to the end each time.

The network is $f(x) = a \cdot \sigma(W_2 \sigma(W_1 x))$ with $\sigma$ = relu, and r the residual. At a critical point
new small weights grow by the neural correlation of r, of which the lowest order is that of

- the first neuron of each layer, from nothing: $\frac1n \sum_i r_i\, a\, \sigma(v\, \sigma(u \cdot x_i))$;
- a neuron of the first layer: $\frac1n \sum_i r_i\, (c_i \cdot v)\, \sigma(u \cdot x_i)$ with
  $c_{ik} = a_k \sigma'(z_{ik})$;
- a neuron of the second layer: $\frac1n \sum_i r_i\, a\, \sigma(v \cdot h_i)$, with h the first layer's outputs.

Each is maximised over the unit sphere from many random directions. The larger one of the last two is taken, both being
of degree 2. Neurons that are not there yet are zero: gradient descent leaves them so, and one program serves all sizes.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Float

from ..._precision import precision

MOST = 8  # neurons of a layer
STARTS, LENGTHS = 100, np.geomspace(0.3, 1e-3, 400)  # of the search of a sphere, and its steps
SIZE = 0.01  # norm of what is added
EXACT = 1e-6  # of the mean square of the targets: the error at which the pursuit ends
STILL = 1e-16  # the square of the gradient at which the training ends
Net = dict[str, Any]


def output(net: Net, x: Any) -> Any:
    """The outputs of the network on samples."""
    return jax.nn.relu(jax.nn.relu(x @ net["first"].T) @ net["second"].T) @ net["last"]


def loss(net: Net, x: Any, y: Any) -> Any:
    """Half the mean squared error."""
    return jnp.mean((output(net, x) - y) ** 2) / 2


@dataclass(frozen=True)
class Iteration:
    """The network after an iteration.

    Attributes:
        net: its weights.
        widths: neurons of the first and of the second layer.
        error: mean squared error over the mean square of the targets.
        correlation: the largest that was found, at which the new neuron was put.
        steps: of gradient descent.
    """

    net: Net
    widths: tuple[int, int]
    error: float
    correlation: float
    steps: int


def pursue(
    x: Float[np.ndarray, "samples inputs"], y: Float[np.ndarray, " samples"], rng: np.random.Generator,
    rate: float, steps: int, layers: tuple[str, ...] | None = None, iterations: int = MOST - 1,
) -> list[Iteration]:  # fmt: skip
    """Grow a network on samples until it is exact.

    Args:
        x: samples.
        y: their targets.
        rng: draws the directions that searches begin at.
        rate: of gradient descent.
        steps: of it at most, in each iteration.
        layers: as a control, the layer that grows in each iteration after the first; the new neurons are then put in
            random directions.
        iterations: most of them.
    """
    net: Net = {"first": np.zeros((MOST, x.shape[1])), "second": np.zeros((MOST, MOST)), "last": np.zeros(MOST)}
    widths, size, found = {"first": 0, "second": 0}, float(np.mean(y**2)), []
    with precision("float64"):
        for k in range(iterations if layers is None else len(layers) + 1):
            residual = y - np.asarray(output(net, x))
            options = ("path",) if k == 0 else ("first", "second") if layers is None else (layers[k - 1],)
            added = {where: _search(where, net, widths, x, residual, rng, climb=layers is None) for where in options}
            where = max(added, key=lambda each: added[each][1])
            direction, correlation = added[where]
            net = _with(net, widths, where, SIZE * direction)
            net, taken = _descend(net, x, y, rate, steps)
            net = {name: np.asarray(values) for name, values in net.items()}
            error = 2 * float(loss(net, x, y)) / size
            found.append(Iteration(net, (widths["first"], widths["second"]), error, correlation, int(taken)))
            if error <= EXACT:
                break
    return found


def error_on(net: Net, x: np.ndarray, y: np.ndarray) -> float:
    """The mean squared error on other samples, over the mean square of their targets."""
    with precision("float64"):
        return float(jnp.mean((output(net, x) - y) ** 2) / np.mean(y**2))


def correlation(direction: Any, where: str, net: Net, x: Any, residual: Any) -> Any:
    """The lowest order of the neural correlation of the residual with new weights.

    They stand in one vector: u, v and a of a path; u and v of a neuron of the first layer; v and a of the second.
    """
    dim, relu = x.shape[1], jax.nn.relu
    if where == "path":
        return direction[-1] * jnp.mean(residual * relu(direction[-2] * relu(x @ direction[:dim])))
    hidden = relu(x @ net["first"].T)
    if where == "second":
        return direction[-1] * jnp.mean(residual * relu(hidden @ direction[:-1]))
    slopes = jnp.where(hidden @ net["second"].T > 0, net["last"], 0)
    return jnp.mean(residual * (slopes @ direction[dim:]) * relu(x @ direction[:dim]))


def _search(
    where: str, net: Net, widths: dict[str, int], x: np.ndarray, residual: np.ndarray, rng: np.random.Generator,
    climb: bool,
) -> tuple[np.ndarray, float]:  # fmt: skip
    """The direction of the largest correlation, or a random one, and its correlation."""
    dim = x.shape[1]
    there = {  # which weights there are: those of neurons that have not come yet stay zero
        "path": np.ones(dim + 2),
        "first": np.r_[np.ones(dim), np.arange(MOST) < widths["second"]],
        "second": np.r_[np.arange(MOST) < widths["first"], 1],
    }[where]
    starts = rng.standard_normal((STARTS if climb else 1, len(there))) * there
    starts /= np.linalg.norm(starts, axis=1, keepdims=True)
    ends, values = _climb(starts, where, net, x, residual, len(LENGTHS) if climb else 0)
    best = int(np.argmax(values))
    return np.asarray(ends[best]), float(values[best])


@partial(jax.jit, static_argnames=("where", "steps"))
def _climb(starts: Any, where: str, net: Net, x: Any, residual: Any, steps: int) -> Any:
    """Ascend the correlation on the sphere by steps of given lengths, from many directions."""

    def value(direction: Any) -> Any:
        return correlation(direction, where, net, x, residual)

    def step(direction: Any, length: Any) -> Any:
        slope = jax.grad(value)(direction)
        moved = direction + length * slope / jnp.maximum(jnp.linalg.norm(slope), 1e-300)
        return moved / jnp.linalg.norm(moved), None

    def climb(direction: Any) -> Any:
        end = lax.scan(step, direction, jnp.asarray(LENGTHS[:steps]))[0]
        return end, value(end)

    return jax.vmap(climb)(starts)


def _with(net: Net, widths: dict[str, int], where: str, new: np.ndarray) -> Net:
    """The network with new weights, which ``widths`` counts."""
    net, dim = {name: np.array(values) for name, values in net.items()}, net["first"].shape[1]
    first, second = widths["first"], widths["second"]
    if where != "second":
        net["first"][first] = new[:dim]
        widths["first"] += 1
    if where == "first":
        net["second"][:, first] = new[dim:]
    else:
        net["second"][second] = np.r_[new[dim], np.zeros(MOST - 1)] if where == "path" else new[:-1]
        net["last"][second] = new[-1]
        widths["second"] += 1
    return net


@partial(jax.jit, static_argnames="most")
def _descend(net: Net, x: Any, y: Any, rate: Any, most: int) -> tuple[Net, Any]:
    """Gradient descent until the gradient is zero, and the steps that it took."""

    def step(state: Any) -> Any:
        net, k, _ = state
        slope = jax.grad(loss)(net, x, y)
        size = sum(jnp.sum(values**2) for values in slope.values())
        return {name: net[name] - rate * slope[name] for name in net}, k + 1, size

    net, k, _ = lax.while_loop(lambda state: (state[1] < most) & (state[2] > STILL), step, (net, 0, jnp.inf))
    return net, k
