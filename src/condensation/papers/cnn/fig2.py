"""CNN Figs. 2, 10 and 11: one convolution layer under gradient descent: spectrum, kernels, and their direction."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ..._phrases import joined
from ...data._catalog import known
from ...drawing import draw_history, draw_similarity, draw_spectrum, look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...prediction import _kernels as linear
from ...runs import Trajectory
from ...theory import KernelDynamics
from .._claims import Claim, PerSeed, at_least, at_most, exactly
from .._counts import Counts
from .._figure import Drawing, PaperFigure
from .._tables import Table
from .experiments import CHANNELS, GD_RATE, GD_STEPS, MANY, NO_CAPTION, SUMMED, descent
from .maps import ACCURACY, accuracy_at, last_step

EARLY = 0.01  # λ₁t long before the kernels turn


def _step(data: str, channels: int) -> str:
    """The step that is shown, in words."""
    full, small = (descent(scale, data, channels) for scale in ("paper", "quick"))
    return f"at step {full.steps} (at the quick scale: {small.steps})"


def _claims(figure: str, data: str, channels: int) -> "tuple[Claim[Descent], ...]":
    """What a figure states, and what the theory says of it."""
    there, ours = _step(data, channels), figure != "Fig. 2"
    like_fig2 = "ours, as of Fig. 2" if ours else figure  # cosines and accuracy are told of Fig. 2 only
    kernels = channels * (3 if data == "cifar10" else 1)
    return (
        Claim(
            "gap", f"{figure}, Assumption 4", "Z has a clear spectral gap (read as: at least 30%)", "(λ1 - λ2) / λ1",
            at_least(0.3), lambda figure: PerSeed([z.gap for z in figure.theory]), trained=False,
        ),
        Claim(
            "line", figure, f"the {kernels} kernels condense on one line", f"lines of kernels {there}", exactly(1),
            lambda figure: figure.counts.lines_found(),
        ),
        Claim(
            "sides", figure, "at two opposite directions", f"orientations of kernels {there}", exactly(2),
            lambda figure: figure.counts.sides_found(),
        ),
        Claim(
            "ones", like_fig2,
            "the cosine between each kernel and 1 is almost 1 or -1 (read as: at least 0.95 for 90% of them)",
            f"10% quantile of |cos| with 1 {there}", at_least(0.95),
            lambda figure: PerSeed(np.quantile(np.abs(linear.cosines_to_ones(figure.units("kernel"))), 0.1, axis=1)),
            lambda figure: figure._not_turned_yet(), ours=ours,
        ),
        Claim(
            "v1", "Theorem 1", "filters condense on the leading singular vector v1 of Z",
            f"median |cos| of filters with v1 {there}", at_least(0.99),
            lambda figure: PerSeed(np.median(np.abs(figure.along), axis=1)),
        ),
        Claim(
            "predicted", "ours, from (9)", "each filter goes to the side of v1 that its initial weights predict",
            "share of filters on the predicted side", at_least(0.95), lambda figure: figure.predicted(), ours=True,
        ),
        Claim(
            "accuracy", like_fig2, "that is the initial stage, the accuracy is below 20% (21% allowed)",
            f"training accuracy {there}", at_most(ACCURACY), lambda figure: PerSeed(figure.accuracy),
            lambda figure: figure._told_apart(), trained=False, ours=ours,
        ),
    )  # fmt: skip


class Descent(PaperFigure):
    """The kernels of one convolution layer (``channels`` of each colour), and what the images predict of them."""

    paper = "CNN"
    data: ClassVar[str]
    channels: ClassVar[int]
    chosen = f"{NO_CAPTION} Fig. 2, but for the number of steps; {SUMMED}"

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The network."""
        return {"descent": descent(scale, cls.data, cls.channels)}

    @property
    def run(self) -> Trajectory:
        """The run."""
        return self.runs["descent"]

    @cached_property
    def theory(self) -> list[KernelDynamics]:
        """The linear dynamics of each seed's images."""
        return [linear.dynamics(self.run, k) for k in range(len(self.run.seeds))]

    @cached_property
    def counts(self) -> Counts:
        """Lines of kernels at the last step."""
        return self.count(self.run, "conv1", last_step(self.run))

    def units(self, view: str) -> np.ndarray:
        """The kernels or filters of each seed where lines are counted."""
        history = self.run.history("conv1", view=view)
        return history[np.arange(len(history)), self.counts.column].astype(float)

    @cached_property
    def along(self) -> np.ndarray:
        """The cosine of each filter with v1, in each seed."""
        return np.stack(
            [linear.cosines_to(each, z.v1) for each, z in zip(self.units("filter"), self.theory, strict=True)]
        )

    @property
    def accuracy(self) -> np.ndarray:
        """The training accuracy of each seed at that step."""
        return accuracy_at(self.run, self.counts)

    def predicted(self) -> PerSeed:
        """The share of filters on the side of v1 that the linear dynamics predict."""
        sides = [linear.predicted_sides(self.run, k) for k in range(len(self.run.seeds))]
        return PerSeed(np.mean(np.sign(self.along) == sides, axis=1))

    def _told_apart(self) -> str:
        classes = (self.run.data(seed)[1].argmax(1) for seed in self.run.seeds)
        largest = joined((np.bincount(each).max() / len(each) for each in classes), ".0%")
        return (
            f"The accuracy says little of the stage: by the linear dynamics it is {joined(self._early(), '.1%')} at "
            f"λ₁t = {EARLY}, before the kernels turn, and here {joined(self.accuracy, '.1%')} with a loss of "
            f"{np.median(self.counts.loss):.2f} of its first value. (The largest class has {largest} of the images.)"
        )

    def _early(self) -> list[float]:
        """The training accuracy of each seed by the linear dynamics long before the kernels turn."""
        models = [linear.predicted_model(self.run, k, EARLY / z.values[0]) for k, z in enumerate(self.theory)]
        data = (self.run.data(seed) for seed in self.run.seeds)
        return [float((model(x).argmax(1) == y.argmax(1)).mean()) for model, (x, y) in zip(models, data, strict=True)]

    def _not_turned_yet(self) -> str:
        nearest = joined((z.channel_cosines.min() for z in self.theory), ".3f")
        return f"The kernel of ones is nearly v1 ({nearest}); the shortest kernels have not turned to it by this step."

    def draw(self) -> Drawing:
        """Spectrum, heat map, amplitudes and cosines of the median seed; lines and directions against time."""
        counts = self.counts
        with look():
            figure = Figure(figsize=(PAGE, 2.5), layout="constrained")
            left, middle, right = figure.subplots(1, 3)
            draw_spectrum(np.stack([z.values for z in self.theory]), left, title=f"(a) {known(self.data).title}: Z")
            draw_similarity(counts.shown, middle, title=f"(b) kernels at step {counts.steps[counts.median_seed]}")
            middle.set(xticks=[], yticks=[])
            _draw_directions(right, counts.shown.astype(float))
            right.set_title("(c) amplitude and cosine with 1")
            later = Figure(figsize=(PAGE, 2.3), layout="constrained")
            left, right = later.subplots(1, 2)
            draw_history(self.run.saved, counts.history, left, title="lines of kernels")
            _draw_turning(right, self.run)
        return Drawing(
            caption=f"(a) The largest eigenvalues of ZᵀZ; thin: {self.seeds} draws of images. (b) Cosine similarity of "
            f"all pairs of kernels {_step(self.data, self.channels)} (median seed). (c) Amplitude of each kernel, and "
            "its cosine with the kernel of ones. Against time: lines over the seeds, and the median |cos| of filters "
            "with v1 beside what the linear dynamics (9) predict.",
            pictures={"": figure, "time": later}, tables=(self._table(),),
            data=counts.columns() | {"gap": np.array([z.gap for z in self.theory])},
        )  # fmt: skip

    def _table(self) -> Table:
        kernels, filters = self.counts, self.count(self.run, "conv1", last_step(self.run), view="filter")
        columns = {
            "seed": [str(seed.data) for seed in self.run.seeds],
            "step": map(str, kernels.steps),
            "loss / first": [f"{loss:.3f}" for loss in kernels.loss],
            "accuracy": [f"{accuracy:.1%}" for accuracy in self.accuracy],
            "lines: kernels, filters": [joined(pair, "g") for pair in zip(kernels.lines, filters.lines, strict=True)],
            "|cos| of kernels with 1": map(_spread, np.abs(linear.cosines_to_ones(self.units("kernel")))),
            "amplitude of kernels": map(_spread, np.linalg.norm(self.units("kernel"), axis=-1)),
            "gap": [f"{z.gap:.2f}" for z in self.theory],
            "parts of v1 · 1": [joined(z.channel_cosines, ".4f") for z in self.theory],
            "bias part": [f"{z.bias_part:.2f}" for z in self.theory],
        }
        return Table.of_columns("Seed by seed (kernels: mean ± standard deviation over them)", columns)


