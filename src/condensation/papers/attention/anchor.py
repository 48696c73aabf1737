"""The anchor task (Chen and Luo 2025): a transformer of one block learns it, with AdamW, from small weights.

The target is the token behind the anchor, one more if the anchor is odd. First the outer weights grow and condense;
when the loss falls to the plateau of the answer that reads nothing, queries and keys take over and collapse.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from ...data import AnchorFunctions
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...losses import Loss
from ...networks import Attention
from ...optimizers import AdamW
from ...saving import At, Evenly
from ...schedules import Cosine, Product, Warmup
from .._claims import Claim, PerSeed, Rule, at_least, at_most, exactly
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from ._anchor_course import ATTENTION, LEFT, OUTER, REACHED, AnchorCourse
from ._anchor_picture import draw_anchor
from ._course import rank

PAPER, OURS = "Chen and Luo 2025", "additional question"
MODELS = {"tanh": "tanh", "linear": "no activation", "eps": "tanh, a small eps of Adam"}
EPS = 1e-16  # of the last one: below all gradients but those of queries and keys in the first steps
WIDTH, GAMMA, RATE = 640, 0.85, 1.5e-4  # the paper's width, std width^-gamma, highest learning rate
WARM_UP, COSINE = 1 / 3, 200  # share of the training, and epochs
TWO_TOP = 0.5  # second singular value of F over the first, up to which one is the largest


def anchor(scale: str, name: str) -> Experiment:
    """The paper's network and training; at the quick scale a tenth of the width, sqrt(width) std and rate/std kept."""
    quick = scale == "quick"
    width, length, keys, n, batch, epochs = (64, 5, 20, 2000, 100, 60) if quick else (WIDTH, 10, 96, 140_000, 1000, 30)
    vocabulary, epoch = keys + 6 if quick else 201, n // batch
    network = Attention(
        length, width, vocabulary, vocabulary=vocabulary, positions=True, projection=False, feed_forward=2 * width,
        activation="linear" if name == "linear" else "tanh", fixed=("embedding", "positions", "output"),
    )  # fmt: skip
    data = AnchorFunctions(n, vocabulary, length, keys=(5, 4 + keys))
    larger = (WIDTH / width) ** 0.5
    course = Product((Warmup(int(WARM_UP * epochs) * epoch, 1 / 15), Cosine(COSINE * epoch)))
    optimizer = AdamW(
        float(f"{RATE * larger:.2g}"), eps=EPS if name == "eps" else 1e-8, weight_decay=0.0, schedule=course, clip=1.0
    )
    often = (*range(0, 500, 25), *range(500, 800, 50), *range(800, 1400, 200), *range(1400, 4200, 700))
    saved = Evenly(31) if quick else At(often)
    init = Init(Normal(float(f"{WIDTH**-GAMMA * larger:.3g}")))
    recorded = Evenly(61) if quick else saved
    return Experiment(
        network, init, data, optimizer, epochs * epoch, Loss("cross_entropy"), saved, recorded, "float32", batch,
        AnchorFunctions(min(n, 10_000), vocabulary, length, keys=(5, 4 + keys)), (*OUTER, *ATTENTION),
    )  # fmt: skip


def _claim(
    name: str, key: str, where: str, text: str, quantity: str, rule: Rule, measure: Callable[[AnchorCourse], float],
    why: Callable[["Anchor"], str] | str = "", decided: Callable[[AnchorCourse], bool] | None = None,
) -> "Claim[Anchor]":  # fmt: skip
    """A claim on one network; in a seed without a first stage or without a plateau there is nothing to measure."""

    def measured(figure: "Anchor") -> PerSeed:
        courses = figure.courses[name]
        there = [key == "accuracy" or one.has_stages for one in courses]
        values = [measure(one) if known else np.nan for one, known in zip(courses, there, strict=True)]
        if decided is None:
            return PerSeed(values)
        return PerSeed(values, decided=[known and decided(one) for one, known in zip(courses, there, strict=True)])

    where = f"{PAPER}, {where}" if where else OURS
    return Claim(f"{name}-{key}", where, f"{MODELS[name]}: {text}", quantity, rule, measured, why, ours=where == OURS)


