r"""CNN Theorem 1: two-layer networks of growing width, with initial std $M^{-\gamma/2}$, at the bound (13) and beyond.

The theorem is about $M \to \infty$ and a time $T_{eff}$, of which it gives a lower bound only: what holds at the bound
(13) holds of the suprema up to $T_{eff}$. So the networks are looked at twice: at that bound, and where 1% of the loss
is gone, the last time at which the residuals are still the initial ones. Claims are on the limit: the networks must go
there from width to width, and the linear dynamics that they follow are continued to widths that nobody can train.
"""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from ...drawing import look
from ...drawing._style import COLOURS, INK, PAGE
from ...experiment import Experiment
from ...theory import KernelDynamics, heuristic_time
from .._claims import Claim, PerSeed, Rule, at_least, at_most
from .._figure import Drawing, PaperFigure
from .._tables import Table
from .theorem1_networks import ENOUGH, KERNEL, STOP, continue_seed, experiment, exponent, measure_seed

GAMMAS = (4, 3, 2)
WIDTHS = {"quick": (32, 1024, 4096), "paper": (32, 128, 512, 1024, 2048, 4096)}
SLOPE = (1024, 4096)  # the widths between which the power of M is taken
WIDEST = SLOPE[1]
FAR = (WIDEST, *(10**k for k in range(4, 13, 2)))  # the widths of the linear dynamics, up to the largest
INFINITE = f"M = 10^{len(str(FAR[-1])) - 1}"
DECIDES = f"decides where filters have at least doubled by then, M = {WIDEST}"
LED, NEAR_LINEAR, ROUNDING = (
    2,
    0.01,
    1e-12,
)  # the growth from which on what has grown leads, and the allowed difference of shares


def _name(gamma: int, width: int) -> str:
    return f"gamma = {gamma}, M = {width}"


def _claims(gamma: int) -> "tuple[Claim[Theorem1], ...]":
    """What the theorem says of an initialization.

    A seed decides where the filters' norm has at least doubled in the widest network, by the linear dynamics: before,
    the initial weights outweigh what has grown, and no width tells the limit.
    """
    eq15, power, delta = "Theorem 1, eq. (15)", exponent(gamma), (gamma - 1) / 4
    on = f"M = {SLOPE[0]} to {SLOPE[1]}, and by the linear dynamics on to {INFINITE}; {DECIDES}"

    def claim(
        key: str, where: str, text: str, quantity: str, rule: Rule, measure: "Callable[[Theorem1], PerSeed]"
    ) -> "Claim[Theorem1]":
        note: Callable[[Theorem1], str] = lambda figure: figure.numbers(gamma)[key]  # noqa: E731
        return Claim(f"{key}-{gamma}", where, f"gamma = {gamma}: {text}", quantity, rule, measure, note=note)

    return (
        claim(
            "change", "Theorem 1, eq. (14)",
            "the relative change of the filters tends to infinity with M: at the bound (13) it grows at least like "
            f"exp(lambda1 t), M^{power:.2f} (25% less allowed)",
            f"least power of M with which the change (14) at (13) grows, over {power:.2f}; {on}", at_least(0.75),
            lambda figure: figure.least_power(gamma, "change", power),
        ),
        claim(
            "share", eq15, "the share of the filters along v1 tends to 1 with M at the bound (13), so up to T_eff",
            f"share (15) at (13), {INFINITE}, by the linear dynamics; counts where the networks' shares grow with M "
            f"and differ by at most {NEAR_LINEAR:g} from the linear ones; {DECIDES}", at_least(0.99),
            lambda figure: figure.limit(gamma, "share"),
        ),
        claim(
            "stop", eq15, "the share of the filters along v1 tends to 1 with M before the residuals change",
            f"the same at L/L0 = {STOP}", at_least(0.99), lambda figure: figure.limit(gamma, "stop_share"),
        ),
        claim(
            "grown", "Sec. 4, after eq. (13)",
            "while the residuals are those of the start the filters grow to the order M^delta, delta = (gamma - 1)/4",
            f"least power of M with which the growth of the filters' norm until L/L0 = {STOP} grows, over delta; {on}",
            at_least(1), lambda figure: figure.least_power(gamma, "stop_growth", delta),
        ),
        claim(
            "time", "Sec. 4, after eq. (13)",
            "it takes a time at least of order T = (delta/lambda1) log M until the filters have grown by M^delta",
            f"time at which the filters' norm is M^delta times that of the start over T, M = {WIDEST}; decides where "
            "that is reached before 1% of the loss is gone", at_least(1), lambda figure: figure.time_of_growth(gamma),
        ),
    )  # fmt: skip


