"""CNN Figs. 3 and 5: three convolution layers on CIFAR-10, at the captioned epoch and when the images are fitted."""

from dataclasses import replace

import numpy as np

from ...drawing import look
from ...drawing._style import COLOURS, PAGE, figure_of, new_axes
from ...experiment import Experiment
from ...measure import cosine_similarity
from ...runs import Trajectory
from .._claims import Claim, PerSeed, at_least, at_most
from .._figure import Drawing, PaperFigure
from .._tables import Table
from .experiments import CHANNELS, FIG3_EPOCH, QUICK_FIG3_EPOCH, balanced, deep, deep_to_the_end, layers_of
from .maps import ACCURACY, HeatMaps, Panel, map_claims

LAYERS = layers_of(3)
FEW = 3
WHEN = f"at epoch {FIG3_EPOCH} (at the quick scale: at step {QUICK_FIG3_EPOCH})"


def captioned(run: Trajectory) -> int:
    """The captioned epoch of a run to the end."""
    return FIG3_EPOCH if run.experiment.network.layers[0].weight[0] == CHANNELS else QUICK_FIG3_EPOCH


INITIAL = tuple(
    Panel(layer, "deep", layer, f"three convolution layers, layer {k}", f"initial, layer {k}", 2, captioned)
    for k, layer in enumerate(LAYERS, 1)
)
FINAL = tuple(
    Panel(f"final-{layer}", "deep", layer, f"the same, fitted, layer {k}", f"final, layer {k}", final=True)
    for k, layer in enumerate(LAYERS, 1)
)


def _final(panel: Panel, view: str, where: str, text: str) -> "Claim[Fig3]":
    """A claim on a view of a layer, kernels or filters, when the images are fitted.

    The text gives no number of lines there. Sec. 1 speaks of "one or a few directions"; a few are at least three.
    """
    return Claim(
        panel.key + "-filters" * (view == "filter"), where,
        f"{panel.text}: {text} (read as: one or a few lines of {view}s, at most {FEW})", f"lines of {view}s at the end",
        at_most(FEW), lambda figure: figure.counts[view][panel.key].lines_found(),
        note=lambda figure: figure.at_the_end(panel),
    )  # fmt: skip


def _fitted(where: str, text: str) -> Claim[PaperFigure]:
    return Claim(
        "fitted", where, text, "training accuracy at the end", at_least(1.0),
        lambda figure: PerSeed(figure.runs["deep"].accuracy[:, -1]),
    )  # fmt: skip


