"""FC Fig. 2: the first dense layer of a ResNet18-like network on CIFAR-10, four activations."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from ..._phrases import plural
from ...activations import label
from ...experiment import Experiment
from .._claims import Claim, exactly, question
from .._counts import Counts
from .._figure import Drawing
from .._variant import Variant
from .experiments import FIG2_EPOCHS, FIG2_RATES, LINES, resnet, resnet_of_width
from .wording import LinesByActivation, by_kind, in_initial_stage, lines_in_words, with_multiplicity

ORIENTATIONS = {"tanh": 2, "sigmoid": 1, "softplus": 1}
EARLY = "lines at the saved step of least k_eff with the loss above 70%"
READINGS = {
    "x_tanh": "as drawn",
    "x_tanh-width": "m_out read as the width 1024 in the output layer too",
    "x_tanh-plain": "without batch norms",
}


def _claims(name: str) -> "tuple[Claim[Fig2] | None, ...]":
    epoch, count = FIG2_EPOCHS[name], ORIENTATIONS.get(name)
    return Claim(
        name, "Fig. 2",
        f"ResNet18-like, {with_multiplicity(name)}: the first dense layer condenses on {lines_in_words(name)} by epoch "
        f"{epoch}",
        f"lines at epoch {epoch} (at the quick scale: at the last step)", exactly(LINES[name]),
        lambda figure: figure.counts[name].lines_found(), lambda figure: figure.why(name),
    ), None if count is None else Claim(
        f"{name}-orientations", "Fig. 2, Sec. 4.2",
        f"ResNet18-like, {label(name)}: " + ("two opposite directions" if count == 2 else "one direction"),
        "orientations at the same step", exactly(count), lambda figure: figure.counts[name].sides_found(),
        lambda figure: figure.why(name),
    ), Claim(
        f"{name}-within", "Sec. 4.4, App. A.6",
        f"ResNet18-like, {label(name)}: the first dense layer condenses on {lines_in_words(name)} within the initial "
        "stage",
        EARLY, exactly(LINES[name]), lambda figure: figure.most_condensed(name).lines_found(),
        lambda figure: figure.why(name),
    )  # fmt: skip


class _DenseLayer(LinesByActivation):
    """The first dense layer of ResNet18-like networks, and what it shows where it is on other lines than stated."""

    def most_condensed(self, name: str) -> Counts:
        """The lines of a panel at each seed's most condensed saved step of the initial stage."""
        return self.count(self.runs[name], "dense1", None, Variant())

    def why(self, name: str) -> str:
        """What the seeds of a panel that fails show, there and at the best moment of the initial stage."""
        counts, best = self.counts[name], self.most_condensed(name)
        when, loss = "last step" if self.quick else "captioned epoch", np.median(counts.loss)
        there = f"At the {when}: {counts}; the loss is at {loss:.2f} of its first value."
        moment = f" Where most condensed within the initial stage (step {', '.join(map(str, best.steps))}): {best}."
        return there + moment + (" These are verdicts on the reduced network, not on the paper's." * self.quick)


class Fig2(_DenseLayer):
    """The first dense layer, an activation a panel."""

    name, title = "fc-fig2", "FC Fig. 2: a ResNet18-like network on CIFAR-10"
    chosen = (
        "m_out of N(0, 1/m_out³) is each layer's number of outputs, 10 in the last layer. ResNet18's own stem and "
        "batch norms, and pixels in [-1, 1]: the text names none of them. Other readings are in fc-fig2-readings"
    )
    titles: ClassVar = {name: label(name) for name in FIG2_RATES}
    claims = by_kind(_claims, FIG2_EPOCHS)

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The four panels."""
        return {name: resnet(name, scale) for name in FIG2_RATES}

    def draw(self) -> Drawing:
        """Heat maps, counts, lines against time."""
        epochs = ", ".join(f"{epoch} ({label(name)})" for name, epoch in FIG2_EPOCHS.items())
        when = "at the last step" if self.quick else f"at epochs {epochs}"
        return Drawing(
            caption=f"Cosine similarity of all pairs of neurons in the first dense layer {when} (top; the median "
            f"seed), and the number of lines over {plural(self.seeds, 'seed')} (bottom).",
            pictures={"": self._draw_maps(), "time": self._draw_times()}, data=self._columns(),
            settings_extra={"rates of the quick scale": "chosen on other seeds than these"} if self.quick else {},
        )  # fmt: skip


def _claims_of_reading(name: str) -> "tuple[Claim[Fig2Readings], ...]":
    epoch, text = FIG2_EPOCHS["x_tanh"], f"ResNet18-like, x tanh x, {READINGS[name]}"
    at_end = f"lines at epoch {epoch} (at the quick scale: at the last step)"
    return question(
        name, f"{text}: two lines by epoch {epoch}", at_end, exactly(2),
        lambda figure: figure.counts[name].lines_found(), lambda figure: figure.why(name),
    ), question(
        f"{name}-early", f"{text}: within the initial stage, where it is most condensed, the layer is on two lines",
        EARLY, exactly(2),
        lambda figure: figure.most_condensed(name).lines_found(), lambda figure: figure.why(name),
    ), in_initial_stage(f"{name}-stage", text, epoch, lambda figure: figure.counts[name].loss, ours=True)  # fmt: skip


class Fig2Readings(_DenseLayer):
    """The panel of x tanh x, which does not reproduce, in the readings that the text allows."""

    name, title = "fc-fig2-readings", "FC Fig. 2: x tanh x in other readings of the text"
    has_variants = False
    seed_count = 3
    chosen = "the readings: m_out as each layer's own number of outputs or as the width, batch norms or none"
    titles: ClassVar = {"x_tanh": "as drawn", "x_tanh-width": "m_out = 1024", "x_tanh-plain": "no batch norm"}
    claims = by_kind(_claims_of_reading, READINGS)

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The panel in each reading."""
        drawn = resnet("x_tanh", scale)
        plain = drawn.replace(network=replace(drawn.network, batch_norm=False))
        return dict(zip(READINGS, (drawn, resnet_of_width("x_tanh", scale), plain), strict=True))

    def draw(self) -> Drawing:
        """Heat maps, counts, lines against time."""
        when = "at the last step" if self.quick else f"at epoch {FIG2_EPOCHS['x_tanh']}"
        return Drawing(
            caption=f"Cosine similarity of all pairs of neurons in the first dense layer with x tanh x {when} (top; "
            f"the median seed) in three readings, and the number of lines over {plural(self.seeds, 'seed')} (bottom).",
            pictures={"": self._draw_maps(), "time": self._draw_times()}, data=self._columns(),
        )  # fmt: skip
