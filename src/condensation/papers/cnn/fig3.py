"""CNN Figs. 3 and 5: three convolution layers on CIFAR-10, at the captioned epoch and when the images are fitted."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...measure import cosine_similarity
from ...runs import Trajectory
from .._claims import PerSeed, Rule
from .._counts import Counts, count
from .._legacy import Claim, Findings, Lab, Recipe, Runs, Statement
from .._tables import Table
from .._variant import Variant
from .experiments import (
    CHANNELS,
    FIG3_EPOCH,
    FIG3_RATE,
    FIG3_STEPS,
    QUICK_FIG3_EPOCH,
    QUICK_FIG3_STEPS,
    balanced,
    deep,
    deep_to_the_end,
    layers_of,
)
from .maps import Maps, Panel, at_the_end, map_statements
from .words import ADAM_SETTINGS, QUICK_DEEP

REDUCED = (
    QUICK_DEEP.format(epoch=QUICK_FIG3_EPOCH) + f", {QUICK_FIG3_STEPS} steps instead of {FIG3_STEPS}, 300 test images"
)
WHEN = f"at epoch {FIG3_EPOCH} (at the quick scale: at step {QUICK_FIG3_EPOCH})"


def captioned(run: Trajectory) -> int:
    """The captioned epoch of a run to the end."""
    return FIG3_EPOCH if run.experiment.network.layers[0].weight[0] == CHANNELS else QUICK_FIG3_EPOCH


INITIAL = tuple(
    Panel(layer, "deep", layer, f"three convolution layers, layer {k + 1}", f"initial, layer {k + 1}", 2, captioned)
    for k, layer in enumerate(layers_of(3))
)
FINAL = tuple(
    Panel(f"final-{layer}", "deep", layer, f"the same, fitted, layer {k + 1}", f"final, layer {k + 1}", final=True)
    for k, layer in enumerate(layers_of(3))
)
SETTINGS = {
    "network": "three convolution layers of 32 channels with 5 x 5 kernels (tanh), a dense layer of 1024 (relu), "
    "10 outputs",
    "data": "500 images of CIFAR-10 drawn at random, pixels in [-1, 1]",
    "optimizer": f"Adam, learning rate {FIG3_RATE:g}, full batch, eps 1e-8, epoch {FIG3_EPOCH} and {FIG3_STEPS}",
    **ADAM_SETTINGS,
}
MAPS = Maps(
    "cnn-fig3",
    (*FINAL, *INITIAL),
    "Kernels of three convolution layers (trained once), in the initial stage and when all images are fitted.",
    SETTINGS,
    times=True,
)
STATEMENTS = (
    *map_statements("cnn-fig3", "Fig. 3 (d)-(f)", INITIAL, WHEN, accuracy=True),
    *(
        Statement(
            f"cnn-fig3-{panel.key}",
            "cnn-fig3",
            "Fig. 3 (a)-(c)",
            f"{panel.said}: a clear condensation after training (read as: still one line of kernels)",
            "lines of kernels at the end",
            Rule("exactly", 1),
            paper="CNN",
        )
        for panel in FINAL
    ),
    *(
        Statement(
            f"cnn-fig3-{panel.key}-filters",
            "cnn-fig3",
            "Fig. 3 (a)-(c)",
            f"{panel.said}: condensation partly remains till the end (read as: one line of filters)",
            "lines of filters at the end",
            Rule("exactly", 1),
            paper="CNN",
        )
        for panel in FINAL
    ),
    Statement(
        "cnn-fig3-fitted",
        "cnn-fig3",
        "Sec. 5.2",
        "the network is trained until its training accuracy is 100%",
        "training accuracy at the end",
        Rule("at least", 1.0),
        paper="CNN",
    ),
)


def experiments(scale: str) -> Mapping[str, Experiment]:
    """The network, trained once to the end."""
    return {"deep": deep_to_the_end(scale)}


def measure(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """Lines at both moments, in both views at the end, and whether the images are fitted."""
    found = MAPS.measure(runs, variant)
    run = runs["deep"]
    for panel in FINAL:
        filters = count(run, panel.layer, int(run.saved[-1]), at_the_end(variant), view="filter")
        found[f"cnn-fig3-{panel.key}-filters"] = filters.lines_found()
    return found | {"cnn-fig3-fitted": PerSeed(run.accuracy[:, -1])}


def show(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """The maps, and what balanced classes do."""
    found = MAPS.show(lab, runs, claims)
    why, run = dict(found.why), runs["deep"]
    last, same = int(run.saved[-1]), at_the_end(lab.variant)
    for panel in FINAL:
        for key in (f"cnn-fig3-{panel.key}", f"cnn-fig3-{panel.key}-filters"):
            if claims[key].verdict not in ("reproduced", "not run"):
                kernels, filters = (count(run, panel.layer, last, same, view=view) for view in ("kernel", "filter"))
                why[key] = f"At the end, kernels: {kernels}; filters: {filters}." + (
                    f" {_by_channel(kernels, run)}" if panel.layer == "conv1" else ""
                )
    return replace(found, tables=(*found.tables, _balanced_table(lab, runs)), why=why)


def _by_channel(kernels: Counts, run: Trajectory) -> str:
    """How alike kernels of one input channel are at the end, and kernels of different ones."""
    inputs = run.experiment.network.layers[0].weight[1]
    within, across = [], []
    for one in kernels.weights[:, -1]:
        cosines = np.abs(cosine_similarity(one))
        channel = np.arange(len(one)) % inputs
        same = channel[:, None] == channel
        within.append(np.median(cosines[same & ~np.eye(len(one), dtype=bool)]))
        across.append(np.median(cosines[~same]))
    return (
        f"The median |cos| of two kernels that read the same colour is {np.median(within):.2f}, of two that read "
        f"different ones {np.median(across):.2f}."
    )


def _balanced_table(lab: Lab, runs: Runs) -> Table:
    """Lines at the captioned epoch with classes as drawn, and with as many images of each."""
    even = lab.train("balanced classes", balanced(deep(lab.scale)))
    rows = []
    for said, run, epoch in (
        ("as drawn", runs["deep"], captioned(runs["deep"])),
        ("as many images of each class", even, int(even.saved[-1])),
    ):
        counts = [count(run, layer, epoch, lab.variant) for layer in layers_of(3)]
        before = run.recorded <= epoch
        size = np.median(run.gradient["conv3.weight"][:, before].max(axis=1))
        rows.append((said, *(str(one) for one in counts), f"{size:.0e}"))
    return Table(
        "What drives it: the imbalance of the classes. The mean residual is not zero, so that biases grow and carry "
        "the gradient of the layers before; with balanced classes gradients stay far below Adam's eps",
        ("classes", "layer 1", "layer 2", "layer 3", "largest mean gradient of layer 3 until then"),
        tuple(rows),
    )


RECIPE = Recipe(
    "cnn-fig3", "CNN Fig. 3: three convolution layers on CIFAR-10", STATEMENTS, experiments, measure, show, REDUCED
)

ACCURACY = (
    Statement(
        "cnn-fig5-fitted",
        "cnn-fig5",
        "Fig. 5",
        "the training accuracy of Fig. 3's network rises to 100%",
        "training accuracy at the end",
        Rule("at least", 1.0),
        paper="CNN",
    ),
    Statement(
        "cnn-fig5-late",
        "cnn-fig5",
        "Figs. 3 and 5",
        "all three layers condense long before the network learns: their filters are on one line while the accuracy "
        "is below 21%",
        "training accuracy at the first saved step at which the filters of all three layers are on one line",
        Rule("at most", 0.21),
        paper="CNN",
    ),
)


def measure_accuracy(runs: Runs, variant: Variant) -> Mapping[str, PerSeed]:
    """The accuracy at the end, and when the layers are first condensed."""
    run = runs["deep"]
    histories = [count(run, layer, captioned(run), variant, view="filter").history for layer in layers_of(3)]
    condensed = np.all([history.condensed & (history.lines == 1) for history in histories], axis=0)
    at_saved = run.accuracy[:, np.searchsorted(run.recorded, run.saved)]
    first = np.where(condensed.any(axis=1), at_saved[np.arange(len(at_saved)), condensed.argmax(axis=1)], np.nan)
    return {"cnn-fig5-fitted": PerSeed(run.accuracy[:, -1]), "cnn-fig5-late": PerSeed(first)}


def show_accuracy(lab: Lab, runs: Runs, claims: Mapping[str, Claim]) -> Findings:
    """Training and test accuracy against the step."""
    run = runs["deep"]
    with look():
        figure = Figure(figsize=(PAGE * 0.62, 2.4), layout="constrained")
        axes = figure.subplots()
        for name, said, colour in (
            ("accuracy", "training images", COLOURS[0]),
            ("test_accuracy", "test images", COLOURS[1]),
        ):
            axes.plot(run.recorded, run.curves[name].T, color=colour, linewidth=0.5, alpha=0.45)
            axes.plot(run.recorded, np.nanmedian(run.curves[name], axis=0), color=colour, label=said)
        axes.axhline(0.1, color=COLOURS[6], linestyle=":", linewidth=0.8, label="chance")
        epoch = captioned(run)
        axes.axvline(epoch, color=COLOURS[6], linewidth=0.8, label=f"step {epoch}: Fig. 3 (d)-(f)")
        axes.set(xlabel="step", ylabel="accuracy", ylim=(0, 1.03))
        axes.set_xscale("symlog", linthresh=max(1, run.recorded[1]))
        axes.set_xlim(0, run.recorded[-1])
        figure.legend(loc="outside lower center", ncols=2)
    last = {name: np.median(run.curves[name][:, -1]) for name in ("accuracy", "test_accuracy")}
    return Findings(
        caption=f"Accuracy of Fig. 3's network; thick: median of {len(run.seeds)} seeds. At the end "
        f"{last['accuracy']:.0%} on the training and {last['test_accuracy']:.1%} on the test images (medians).",
        settings=SETTINGS,
        pictures={"cnn-fig5": figure},
        data={"seed": np.arange(len(run.seeds))}
        | {name: run.curves[name][:, -1] for name in ("accuracy", "test_accuracy")},
    )


FIG5 = Recipe(
    "cnn-fig5",
    "CNN Fig. 5: accuracy of Fig. 3's network",
    ACCURACY,
    experiments,
    measure_accuracy,
    show_accuracy,
    REDUCED,
)
