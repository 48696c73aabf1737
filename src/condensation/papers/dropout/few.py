"""Ten inputs, one target neuron: what noise makes of a hundred neurons (Zhang and Xu, Fig. 7)."""

from matplotlib.figure import Figure

from ...data import Expression
from ...drawing import look
from ...drawing._style import COLOURS, PAGE
from ...experiment import Experiment
from ...initialization import Init, PyTorchDefault
from ...networks import Dense
from ...optimizers import Adam, AdamW
from ...saving import Evenly
from .._claims import Claim, at_least, at_most, exactly, question
from .._counts import relative_loss
from .._figure import Drawing
from ._noise import WHERE, UnderNoise

STEPS = {"quick": 8000, "paper": 50_000}
SHARE = 0.5
SLOW = "It makes neurons alike, but slowly: k_eff still falls at the end, and no layer is condensed."
TURNING = (
    "Neurons still turn: where two orientations are found they have less than the 90% of the neurons, by |w|, from "
    "which on a layer is condensed."
)
TARGET = f"tanh({' + '.join(f'x{k}' for k in range(1, 11))})"


class Few(UnderNoise):
    """One network under six kinds of noise."""

    name, title = "dropout-few", "Dropout condenses from an ordinary start, and so does R1 alone"
    chosen = (
        "the start (PyTorch's default), 30 points uniform on [-1, 1], the steps, the sizes of label noise (0.1) and "
        "weight "
        "decay (0.01), float32; few is at most ten effective lines of a hundred neurons. Trials with three seeds had "
        "shown "
        "no noise, dropout and R1 before the rules were written. Batches of two were first asked here as the text's "
        "statement, which is of another task (dropout-deep); the rule is the same"
    )
    claims = (
        Claim(
            "dropout", f"{WHERE}, Figs 4 and 7", "with dropout the neurons end on few lines",
            "k_eff at the end, the loss at 1% of the first", at_most(10),
            lambda figure: figure.ended("dropout"), lambda figure: figure.in_words(),
        ),
        Claim(
            "dropout-two", f"{WHERE}, Fig. 7", "with dropout there are two orientations", "orientations at the end",
            exactly(2), lambda figure: figure.orientations("dropout"),
            lambda figure: f"{TURNING} {figure.covered_in_words('dropout')} {figure.in_words()}",
        ),
        Claim(
            "penalty", WHERE, "its mean effect R1 alone, without noise, condenses too",
            "k_eff at the end, the loss at 1% of the first", at_most(10),
            lambda figure: figure.ended("penalty"), lambda figure: figure.in_words(),
        ),
        question(
            "penalty-two", "R1 alone has the two orientations, too", "orientations at the end", exactly(2),
            lambda figure: figure.orientations("penalty"), lambda figure: figure.in_words(),
        ),
        Claim(
            "none", f"{WHERE}, Figs 4 and 7", "without dropout nothing condenses",
            "k_eff at the end over that at the start, the loss at 1% of the first", at_least(0.8),
            lambda figure: figure.kept("none"), lambda figure: figure.in_words(),
        ),
        question(
            "batches", "small batches do not condense",
            "k_eff at the end over that at the start, the loss at 1% of the first", at_least(0.8),
            lambda figure: figure.kept("batches"), lambda figure: f"{SLOW} {figure.in_words()}",
        ),
        question(
            "labels", "label noise condenses", "k_eff at the end, the loss at 1% of the first", at_most(10),
            lambda figure: figure.ended("labels"), lambda figure: f"{SLOW} {figure.in_words()}",
        ),
        question(
            "decay", "weight decay condenses", "k_eff at the end, the loss at 1% of the first", at_most(10),
            lambda figure: figure.ended("decay"), lambda figure: f"{SLOW} {figure.in_words()}",
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The network under each kind of noise."""
        steps = STEPS[scale]
        plain = Experiment(
            Dense((10, 100, 1), "tanh"), Init(PyTorchDefault()), Expression(TARGET, dim=10, n=30, low=-1, high=1),
            Adam(1e-3), steps, save=Evenly(21), record=Evenly(21), dtype="float32",
        )  # fmt: skip
        return {
            "none": plain,
            "dropout": plain.replace(**{"network.dropout": SHARE}),
            "penalty": plain.replace(dropout_penalty=SHARE),
            "batches": plain.replace(batch_size=2),
            "labels": plain.replace(label_noise=0.1),
            "decay": plain.replace(optimizer=AdamW(1e-3, weight_decay=0.01)),
        }

    def draw(self) -> Drawing:
        """k_eff and loss over the steps."""
        with look():
            picture = Figure(figsize=(PAGE, 2.5), layout="constrained")
            left, right = picture.subplots(1, 2)
            for (name, run), colour in zip(self.runs.items(), COLOURS, strict=False):
                left.plot(run.saved, self.histories[name].k_eff.T, color=colour, alpha=0.4, linewidth=0.7)
                right.plot(run.saved, relative_loss(run).T, color=colour, alpha=0.4, linewidth=0.7)
                left.plot([], [], color=colour, label=self.titles[name])
            left.set(xlabel="step", ylabel="k_eff", yscale="log")
            right.set(xlabel="step", ylabel="loss over the first", yscale="log")
            picture.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=6)
        return Drawing(
            caption="A 10-100-1 tanh network on 30 samples of one tanh neuron, from an ordinary start, under six "
            "kinds of "
            "noise. Left: effective number of lines of each seed. Right: loss over the first.",
            pictures={"": picture},
            data=self.columns_of_claims(),
        )
