"""Additional question: do filters turn, or only grow? Radial against tangential speed."""

from functools import cached_property

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...prediction._kernels import cosine_to_v1, cosines_to, dynamics, times
from ...runs import Trajectory
from ...theory import KernelDynamics
from .._claims import PerSeed, at_least, at_most, question
from .._counts import relative_loss
from .._figure import Drawing, PaperFigure
from .experiments import descent

LINEAR = 0.99  # of the first loss: so long the linear dynamics hold
RATES = {"amplitude": lambda values: values[0], "tangent": lambda values: values[1] - values[0]}
TIME = "time (rate x step, mean loss)"


class Speed(PaperFigure):
    """How fast the filters of Fig. 2's network grow and turn, against the rates that the spectrum of Z gives."""

    name, title, paper = "cnn-speed", "Do filters turn, or only grow?", "CNN"
    has_variants = False
    claims = (
        question(
            "first", "filters turn before the loss moves",
            "L/L0 at the first saved step with median |cos| to v1 of at least 0.95", at_least(0.999),
            lambda figure: figure.loss_when_turned(),
        ),
        question(
            "radial", "amplitudes then grow at the rate λ1",
            "relative error of the growth rate of the median amplitude", at_most(0.15),
            lambda figure: figure.rate_error("amplitude"),
        ),
        question(
            "tangential", "angles to v1 shrink at the rate λ1 - λ2",
            "relative error of the decay rate of the median tangent", at_most(0.25),
            lambda figure: figure.rate_error("tangent"),
        ),
        question(
            "ratio",
            "turning ends before growth does: the tangential speed falls below a tenth of the radial one within the "
            "linear stage",
            "tangential over radial speed, median, at the last saved step with L/L0 >= .99", at_most(0.1),
            lambda figure: figure.last_ratio(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Fig. 2's network, as trained there."""
        return {"descent": descent(scale)}

    @cached_property
    def dynamics(self) -> list[KernelDynamics]:
        """The linear dynamics of each seed's images."""
        return [dynamics(self.runs["descent"], k) for k in range(self.seeds)]

    @cached_property
    def speeds(self) -> list[dict[str, np.ndarray]]:
        """Amplitude, tangent and speeds of each seed."""
        return [_speeds(self.runs["descent"], k, theory.v1) for k, theory in enumerate(self.dynamics)]

    @cached_property
    def windows(self) -> list[np.ndarray]:
        """For each seed the later half of the saved steps at which the linear dynamics hold."""
        linear = [np.flatnonzero(loss >= LINEAR) for loss in relative_loss(self.runs["descent"])]
        return [inside[len(inside) // 2 :] for inside in linear]

    def loss_when_turned(self) -> PerSeed:
        """L/L0 at the first saved step at which filters have turned to v1; NaN where they do not."""
        run = self.runs["descent"]
        turned, loss = cosine_to_v1(run) >= 0.95, relative_loss(run)
        return PerSeed(np.where(turned.any(axis=1), loss[np.arange(len(loss)), turned.argmax(axis=1)], np.nan))

    def rate_error(self, name: str) -> PerSeed:
        """How far the exponential rate of a quantity is from that of the linear dynamics, over the latter."""
        time, seeds = times(self.runs["descent"]), zip(self.speeds, self.windows, strict=True)
        rates = np.array([_rate(time[chosen], speeds[name][chosen]) for speeds, chosen in seeds])
        return PerSeed(np.abs(rates / [RATES[name](theory.values) for theory in self.dynamics] - 1))

    def last_ratio(self) -> PerSeed:
        """Tangential over radial speed at the end of the linear stage; NaN where nothing grows."""
        ends = [chosen[-1] - 1 for chosen in self.windows]
        pairs = [(each["tangential"][end], each["radial"][end]) for each, end in zip(self.speeds, ends, strict=True)]
        return PerSeed([float(tangential / radial) if radial > 0 else np.nan for tangential, radial in pairs])

    def draw(self) -> Drawing:
        """Both speeds against time, and angle and amplitude with the rates that the spectrum gives."""
        with look():
            figure = Figure(figsize=(PAGE, 2.5), layout="constrained")
            left, right = figure.subplots(1, 2)
            self._draw_speeds(left)
            self._draw_rates(right, int(np.argsort([theory.gap for theory in self.dynamics])[self.seeds // 2]))
        return Drawing(
            caption="(a) How fast filters grow and turn, median over the filters of a seed; thick: median of the "
            "seeds. (b) Amplitude and angle of the seed with the median gap; dashed: the slopes that the singular "
            "values of its images give, where the loss is above 99%. Filters turn and grow at once, then only grow.",
            pictures={"": figure},
            data={"seed": np.arange(self.seeds)}
            | {claim.key: np.asarray(self.measured(claim.key).values) for claim in self.claims},
        )

    def _draw_speeds(self, axes: Axes) -> None:
        time = times(self.runs["descent"])
        middle = (time[1:] + time[:-1]) / 2
        labels = {"radial": "radial: d log|W| / dt", "tangential": "tangential: d angle / dt"}
        for (name, label), colour in zip(labels.items(), (COLOURS[1], COLOURS[0]), strict=True):
            every = np.stack([speeds[name] for speeds in self.speeds])
            axes.plot(middle, every.T, color=colour, linewidth=0.5, alpha=0.5)
            axes.plot(middle, np.median(every, axis=0), color=colour, label=label)
        axes.set(xlabel=TIME, ylabel="speed", yscale="log", title="(a) two speeds")
        axes.legend()

    def _draw_rates(self, axes: Axes, k: int) -> None:
        time, chosen = times(self.runs["descent"]), self.windows[k]
        anchor = chosen[len(chosen) // 2]
        labels = (
            r"amplitude; dashed: rate $\lambda_1$",
            r"tangent of the angle to v1; dashed: rate $\lambda_2 - \lambda_1$",
        )
        for name, colour, label in zip(RATES, (COLOURS[1], COLOURS[0]), labels, strict=True):
            curve, rate = self.speeds[k][name], RATES[name](self.dynamics[k].values)
            axes.plot(time, curve, color=colour, label=label)
            predicted = curve[anchor] * np.exp(rate * (time[chosen] - time[anchor]))
            axes.plot(time[chosen], predicted, "--", color="black", linewidth=0.9)
        axes.set(xlabel=TIME, yscale="log", title="(b) medians over filters, one seed")
        axes.legend()


def _speeds(run: Trajectory, k: int, v1: np.ndarray) -> dict[str, np.ndarray]:
    """Median amplitude, tangent of the angle to v1, and both speeds of a seed's filters, between saved steps."""
    history = run.history("conv1", view="filter")[k].astype(float)
    size = np.linalg.norm(history, axis=-1)
    along = np.abs(cosines_to(history, v1)).clip(0, 1)
    unit = history / np.where(size > 0, size, 1)[..., None]
    turned = np.arccos(np.einsum("sfc,sfc->sf", unit[1:], unit[:-1]).clip(-1, 1))
    pace = np.diff(times(run))[:, None]
    return {
        "amplitude": np.median(size, axis=1),
        "tangent": np.median(np.sqrt(1 - along**2) / np.where(along > 0, along, 1), axis=1),
        "tangential": np.median(turned / pace, axis=1),
        "radial": np.median(np.abs(np.diff(np.log(size), axis=0)) / pace, axis=1),
    }


def _rate(time: np.ndarray, values: np.ndarray) -> float:
    """The slope of log values; NaN where they do not move."""
    return float(np.polyfit(time, np.log(values), 1)[0]) if np.ptp(values) > 0 else float("nan")