class Fig3(HeatMaps):
    """Kernels of three layers, in the initial stage and at the end."""

    name, title = "cnn-fig3", "CNN Fig. 3: three convolution layers on CIFAR-10"
    panels = (*FINAL, *INITIAL)
    caption = "Kernels of three convolution layers (trained once), in the initial stage and when all images are fitted."
    times = True
    claims = (
        *map_claims("Fig. 3 (d)-(f)", INITIAL, WHEN, accuracy=True),
        *(_final(each, "kernel", "Fig. 3 (a)-(c), Sec. 5.2", "a clear condensation after training") for each in FINAL),
        *(_final(each, "filter", "Sec. 1", "condensation partly remains till the end") for each in FINAL),
        _fitted("Sec. 5.2", "the network is trained until its training accuracy is 100%"),
    )

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The network, trained once to the end."""
        return {"deep": deep_to_the_end(scale)}

    @classmethod
    def evidence(cls, scale: str) -> dict[str, Experiment]:
        """The network on as many images of each class."""
        return {"balanced classes": balanced(deep(scale))}

    def at_the_end(self, panel: Panel) -> str:
        """What both views of a layer show when the images are fitted."""
        kernels, filters = (self.counts[view][panel.key] for view in ("kernel", "filter"))
        lines = f"At the end, kernels: {kernels}; filters: {filters}."
        return f"{lines} {self._by_channel(kernels.weights[:, -1])}" if panel.layer == "conv1" else lines

    def _by_channel(self, kernels: np.ndarray) -> str:
        """How alike kernels of one input channel are, and kernels of different ones."""
        channel = np.arange(kernels.shape[1]) % self.runs["deep"].experiment.network.layers[0].weight[1]
        same, itself = channel[:, None] == channel, np.eye(len(channel), dtype=bool)
        cosines = [np.abs(cosine_similarity(each)) for each in kernels]
        within, across = (np.median([np.median(each[pairs]) for each in cosines]) for pairs in (same & ~itself, ~same))
        return (
            f"The median |cos| of two kernels that read the same colour is {within:.2f}, of two that read different "
            f"ones {across:.2f}."
        )

    def draw(self) -> Drawing:
        """The maps, and what balanced classes do."""
        drawing = super().draw()
        return replace(drawing, tables=(*drawing.tables, self._balanced_table())) if self.others else drawing

    def _balanced_table(self) -> Table:
        rows = []
        drawn, even = self.runs["deep"], self.others["balanced classes"]
        for classes, run in (("as drawn", drawn), ("as many images of each class", even)):
            epoch = captioned(run)
            counts = (str(self.count(run, layer, epoch)) for layer in LAYERS)
            size = np.median(run.gradient["conv3.weight"][:, run.recorded <= epoch].max(axis=1))
            rows.append((classes, *counts, f"{size:.0e}"))
        return Table(
            "What drives it: the imbalance of the classes. The mean residual is not zero, so that biases grow and "
            "carry the gradient of the layers before; with balanced classes gradients stay far below Adam's eps",
            ("classes", "layer 1", "layer 2", "layer 3", "largest mean gradient of layer 3 until then"), tuple(rows),
        )  # fmt: skip


class Fig5(PaperFigure):
    """Training and test accuracy of Fig. 3's network."""

    name, title, paper = "cnn-fig5", "CNN Fig. 5: accuracy of Fig. 3's network", "CNN"
    claims = (
        _fitted("Fig. 5", "the training accuracy of Fig. 3's network rises to 100%"),
        Claim(
            "late", "Figs. 3 and 5",
            "all three layers condense long before the network learns: their filters are on one line while the "
            "accuracy is below 21%",
            "training accuracy at the first saved step at which the filters of all three layers are on one line",
            at_most(ACCURACY), lambda figure: figure.when_condensed(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Fig. 3's network."""
        return Fig3.experiments(scale)

    def when_condensed(self) -> PerSeed:
        """The accuracy of each seed where its three layers are first condensed."""
        run = self.runs["deep"]
        histories = [self.count(run, layer, captioned(run), view="filter").history for layer in LAYERS]
        condensed = np.all([history.condensed & (history.lines == 1) for history in histories], axis=0)
        accuracy = run.accuracy[:, np.searchsorted(run.recorded, run.saved)]
        first = accuracy[np.arange(len(accuracy)), condensed.argmax(axis=1)]
        return PerSeed(np.where(condensed.any(axis=1), first, np.nan))

    def draw(self) -> Drawing:
        """Training and test accuracy against the step."""
        run, images = self.runs["deep"], {"accuracy": "training images", "test_accuracy": "test images"}
        last = {name: run.curves[name][:, -1] for name in images}
        with look():
            axes = new_axes(PAGE * 0.62, 2.4)
            for (name, label), colour in zip(images.items(), COLOURS, strict=False):
                axes.plot(run.recorded, run.curves[name].T, color=colour, linewidth=0.5, alpha=0.45)
                axes.plot(run.recorded, np.nanmedian(run.curves[name], axis=0), color=colour, label=label)
            epoch = captioned(run)
            axes.axhline(0.1, color=COLOURS[6], linestyle=":", linewidth=0.8, label="chance")
            axes.axvline(epoch, color=COLOURS[6], linewidth=0.8, label=f"step {epoch}: Fig. 3 (d)-(f)")
            axes.set_xscale("symlog", linthresh=max(1, run.recorded[1]))
            axes.set(xlabel="step", ylabel="accuracy", xlim=(0, run.recorded[-1]), ylim=(0, 1.03))
            figure_of(axes).legend(loc="outside lower center", ncols=2)
        return Drawing(
            caption=f"Accuracy of Fig. 3's network; thick: median of {self.seeds} seeds. At the end "
            f"{np.median(last['accuracy']):.0%} on the training and {np.median(last['test_accuracy']):.1%} on the test "
            "images (medians).",
            pictures={"": figure_of(axes)}, data={"seed": np.arange(self.seeds)} | last,
        )  # fmt: skip
