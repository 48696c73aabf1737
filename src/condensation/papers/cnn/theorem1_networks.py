"""The networks of Theorem 1: what is trained for each width and initialization, and what is measured of one seed."""

from collections.abc import Callable, Sequence

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq, root_scalar

from ...data import Images
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...measure import relative_change, share_along
from ...networks import Conv
from ...optimizers import GradientFlow
from ...prediction._kernels import initial_filters
from ...runs import Trajectory
from ...saving import At
from ...theory import KernelDynamics, effective_time, heuristic_time

IMAGES = {
    "quick": Images("digits", n=10, balanced=True, target="index", scale="unit"),
    "paper": Images("mnist", n=200, target="index", scale="unit"),
}
LAMBDA = {"quick": 42.0, "paper": 126.0}  # about the largest singular value: the unit of the saved times
KERNEL, STOP, ENOUGH = 3, 0.99, 0.95
UNIT, STEPS = 0.05, 280  # time of a step times lambda1, and how many
NEAR, LATER = (-6, 0, 6), 30  # saved steps around the bound (13), and the interval from there to the stop


def exponent(gamma: float) -> float:
    """The power of M that exp(lambda1 t) has reached at the bound (13), with the least eta0.

    >>> exponent(4)
    0.72
    """
    return (gamma - 1) / 4 - (gamma - 1) / 100


def experiment(scale: str, gamma: int, width: int) -> Experiment:
    """A network of a width, its initial weights of std width^(-gamma / 2), by gradient flow to 99% of the loss.

    Saved are steps around the bound (13), which differs a little from seed to seed, and some until the stop.
    """
    images, std = IMAGES[scale], width ** (-gamma / 2)
    bound = round(max(effective_time(1.0, width, gamma), 0) / UNIT)
    near = [bound + step for step in NEAR if bound + step > 0]
    return Experiment(
        Conv(images.shape, (width,), KERNEL, images.outputs), Init(Normal(std), convolution=Normal(std)), images,
        GradientFlow(UNIT / LAMBDA[scale], stop_ratio=STOP, rtol=1e-4, atol=1e-16), STEPS,
        save=At((*near, *range(bound + LATER, STEPS, LATER))), record=At(()), dtype="float32", kept_layers=("conv1",),
    )  # fmt: skip


def measure_seed(run: Trajectory, k: int, gamma: int) -> dict[str, float]:
    """What the network of one seed has; NaN where it was not reached.

    Returns:
        lambda1: the largest singular value of Z.
        bound: the time of (13), 0 where that is negative.
        share, change: the share (15) and the relative change (14) at that time.
        stop, stop_share: the time at which 1% of the loss is gone, and the share (15) then.
        stop_growth: the filters' norm at the stop over the initial one.
        grown, heuristic: the time at which that has reached M^delta, and the paper's T for it.
        linear_share, linear_change, linear_stop_share: the same by the linear dynamics, up to the same times.
        enough: the width from which on the linear dynamics have a share (15) of 0.95 at the bound, on the average.
    """
    network = run.experiment.network
    assert isinstance(network, Conv)
    dynamics = _dynamics(run, k)
    width, lambda1, v1 = network.channels[0], float(dynamics.values[0]), dynamics.v1
    history = run.history("conv1", view="filter")[k].astype(float)
    times = run.curves["time"][k, np.searchsorted(run.recorded, run.saved)]
    sizes = np.linalg.norm(history, axis=(1, 2)) / np.linalg.norm(history[0])
    bound, heuristic = max(effective_time(lambda1, width, gamma), 0), heuristic_time(lambda1, width, gamma)
    at_bound = min(bound, times[-1])
    stopped = run.loss[k, -1] <= STOP * 1.001 * run.loss[k, 0]  # float32 finds the stop less exactly
    stop = float(times[-1]) if stopped else np.nan
    initial, outputs = initial_filters(run, k)
    linear = dynamics.evolve(initial, outputs, bound)[0]
    return {
        "lambda1": lambda1, "bound": bound,
        "share": float(_curve(times, [share_along(filters, v1) for filters in history])(at_bound)),
        "change": float(_curve(times, [relative_change(filters, history[0]) for filters in history])(at_bound)),
        "stop": stop, "stop_share": share_along(history[-1], v1) if stopped else np.nan,
        "stop_growth": float(sizes[-1]) if stopped else np.nan,
        "grown": _first(times, np.log(sizes), lambda1 * heuristic), "heuristic": heuristic,
        "linear_share": share_along(linear, v1), "linear_change": relative_change(linear, initial),
        "linear_stop_share": share_along(dynamics.evolve(initial, outputs, stop)[0], v1) if stopped else np.nan,
        "enough": _enough(dynamics.values / lambda1, gamma),
    }  # fmt: skip


