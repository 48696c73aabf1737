"""FC Fig. 2: the first dense layer of a ResNet18-like network on CIFAR-10, four activations."""

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
WIDTH = "x_tanh-width"  # the panel that does not reproduce, in the other reading of m_out
TEXT = "ResNet18-like, x tanh x"


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
    )  # fmt: skip


class Fig2(LinesByActivation):
    """The first dense layer, an activation a panel."""

    name, title = "fc-fig2", "FC Fig. 2: a ResNet18-like network on CIFAR-10"
    chosen = (
        "m_out of N(0, 1/m_out³) is each layer's number of outputs, 10 in the last layer; for x tanh x it is also read "
        "as the width 1024 of the dense layers. ResNet18's own stem and batch norms, and pixels in [-1, 1]: the text "
        "names none of them"
    )
    titles: ClassVar = {name: label(name) for name in FIG2_RATES} | {WIDTH: f"{label('x_tanh')} (width)"}
    claims = (
        *by_kind(_claims, FIG2_EPOCHS),
        question(
            "x_tanh-early",
            f"{TEXT}: within the initial stage, where it is most condensed, the layer is on two lines",
            "lines at the saved step of least k_eff with the loss above 70%", exactly(2),
            lambda figure: figure.most_condensed("x_tanh").lines_found(), lambda figure: figure.why("x_tanh"),
        ),
        question(
            WIDTH, f"{TEXT}, with N(0, 1/1024³) in the output layer too: two lines by epoch 61",
            "lines at epoch 61 (at the quick scale: at the last step)", exactly(2),
            lambda figure: figure.counts[WIDTH].lines_found(), lambda figure: figure.why(WIDTH),
        ),
        in_initial_stage(
            f"{WIDTH}-stage", f"{TEXT}, with N(0, 1/1024³) in the output layer too", FIG2_EPOCHS["x_tanh"],
            lambda figure: figure.counts[WIDTH].loss, ours=True,
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The four panels, and one of them in another reading."""
        return {name: resnet(name, scale) for name in FIG2_RATES} | {WIDTH: resnet_of_width("x_tanh", scale)}

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

    def draw(self) -> Drawing:
        """Heat maps, counts, lines against time."""
        epochs = ", ".join(f"{epoch} ({label(name)})" for name, epoch in FIG2_EPOCHS.items())
        when = "at the last step" if self.quick else f"at epochs {epochs}"
        return Drawing(
            caption=f"Cosine similarity of all pairs of neurons in the first dense layer {when} (top; the median "
            "seed; width: x tanh x with N(0, 1/1024³) in the output layer too), and the number of lines over "
            f"{plural(self.seeds, 'seed')} (bottom).",
            pictures={"": self._draw_maps(), "time": self._draw_times()}, data=self._columns(),
            settings_extra={"rates of the quick scale": "chosen on other seeds than these"} if self.quick else {},
        )  # fmt: skip