def _claims(name: str) -> "tuple[Claim[Anchor], ...]":
    """What is asked of the network with its activation, and (Figs. 4, 5) without."""
    claim = partial(_claim, name)
    return (
        claim("still", "Fig. 2", "first the outer weights change much more than queries and keys",
              "relative change of W_Q, W_K over that of W_V and the feed-forward part, in the first stage",
              at_most(0.05), lambda one: one.over_outer(0, one.ends[0])),
        claim("reverse", "Fig. 2", "then it is the reverse",
              "the same from there to the end of the plateau", at_least(2),
              lambda one: one.over_outer(one.ends[0], one.ends[2])),
        claim("plateau", "Fig. 2", "it is the reverse on the plateau itself", "the same on the plateau", at_least(1),
              lambda one: one.over_outer(*one.ends[1:])),
        claim("monotone", "Fig. 3", "the effective ranks of the outer weights fall monotonically in the first stage",
              "their largest rise between saved steps there, over the first", at_most(0.01),
              lambda one: max(float(np.diff(one.ranks(part)[: one.ends[0] + 1]).max() / one.ranks(part)[0])
                              for part in OUTER)),
        claim("outer-rank", "Fig. 3", "by its end they have fallen",
              "effective rank of W_V there over the first", at_most(0.7), lambda one: one.share("value1", one.ends[0])),
        claim("query-kept", "Fig. 3", "those of W_Q and W_K stand meanwhile",
              "the lesser one there over the first", at_least(0.95),
              lambda one: min(one.share(part, one.ends[0]) for part in ATTENTION)),
        claim("query-rank", "Fig. 3", "they fall in the second stage",
              "the larger one at the end of the plateau over the first", at_most(0.5),
              lambda one: max(one.share(part, one.ends[2]) for part in ATTENTION)),
        claim("abrupt", "Fig. 3", "they fall abruptly",
              "steps in which that of W_Q falls from 0.9 to half of the first, over those of the first stage",
              at_most(0.5), lambda one: one.abruptness()),
        claim("condensed", "Theorem 2", "the columns of W_V condense on one line in the first stage",
              "their median |cosine| with W_V's top singular vector at its end", at_least(0.9),
              lambda one: one.on_line(one.spectra["value1"][one.ends[0]].top, one.ends[0])),
        claim("predicted", "", "that line is known before training: mean tokens, weighted by what the readout lacks",
              "their median |cosine| with it there", at_least(0.9),
              lambda one: one.on_line(one.mean_token, one.ends[0]),
              why=lambda figure: figure.signs_in_words(name)),
        claim("signs", "", "it is that line's vector of signs, along which Adam steps",
              "their median |cosine| with the signs", at_least(0.9),
              lambda one: one.on_line(np.sign(one.mean_token), one.ends[0])),
        claim("kept", "Fig. 3", "after the first stage the outer weights keep their top singular vectors",
              "least |cosine| between successive saved steps", at_least(0.95),
              lambda one: float(one.turns(OUTER)[one.ends[0] :].min())),
        claim("query-kept-vectors", "Fig. 3", "so do queries and keys, once they have collapsed",
              "the same of W_Q and W_K from the plateau on", at_least(0.95),
              lambda one: float(one.turns(ATTENTION)[one.ends[1] :].min())),
        claim("matrix", "Fig. 3", "W_Q and W_K collapse to the top singular vectors of F",
              "lesser |cosine| where W_Q's effective rank is halved, F of the outer weights after the first stage",
              at_least(0.9), lambda one: one.on_matrix, why=lambda figure: figure.matrix_in_words(name)),
        claim("rank", "Theorem 3", "to the rank of F's largest singular value, one",
              "singular values of W_Q of at least a tenth of the largest, at the end of the plateau", exactly(1),
              lambda one: rank(one.weights("query1")[one.ends[2]]),
              why=lambda figure: figure.matrix_in_words(name),
              decided=lambda one: bool(one.matrix[1][1] <= TWO_TOP * one.matrix[1][0])),
        claim("accuracy", "", "in the end the task is learned", "share of held-out sequences that are answered right",
              at_least(0.9), lambda one: one.accuracy, why=lambda figure: figure.accuracy_in_words(name)),
    )  # fmt: skip


def _eps_claims() -> "tuple[Claim[Anchor], ...]":
    """Whether it is Adam's eps that keeps queries and keys, whose gradients are the smaller ones, where they are."""
    claim = partial(_claim, "eps")
    return (
        claim("still", "", "the outer weights change much more at first, too",
              "relative change of W_Q, W_K over that of W_V and the feed-forward part, in the first stage",
              at_most(0.05), lambda one: one.over_outer(0, one.ends[0]),
              why=lambda figure: figure.gradients_in_words()),
        claim("query-kept", "", "effective ranks of W_Q and W_K stand in the first stage, too",
              "the lesser one at its end over the first", at_least(0.95),
              lambda one: min(one.share(part, one.ends[0]) for part in ATTENTION),
              why=lambda figure: figure.gradients_in_words()),
        claim("condensed", "", "the columns of W_V condense on one line, too",
              "their median |cosine| with W_V's top singular vector at the end of the first stage", at_least(0.9),
              lambda one: one.on_line(one.spectra["value1"][one.ends[0]].top, one.ends[0])),
    )  # fmt: skip


