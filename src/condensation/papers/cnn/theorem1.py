r"""CNN Theorem 1: two-layer networks of growing width, from std $M^{-\gamma/2}$, at the bound (13) and beyond.

The theorem says what happens for $M \to \infty$ up to a time $T_{eff}$, of which it gives a lower bound only. So the
networks are looked at twice: at that bound, and where 1% of the loss is gone, the last time at which the residuals are
still those of the start.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq

from ...data import Images
from ...drawing import look
from ...drawing._style import COLOURS, INK, PAGE
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...measure import relative_change, share_along
from ...networks import Conv
from ...optimizers import GradientFlow
from ...runs import Trajectory
from ...saving import At
from ...theory import KernelDynamics, effective_time, heuristic_time
from .._claims import PerSeed, Rule
from .._legacy import Claim, Findings, Lab, Recipe, Runs, Statement
from .._tables import Table
from .._variant import Variant
from .kernels import start_of

GAMMAS = (4, 3, 2)
WIDTHS = {"quick": (32, 1024, 4096), "paper": (32, 128, 512, 1024, 2048, 4096)}
SLOPE = (1024, 4096)  # the widths between which the power of M is taken
WIDEST = SLOPE[1]
IMAGES = {
    "quick": Images("digits", n=10, balanced=True, target="index", scale="unit"),
    "paper": Images("mnist", n=200, target="index", scale="unit"),
}
LAMBDA = {"quick": 42.0, "paper": 126.0}  # about the largest singular value: the unit of the saved times
KERNEL, STOP = 3, 0.99
UNIT, STEPS = 0.05, 280  # time of a step times lambda1, and how many
NEAR = (-6, 0, 6)  # saved steps around the bound (13)
LATER = 30  # and from there to the stop
ENOUGH, POWER, LINEAR = 0.95, 0.25, 0.01
REDUCED = (
    "10 images of scikit-learn's digits (8 x 8, one of each class) instead of 200 of MNIST; three widths from 32 to "
    "4096 instead of six"
)


def exponent(gamma: float) -> float:
    """The power of M that exp(lambda1 t) has reached at the bound (13), with the least eta0.

    >>> exponent(4)
    0.72
    """
    return (gamma - 1) / 4 - (gamma - 1) / 100


def _statements(gamma: int) -> tuple[Statement, ...]:
    """What the theorem says of a start."""

    def state(key: str, where: str, text: str, quantity: str, rule: Rule) -> Statement:
        said = f"gamma = {gamma}: {text}"
        return Statement(f"cnn-theorem1-{key}-{gamma}", "cnn-theorem1", where, said, quantity, rule, paper="CNN")

    power = exponent(gamma)
    return (
        state(
            "change",
            "Theorem 1, eq. (14)",
            "the relative change of the filters at the bound (13) tends to infinity with M; exp(lambda1 t) makes it "
            f"grow like M^{power:.2f}",
            f"|slope / {power:.2f} - 1|, with the slope of log change (14) at (13) against log M, M = {SLOPE[0]} to "
            f"{SLOPE[1]}",
            Rule("at most", POWER),
        ),
        state(
            "grows",
            "Theorem 1, eq. (15)",
            "the share of the filters along v1 at the bound (13) grows with M",
            "smallest increase of the share (15) at (13) from one width to the next, where (13) is positive",
            Rule("at least", 0),
        ),
        state(
            "share",
            "Theorem 1, eq. (15)",
            "at the bound (13) nearly all of a wide network's filters is along v1",
            f"share (15) at (13), M = {WIDEST}",
            Rule("at least", ENOUGH),
        ),
        state(
            "stop",
            "Theorem 1, eq. (15)",
            "nearly all of a wide network's filters is along v1 before the residuals change",
            f"share (15) at L/L0 = {STOP}, M = {WIDEST}",
            Rule("at least", 0.99),
        ),
        state(
            "grown",
            "Sec. 4, after eq. (13)",
            "while the residuals are those of the start the filters grow by M^delta, delta = (gamma - 1)/4, which "
            "takes a time of order T = (delta/lambda1) log M",
            f"time at which the filters' norm is M^delta times that of the start over T, M = {WIDEST}; none where 1% "
            "of the loss is gone before",
            Rule("at most", 1.5),
        ),
    )


THEOREM1 = (
    *(statement for gamma in GAMMAS for statement in _statements(gamma)),
    Statement(
        "cnn-theorem1-bound",
        "cnn-theorem1",
        "eq. (13)",
        "up to the bound (13) the residuals are those of the start",
        "time at which 1% of the loss is gone over (13), the least over gamma and M where (13) is positive",
        Rule("at least", 1),
        paper="CNN",
    ),
    Statement(
        "cnn-theorem1-linear",
        "cnn-theorem1",
        "eqs. (9), (10)",
        "up to the bound (13) the filters follow the linear dynamics",
        "largest difference, over gamma and M, of the share (15) at (13) to that of the linear dynamics from the "
        "same start",
        Rule("at most", LINEAR),
        paper="CNN",
    ),
)


def experiments(scale: str) -> Mapping[str, Experiment]:
    """All widths from all starts."""
    return {_name(gamma, width): _experiment(scale, gamma, width) for width in WIDTHS[scale] for gamma in GAMMAS}


def _name(gamma: int, width: int) -> str:
    return f"gamma = {gamma}, M = {width}"


def _experiment(scale: str, gamma: int, width: int) -> Experiment:
    images, std = IMAGES[scale], width ** (-gamma / 2)
    return Experiment(
        network=Conv(images.shape, (width,), KERNEL, images.outputs),
        init=Init(Normal(std), convolution=Normal(std)),
        data=images,
        optimizer=GradientFlow(UNIT / LAMBDA[scale], stop_ratio=STOP, rtol=1e-4, atol=1e-16),
        steps=STEPS,
        save=At(_saved(gamma, width)),
        record=At(()),
        dtype="float32",
        kept_layers=("conv1",),
    )


def _saved(gamma: int, width: int) -> tuple[int, ...]:
    """Steps around the bound (13), which differs a little from seed to seed, and some until the stop."""
    bound = round(max(effective_time(1.0, width, gamma), 0) / UNIT)
    near = [bound + step for step in NEAR if bound + step > 0]
    return (*near, *range(bound + LATER, STEPS, LATER))


@dataclass(frozen=True)
class _Found:
    """What a network of a width from a start has, an entry for each seed; NaN where it was not reached.

    Attributes:
        lambda1: the largest singular value of Z.
        bound: the time of (13), 0 where that is negative.
        share: the share (15) at that time.
        change: the relative change (14) at that time.
        stop: the time at which 1% of the loss is gone.
        stop_share: the share (15) at the stop.
        growth: the filters' norm at the stop over that at the start.
        grown: the time at which that has reached M^delta.
        heuristic: the paper's T for it.
        linear_share: the share (15) at the bound by the linear dynamics.
        linear_change: the change (14) by them.
        linear_stop_share: the share (15) at the stop by them.
        enough: the width from which on the linear dynamics have a share (15) of 0.95 at the bound, on the average.
    """

    lambda1: np.ndarray
    bound: np.ndarray
    share: np.ndarray
    change: np.ndarray
    stop: np.ndarray
    stop_share: np.ndarray
    growth: np.ndarray
    grown: np.ndarray
    heuristic: np.ndarray
    linear_share: np.ndarray
    linear_change: np.ndarray
    linear_stop_share: np.ndarray
    enough: np.ndarray


@lru_cache(maxsize=64)
def _found(run: Trajectory, gamma: int) -> _Found:
    rows = [_one(run, k, gamma) for k in range(len(run.seeds))]
    return _Found(**{name: np.array([row[name] for row in rows]) for name in rows[0]})


def _one(run: Trajectory, k: int, gamma: int) -> dict[str, float]:
    """All numbers of one seed."""
    network = run.experiment.network
    assert isinstance(network, Conv)
    width, seed = network.channels[0], run.seeds[k]
    dynamics = KernelDynamics.of(*run.data(seed), KERNEL, run.experiment.loss)
    lambda1, v1 = float(dynamics.values[0]), dynamics.v1
    filters = run.history("conv1", view="filter")[k].astype(float)
    times = run.curves["time"][k, np.searchsorted(run.recorded, run.saved)]
    sizes = np.linalg.norm(filters, axis=(1, 2)) / np.linalg.norm(filters[0])
    bound = max(effective_time(lambda1, width, gamma), 0)
    stopped = run.loss[k, -1] <= STOP * 1.001 * run.loss[k, 0]  # float32 finds the stop less exactly
    stop = float(times[-1]) if stopped else np.nan
    start, outputs = start_of(run, k)
    heuristic = heuristic_time(lambda1, width, gamma)
    then = dynamics.evolve(start, outputs, bound)[0]
    return {
        "lambda1": lambda1,
        "bound": bound,
        "share": _at(times, [share_along(one, v1) for one in filters], bound),
        "change": _at(times, [relative_change(one, filters[0]) for one in filters], bound),
        "stop": stop,
        "stop_share": share_along(filters[-1], v1) if stopped else np.nan,
        "growth": float(sizes[-1]),
        "grown": _first(times, np.log(sizes), lambda1 * heuristic),
        "heuristic": heuristic,
        "linear_share": share_along(then, v1),
        "linear_change": relative_change(then, start),
        "linear_stop_share": share_along(dynamics.evolve(start, outputs, stop)[0], v1) if stopped else np.nan,
        "enough": _enough(dynamics.values / lambda1, gamma),
    }


def _curve(times: np.ndarray, values: np.ndarray | list[float]) -> CubicSpline | None:
    """The cubic spline through what was saved; None where no time has passed."""
    distinct, places = np.unique(times, return_index=True)
    return CubicSpline(distinct, np.asarray(values)[places]) if len(distinct) > 1 else None


def _at(times: np.ndarray, values: list[float], time: float) -> float:
    """A quantity at a time between saved ones; the last one behind them."""
    curve = _curve(times, values)
    return values[0] if curve is None else float(curve(min(time, times[-1])))


def _first(times: np.ndarray, values: np.ndarray, level: float) -> float:
    """The first time at which a quantity has reached a level; NaN where it does not."""
    curve = _curve(times, values)
    if curve is None:
        return np.nan
    fine = np.linspace(0, times[-1], 5001)
    above = curve(fine) >= level
    return float(fine[above.argmax()]) if above.any() else np.nan


def _enough(ratios: np.ndarray, gamma: int) -> float:
    """The width at which the bound (13) is late enough for a share of 0.95, for singular values over the first.

    On the average over starts the squares of a filter's parts grow as cosh(2 lambda t).
    """

    def missing(time: float) -> float:
        squares = np.cosh(2 * ratios * time)
        return float(squares[0] / squares.sum() - ENOUGH**2)

    time = brentq(missing, 0, 300)
    return float(np.exp((time - np.log(0.25)) / exponent(gamma)))


def _all(runs: Runs) -> dict[int, dict[int, _Found]]:
    """What was found, by gamma and width."""
    widths = sorted({run.experiment.network.layers[0].weight[0] for run in runs.values()})
    return {gamma: {width: _found(runs[_name(gamma, width)], gamma) for width in widths} for gamma in GAMMAS}


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """All quantities; those of untrained networks are of the start, or none."""
    everything = _all(runs)
    measured = {}
    for gamma, by_width in everything.items():
        widest = by_width[WIDEST]
        shares = np.array([found.share for found in by_width.values() if (found.bound > 0).all()])
        measured |= {
            f"cnn-theorem1-change-{gamma}": PerSeed(np.abs(_slopes(by_width) / exponent(gamma) - 1)),
            f"cnn-theorem1-grows-{gamma}": PerSeed(np.diff(shares, axis=0).min(axis=0), widest.change > 0),
            f"cnn-theorem1-share-{gamma}": PerSeed(widest.share),
            f"cnn-theorem1-stop-{gamma}": PerSeed(widest.stop_share),
            f"cnn-theorem1-grown-{gamma}": PerSeed(widest.grown / widest.heuristic),
        }
    each = [found for by_width in everything.values() for found in by_width.values()]
    late = [found.stop / found.bound for found in each if (found.bound > 0).all()]
    off = [np.abs(found.share - found.linear_share) for found in each]
    return measured | {
        "cnn-theorem1-bound": PerSeed(np.min(late, axis=0)),
        "cnn-theorem1-linear": PerSeed(np.max(off, axis=0)),
    }


def _slopes(by_width: Mapping[int, _Found]) -> np.ndarray:
    """In each seed the power of M with which the change at the bound grows; NaN where nothing has changed."""
    narrow, wide = (by_width[width].change for width in SLOPE)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = np.log(wide / narrow) / np.log(SLOPE[1] / SLOPE[0])
    return np.where(np.isfinite(slopes), slopes, np.nan)


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Shares, changes and times against the width."""
    everything = _all(runs)
    images = IMAGES[lab.scale]
    first = next(iter(runs.values()))
    gaps = [KernelDynamics.of(*first.data(seed), KERNEL).gap for seed in first.seeds]
    return Findings(
        caption=(
            "Two-layer tanh networks with M filters, from a start of std M^(-gamma/2): median and range of "
            f"{len(first.seeds)} seeds of images and start. (a) The share (15) of the filters along v1. (b) The "
            "relative change (14) at the bound (13). (c) Times in units of 1/lambda1. Solid: at the bound (13), or "
            "at the start where that is negative. Dashed: where 1% of the loss is gone. Crosses: the linear dynamics "
            "(9) from the same start, in closed form. Dotted: in (b) the power of M that exp(lambda1 t) gives, in "
            "(c) the heuristic T = (delta/lambda1) log M."
        ),
        settings={
            "network": f"one input channel, M filters with {KERNEL} x {KERNEL} kernels and a bias, tanh, one output, "
            "float32",
            "data": f"{images.n} images of {images.name}, pixels in [0, 1]; y is the class as a number, as in the "
            f"paper's numbers on v1; gap (lambda1 - lambda2)/lambda1 {min(gaps):.2f} to {max(gaps):.2f}",
            "start": "N(0, M^-gamma) for all parameters (the theory's gamma, epsilon² = M^-gamma)",
            "optimizer": f"gradient flow to L/L0 = {STOP}",
            "loss": "1/(2n) sum of squares",
            "bound (13)": "eta0 = (gamma - 1)/100, its least value, so that the bound is as late as it can be; values "
            "there are from a cubic spline in time through the saved steps",
        },
        pictures={"cnn-theorem1": _draw(everything)},
        tables=(_table(everything), _widths_table(everything)),
        data=_columns(everything),
        why=_why(claims, everything),
    )


