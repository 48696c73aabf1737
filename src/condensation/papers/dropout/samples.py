"""How many samples a network with dropout needs for two tanh neurons, six parameters (Zhang and Xu, Fig. 8)."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from ...data import Expression
from ...drawing import look
from ...drawing._style import COLOURS, FAINT, PAGE
from ...experiment import Experiment
from ...saving import Evenly
from .._claims import Claim, PerSeed, at_least, at_most, question
from .._figure import Available, Drawing, PaperFigure
from ._noise import WHERE
from .line import Line

NUMBERS = {"quick": (5, 8, 16), "paper": (4, 5, 6, 7, 8, 10, 12, 16, 24)}
FEW, ENOUGH, MANY = 5, 8, 16
PARAMETERS = 6
SIZES = {"quick": (50, 6000), "paper": (100, 100_000)}  # width, steps
GOOD = 0.01  # of the variance of the target
LONGER = (
    "How long the text trains is not known, and the error still falls: of the same ten seeds seven are below 1% after "
    "150,000 steps, nine after 200,000, all after 250,000."
)
TARGET = "tanh(x - 6) + tanh(x + 6)"
KINDS = {"dropout": "dropout 10%", "penalty": "R1 alone", "none": "no noise"}


def data(n: int) -> Expression:
    """Evenly spaced samples of the target."""
    return Expression(TARGET, dim=1, n=n, low=-15, high=15, spacing="even")


class SamplesNeeded(PaperFigure):
    """Networks with and without dropout on ever more samples."""

    name, title, paper = "dropout-samples", "How many samples two tanh neurons need, with dropout", "DROPOUT"
    has_variants, on_request = False, True
    seed_count: ClassVar = 10
    chosen = (
        "the network of dropout-line (100 neurons, std m^-0.1, Adam at 1e-3), samples evenly spaced on [-15, 15], 300 "
        "for the test (in a trial with two seeds random samples mostly missed the two steps of the target, which "
        "they then "
        "leave open); the steps; good is a test error of 1% of the target's variance; the numbers of samples "
        "on either side of six"
    )
    claims = (
        Claim(
            "enough", f"{WHERE}, Fig. 8", f"with dropout it is good from more than {PARAMETERS} samples: {ENOUGH} do",
            "test error over the target's variance", at_most(GOOD),
            lambda figure: PerSeed(figure.errors[f"dropout, {ENOUGH}"]),
            lambda figure: f"{LONGER} {figure.in_words()}",
        ),
        Claim(
            "few", f"{WHERE}, Fig. 8", f"and not from fewer: {FEW} do not",
            "test error over the target's variance, where the training error is below a tenth of it", at_least(GOOD),
            lambda figure: PerSeed(
                figure.errors[f"dropout, {FEW}"], decided=figure.fitted(f"dropout, {FEW}")
            ),
            lambda figure: figure.in_words(),
        ),
        question(
            "many", f"{MANY} samples are enough", "test error over the target's variance", at_most(GOOD),
            lambda figure: PerSeed(figure.errors[f"dropout, {MANY}"]), lambda figure: figure.in_words(),
        ),
        question(
            "penalty", f"with R1 in the place of dropout {ENOUGH} samples do", "test error over the target's variance",
            at_most(GOOD),
            lambda figure: PerSeed(figure.errors[f"penalty, {ENOUGH}"]), lambda figure: figure.in_words(),
        ),
        question(
            "better", f"on {MANY} samples the test error is smaller with dropout than without noise",
            "the one over the other, both fitted", at_most(0.8),
            lambda figure: figure.gain("dropout"), lambda figure: figure.in_words(),
        ),
        question(
            "better-penalty", "and smaller with R1 than without noise", "the one over the other, both fitted",
            at_most(0.8), lambda figure: figure.gain("penalty"), lambda figure: figure.in_words(),
        ),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Each kind of noise on each number of samples."""
        width, steps = SIZES[scale]
        ends = {"steps": steps, "save": Evenly(2), "record": Evenly(2), "network.widths": (1, width, 1)}
        line = Line.experiments(scale)
        return {
            f"{kind}, {n}": line[kind].replace(data=data(n), test=data(300), **ends)
            for kind in KINDS
            for n in NUMBERS[scale]
        }

    @cached_property
    def variance(self) -> float:
        """The variance of the target on the test samples, halved as the loss is."""
        run = next(iter(self.runs.values()))
        test = run.experiment.test
        assert test is not None
        return float(test.draw(run.seeds[0])[1].var()) / 2

    @cached_property
    def errors(self) -> Available[Float[np.ndarray, " seeds"]]:
        """The test error at the end over the target's variance."""
        return self.runs.each(lambda _, run: run.curves["test_loss"][:, -1] / self.variance)

    def fitted(self, name: str) -> np.ndarray:
        """Whether the training error is below a tenth of the target's variance, and has fallen."""
        loss = self.runs[name].loss
        return (loss[:, -1] <= 0.1 * self.variance) & (loss[:, -1] < loss[:, 0])

    def gain(self, kind: str) -> PerSeed:
        """The test error over that without noise; it counts where both have fitted the data."""
        name, plain = f"{kind}, {MANY}", f"none, {MANY}"
        return PerSeed(self.errors[name] / self.errors[plain], valid=self.fitted(name) & self.fitted(plain))

    def in_words(self) -> str:
        """Median test errors by kind and number of samples."""
        told = []
        for kind, title in KINDS.items():
            own = {name: errors for name, errors in self.errors.items() if name.startswith(kind)}
            each = (f"{name.split(', ')[1]}: {np.median(errors):.2g}" for name, errors in own.items())
            told.append(f"{title}, {', '.join(each)}")
        return f"Median test error over the variance by the number of samples. {'; '.join(told)}."

    def draw(self) -> Drawing:
        """Test errors against the number of samples, and what was learned of few."""
        numbers = NUMBERS[self.scale]
        with look():
            picture = Figure(figsize=(PAGE, 2.4), layout="constrained")
            left, right = picture.subplots(1, 2)
            for (kind, title), colour in zip(KINDS.items(), COLOURS, strict=False):
                errors = np.array([self.errors[f"{kind}, {n}"] for n in numbers])
                left.loglog(numbers, errors, color=colour, alpha=0.25, linewidth=0.6)
                left.loglog(numbers, np.median(errors, axis=1), ".-", color=colour, label=title)
            left.axvline(PARAMETERS, color=FAINT, linestyle=":")
            left.axhline(GOOD, color=FAINT, linestyle="--", linewidth=0.8)
            left.set_xticks(numbers, map(str, numbers), minor=False)
            left.set(xlabel="samples", ylabel="test error over the variance")
            left.minorticks_off()
            left.legend(fontsize=6)
            grid = np.linspace(-15, 15, 301)[:, None]
            for (kind, _), colour in zip(KINDS.items(), COLOURS, strict=False):
                run = self.runs[f"{kind}, {ENOUGH}"]
                right.plot(grid, run.output(grid, int(run.saved[-1]), run.seeds[0]), color=colour, linewidth=0.9)
            shown = self.runs[f"none, {ENOUGH}"]
            x, y = shown.data(shown.seeds[0])
            right.plot(x[:, 0], y[:, 0], ".", color="black")
            right.plot(grid, np.tanh(grid - 6) + np.tanh(grid + 6), color=FAINT, linestyle=":")
            right.set(xlabel="x", ylabel=f"output, {ENOUGH} samples")
        return Drawing(
            caption="Left: test error of tanh networks on samples of two tanh neurons, medians and each seed "
            "(dotted: as "
            "many samples as these have parameters; dashed: 1% of the variance). Right: networks of the first seed, "
            "their samples, and the target (dotted).",
            pictures={"": picture},
            data=self.columns_of_claims(),
        )