class Anchor(PaperFigure):
    """The anchor task with the paper's network: with tanh, without activation, and with tanh and a small eps."""

    name, title, paper = "attn-anchor", "The anchor task: which weights change first, and which collapse", "ATTENTION"
    has_variants, on_request = False, True
    seed_count: ClassVar = {"quick": 10, "paper": 4}
    titles: ClassVar = MODELS
    chosen = (
        "140,000 sequences (about 4000 steps of batches of 1000 are 30 epochs), positions added to the embedding and "
        "fixed as it is, no projection of the head, no residual connection, no norm, the rate changed at each step and "
        "the cosine begun at the first, four seeds, what counts as the end of a stage, effective rank: the text does "
        "not tell. The quick scale has d 64, 2000 sequences of 5 tokens with 20 keys, the paper's sqrt(d) std and "
        "rate/std. A trial of the quick scale with two seeds and tanh was seen before the rules were written, and the "
        "loss of 450 steps of the paper's with batches of 64 before its saved steps were chosen. The paper's second "
        "task, text, is the figure attn-text"
    )
    claims = (*_claims("tanh"), *_claims("linear"), *_eps_claims())

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The network three times."""
        return {name: anchor(scale, name) for name in MODELS}

    @cached_property
    def courses(self) -> Available[list[AnchorCourse]]:
        """Each seed."""
        return self.runs.each(lambda _, run: [AnchorCourse(run, k) for k in range(len(run.seeds))])

    def signs_in_words(self, name: str) -> str:
        """How near the predicted line and its signs are, seed by seed."""
        told = [
            f"{one.on_line(one.mean_token, one.ends[0]):.2f} with the line, "
            f"{one.on_line(np.sign(one.mean_token), one.ends[0]):.2f} with its signs"
            for one in self.courses[name]
            if one.has_stages
        ]
        return f"Adam steps along signs of the gradient. Median |cosines|, seed by seed: {'; '.join(told)}."

    def gradients_in_words(self) -> str:
        """The first gradients beside the usual eps."""
        run = self.runs["eps"]
        query, value = (np.median(run.curves[f"gradient.{part}1.weight"][:, 0]) for part in ("query", "value"))
        return (
            f"At first the mean gradient is {query:.1e} in W_Q and {value:.1e} in W_V (median): with the usual eps of "
            "1e-8 Adam's steps shrink with the gradients below it, with a smaller one they do not."
        )

    def matrix_in_words(self, name: str) -> str:
        """The gap of F's singular values, and the effective rank of W_Q that is left, seed by seed."""
        told = [
            f"{one.matrix[1][1] / one.matrix[1][0]:.2f} (effective rank of W_Q from {one.ranks('query1')[0]:.3g} to "
            f"{one.ranks('query1')[one.ends[2]]:.2g})"
            for one in self.courses[name]
            if one.has_stages
        ]
        return f"Second over first singular value of F, seed by seed: {', '.join(told)}."

    def accuracy_in_words(self, name: str) -> str:
        """The loss at the end beside those of simple answers."""
        length = self.runs[name].experiment.network.input_shape[0]
        ends = ", ".join(f"{loss:.3f}" for loss in self.runs[name].loss[:, -1])
        plateaus = ", ".join(f"{one.plateau:.3f}" for one in self.courses[name])
        return (
            f"The loss ends at {ends}. The best answer that reads nothing has {plateaus}; one that knows which tokens "
            f"are there, but not which is behind the anchor, about log({length - 1}) = {np.log(length - 1):.3f}. One "
            "block scores each token by itself and its place, not by what stands before it."
        )

    def draw(self) -> Drawing:
        """Loss, changes, effective ranks and turns over the steps."""
        return Drawing(
            caption="The anchor task, all seeds. The loss with the plateau of the answer that reads nothing (dashed); "
            "the relative change of W_Q and W_K over that of the outer weights between saved "
            "steps; effective ranks over the first; |cosine| of the top singular vectors of successive saved steps. "
            "Rows: tanh; no activation; tanh with an eps of 1e-16.",
            pictures={"": draw_anchor(self)},
            tables=(self._table(),),
            data=self.columns_of_claims(),
            settings_extra={
                "effective rank": "exponential of the entropy of the singular values' shares",
                "first stage": f"until {LEFT:.0%} of the way from the first loss down to the entropy of the targets",
                "plateau": f"from {REACHED:.0%} of that way on, until the loss is a tenth of it below",
            },
        )

    def _table(self) -> Table:
        header = ("model", "seed", "first stage ends", "plateau", "loss at the end", "held-out accuracy")
        rows = []
        for name, courses in self.courses.items():
            for k, one in enumerate(courses):
                steps = one.run.saved
                stage = (
                    [str(steps[one.ends[0]]), f"{steps[one.ends[1]]} to {steps[one.ends[2]]}"]
                    if one.has_stages
                    else ["none"] * 2
                )
                rows.append((MODELS[name], str(k), *stage, f"{one.run.loss[k, -1]:.3f}", f"{one.accuracy:.3f}"))
        return Table("Steps of the stages, and what is learned in the end", header, tuple(rows))