class Theorem1(PaperFigure):
    """Shares along v1, changes and times against the width, a colour an initialization."""

    name, paper = "cnn-theorem1", "CNN"
    title = "CNN Theorem 1: the share along v1 and the bound (13) against the width"
    has_variants = False
    chosen = "the images, kernels, widths and values of gamma, at both scales: the theorem names none"
    claims = (
        *(claim for gamma in GAMMAS for claim in _claims(gamma)),
        Claim(
            "bound", "eq. (13)", "up to the bound (13) the residuals are those of the start",
            "time at which 1% of the loss is gone over (13), the least over gamma and M where (13) is positive",
            at_least(1), lambda figure: PerSeed(figure.late.min(axis=(0, 1))),
            lambda figure: "1% of the loss is gone earliest at {}: after {:.2f} times the bound (median).".format(
                *figure.worst(figure.late, np.nanargmin)
            ),
        ),
        Claim(
            "linear", "eqs. (9), (10)", "up to the bound (13) the filters follow the linear dynamics",
            "largest difference, over gamma and M, of the share (15) at (13) to that of the linear dynamics from the "
            "same start", at_most(NEAR_LINEAR), lambda figure: PerSeed(figure.off_linear.max(axis=(0, 1))),
            lambda figure: "The shares differ most at {}: by {:.3f} (median).".format(
                *figure.worst(figure.off_linear, np.nanargmax)
            ),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """All widths with all initializations."""
        return {_name(gamma, width): experiment(scale, gamma, width) for width in WIDTHS[scale] for gamma in GAMMAS}

    @cached_property
    def widths(self) -> list[int]:
        """The widths that were trained."""
        return sorted({run.experiment.network.layers[0].weight[0] for run in self.runs.values()})

    @cached_property
    def table(self) -> dict[str, Float[np.ndarray, "gammas widths seeds"]]:
        """What ``measure_seed`` tells of each network, by its name."""
        shape = len(GAMMAS), len(self.widths), self.seeds
        networks = [(gamma, self.runs[_name(gamma, width)]) for gamma in GAMMAS for width in self.widths]
        rows = [measure_seed(run, k, gamma) for gamma, run in networks for k in range(self.seeds)]
        return {name: np.array([row[name] for row in rows]).reshape(shape) for name in rows[0]}

    def of(self, gamma: int, width: int | None = WIDEST) -> dict[str, np.ndarray]:
        """The rows of the table with a gamma: of a width, each column an entry a seed; of all, widths x seeds."""
        rows = slice(None) if width is None else self.widths.index(width)
        return {name: values[GAMMAS.index(gamma), rows] for name, values in self.table.items()}

    @cached_property
    def late(self) -> Float[np.ndarray, "gammas widths seeds"]:
        """The time at which 1% of the loss is gone over the bound; infinite where that is not positive."""
        bound = self.table["bound"]
        positive = (bound > 0).all(axis=-1, keepdims=True)
        return np.where(positive, self.table["stop"] / np.where(bound > 0, bound, 1), np.inf)

    @cached_property
    def off_linear(self) -> Float[np.ndarray, "gammas widths seeds"]:
        """The difference of the share at the bound to that of the linear dynamics."""
        return np.abs(self.table["share"] - self.table["linear_share"])

    @cached_property
    def far(self) -> dict[str, Float[np.ndarray, "gammas widths seeds"]]:
        """What ``continue_seed`` tells of the widest network's initial weights up to the times of wider ones."""
        wide = [(self.runs[_name(gamma, WIDEST)], k, gamma) for gamma in GAMMAS for k in range(self.seeds)]
        rows = [row for run, k, gamma in wide for row in continue_seed(run, k, gamma, FAR)]
        shape = len(GAMMAS), self.seeds, len(FAR)
        return {name: np.array([row[name] for row in rows]).reshape(shape).swapaxes(1, 2) for name in rows[0]}

    def beyond(self, gamma: int) -> dict[str, np.ndarray]:
        """The linear dynamics with a gamma: widths x seeds."""
        return {name: values[GAMMAS.index(gamma)] for name, values in self.far.items()}

    def least_power(self, gamma: int, name: str, power: float) -> PerSeed:
        """In each seed the least power of M with which a quantity grows, over another; 0 where nothing has changed."""
        narrow, wide = (self.of(gamma, width)[name] for width in SLOPE)
        rows = self.beyond(gamma)
        with np.errstate(divide="ignore", invalid="ignore"):
            trained = np.log(wide / narrow) / np.log(SLOPE[1] / SLOPE[0])
        linear = np.diff(np.log(rows[name]), axis=0) / np.diff(np.log(FAR))[:, None]
        slopes = np.vstack([np.where(np.isfinite(trained), trained, 0), linear])
        led = rows["stop_growth" if name == "stop_growth" else "growth"][0] >= LED
        return PerSeed(slopes.min(axis=0) / power, decided=led)

    def limit(self, gamma: int, name: str) -> PerSeed:
        """In each seed the share at the largest width, and whether the networks go there as the linear dynamics do."""
        at_bound, rows, far = name == "share", self.of(gamma, None), self.beyond(gamma)
        shown = (rows["bound"] > 0).all(axis=1) if at_bound else np.full(len(self.widths), True)
        shares, linear = rows[name][shown], rows[f"linear_{name}"][shown]
        grows = (np.diff(shares, axis=0) > 0).all(axis=0) & (np.diff(far[name], axis=0) >= -ROUNDING).all(axis=0)
        near = (np.abs(shares - linear) <= NEAR_LINEAR).all(axis=0)
        led = far["growth" if at_bound else "stop_growth"][0] >= LED
        return PerSeed(far[name][-1], np.logical_and(grows, near), led)

    def time_of_growth(self, gamma: int) -> PerSeed:
        """In each seed the time of growth by M^delta over the paper's T, which decides where it is reached."""
        rows = self.of(gamma)
        return PerSeed(rows["grown"] / rows["heuristic"], decided=np.isfinite(rows["grown"]))

    def numbers(self, gamma: int) -> dict[str, str]:
        """For each claim on an initialization what the networks show at their widths (medians over the seeds)."""
        rows, far = self.of(gamma), self.beyond(gamma)
        median = {name: np.median(values) for name, values in rows.items()}
        bound, stop = (np.median(rows["lambda1"] * rows[time]) for time in ("bound", "stop"))
        short = (
            f"At M = {WIDEST} the bound is at lambda1 t = {bound:.2f}, when filters have grown "
            f"{np.median(far['growth'][0]):.2f} times; it is positive from M = {_first_positive(gamma)} on."
        )
        gone = (
            f"At M = {WIDEST} 1% of the loss is gone at lambda1 t = {stop:.2f}, when filters have grown "
            f"{median['stop_growth']:.2f} times; M^delta is {WIDEST ** ((gamma - 1) / 4):.0f}."
        )
        return {
            "change": f"{short} The change there is {median['change']:.2f}.",
            "share": f"{short} The share there is {median['share']:.3f}; by the linear dynamics it is {ENOUGH} from "
            f"M = {_round(median['enough'])} on.",
            "stop": f"{gone} The share there is {median['stop_share']:.3f}.",
            **dict.fromkeys(("grown", "time"), gone),
        }

    def worst(self, values: np.ndarray, choose: Callable[[np.ndarray], np.intp]) -> tuple[str, float]:
        """The network whose median over the seeds is chosen, and that median."""
        medians = np.median(values, axis=-1)
        i, j = np.unravel_index(choose(medians), medians.shape)
        return _name(GAMMAS[i], self.widths[j]), float(medians[i, j])

    def gap_in_words(self) -> str:
        """The gap of Z, and of which images: those of the quick scale are not those of the settings."""
        run = next(iter(self.runs.values()))
        gaps = [KernelDynamics.of(*run.data(seed), KERNEL).gap for seed in run.seeds]
        images = f"the images of the {self.scale} scale ({run.experiment.describe()['data']})"
        return f"(lambda1 - lambda2)/lambda1 is {min(gaps):.2f} to {max(gaps):.2f} in the seeds of {images}"

    def draw(self) -> Drawing:
        """Shares, changes and times against the width."""
        network = self.experiments("paper")[_name(GAMMAS[0], WIDEST)].describe()["network"]
        places = np.meshgrid(GAMMAS, self.widths, np.arange(self.seeds), indexing="ij")
        columns = dict(zip(("gamma", "width", "seed"), places, strict=True)) | self.table
        return Drawing(
            caption="Two-layer tanh networks with M filters and initial weights of std M^(-gamma/2): median and range "
            f"of {self.seeds} seeds. Solid: at the bound (13), or at initialization where that is negative. Dashed: "
            "where 1% of the loss is gone. Crosses: the linear dynamics (9) from the same initial weights, in (a) on "
            f"to {INFINITE}. Dotted: in (b) the power of M that exp(lambda1 t) gives, in (c) the heuristic "
            "T = (delta/lambda1) log M.",
            pictures={"": self._picture()},
            tables=(self._medians_table(), self._widths_table()),
            data={name: values.ravel() for name, values in columns.items()},
            settings_extra={
                "network": network.replace(str(WIDEST), "M"),
                "widths": "; ".join(f"{scale}: M = {', '.join(map(str, some))}" for scale, some in WIDTHS.items()),
                "initialization": "N(0, M^-gamma) for all parameters (the theory's gamma, epsilon² = M^-gamma)",
                "gap": self.gap_in_words(),
                "bound (13)": "eta0 = (gamma - 1)/100, its least value; values there are from a cubic spline in time",
            },
        )

    def _medians_table(self) -> Table:
        t = self.table
        columns = {
            "lambda1 times (13)": t["lambda1"] * t["bound"], "share (15) at (13)": t["share"],
            "linear dynamics": t["linear_share"], "change (14) at (13)": t["change"],
            f"lambda1 times the time of L/L0 = {STOP}": t["lambda1"] * t["stop"],
            f"share (15) at L/L0 = {STOP}": t["stop_share"], "linear dynamics there": t["linear_stop_share"],
            "time of growth by M^delta over T": t["grown"] / t["heuristic"],
        }  # fmt: skip
        medians = np.median([*columns.values()], axis=-1)
        rows = tuple(
            (str(gamma), str(width), *(f"{m:.3g}" if np.isfinite(m) else "not reached" for m in medians[:, i, j]))
            for i, gamma in enumerate(GAMMAS)
            for j, width in enumerate(self.widths)
        )
        return Table("Medians over the seeds", ("gamma", "M", *columns), rows)

    def _widths_table(self) -> Table:
        rows = []
        for gamma in GAMMAS:
            widths = _first_positive(gamma), _round(np.median(self.of(gamma)["enough"]))
            far = (np.median(self.beyond(gamma)[name][-1]) for name in ("share", "stop_share"))
            rows.append((str(gamma), *widths, *(f"{share:.6f}" for share in far)))
        header = (
            "gamma", "M from which on (13) is positive", f"M from which on the share (15) at (13) is {ENOUGH}",
            f"share (15) at (13), {INFINITE}", f"at L/L0 = {STOP}",
        )  # fmt: skip
        return Table("Widths that the bound (13) needs, by the linear dynamics of these images", header, tuple(rows))

    def _picture(self) -> Figure:
        """Shares, changes and times, from left to right."""
        widths = np.array(self.widths)
        shown = widths[::-2][::-1] if len(widths) > 5 else widths
        with look():
            figure = Figure(figsize=(PAGE, 2.9), layout="constrained")
            left, middle, right = figure.subplots(1, 3)
            for gamma, colour in zip(GAMMAS, COLOURS, strict=False):
                rows = self.of(gamma, None)
                for axes, values, style in (
                    (left, rows["share"], "-"), (left, rows["stop_share"], "--"), (middle, rows["change"], "-"),
                    (right, rows["lambda1"] * rows["bound"], "-"), (right, rows["lambda1"] * rows["stop"], "--"),
                ):  # fmt: skip
                    _draw_range(axes, widths, values, colour, style)
                cross = {"marker": "x", "color": colour, "markersize": 5, "markeredgewidth": 0.8, "linewidth": 0.5}
                for axes, name in ((left, "linear_share"), (left, "linear_stop_share"), (middle, "linear_change")):
                    medians = np.median(rows[name], axis=1)
                    axes.plot(widths, np.where(medians > 0, medians, np.nan), **cross | {"linestyle": ""})
                for name, style in (("share", "-"), ("stop_share", "--")):
                    left.plot(FAR, np.median(self.beyond(gamma)[name], axis=1), linestyle=style, **cross)
                power = np.median(self.of(gamma)["change"]) * (widths / WIDEST) ** exponent(gamma)
                middle.plot(widths, power, ":", color=colour, linewidth=0.9)
                right.plot(widths, [heuristic_time(1.0, width, gamma) for width in self.widths], ":", color=colour)
            left.set(title="(a) share along $v_1$", ylim=(0, 1.03), ylabel="share (15)")
            middle.set(title="(b) relative change at (13)", ylabel="change (14)", yscale="log")
            right.set(title="(c) times", ylabel=r"$\lambda_1 t$", ylim=(0, None))
            for axes in (left, middle, right):
                axes.set(xscale="log", xlabel="width M")
                axes.set_xticks(shown, [str(width) for width in shown])
                axes.xaxis.set_minor_locator(NullLocator())
            left.set_xticks((widths[0], WIDEST, 10**8, FAR[-1]), (str(widths[0]), str(WIDEST), "$10^8$", "$10^{12}$"))
            _legend(figure)
        return figure


def _draw_range(axes: Axes, widths: np.ndarray, values: np.ndarray, colour: str, style: str) -> None:
    """The median over the seeds with a bar from the least to the largest; what is not positive is left out."""
    middle = np.median(values, axis=1)
    if (positive := middle > 0).any():
        ends = np.stack([middle - values.min(axis=1), values.max(axis=1) - middle])[:, positive]
        look_of = {"fmt": f"o{style}", "markersize": 2.5, "color": colour, "elinewidth": 0.8}
        axes.errorbar(widths[positive], middle[positive], ends, **look_of)


def _legend(figure: Figure) -> None:
    """Colours above, ways of drawing below."""
    pairs = zip(GAMMAS, COLOURS, strict=False)
    gammas = [Line2D([], [], color=c, marker="o", markersize=3, label=rf"$\gamma$ = {gamma}") for gamma, c in pairs]
    styles = [
        Line2D([], [], color=INK, label="at the bound (13)"),
        Line2D([], [], color=INK, linestyle="--", label=f"at $L/L_0$ = {STOP}"),
        Line2D([], [], color=INK, linestyle="", marker="x", markersize=4, label="linear dynamics (9)"),
        Line2D([], [], color=INK, linestyle=":", label="power of M (b), heuristic T (c)"),
    ]
    columns = [handle for pair in zip(gammas, styles, strict=False) for handle in pair]
    figure.legend(handles=[*columns, styles[-1]], loc="outside lower center", ncols=4)


def _first_positive(gamma: int) -> str:  # the width from which on the bound (13) is positive
    return _round(4 ** (1 / exponent(gamma)))


def _round(value: float) -> str:
    """Two digits of a large number.

    >>> _round(25_412_345)
    '25,000,000'
    """
    return f"{float(f'{value:.2g}'):,.0f}"
