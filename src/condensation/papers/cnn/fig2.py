"""CNN Figs. 2, 10 and 11: one convolution layer under gradient descent: spectrum, kernels, and their direction."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ...drawing import draw_history, draw_similarity, draw_spectrum, look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...runs import Trajectory
from .._claims import PerSeed, Rule
from .._counts import Counts, count
from .._legacy import Claim, Findings, Lab, Recipe, Runs, Statement
from .._tables import Table
from .._variant import Variant
from .experiments import CHANNELS, MANY, descent
from .kernels import cosine_to_v1, cosines_to, cosines_to_ones, dynamics, predicted_sides, predicted_turning
from .maps import ACCURACY, accuracy_at
from .words import GD_SETTINGS, NO_CAPTION, QUICK_DESCENT, SETS


@dataclass(frozen=True)
class DescentFigure:
    """One of the three figures: its number, data, number of kernels of an input channel, and step in words."""

    number: int
    data: str
    channels: int
    step: str

    @property
    def name(self) -> str:
        """Such as ``cnn-fig2``."""
        return f"cnn-fig{self.number}"

    def experiments(self, scale: str) -> Mapping[str, Experiment]:
        """The network."""
        return {"descent": descent(scale, self.data, self.channels)}

    def counts(self, run: Trajectory, variant: Variant) -> Counts:
        """Lines of kernels at the last step."""
        return count(run, "conv1", int(run.saved[-1]), variant)

    def statements(self) -> tuple[Statement, ...]:
        """What the figure states, and what the theory says of it."""

        def state(
            key: str, where: str, text: str, quantity: str, rule: Rule, trained: bool = True, ours: bool = False
        ) -> Statement:
            return Statement(f"{self.name}-{key}", self.name, where, text, quantity, rule, trained, "CNN", ours)

        there, fig = self.step, f"Fig. {self.number}"
        kernels = self.channels * (3 if self.data == "cifar10" else 1)
        own = self.number == 2  # what is said of cosines and accuracy is said of Fig. 2
        like = fig if own else "ours, as of Fig. 2"
        return (
            state(
                "gap",
                f"{fig}, Assumption 4",
                "Z has a clear spectral gap (read as: at least 30%)",
                "(λ1 - λ2) / λ1",
                Rule("at least", 0.3),
                trained=False,
            ),
            state(
                "line",
                fig,
                f"the {kernels} kernels condense on one line",
                f"lines of kernels {there}",
                Rule("exactly", 1),
            ),
            state("sides", fig, "at two opposite directions", f"orientations of kernels {there}", Rule("exactly", 2)),
            state(
                "ones",
                like,
                "the cosine between each kernel and 1 is almost 1 or -1 (read as: at least 0.95 for 90% of them)",
                f"10% quantile of |cos| with 1 {there}",
                Rule("at least", 0.95),
                ours=not own,
            ),
            state(
                "v1",
                "Theorem 1",
                "filters condense on the leading singular vector v1 of Z",
                f"median |cos| of filters with v1 {there}",
                Rule("at least", 0.99),
            ),
            state(
                "predicted",
                "ours, from (9)",
                "each filter goes to the side of v1 that its start predicts",
                "share of filters on the predicted side",
                Rule("at least", 0.95),
                ours=True,
            ),
            state(
                "accuracy",
                like,
                "that is the initial stage, the accuracy is below 20% (21% allowed)",
                f"training accuracy {there}",
                Rule("at most", ACCURACY),
                trained=False,
                ours=not own,
            ),
        )

    def measure(self, runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
        """Gap, lines, directions, predictions and accuracy of each seed."""
        run = runs["descent"]
        counts, seeds = self.counts(run, variant), range(len(run.seeds))
        filters = [run.history("conv1", view="filter")[k, counts.column[k]].astype(float) for k in seeds]
        kernels = [counts.weights[k, counts.column[k]].astype(float) for k in seeds]
        along = [cosines_to(filters[k], dynamics(run, k).v1) for k in seeds]
        found = {
            "gap": PerSeed([dynamics(run, k).gap for k in seeds]),
            "line": counts.lines_found(),
            "sides": counts.sides_found(),
            "ones": PerSeed([float(np.quantile(np.abs(cosines_to_ones(one)), 0.1)) for one in kernels]),
            "v1": PerSeed([float(np.median(np.abs(one))) for one in along]),
            "predicted": PerSeed([float(np.mean(np.sign(along[k]) == predicted_sides(run, k))) for k in seeds]),
            "accuracy": PerSeed(accuracy_at(run, counts)),
        }
        return {f"{self.name}-{key}": value for key, value in found.items()}

    def show(self, lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
        """Spectrum, heat map, amplitudes and cosines of the median seed; lines and directions against time."""
        run = runs["descent"]
        counts = self.counts(run, lab.variant)
        k, said = counts.median_seed, SETS[self.data]
        seeds, step = len(run.seeds), int(counts.steps[k])
        with look():
            figure = Figure(figsize=(PAGE, 2.5), layout="constrained")
            left, middle, right = figure.subplots(1, 3)
            draw_spectrum(np.stack([dynamics(run, j).values for j in range(seeds)]), left, title=f"(a) {said}: Z")
            draw_similarity(counts.shown, middle, title=f"(b) kernels at step {step}")
            middle.set(xticks=[], yticks=[])
            _draw_directions(right, counts.shown.astype(float))
            right.set_title("(c) amplitude and cosine with 1")
            later = Figure(figsize=(PAGE, 2.3), layout="constrained")
            left, right = later.subplots(1, 2)
            draw_history(run.saved, counts.history, left, title="lines of kernels")
            _draw_turning(right, run)
        return Findings(
            caption=f"(a) The largest eigenvalues of ZᵀZ for the loss that is trained on; thin: {seeds} draws of "
            f"images. (b) Cosine similarity of all pairs of kernels {self.step} (median seed). (c) Amplitude of each "
            "kernel, and its cosine with the kernel of ones. Against time: lines over the seeds, and the median "
            "|cos| of filters with v1 beside what the linear dynamics (9) predict from the start.",
            settings={
                "network": f"one convolution layer of {self.channels} channels with 3 x 3 kernels (tanh), 10 outputs",
                "data": f"500 images of {said} drawn at random, pixels in [-1, 1]",
                **GD_SETTINGS,
                **({} if self.number == 2 else {"chosen by us": f"{NO_CAPTION} Fig. 2, but for the step: {self.step}"}),
            },
            pictures={self.name: figure, f"{self.name}-time": later},
            tables=(_table(run, counts, lab.variant),),
            data=counts.columns() | {"gap": np.array([dynamics(run, j).gap for j in range(seeds)])},
            why=self._why(run, counts, claims),
        )

    def _why(self, run: Trajectory, counts: Counts, claims: Mapping[str, Claim]) -> dict[str, str]:
        """Why claims fail, from what was measured."""
        drawn = ", ".join(
            f"{np.bincount(run.data(seed)[1].argmax(1)).max() / len(run.data(seed)[0]):.0%}" for seed in run.seeds
        )
        values = accuracy_at(run, counts)
        found = {
            "accuracy": f"The loss is still at {np.median(counts.loss):.2f} of its first value, but one direction of "
            f"kernels tells some images apart: {', '.join(f'{value:.1%}' for value in values)}. (The largest class "
            f"has {drawn} of the images.)",
            "ones": "The kernel of ones is nearly v1 ("
            + ", ".join(f"{dynamics(run, k).channel_cosines.min():.3f}" for k in range(len(run.seeds)))
            + "); the shortest kernels have not turned to it by this step.",
        }
        found = {f"{self.name}-{key}": text for key, text in found.items()}
        return {key: text for key, text in found.items() if claims[key].verdict != "reproduced"}


def _draw_directions(axes: Axes, kernels: np.ndarray) -> None:
    """Amplitude (left axis) and cosine with the kernel of ones (right axis) of each kernel."""
    cosines, order = cosines_to_ones(kernels), np.argsort(cosines_to_ones(kernels))
    places = np.arange(len(kernels))
    axes.plot(places, np.linalg.norm(kernels, axis=1)[order], ".", color=COLOURS[1], markersize=3)
    axes.set(xlabel="kernel, in order of the cosine")
    axes.set_ylabel("amplitude", color=COLOURS[1])
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2), useMathText=True)
    other = axes.twinx()
    other.spines["right"].set_visible(True)
    other.plot(places, cosines[order], color=COLOURS[0])
    other.set_ylim(-1.08, 1.08)
    other.set_ylabel("cosine with 1", color=COLOURS[0])


def _draw_turning(axes: Axes, run: Trajectory) -> None:
    """The median |cos| of filters with v1 at the saved steps, found and predicted."""
    found = cosine_to_v1(run)
    axes.plot(run.saved, found.T, color=FAINT, linewidth=0.6)
    axes.plot(run.saved, np.median(found, axis=0), color=COLOURS[0], label="found (thick: median)")
    axes.plot(run.saved, np.median(predicted_turning(run), axis=0), "--", color=COLOURS[1], label="predicted by (9)")
    axes.set(xlabel="step", ylabel="median |cos| with v1", ylim=(0, 1.02), title="filters turn to v1")
    axes.legend(loc="lower right")


def _table(run: Trajectory, counts: Counts, variant: Variant) -> Table:
    """Numbers of each seed."""
    filters = count(run, "conv1", int(run.saved[-1]), variant, view="filter")
    rows = tuple(
        (
            str(run.seeds[k].data),
            str(counts.steps[k]),
            f"{counts.loss[k]:.3f}",
            f"{accuracy_at(run, counts)[k]:.1%}",
            f"{counts.lines[k]}, {filters.lines[k]}",
            f"{dynamics(run, k).gap:.2f}",
            ", ".join(f"{value:.4f}" for value in dynamics(run, k).channel_cosines),
            f"{dynamics(run, k).bias_part:.2f}",
        )
        for k in range(len(run.seeds))
    )
    header = (
        "seed",
        "step",
        "loss / first",
        "accuracy",
        "lines: kernels, filters",
        "gap",
        "parts of v1 · 1",
        "bias part",
    )
    return Table("Seed by seed", header, rows)


def _recipe(number: int, data: str, channels: int, title: str) -> Recipe:
    full, small = (descent(scale, data, channels) for scale in ("paper", "quick"))
    one = DescentFigure(number, data, channels, f"at step {full.steps} (at the quick scale: {small.steps})")
    reduced = QUICK_DESCENT.format(samples=small.data.n, steps=small.steps, all_steps=full.steps)  # type: ignore[union-attr]
    return Recipe(
        one.name, f"CNN Fig. {number}: {title}", one.statements(), one.experiments, one.measure, one.show, reduced
    )


RECIPE = _recipe(2, "cifar10", CHANNELS, "the spectrum of Z, and kernels under gradient descent")
FIG10 = _recipe(10, "mnist", CHANNELS, "32 kernels under gradient descent, MNIST")
FIG11 = _recipe(11, "mnist", MANY, "320 kernels under gradient descent, MNIST")