def _draw(everything: Mapping[int, Mapping[int, _Found]]) -> Figure:
    widths = np.array(list(everything[GAMMAS[0]]))
    shown = widths[::-2][::-1] if len(widths) > 5 else widths
    with look():
        figure = Figure(figsize=(PAGE, 2.9), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        for (gamma, by_width), colour in zip(everything.items(), COLOURS, strict=False):
            _draw_range(left, by_width, "share", colour, "-")
            _draw_range(left, by_width, "stop_share", colour, "--")
            _draw_cross(left, by_width, "linear_share", colour)
            _draw_cross(left, by_width, "linear_stop_share", colour)
            _draw_range(middle, by_width, "change", colour, "-")
            _draw_cross(middle, by_width, "linear_change", colour)
            power = np.median(by_width[WIDEST].change) * (widths / WIDEST) ** exponent(gamma)
            middle.plot(widths, power, ":", color=colour, linewidth=0.9)
            _draw_range(right, by_width, "bound", colour, "-", in_units=True)
            _draw_range(right, by_width, "stop", colour, "--", in_units=True)
            right.plot(widths, [heuristic_time(1.0, int(width), gamma) for width in widths], ":", color=colour)
        left.set(title="(a) share along $v_1$", ylim=(0, 1.03), ylabel="share (15)")
        middle.set(title="(b) relative change at (13)", ylabel="change (14)", yscale="log")
        right.set(title="(c) times", ylabel=r"$\lambda_1 t$", ylim=(0, None))
        for axes in (left, middle, right):
            axes.set(xscale="log", xlabel="width M")
            axes.set_xticks(shown, [str(width) for width in shown])
            axes.xaxis.set_minor_locator(NullLocator())
        _legend(figure)
    return figure


def _legend(figure: Figure) -> None:
    """Colours above, ways of drawing below."""
    gammas = [
        Line2D([], [], color=colour, marker="o", markersize=3, label=rf"$\gamma$ = {gamma}")
        for gamma, colour in zip(GAMMAS, COLOURS, strict=False)
    ]
    styles = [
        Line2D([], [], color=INK, label="at the bound (13)"),
        Line2D([], [], color=INK, linestyle="--", label=f"at $L/L_0$ = {STOP}"),
        Line2D([], [], color=INK, linestyle="", marker="x", markersize=4, label="linear dynamics (9)"),
        Line2D([], [], color=INK, linestyle=":", label="power of M (b), heuristic T (c)"),
    ]
    columns = [handle for pair in zip(gammas, styles, strict=False) for handle in pair]
    figure.legend(handles=[*columns, styles[-1]], loc="outside lower center", ncols=4)


def _draw_range(
    axes: Axes, by_width: Mapping[int, _Found], name: str, colour: str, style: str, in_units: bool = False
) -> None:
    """The median over the seeds with a bar from the least to the largest; what is not positive is left out."""
    each = [getattr(found, name) * (found.lambda1 if in_units else 1) for found in by_width.values()]
    places = [(width, values) for width, values in zip(by_width, each, strict=True) if np.median(values) > 0]
    if not places:
        return
    middle = np.array([np.median(values) for _, values in places])
    low, high = (np.array([end(values) for _, values in places]) for end in (np.min, np.max))
    axes.errorbar(
        [width for width, _ in places],
        middle,
        np.array([middle - low, high - middle]),
        fmt=f"o{style}",
        markersize=2.5,
        color=colour,
        elinewidth=0.8,
    )


def _draw_cross(axes: Axes, by_width: Mapping[int, _Found], name: str, colour: str) -> None:
    middle = np.array([np.median(getattr(found, name)) for found in by_width.values()])
    axes.plot(
        list(by_width), np.where(middle > 0, middle, np.nan), "x", color=colour, markersize=5, markeredgewidth=0.8
    )


def _table(everything: Mapping[int, Mapping[int, _Found]]) -> Table:
    header = (
        "gamma",
        "M",
        "lambda1 times (13)",
        "share (15) there",
        "linear dynamics",
        "change (14) there",
        f"lambda1 times the time of L/L0 = {STOP}",
        "share (15) there",
        "linear dynamics",
        "time of growth by M^delta over T",
    )
    rows = []
    for gamma, by_width in everything.items():
        for width, found in by_width.items():
            numbers = (
                found.lambda1 * found.bound,
                found.share,
                found.linear_share,
                found.change,
                found.lambda1 * found.stop,
                found.stop_share,
                found.linear_stop_share,
                found.grown / found.heuristic,
            )
            rows.append((str(gamma), str(width), *(_short(np.median(values)) for values in numbers)))
    return Table("Medians over the seeds", header, tuple(rows))


def _round(value: float) -> str:
    """Two digits of a large number.

    >>> _round(25_412_345)
    '25,000,000'
    """
    return f"{float(f'{value:.2g}'):,.0f}"


def _short(value: float) -> str:
    return f"{value:.3g}" if np.isfinite(value) else "not reached"


def _widths_table(everything: Mapping[int, Mapping[int, _Found]]) -> Table:
    rows = tuple(
        (str(gamma), _round(4 ** (1 / exponent(gamma))), _round(np.median(by_width[WIDEST].enough)))
        for gamma, by_width in everything.items()
    )
    header = ("gamma", "M from which on (13) is positive", f"M from which on the share (15) at (13) is {ENOUGH}")
    return Table("Widths that the bound (13) needs, by the linear dynamics of these images", header, rows)


def _columns(everything: Mapping[int, Mapping[int, _Found]]) -> dict[str, np.ndarray]:
    parts = [
        {"gamma": np.full(len(found.share), gamma), "width": np.full(len(found.share), width)}
        | {"seed": np.arange(len(found.share))}
        | vars(found)
        for gamma, by_width in everything.items()
        for width, found in by_width.items()
    ]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _why(claims: Mapping[str, Claim], everything: Mapping[int, Mapping[int, _Found]]) -> dict[str, str]:
    """For each claim that fails the numbers that show why."""
    why = {}
    for gamma, by_width in everything.items():
        found = by_width[WIDEST]
        bound, stop = (np.median(found.lambda1 * time) for time in (found.bound, found.stop))
        short = (
            f"The bound is early: at M = {WIDEST} it is at lambda1 t = {bound:.2f} (median), when exp(lambda1 t) is "
            f"{np.exp(bound):.1f}. It is positive from M = {_round(4 ** (1 / exponent(gamma)))} on"
        )
        reached = f"{np.median(found.stop_share):.3f}" if np.isfinite(found.stop).all() else "not reached"
        why |= {
            f"cnn-theorem1-change-{gamma}": f"{short}. The change there is {np.median(found.change):.2f} (median), so "
            "that the exponential growth has hardly begun: a change that is still small grows in proportion to the "
            f"time, which is a higher power of M here, {np.median(_slopes(by_width)):.2f} (median).",
            f"cnn-theorem1-grows-{gamma}": f"{short}.",
            f"cnn-theorem1-share-{gamma}": f"{short}. By the linear dynamics of these images a share of {ENOUGH} at "
            f"the bound needs M = {_round(np.median(found.enough))}. At L/L0 = {STOP} the share is {reached} (median).",
            f"cnn-theorem1-stop-{gamma}": f"The start is not small enough: from std M^-{gamma / 2:g} 1% of the loss "
            f"is gone at lambda1 t = {stop:.2f} (median), when the filters have grown {np.median(found.growth):.2f} "
            f"times. The share of the linear dynamics is {np.median(found.linear_stop_share):.3f} (median).",
            f"cnn-theorem1-grown-{gamma}": f"1% of the loss is gone when the filters have grown "
            f"{np.median(found.growth):.2f} times (median); M^delta is {WIDEST ** ((gamma - 1) / 4):.0f}.",
        }
    why |= _why_worst(everything)
    return {key: text for key, text in why.items() if claims[key].verdict != "reproduced"}


def _why_worst(everything: Mapping[int, Mapping[int, _Found]]) -> dict[str, str]:
    """Where the claims on all gammas and widths are farthest from holding."""
    each = {(gamma, width): found for gamma, by_width in everything.items() for width, found in by_width.items()}
    late = {place: np.median(found.stop / found.bound) for place, found in each.items() if (found.bound > 0).all()}
    off = {place: np.median(np.abs(found.share - found.linear_share)) for place, found in each.items()}
    early, far = min(late, key=late.__getitem__), max(off, key=off.__getitem__)
    return {
        "cnn-theorem1-bound": f"1% of the loss is gone earliest at gamma = {early[0]}, M = {early[1]}: after "
        f"{late[early]:.2f} times the bound (median).",
        "cnn-theorem1-linear": f"The shares differ most at gamma = {far[0]}, M = {far[1]}: by {off[far]:.3f} (median).",
    }


RECIPE = Recipe(
    "cnn-theorem1",
    "CNN Theorem 1: the share along v1 and the bound (13) against the width",
    THEOREM1,
    experiments,
    measure,
    show,
    REDUCED,
    has_variants=False,
)
