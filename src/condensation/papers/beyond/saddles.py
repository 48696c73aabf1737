"""Saddle to saddle: what training does after the initial stage, against what theory says of it at each plateau.

The target is one of four relu neurons, for which the number of clusters is known to grow (Xu et al. 2025). At a plateau
the residual takes the place of the targets: idle neurons, those that add next to nothing to the output, see it as they
saw the targets at first. So its lines, and the time at which they matter, can be predicted from the weights there.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar

import numpy as np

from ...activations import label
from ...data import Expression
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...measure import count_lines
from ...networks import Dense
from ...optimizers import GD
from ...saving import Geometric
from .._claims import Claim, PerSeed, Rule, at_least, at_most
from .._counts import relative_loss, stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from ._critical import gradient_share
from ._saddles_picture import draw_saddles
from ._standing import IDLE, LEFT, Standing, apart, effective_width, standings, worst

STDS = {"tanh": 1e-4, "x_tanh": 1e-2, "relu": 1e-4}
STEPS = {"quick": 20_000, "paper": 200_000}
RATE = 0.1
STILL = 0.1  # of the gradient where the loss falls fastest
TARGET = "-relu(x) + relu(2*(x + 0.3)) - relu(1.5*(x - 0.4)) + relu(0.5*(x - 0.8))"
EMBEDDING, SADDLES, OVERVIEW = "Zhang, Y. et al. 2021", "Zhang, Saxe and Latham 2025", "Xu et al. 2025"
OURS = "additional question"
SPLIT = (
    "It is not the neurons of the theory that go there: those that had grown split and turn that way, idle ones stay."
)


def four_relus(activation: str, width: int = 100, std: float | None = None) -> Experiment:
    """A network on 40 points of the target, by gradient descent."""
    return Experiment(
        Dense((1, width, 1), activation), Init(Normal(STDS[activation] if std is None else std)),
        Expression(TARGET, dim=1, n=40, low=-1, high=1), GD(RATE), STEPS["quick"],
    )  # fmt: skip


def _at_plateaus(
    activation: str, key: str, where: str, text: str, quantity: str, rule: Rule,
    measure: Callable[[Standing], float], why: Callable[["Saddles"], str], note: str = "",
) -> "Claim[Saddles]":  # fmt: skip
    return Claim(
        f"{activation}-{key}", where, f"{label(activation)}: {text}", f"{quantity}, the worst of a seed's plateaus",
        rule, lambda figure: figure.at_plateaus(activation, measure, rule), why, note, ours=where == OURS,
    )  # fmt: skip


def _claims(name: str) -> "tuple[Claim[Saddles], ...]":
    smooth = name == "x_tanh"
    return (
        Claim(
            f"{name}-plateaus", OURS if name == "tanh" else SADDLES,
            f"{label(name)}: after its first drop the loss stands still again, and falls further",
            "plateaus between two drops", at_least(1), lambda figure: figure.plateau_counts(name),
            lambda figure: figure.in_words(name), ours=name == "tanh",
        ),
        _at_plateaus(
            name, "still", SADDLES if smooth else OURS, "at a plateau training is near a critical point",
            "gradient, as a share of the largest for its residual, over that where the loss falls fastest afterwards",
            at_most(STILL), lambda one: one.stillness, lambda figure: figure.stillness_in_words(name),
        ),
        _at_plateaus(
            name, "critical", EMBEDDING, "a plateau is near a critical point of the reduced network",
            "the same of the networks reduced to within a tenth of the residual", at_most(0.1),
            lambda one: one.criticality,
            lambda figure: figure.merged_in_words(name),
        ),
        _at_plateaus(
            name, "minimum", EMBEDDING, "there the loss is that of a local minimum of the reduced network",
            "loss of the minimum that the reduced network comes to by itself, over the plateau's", at_least(0.9),
            lambda one: one.still_to_gain, lambda figure: figure.minima_in_words(name),
        ),
        _at_plateaus(
            name, "rate", OURS, "training leaves a plateau at the rate of the Hessian's most negative eigenvalue",
            "factor between that and the rate at which the gradient grows on the way out", at_most(2),
            lambda one: apart(*one.rates), lambda figure: figure.rates_in_words(name),
        ),
        _at_plateaus(
            name, "next", SADDLES if smooth else OURS,
            "what grows next is on a line that the residual at the plateau predicts",
            f"share of what neurons gain in |a||w| until {1 - LEFT:.0%} of the loss is gone that is on such a line, "
            "and nearer to it than to the lines that were there", at_least(0.8), lambda one: one.share_on_lines,
            lambda figure: figure.who_grows(name), SPLIT if name == "tanh" else "",
        ),
        _at_plateaus(
            name, "idle", SADDLES if smooth else OURS, "what grows next are idle neurons, those near zero",
            "share of this gain that neurons have which added less than 1% to the output", at_least(0.8),
            lambda one: one.share_of_idle, lambda figure: figure.who_grows(name),
        ),
        _at_plateaus(
            name, "order", OURS, "who of them grows first follows from their weights and the residual",
            "rank correlation of the factors by which they grow, predicted and found", at_least(0.8),
            lambda one: one.order, lambda figure: figure.who_grows(name),
        ),
        _at_plateaus(
            name, "time", OURS, "and so does the time at which training leaves the plateau",
            f"factor between predicted and found steps until {1 - LEFT:.0%} of the loss is gone", at_most(2),
            lambda one: apart(*one.times), lambda figure: figure.who_grows(name),
        ),
        Claim(
            f"{name}-wider", SADDLES if name != "tanh" else OURS,
            f"{label(name)}: from plateau to plateau, and to the end, the effective network gets wider",
            "least growth of the number of neurons that are left when the output may change by 5%", at_least(1),
            lambda figure: figure.least_growth(name), lambda figure: figure.in_words(name), ours=name == "tanh",
        ),
        Claim(
            f"{name}-orientations", OVERVIEW if name == "relu" else OURS,
            f"{label(name)}: the number of orientations never falls after the initial stage",
            "least change of their number from plateau to plateau and to the end", at_least(0),
            lambda figure: figure.orientation_change(name), lambda figure: figure.orientations_in_words(name),
            ours=name != "relu",
        ),
    )  # fmt: skip


class Saddles(PaperFigure):
    """Networks of three activations, from the first plateau to the last."""

    name, title, paper = "beyond-saddles", "After the initial stage: from plateau to plateau", "BEYOND"
    has_variants = False
    seed_count: ClassVar = {"quick": 4, "paper": 10}
    chosen = (
        "number and place of the points, width, rate and steps, and the networks of tanh and x tanh x; what counts as "
        "a plateau, as idle, and as the reduced network. The settings are those of trials with three seeds, in which "
        "most quantities were seen before their rules were written; still and idle were asked after a first run"
    )
    titles: ClassVar = {name: label(name) for name in STDS}
    claims = tuple(claim for kind in zip(*map(_claims, STDS), strict=True) for claim in kind)

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The three networks, saved and recorded at the same steps."""
        often = Geometric(30)
        return {name: four_relus(name).replace(steps=STEPS[scale], save=often, record=often) for name in STDS}

    @cached_property
    def standings(self) -> Available[list[list[Standing]]]:
        """Plateaus between two drops, of each seed."""
        return self.runs.each(lambda _, run: [standings(run, k) for k in range(len(run.seeds))])

    def plateau_counts(self, name: str) -> PerSeed:
        """How many there are."""
        return PerSeed([len(own) for own in self.standings[name]])

    def at_plateaus(self, name: str, measure: Callable[[Standing], float], rule: Rule) -> PerSeed:
        """A quantity of the plateaus; a seed without one decides nothing."""
        values = [worst([measure(one) for one in own], rule.word == "at least") for own in self.standings[name]]
        return PerSeed(values, decided=[bool(own) for own in self.standings[name]])

    @cached_property
    def widths(self) -> Available[list[list[int]]]:
        """The effective width at each plateau of each seed, and at the end."""
        return self.runs.each(
            lambda name, run: [
                [effective_width(run, column, k) for column in (*(one.column for one in own), len(run.saved) - 1)]
                for k, own in enumerate(self.standings[name])
            ]
        )

    def least_growth(self, name: str) -> PerSeed:
        """The least growth of the effective width; a seed without a plateau decides nothing."""
        return self._least_change(name, self.widths[name])

    def orientation_change(self, name: str) -> PerSeed:
        """The least change of the number of orientations between plateaus, and to the end."""
        return self._least_change(name, self._orientations(name, self.runs[name].history(1)))

    def _orientations(self, name: str, vectors: np.ndarray) -> list[np.ndarray]:
        """The number of orientations of vectors at the plateaus and at the end, of each seed."""
        columns = [[*(one.column for one in own), -1] for own in self.standings[name]]
        return [count_lines(vectors[k, own][None]).orientations[0] for k, own in enumerate(columns)]

    def orientations_in_words(self, name: str) -> str:
        """The same of neurons that are weighed by what they add to the output."""
        run = self.runs[name]
        sizes = np.abs(run.parameters["output.weight"][:, :, 0, :, None])
        counts = ("-".join(f"{count:g}" for count in own) for own in self._orientations(name, sizes * run.history(1)))
        return (
            "Neurons are weighed by |w|, so that idle ones count as well. Of neurons weighed by |a||w| there are, from "
            f"plateau to plateau and at the end, seed by seed: {', '.join(counts)}. {self.in_words(name)}"
        )

    def _least_change(self, name: str, counts: Sequence[Sequence[int] | np.ndarray]) -> PerSeed:
        changes = [float(np.diff(own).min()) if len(own) > 1 else np.nan for own in counts]
        return PerSeed(changes, decided=[bool(own) for own in self.standings[name]])

    def in_words(self, name: str) -> str:
        """Where the plateaus are, and how wide the networks there."""
        parts = []
        for own, widths in zip(self.standings[name], self.widths[name], strict=True):
            left = (one.loss[one.column] / one.loss[0] for one in own)
            levels = [f"{loss:.2g} (width {width})" for loss, width in zip(left, widths, strict=False)]
            parts.append(" then ".join([*levels, f"width {widths[-1]} at the end"]))
        return f"Loss of the plateaus, over the first, and effective width there, seed by seed: {'; '.join(parts)}."

    def stillness_in_words(self, name: str) -> str:
        """How still the first plateaus of the seeds are, and how still the later ones."""
        first = [own[0].stillness for own in self.standings[name] if own]
        later = [one.stillness for own in self.standings[name] for one in own[1:]]
        told = [
            f"{np.median(own):.2g} at {what} ({sum(one <= STILL for one in own)} of {len(own)} at most {STILL:g})"
            for own, what in ((first, "the first plateau"), (later, "later ones"))
            if own
        ]
        return f"Medians: {', '.join(told)}. {self.in_words(name)}"

    def merged_in_words(self, name: str) -> str:
        """How far merging alone moves the networks from critical."""
        every = [one for own in self.standings[name] for one in own]
        wide, narrow = (
            np.median([gradient_share(model(one), *one.data) for one in every]) if every else np.nan
            for model in (lambda one: one.model, lambda one: one.narrow)
        )
        return (
            f"The gradient at the plateaus is {wide:.2g} of the largest for its residual (median), that of the reduced "
            f"networks {narrow:.2g}: what is lost in merging, up to a tenth of the residual, has a gradient of its own."
        )

    def minima_in_words(self, name: str) -> str:
        """What the minima are, by the width of the reduced networks."""
        ratios: dict[int, list[float]] = {}
        for one in (one for own in self.standings[name] for one in own):
            ratios.setdefault(len(one.narrow.weights(1)), []).append(one.still_to_gain)
        each = (f"{width}: {np.median(own):.2g} ({len(own)})" for width, own in sorted(ratios.items()))
        return (
            "Loss of the minimum over the plateau's by the number of neurons of the reduced network (plateaus): "
            f"{'; '.join(each)}. Below 1 training leaves the plateau while it is still on its way to the minimum; far "
            "below, the reduced network holds idle neurons too, which grow on its way down."
        )

    def rates_in_words(self, name: str) -> str:
        """Medians of both rates, and how the idle neurons grow."""
        pairs = np.array([one.rates for own in self.standings[name] for one in own]).reshape(-1, 2)
        if not len(pairs):
            return ""
        predicted, found = np.median(pairs, axis=0)
        cubic = (
            " Idle neurons of multiplicity 2 add terms of third order to the loss, which the Hessian hardly sees: they "
            "grow faster and faster."
        )
        return f"Medians: {predicted:.2g} by the Hessian, {found:.2g} found.{cubic if name == 'x_tanh' else ''}"

    def who_grows(self, name: str) -> str:
        """Whether the gain is that of idle neurons, and the two times."""
        every = [one for own in self.standings[name] for one in own]
        if not every:
            return ""
        idle = np.median([one.share_of_idle for one in every])
        predicted, found = np.median([one.times for one in every], axis=0)
        return (
            f"At the plateaus {np.median([one.idle.sum() for one in every]):.0f} of 100 neurons are idle (they add "
            f"less than {IDLE:.0%} to the output) and take {idle:.0%} of what is gained (medians). They alone would "
            f"need {predicted:.3g} steps to lower the loss by {1 - LEFT:.0%}; it took {found:.3g}. The rest "
            "is gained by neurons that had grown before."
        )

    def draw(self) -> Drawing:
        """Losses with their plateaus, neurons before and after one, and prediction against training."""
        return Drawing(
            caption="Gradient descent from small weights on a target of four relu neurons, three activations. Top: "
            "loss of each seed over the first one (the median seed dark, its plateaus between two drops shaded, with "
            "the number of neurons of the effective network there and at the end). Middle: the neurons of this seed "
            f"at its first such plateau (grey) and when {1 - LEFT:.0%} of its loss is gone (coloured), at the angle of "
            "(w, b) as a line and at |a||w|; dashed are the lines that the residual predicts. Bottom: over all "
            "plateaus of all seeds, predicted and found steps until training has left; the rate by the Hessian's most "
            "negative eigenvalue and the one found; and the gradient of the reduced network at the plateau over that "
            "on the way down.",
            pictures={"": draw_saddles(self)},
            tables=(self._table(),),
            data=self._data(),
            settings_extra={"a plateau": "see measure.find_plateaus; between two drops, and left within the training"},
        )

    def shown(self, name: str) -> int:
        """The seed that is drawn: the middle one by its final loss, of those with a plateau if there are any."""
        final = relative_loss(self.runs[name])[:, -1]
        chosen = [k for k, own in enumerate(self.standings[name]) if own] or [*range(len(final))]
        return sorted(chosen, key=lambda k: final[k])[len(chosen) // 2]

    def evidence_of(self, one: Standing) -> dict[str, float]:
        """All numbers of a plateau."""
        rate, found_rate = one.rates
        predicted, found = one.times
        return {
            "step": float(one.run.saved[one.column]), "loss": float(one.loss[one.column] / one.loss[0]),
            "width": float(len(one.narrow.weights(1))), "still": one.stillness,
            "critical": one.criticality, "minimum": one.still_to_gain,
            "negative": float(one.spectrum.escapes), "rate": rate, "rate_found": found_rate,
            "lines": float(len(one.lines)), "share": one.share_on_lines, "order": one.order, "time": predicted,
            "time_found": found, "idle": float(one.idle.sum()),
        }  # fmt: skip

    @cached_property
    def rows(self) -> Available[list[dict[str, float]]]:
        """These of each plateau, with the seed first."""
        return self.runs.each(
            lambda name, _: [
                {"seed": float(k)} | self.evidence_of(one) for k, own in enumerate(self.standings[name]) for one in own
            ]
        )

    def _data(self) -> dict[str, np.ndarray]:
        parts = {
            name: {column: np.array([row[column] for row in rows]) for column in rows[0]}
            for name, rows in self.rows.items()
            if rows
        }
        return stack_columns(parts, "activation") if parts else {}

    def _table(self) -> Table:
        header = (
            "activation", "plateaus", "loss", "neurons of the reduced network", "escape directions", "idle neurons",
            "predicted lines", "share on them", "steps predicted", "steps found",
        )  # fmt: skip
        names = ("loss", "width", "negative", "idle", "lines", "share", "time", "time_found")
        rows = []
        for name, own in self.rows.items():
            middle = [f"{np.median([row[column] for row in own]):.3g}" if own else "–" for column in names]
            rows.append((label(name), str(len(own)), *middle))
        return Table("Plateaus of all seeds, medians", header, tuple(rows))
