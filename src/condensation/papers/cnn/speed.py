"""Careful readers' question: do filters turn, or only grow? Radial against tangential speed."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...runs import Trajectory
from .._claims import PerSeed, Rule
from .._counts import relative_loss
from .._legacy import Claim, Findings, Lab, Recipe, Runs, Statement
from .._variant import Variant
from .experiments import descent
from .kernels import cosine_to_v1, cosines_to, dynamics, times
from .words import GD_SETTINGS

LINEAR = 0.99  # of the first loss: so long the linear dynamics hold


def _statement(key: str, text: str, quantity: str, rule: Rule) -> Statement:
    return Statement(
        f"cnn-speed-{key}", "cnn-speed", "question of readers", text, quantity, rule, paper="CNN", ours=True
    )


STATEMENTS = (
    _statement(
        "first",
        "filters turn before the loss moves",
        "L/L0 at the first saved step with median |cos| to v1 of at least 0.95",
        Rule("at least", 0.999),
    ),
    _statement(
        "radial",
        "amplitudes then grow at the rate λ1",
        "relative error of the growth rate of the median amplitude",
        Rule("at most", 0.15),
    ),
    _statement(
        "tangential",
        "angles to v1 shrink at the rate λ1 - λ2",
        "relative error of the decay rate of the median tangent",
        Rule("at most", 0.25),
    ),
    _statement(
        "ratio",
        "turning ends before growth does: the tangential speed falls below a tenth of the radial one within the "
        "linear stage",
        "tangential over radial speed, median, at the last saved step with L/L0 >= .99",
        Rule("at most", 0.1),
    ),
)


def experiments(scale: str) -> Mapping[str, Experiment]:
    """Fig. 2's network, as trained there."""
    return {"descent": descent(scale)}


def _speeds(run: Trajectory, k: int) -> dict[str, np.ndarray]:
    """Median amplitude, tangent of the angle to v1, and both speeds of a seed's filters, between saved steps."""
    history, time = run.history("conv1", view="filter")[k].astype(float), times(run)
    size = np.linalg.norm(history, axis=-1)
    along = np.abs(cosines_to(history, dynamics(run, k).v1)).clip(0, 1)
    unit = history / np.where(size > 0, size, 1)[..., None]
    turned = np.arccos(np.einsum("sfc,sfc->sf", unit[1:], unit[:-1]).clip(-1, 1))
    pace = np.diff(time)[:, None]
    return {
        "amplitude": np.median(size, axis=1),
        "tangent": np.median(np.sqrt(1 - along**2) / np.where(along > 0, along, 1), axis=1),
        "tangential": np.median(turned / pace, axis=1),
        "radial": np.median(np.abs(np.diff(np.log(size), axis=0)) / pace, axis=1),
    }


def _window(run: Trajectory, k: int) -> np.ndarray:
    """The later half of the saved steps at which the linear dynamics hold."""
    inside = np.flatnonzero(relative_loss(run)[k] >= LINEAR)
    return inside[len(inside) // 2 :]


def _rate(time: np.ndarray, values: np.ndarray) -> float:
    """The slope of log values; NaN where they do not move."""
    return float(np.polyfit(time, np.log(values), 1)[0]) if np.ptp(values) > 0 else float("nan")


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """When filters have turned, and both rates against the singular values."""
    run = runs["descent"]
    turned, loss, time = cosine_to_v1(run) >= 0.95, relative_loss(run), times(run)
    first = np.where(turned.any(axis=1), loss[np.arange(len(loss)), turned.argmax(axis=1)], np.nan)
    radial, tangential, ratio = [], [], []
    for k in range(len(run.seeds)):
        chosen, speeds, values = _window(run, k), _speeds(run, k), dynamics(run, k).values
        radial.append(abs(_rate(time[chosen], speeds["amplitude"][chosen]) / values[0] - 1))
        tangential.append(abs(-_rate(time[chosen], speeds["tangent"][chosen]) / (values[0] - values[1]) - 1))
        last = chosen[-1] - 1
        ratio.append(speeds["tangential"][last] / speeds["radial"][last] if speeds["radial"][last] > 0 else np.nan)
    return {
        "cnn-speed-first": PerSeed(first),
        "cnn-speed-radial": PerSeed(radial),
        "cnn-speed-tangential": PerSeed(tangential),
        "cnn-speed-ratio": PerSeed(ratio),
    }


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Both speeds against time, and angle and amplitude with the rates that the spectrum gives."""
    run = runs["descent"]
    time, seeds = times(run), range(len(run.seeds))
    speeds = [_speeds(run, k) for k in seeds]
    middle = (time[1:] + time[:-1]) / 2
    with look():
        figure = Figure(figsize=(PAGE, 2.5), layout="constrained")
        left, right = figure.subplots(1, 2)
        for name, colour, said in (
            ("radial", COLOURS[1], "radial: d log|W| / dt"),
            ("tangential", COLOURS[0], "tangential: d angle / dt"),
        ):
            every = np.stack([one[name] for one in speeds])
            left.plot(middle, every.T, color=colour, linewidth=0.5, alpha=0.5)
            left.plot(middle, np.median(every, axis=0), color=colour, label=said)
        left.set(xlabel="time (rate x step, mean loss)", ylabel="speed", yscale="log", title="(a) two speeds")
        left.legend()
        k = int(np.argsort([dynamics(run, j).gap for j in seeds])[len(seeds) // 2])
        values, chosen = dynamics(run, k).values, _window(run, k)
        for name, colour, rate, said in (
            ("amplitude", COLOURS[1], values[0], r"amplitude; dashed: rate $\lambda_1$"),
            (
                "tangent",
                COLOURS[0],
                values[1] - values[0],
                r"tangent of the angle to v1; dashed: rate $\lambda_2 - \lambda_1$",
            ),
        ):
            curve = speeds[k][name]
            right.plot(time, curve, color=colour, label=said)
            anchor = chosen[len(chosen) // 2]
            right.plot(
                time[chosen],
                curve[anchor] * np.exp(rate * (time[chosen] - time[anchor])),
                "--",
                color="black",
                linewidth=0.9,
            )
        right.set(xlabel="time (rate x step, mean loss)", yscale="log", title="(b) medians over filters, one seed")
        right.legend()
    return Findings(
        caption="(a) How fast filters grow and turn, median over the filters of a seed; thick: median of the seeds. "
        "(b) Amplitude and angle of the seed with the median gap, with the slopes that the singular values of its "
        "own images give, drawn where the loss is above 99%. Filters turn and grow at once, then grow along v1. "
        "(The first point of a speed is a mean over the first saved interval.)",
        settings={"network, data, start": "those of Fig. 2", **GD_SETTINGS},
        pictures={"cnn-speed": figure},
        data={"seed": np.arange(len(run.seeds))}
        | {
            key.removeprefix("cnn-speed-"): np.asarray(claim.measured.values)
            for key, claim in claims.items()
            if claim.measured
        },
    )


RECIPE = Recipe(
    "cnn-speed",
    "Do filters turn, or only grow?",
    STATEMENTS,
    experiments,
    measure,
    show,
    "Fig. 2 at the quick scale",
    has_variants=False,
)
