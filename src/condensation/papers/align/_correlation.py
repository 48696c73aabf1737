r"""The neural correlation $N(w) = \frac1n \sum_i y_i f(x_i; w)$ along a run (Kumar and Haupt).

While weights are small, gradient flow of the squared error is $\dot w \approx \nabla N(w)$. If f is homogeneous of
degree L, so is N, and a direction is a KKT point of N on the sphere where $\nabla N(w)$ is a multiple of w.
"""

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from ..._precision import precision
from ...networks import Network
from ...runs import Trajectory

ALIGNED = 0.1  # the sine of the angle between w and the gradient of N


def relu2(z: Any) -> Any:
    """Relu squared: a network of one hidden layer has homogeneity 3, and a gradient that is Lipschitz."""
    return jnp.maximum(z, 0) ** 2


def relu3(z: Any) -> Any:
    """Relu cubed: homogeneity 4."""
    return jnp.maximum(z, 0) ** 3


def vectors(run: Trajectory, k: int) -> Float[np.ndarray, "saved parameters"]:
    """All weights of a seed as one vector, at each saved step."""
    own = [values[k].reshape(len(run.saved), -1) for values in run.parameters.values()]
    return np.concatenate(own, axis=1)


def gradients(run: Trajectory, k: int, labels: np.ndarray | None = None) -> Float[np.ndarray, "saved parameters"]:
    """The gradient of N by all weights of a seed, at each saved step; of other labels than the targets if given."""
    x, y = run.data(run.seeds[k])
    own = {name: values[k] for name, values in run.parameters.items()}
    with precision("float64"):
        found = _gradient(run.experiment.network)(own, x, y if labels is None else labels)
        return np.concatenate([np.asarray(found[name]).reshape(len(run.saved), -1) for name in own], axis=1)


@lru_cache(maxsize=16)
def _gradient(network: Network) -> Any:
    """The compiled gradient, of many weights at once."""

    def correlation(parameters: Any, x: Any, y: Any) -> Any:
        return jnp.sum(y * network.assemble(parameters)(x)) / len(x)

    return jax.jit(jax.vmap(jax.grad(correlation), in_axes=(0, None, None)))


def sine(first: Float[np.ndarray, "... parameters"], second: Float[np.ndarray, "... parameters"]) -> np.ndarray:
    """The sine of the angle between vectors, 1 where they point away from each other or one is zero.

    >>> sine(np.array([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [0.0, 0.0]]))
    array([0., 1., 1., 1.])
    """
    lengths = np.linalg.norm(first, axis=-1) * np.linalg.norm(second, axis=-1)
    cosines = np.sum(first * second, axis=-1) / np.where(lengths > 0, lengths, 1)
    return np.sqrt(1 - np.clip(cosines, 0, 1) ** 2)


def reached(values: Float[np.ndarray, " saved"], level: float, after: int = 0) -> float:
    """The place among saved steps, from one on, at which falling values are at a level; NaN where they never are.

    Between saved steps it is taken on the scale of logarithms.

    >>> reached(np.array([1.0, 0.4, 0.1, 0.025]), 0.2), reached(np.ones(3), 0.5)
    (1.5, nan)
    """
    below = np.flatnonzero(values[after:] <= level)
    if not len(below):
        return float("nan")
    k = after + int(below[0])
    if k == after:
        return float(k)
    high, low = np.log(np.maximum(values[k - 1 : k + 1], 1e-300))
    return float(k - (np.log(level) - low) / (high - low))


def between(values: Float[np.ndarray, " saved"], place: float) -> float:
    """Values at a place among saved steps, by their logarithms; NaN where there is no such place."""
    if np.isnan(place):
        return float("nan")
    return float(np.exp(np.interp(place, np.arange(len(values)), np.log(np.maximum(values, 1e-300)))))


def time_at(time: np.ndarray, sines: np.ndarray, place: float, power: int = 1) -> float:
    """The time at which the sine is at the level of alignment, at a place that ``reached`` found.

    Between saved steps sine^power is straight: near a blow-up of a network of homogeneity L, with the power L - 2.

    >>> time_at(np.array([0.0, 2.0]), np.array([0.2, 0.0]), 0.7)
    1.0
    """
    k = int(np.ceil(place)) if np.isfinite(place) else 0
    if k == 0:
        return float("nan")
    high, low = sines[k - 1] ** power, sines[k] ** power
    return float(time[k] - (time[k] - time[k - 1]) * (ALIGNED**power - low) / (high - low))


def line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Slope of a straight line, and its R²; NaN where a value is not known, and of less than two.

    >>> line(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    (2.0, 1.0)
    """
    if len(y) < 2 or not np.isfinite(y).all() or np.ptp(y) == 0:
        return float("nan"), float("nan")
    slope, _ = np.polyfit(x, y, 1)
    return round(float(slope), 12), round(float(np.corrcoef(x, y)[0, 1] ** 2), 12)


def two_neurons(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Samples on the unit sphere of three dimensions, with the outputs of two neurons of relu squared."""
    x, (first, second) = unit_vectors(rng, 30, 3), unit_vectors(rng, 2, 3)
    return x, np.maximum(x @ first, 0) ** 2 - np.maximum(x @ second, 0) ** 2 / 2


def unit_vectors(rng: np.random.Generator, count: int, dim: int) -> Float[np.ndarray, "count dim"]:
    """Vectors of norm 1 in random directions."""
    drawn = rng.standard_normal((count, dim))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
