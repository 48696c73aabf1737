"""When what grows first has grown, and how large the rest is then."""

import numpy as np
from jaxtyping import Float

from ...measure import find_plateaus
from ...runs import Trajectory

GROWN = 0.5  # of the top mode, or the norm of a unit


def pairs(first: float, second: float) -> tuple[np.ndarray, np.ndarray]:
    """Two samples of white inputs, whose outputs have these singular values."""
    x = np.sqrt(2) * np.eye(2)
    return x, x * (first, second)


def quarter(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Singular values 1 and 1/4."""
    return pairs(1, 0.25)


def half(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Singular values 1 and 1/2."""
    return pairs(1, 0.5)


def three_quarters(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Singular values 1 and 3/4."""
    return pairs(1, 0.75)


def equal(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Singular values 1 and 1."""
    return pairs(1, 1)


def unit_norms(run: Trajectory) -> Float[np.ndarray, "seeds saved units"]:
    """The norm of each unit, its input and its output weights together."""
    outward = np.linalg.norm(run.parameters["output.weight"], axis=2)
    return np.hypot(np.linalg.norm(run.history(1), axis=-1), outward)


def modes(run: Trajectory) -> Float[np.ndarray, "seeds saved 2"]:
    """The linear network's gains along the two modes."""
    product = run.parameters["output.weight"] @ run.parameters["dense1.weight"]
    return np.diagonal(product, axis1=2, axis2=3)


def reached(run: Trajectory, values: Float[np.ndarray, "seeds saved"], level: float) -> Float[np.ndarray, " seeds"]:
    """The first saved step at which values are at a level, straight between saved steps; NaN where they never are.

    It is interpolated on the scale of logarithms, on which what grows exponentially is straight.
    """
    found = []
    for own in values:
        k = int((own >= level).argmax())
        if own[k] < level or k == 0:
            found.append(np.nan)
            continue
        low, high = np.log(np.maximum(own[k - 1 : k + 1], 1e-300))
        share = (np.log(level) - low) / (high - low)
        found.append(run.saved[k - 1] + share * (run.saved[k] - run.saved[k - 1]))
    return np.array(found)


def at_step(run: Trajectory, values: Float[np.ndarray, "seeds saved"], steps: np.ndarray) -> np.ndarray:
    """Values at steps between saved ones, by their logarithms; NaN where there is no such step."""
    return np.array(
        [
            np.exp(np.interp(step, run.saved, np.log(np.maximum(own, 1e-300)))) if np.isfinite(step) else np.nan
            for own, step in zip(values, steps, strict=True)
        ]
    )


def linear_rest(run: Trajectory) -> Float[np.ndarray, " seeds"]:
    """The norm of the weights of the second mode when the first is half grown."""
    second = np.hypot(
        np.linalg.norm(run.parameters["dense1.weight"][..., 1], axis=-1),
        np.linalg.norm(run.parameters["output.weight"][:, :, 1], axis=-1),
    )
    return at_step(run, second, reached(run, modes(run)[..., 0], GROWN))


def other_units(run: Trajectory) -> Float[np.ndarray, " seeds"]:
    """The norm of the second largest unit when the largest is half grown."""
    ordered = np.sort(unit_norms(run), axis=-1)
    return at_step(run, ordered[..., -2], reached(run, ordered[..., -1], GROWN))


def between_drops(run: Trajectory, learned: float) -> Float[np.ndarray, " seeds"]:
    """The number of plateaus between two drops of the loss; NaN where it does not fall to a share of the first."""
    found = [find_plateaus(run.recorded, loss) for loss in run.loss]
    counts = [float(((own[:, 0] > 0) & (own[:, 1] < run.recorded[-1])).sum()) for own in found]
    return np.where(run.loss[:, -1] <= learned * run.loss[:, 0], counts, np.nan)


def exponents(scales: np.ndarray, rest: Float[np.ndarray, "scales seeds"]) -> Float[np.ndarray, " seeds"]:
    """The power of the scale of the start that the rest follows; NaN where it is not known at all scales.

    >>> exponents(np.array([0.1, 0.01]), np.array([[0.2], [0.02]])).round(9)
    array([1.])
    """
    return np.array([_power(scales, own) for own in rest.T])


def _power(scales: np.ndarray, values: np.ndarray) -> float:
    if not (np.isfinite(values).all() and (values > 0).all()):
        return float("nan")
    return float(np.polyfit(np.log(scales), np.log(values), 1)[0])
