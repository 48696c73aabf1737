"""FC Fig. 2: the first dense layer of a ResNet18-like network on CIFAR-10, four activations."""

import numpy as np

from ..._phrases import plural
from ...activations import label
from ...experiment import Experiment
from .._claims import Claim, exactly
from .._figure import Drawing
from .._variant import Variant
from .experiments import FIG2_EPOCHS, FIG2_RATES, LINES, resnet
from .wording import LinesByActivation, by_kind, lines_in_words, with_multiplicity

ORIENTATIONS = {"tanh": 2, "sigmoid": 1, "softplus": 1}


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
    claims = by_kind(_claims, FIG2_EPOCHS)

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The four panels."""
        return {name: resnet(name, scale) for name in FIG2_RATES}

    def why(self, name: str) -> str:
        """What the seeds of a panel that fails show, there and at the best moment of the initial stage."""
        counts, best = self.counts[name], self.count(self.runs[name], "dense1", None, Variant())
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
            f"seed), and the number of lines over {plural(self.seeds, 'seed')} (bottom).",
            pictures={"": self._draw_maps(), "time": self._draw_times()}, data=self._columns(),
            settings_extra={"rates of the quick scale": "chosen on other seeds than these"} if self.quick else {},
        )  # fmt: skip