class Fig2(Descent):
    """32 kernels for each colour."""

    name, title = "cnn-fig2", "CNN Fig. 2: the spectrum of Z, and kernels under gradient descent"
    data, channels = "cifar10", CHANNELS
    chosen = SUMMED
    claims = (
        *_claims("Fig. 2", data, channels),
        Claim(
            "as-printed", "Fig. 2, eq. (1)",
            "with the loss as eq. (1) prints it, the mean over the samples, kernels condense by the captioned step",
            f"median |cos| of filters with v1 at step {GD_STEPS['cifar10']}, by the linear dynamics", at_least(0.95),
            lambda figure: figure.as_printed(), lambda figure: figure.too_early(), trained=False,
        ),
        Claim(
            "weights-alone", "Sec. 4, after (13)",
            "each filter goes to the side of v1 on which its own initial weights are: θ_W(t) is the sum of "
            "exp(λ_k t) <θ_W(0), v_k> v_k",
            "share of filters on that side", at_least(0.95), lambda figure: figure.by_weights_alone(),
            lambda figure: figure.outputs_decide(), trained=False,
        ),
    )  # fmt: skip

    @property
    def _time_as_printed(self) -> float:
        return GD_RATE * GD_STEPS[self.data]

    def as_printed(self) -> PerSeed:
        """How far the filters would turn by the captioned step if the loss were the mean over the samples."""
        time = self._time_as_printed
        turned = (z.evolve(*linear.initial_filters(self.run, k), time)[0] for k, z in enumerate(self.theory))
        cosines = (linear.cosines_to(filters, z.v1) for filters, z in zip(turned, self.theory, strict=True))
        return PerSeed([float(np.median(np.abs(each))) for each in cosines])

    def too_early(self) -> str:
        """Why the mean over the samples does not condense."""
        growth = joined((z.values[0] * self._time_as_printed for z in self.theory), ".3f")
        return (
            f"At step {GD_STEPS[self.data]} λ₁t is {growth} with the captioned rate: filters are then still what the "
            "initial output weights make of all singular vectors. v1 leads when exp(λ₁t) has grown. Summed over the "
            "samples, the loss is as many times faster."
        )

    def by_weights_alone(self) -> PerSeed:
        """The share of filters on the side of v1 on which their initial weights were."""
        initial = (linear.initial_filters(self.run, k)[0] for k in range(len(self.run.seeds)))
        sides = [np.sign(filters @ z.v1) for filters, z in zip(initial, self.theory, strict=True)]
        return PerSeed(np.mean(np.sign(self.along) == sides, axis=1))

    def outputs_decide(self) -> str:
        """Why the initial filters do not tell the sides."""
        filters, outputs = linear.initial_filters(self.run, 0)
        shares = joined(self.predicted().values, ".0%")
        return (
            f"The sum leaves out the output weights, which are {np.std(outputs) / np.std(filters):.0e} times as large "
            f"at initialization: they decide. With both, (9) tells the side of {shares} of the filters."
        )