def continue_seed(run: Trajectory, k: int, gamma: int, widths: Sequence[int]) -> list[dict[str, float]]:
    """What the linear dynamics make of a network's own initial weights up to the times of other widths.

    At leading order filters do not influence each other, and shares and growth do not depend on the initial std. So the
    filters of one network are a sample of those of any width.

    Returns for each width:
        share, change, growth: the share (15), the relative change (14) and the growth of the norm at the bound (13).
        stop_share, stop_growth: the same at the time at which 1% of the loss is expected to be gone.
    """
    dynamics, (initial, outputs) = _dynamics(run, k), initial_filters(run, k)
    size, rows = np.linalg.norm(initial), []
    for width in widths:
        bound = max(effective_time(float(dynamics.values[0]), width, gamma), 0)
        stop = expected_stop(dynamics.values, width, gamma, (1 - STOP) * float(run.loss[k, 0]))
        at_bound, at_stop = (dynamics.evolve(initial, outputs, time)[0] for time in (bound, stop))
        rows.append({
            "share": share_along(at_bound, dynamics.v1), "change": relative_change(at_bound, initial),
            "growth": float(np.linalg.norm(at_bound) / size), "stop_share": share_along(at_stop, dynamics.v1),
            "stop_growth": float(np.linalg.norm(at_stop) / size),
        })  # fmt: skip
    return rows


def expected_stop(values: np.ndarray, width: int, gamma: float, fall: float) -> float:
    r"""The time at which the loss has fallen so far, at leading order and on the average over initial weights.

    The loss falls as fast as $\sum_\beta |Z^T a_\beta|^2 + |Z \theta_\beta|^2$, on the average
    $2 M^{1-\gamma} \sum_k \lambda_k^2 \cosh 2 \lambda_k t$.

    >>> round(expected_stop(np.array([2.0]), 1, 4, np.sinh(4.0) * 2), 6)
    1.0
    """

    def late(time: float) -> float:
        return float(np.log((values * np.sinh(2 * values * time)).sum() / fall) + (1 - gamma) * np.log(width))

    return float(root_scalar(late, bracket=(1e-9 / values[0], 150 / values[0])).root)


def _dynamics(run: Trajectory, k: int) -> KernelDynamics:
    return KernelDynamics.of(*run.data(run.seeds[k]), KERNEL, run.experiment.loss)


def _curve(times: np.ndarray, values: np.ndarray | list[float]) -> Callable[[np.ndarray | float], np.ndarray]:
    """The cubic spline through what was saved; a constant where no time has passed."""
    distinct, places = np.unique(times, return_index=True)
    if len(distinct) == 1:
        return lambda time: np.full(np.shape(time), values[0])
    return CubicSpline(distinct, np.asarray(values)[places])


def _first(times: np.ndarray, values: np.ndarray, level: float) -> float:
    """The first time at which a quantity has reached a level; NaN where it does not."""
    fine = np.linspace(0, times[-1], 5001)
    above = _curve(times, values)(fine) >= level
    return float(fine[above.argmax()]) if above.any() else np.nan


def _enough(ratios: np.ndarray, gamma: int) -> float:
    """The width at which the bound (13) is late enough for a share of 0.95, for singular values over the first.

    On the average over initial weights the squares of a filter's parts grow as cosh(2 lambda t).
    """

    def missing(time: float) -> float:
        squares = np.cosh(2 * ratios * time)
        return float(squares[0] / squares.sum() - ENOUGH**2)

    return float(np.exp((brentq(missing, 0, 300) - np.log(0.25)) / exponent(gamma)))
