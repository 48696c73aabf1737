"""One input, a target of two tanh neurons, 10% dropout (Zhang and Xu, Fig. 4)."""

import numpy as np
from matplotlib.figure import Figure

from ...data import Expression
from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...initialization import Init, WidthPower
from ...networks import Dense
from ...optimizers import Adam
from ...saving import Evenly
from .._claims import Claim, PerSeed, at_least, at_most, question
from .._figure import Drawing
from ._noise import WHERE, UnderNoise

SIZES = {"quick": (50, 20_000), "paper": (100, 50_000)}  # width, steps
SHARE = 0.1


class Line(UnderNoise):
    """One network without noise, with dropout, and with R1."""

    name, title = "dropout-line", "Two tanh neurons with 10% dropout"
    chosen = (
        "20 points evenly spaced on [-15, 15], width 50 or 100 in place of 1000, Adam at 1e-3 (the caption's; the text "
        "has 1e-4), the steps, float32; few is at most six orientations. What carries the output was asked after the "
        "first run"
    )
    claims = (
        Claim(
            "dropout", f"{WHERE}, Fig. 4", "with dropout few orientations are left",
            "orientations at the end, the layer condensed", at_most(6),
            lambda figure: figure.orientations("dropout"), lambda figure: figure.all_in_words(),
        ),
        Claim(
            "penalty", f"{WHERE}, Fig. 4", "with R1 in place of dropout the same",
            "orientations at the end, the layer condensed", at_most(6),
            lambda figure: figure.orientations("penalty"), lambda figure: figure.all_in_words(),
        ),
        Claim(
            "none", f"{WHERE}, Fig. 4", "without dropout it does not condense",
            "1 where the layer is not condensed and the loss at 1% of the first", at_least(1),
            lambda figure: PerSeed(1 - figure.histories["none"].condensed[:, -1], valid=figure.fitted("none")),
            lambda figure: figure.in_words(),
        ),
        question(
            "carried", "with dropout what carries the output has few orientations",
            "orientations at the end of neurons weighed by |a||w|, these condensed", at_most(6),
            lambda figure: figure.carriers("dropout"), lambda figure: figure.carriers_in_words(),
        ),
        question(
            "carried-penalty", "and so it has with R1",
            "orientations at the end of neurons weighed by |a||w|, these condensed", at_most(6),
            lambda figure: figure.carriers("penalty"), lambda figure: figure.carriers_in_words(),
        ),
        question(
            "fewer", "R1 leaves fewer effective lines than no noise",
            "k_eff at the end with R1, over that without, the loss at 1% of the first", at_most(0.8),
            lambda figure: PerSeed(figure.k_eff("penalty") / figure.k_eff("none"), valid=figure.fitted("penalty")),
            lambda figure: figure.in_words(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The network with and without dropout, and with R1."""
        width, steps = SIZES[scale]
        plain = Experiment(
            Dense((1, width, 1), "tanh"), Init(WidthPower(0.1)),
            Expression("tanh(x - 6) + tanh(x + 6)", dim=1, n=20, low=-15, high=15, spacing="even"), Adam(1e-3), steps,
            save=Evenly(21), record=Evenly(21), dtype="float32",
        )  # fmt: skip
        return {
            "none": plain,
            "dropout": plain.replace(**{"network.dropout": SHARE}),
            "penalty": plain.replace(dropout_penalty=SHARE),
        }

    def carriers_in_words(self) -> str:
        """The orientations of what carries the output, and the share of it that lines have."""
        parts = []
        for name, own in self.carried.items():
            counts = ", ".join(f"{count:g}" for count in own.orientations[:, -1])
            parts.append(f"{self.titles[name]} {counts} (lines have {np.median(own.cover[:, -1]):.0%}, median)")
        return f"Orientations of neurons weighed by |a||w|, seed by seed: {'; '.join(parts)}."

    def all_in_words(self) -> str:
        """The same, beside the effective lines of all neurons."""
        return (
            "Neurons are weighed by |w|: those that add next to nothing to the output count as well, and hardly turn. "
            f"{self.carriers_in_words()} {self.in_words()}"
        )

    def draw(self) -> Drawing:
        """Neurons of a seed at the end, and k_eff."""
        with look():
            picture = Figure(figsize=(PAGE, 2.3), layout="constrained")
            panels = picture.subplots(1, 4)
            for axes, (name, run), colour in zip(panels, self.runs.items(), COLOURS, strict=False):
                weights = run.history(1)[0, -1]
                a = np.abs(run.parameters["output.weight"][0, -1, 0])
                angles = np.degrees(np.arctan2(weights[:, 1], weights[:, 0]))
                axes.scatter(angles, a * np.linalg.norm(weights, axis=1), s=8, color=colour, linewidth=0, alpha=0.7)
                axes.set(title=self.titles[name], xlabel="angle of (w, b)", xlim=(-180, 180), yscale="log")
                panels[-1].plot(run.saved, self.histories[name].k_eff.T, color=colour, alpha=0.4, linewidth=0.7)
            panels[0].set_ylabel("|a||w|")
            panels[-1].set(title="k_eff", xlabel="step")
        return Drawing(
            caption="A tanh network on a target of two tanh neurons, from an ordinary start. First three: the "
            "neurons of the first seed at the end, at their angle and at |a||w|. Right: effective number of lines of "
            "each seed, in the colours of these.",
            pictures={"": picture},
            data=self.columns_of_claims(),
        )