class Fig10(Descent):
    """32 kernels on MNIST."""

    name, title = "cnn-fig10", "CNN Fig. 10: 32 kernels under gradient descent, MNIST"
    data, channels = "mnist", CHANNELS
    claims = _claims("Fig. 10", data, channels)


class Fig11(Descent):
    """320 kernels on MNIST."""

    name, title = "cnn-fig11", "CNN Fig. 11: 320 kernels under gradient descent, MNIST"
    data, channels = "mnist", MANY
    claims = _claims("Fig. 11", data, channels)


def _spread(values: np.ndarray) -> str:
    """Mean and standard deviation.

    >>> _spread(np.array([1.0, 3.0]))
    '2 ± 1'
    """
    return f"{values.mean():.4g} ± {values.std():.2g}"


def _draw_directions(axes: Axes, kernels: np.ndarray) -> None:
    """Amplitude (left axis) and cosine with the kernel of ones (right axis) of each kernel."""
    cosines = linear.cosines_to_ones(kernels)
    order, places = np.argsort(cosines), np.arange(len(kernels))
    axes.plot(places, np.linalg.norm(kernels, axis=1)[order], ".", color=COLOURS[1], markersize=3)
    axes.set_xlabel("kernel, in order of the cosine")
    axes.set_ylabel("amplitude", color=COLOURS[1])
    axes.ticklabel_format(axis="y", style="sci", scilimits=(-2, 2), useMathText=True)
    other = axes.twinx()
    other.spines["right"].set_visible(True)
    other.plot(places, cosines[order], color=COLOURS[0])
    other.set_ylim(-1.08, 1.08)
    other.set_ylabel("cosine with 1", color=COLOURS[0])


def _draw_turning(axes: Axes, run: Trajectory) -> None:
    """The median |cos| of filters with v1 at the saved steps, found and predicted."""
    turning = linear.cosine_to_v1(run)
    axes.plot(run.saved, turning.T, color=FAINT, linewidth=0.6)
    axes.plot(run.saved, np.median(turning, axis=0), color=COLOURS[0], label="found (thick: median)")
    axes.plot(
        run.saved, np.median(linear.predicted_turning(run), axis=0), "--", color=COLOURS[1], label="predicted by (9)"
    )
    axes.set(xlabel="step", ylabel="median |cos| with v1", ylim=(0, 1.02), title="filters turn to v1")
    axes.legend(loc="lower right")
