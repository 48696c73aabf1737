"""Real text (Chen and Luo 2025): a transformer of two blocks learns it, with AdamW, from small weights.

The paper has WikiText, which no package carries; here it is the State of the Union addresses. The target is the token
behind a window. The stages are those of the anchor task: outer weights first, then queries and keys.
"""

from collections.abc import Callable
from functools import cached_property, partial
from typing import ClassVar

import numpy as np

from ...data import Text
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...losses import Loss
from ...networks import Attention
from ...optimizers import AdamW
from ...saving import At
from .._claims import Claim, PerSeed, Rule, at_least, at_most
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from ._anchor_course import BELOW, LEFT, REACHED
from ._anchor_picture import draw_anchor
from ._text_course import TextCourse

PAPER, OURS = "Chen and Luo 2025", "additional question"
MODELS = {"fixed": "embedding and readout fixed", "free": "all trained"}
WIDTH, GAMMA = 64, 1.2  # the paper's, as is the std width^-gamma
LAYERS = tuple(f"{part}{block}" for block in (1, 2) for part in ("value", "up", "down", "query", "key"))


def text(scale: str, name: str) -> Experiment:
    """The paper's network and training; at the quick scale short windows, few words, and five times the rate."""
    quick = scale == "quick"
    length, vocabulary, inner = (8, 200, 128) if quick else (2048, 24_798, 800)
    n, batch, steps, rate = (4000, 64, 300, 1e-3) if quick else (60_000, 500, 12_000, 2e-4)
    network = Attention(
        length, WIDTH, vocabulary, vocabulary=vocabulary, positions=True, depth=2, projection=False, causal=True,
        feed_forward=inner, residual=True, activation="gelu",
        fixed=("embedding", "positions", "output") if name == "fixed" else (),
    )  # fmt: skip
    data = Text("sotu", n, length, vocabulary)
    often = (*range(0, 100, 5), *range(100, 301, 20)) if quick else (*range(0, 3000, 150), *range(3000, 12_001, 900))
    init = Init(Normal(float(f"{WIDTH**-GAMMA:.3g}")))
    optimizer = AdamW(rate, weight_decay=0.0, clip=1.0)
    test = Text("sotu", 500 if quick else 2000, length, vocabulary, "test")
    return Experiment(
        network, init, data, optimizer, steps, Loss("cross_entropy"), At(often), At(often),
        "float32" if quick else "tf32", batch, test, LAYERS,
    )  # fmt: skip


def _claim(
    name: str, key: str, where: str, told: str, quantity: str, rule: Rule, measure: Callable[[TextCourse], float],
    why: Callable[["AttentionText"], str] | str = "", needs: str = "plateau",
) -> "Claim[AttentionText]":  # fmt: skip
    """A claim on one network; a seed without what it needs, a first stage or a plateau too, decides nothing."""

    def measured(figure: "AttentionText") -> PerSeed:
        courses = figure.courses[name]
        there = [needs == "nothing" or (one.has_stages if needs == "plateau" else one.stage_1 is not None)
                 for one in courses]  # fmt: skip
        values = [measure(one) if known else np.nan for one, known in zip(courses, there, strict=True)]
        return PerSeed(values, decided=there)

    where = f"{PAPER}, {where}" if where else OURS
    return Claim(f"{name}-{key}", where, f"{MODELS[name]}: {told}", quantity, rule, measured, why, ours=where == OURS)


def _stage_1(one: TextCourse) -> int:
    assert one.stage_1 is not None
    return one.stage_1


def _claims(name: str) -> "tuple[Claim[AttentionText], ...]":
    """What is asked of a network; the rules are those of the anchor task."""
    claim = partial(_claim, name)
    first = partial(claim, needs="stage")

    def ratios(figure: "AttentionText") -> str:
        return figure.stages_in_words(name)

    def ranks(figure: "AttentionText") -> str:
        return figure.ranks_in_words(name)

    return (
        first("still", "Fig. 2", "first the outer weights change much more than queries and keys",
              "relative change of W_Q, W_K over that of W_V and the feed-forward parts, in the first stage",
              at_most(0.05), lambda one: one.over_outer(0, _stage_1(one)),
              lambda figure: figure.blocks_in_words(name)),
        claim("reverse", "Fig. 2", "then it is the reverse",
              "the same from there to the end of the plateau", at_least(2),
              lambda one: one.over_outer(one.ends[0], one.ends[2]), ratios),
        claim("plateau", "Fig. 2", "it is the reverse on the plateau itself", "the same on the plateau", at_least(1),
              lambda one: one.over_outer(*one.ends[1:]), ratios),
        claim("later", "", "it is the reverse behind the plateau's begin, to the end of the training",
              "the same from there on", at_least(1), lambda one: one.over_outer(one.ends[1], -1), ratios),
        first("monotone", "Fig. 3", "the effective ranks of the outer weights fall monotonically in the first stage",
              "their largest rise between saved steps there, over the first", at_most(0.01),
              lambda one: max(float(np.diff(one.ranks(part)[: _stage_1(one) + 1]).max() / one.ranks(part)[0])
                              for part in one.outer), ranks),
        first("outer-rank", "Fig. 3", "by its end they have fallen",
              "the larger effective rank of a W_V there over the first", at_most(0.7),
              lambda one: max(one.share(part, _stage_1(one)) for part in one.values), ranks),
        first("query-kept", "Fig. 3", "those of W_Q and W_K stand meanwhile",
              "the least one there over the first", at_least(0.95),
              lambda one: min(one.share(part, _stage_1(one)) for part in one.attention), ranks),
        claim("query-rank", "Fig. 3", "they fall in the second stage",
              "the largest one at the end of the plateau over the first", at_most(0.5),
              lambda one: max(one.share(part, one.ends[2]) for part in one.attention), ranks),
        first("query-rank-end", "", "they have fallen by the end of the training",
              "the largest one there over the first", at_most(0.5),
              lambda one: max(one.share(part, -1) for part in one.attention), ranks),
        first("abrupt", "Fig. 3", "they fall abruptly",
              "most steps in which that of a W_Q falls from 0.9 to half of the first, over those of the first stage",
              at_most(0.5), lambda one: float(np.max([one.abruptness(part) for part in one.queries])), ranks),
        first("condensed", "", "the columns of each W_V condense on one line in the first stage",
              "their median |cosine| with W_V's top singular vector at its end, the lesser one", at_least(0.9),
              lambda one: one.on_lines),
        first("kept", "Fig. 3", "after the first stage the outer weights keep their top singular vectors",
              "least |cosine| between successive saved steps", at_least(0.95),
              lambda one: float(one.turns(one.outer)[_stage_1(one) :].min()),
              lambda figure: figure.turns_in_words(name)),
        claim("query-kept-vectors", "Fig. 3", "so do queries and keys, once they have collapsed",
              "the same of W_Q and W_K from the plateau on", at_least(0.95),
              lambda one: float(one.turns(one.attention)[one.ends[1] :].min()),
              lambda figure: figure.turns_in_words(name)),
        claim("read", "", "in the end the text is read: unseen windows, too, have less loss than without reading",
              "held-out loss at the end over that of the best answer that reads nothing", at_most(0.95),
              lambda one: one.left_over, ratios, needs="nothing"),
    )  # fmt: skip


class AttentionText(PaperFigure):
    """Two blocks on the State of the Union addresses: with embedding and readout fixed, and all trained."""

    name, title, paper = "attn-text", "Text: which weights change first, and which collapse", "ATTENTION"
    has_variants, on_request = False, True
    seed_count: ClassVar = {"quick": 4, "paper": 3}
    titles: ClassVar = MODELS
    chosen = (
        "The State of the Union addresses, two million tokens, in the place of WikiText, which no package carries; "
        "whole words and the vocabulary of all of them (24,798 tokens for 31,999), 60,000 windows, each seen a hundred "
        "times (12,000 steps of batches of 500 are 5 epochs of 1.2 million), the loss at the last token, causal heads, "
        "positions added, no projection, weight decay 0 and clipping as in the anchor task, a constant rate, products "
        "in TF32, embedding and readout fixed as there or trained, what counts as the end of a stage: the text does "
        "not tell. The quick scale has the paper's d and std, float32, 4000 windows of 8 tokens of 200, feed-forward "
        "parts of 128, 300 steps of batches of 64 at five times the rate. The rules are those of the anchor task, but "
        "that of the held-out loss and that of what comes behind the plateau's begin; a trial with one seed and the "
        "fixed readout was seen before the claims were chosen, none with all trained; changes by blocks are told since "
        "the first full run"
    )
    claims = (*_claims("fixed"), *_claims("free"))

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The network twice."""
        return {name: text(scale, name) for name in MODELS}

    @cached_property
    def courses(self) -> Available[list[TextCourse]]:
        """Each seed."""
        return self.runs.each(lambda _, run: [TextCourse(run, k) for k in range(len(run.seeds))])

    def stages_in_words(self, name: str) -> str:
        """The levels of the loss and the steps of the stages, seed by seed."""
        told = []
        for one in self.courses[name]:
            first, plateau = self._stages(one)
            loss, held_out = one.run.loss[one.seed], one.run.curves["test_loss"][one.seed]
            told.append(
                f"loss {loss[0]:.2f} to {loss[-1]:.2f} (held out {held_out[-1]:.2f}), {one.plateau:.2f} without "
                f"reading, first stage to {first}, plateau {plateau}"
            )
        left = sum(one.saved_way.max() >= 1 + BELOW for one in self.courses[name])
        return (
            f"Seed by seed: {'; '.join(told)}. The plateau is left within the training in {left} of {len(told)} seeds."
        )

    def blocks_in_words(self, name: str) -> str:
        """How much queries and keys change in the first stage, block by block."""
        told = []
        for block in (1, 2):
            ratios = (one.block_over_outer(block, 0, one.stage_1) for one in self.courses[name] if one.stage_1)
            told.append(", ".join(f"{ratio:.2g}" for ratio in ratios) or "no stage")
        return (
            f"By blocks, seed by seed: {told[0]} in the first one, {told[1]} in the last, which asks at the last token "
            "alone, the one that is read."
        )

    def ranks_in_words(self, name: str) -> str:
        """Effective ranks at the first step, at the ends of the stages and at the last one; the median over seeds."""
        told = []
        for part in LAYERS:
            shares = [one.ranks(part)[[0, one.stage_1 or 0, one.ends[2] if one.has_stages else -1, -1]]
                      for one in self.courses[name]]  # fmt: skip
            told.append(f"{part} {', '.join(f'{rank:.3g}' for rank in np.median(shares, axis=0))}")
        return (
            "Median effective ranks at the first step, at the end of the first stage, at the end of the plateau, and "
            f"at the last step: {'; '.join(told)}."
        )

    def turns_in_words(self, name: str) -> str:
        """The least cosine of each layer after the first stage."""
        told = []
        for part in LAYERS:
            least = [one.turns((part,))[one.stage_1 or 0 :].min() for one in self.courses[name]]
            told.append(f"{part} {min(least):.2f}")
        return f"The least |cosine| of all seeds, layer by layer, after the first stage: {', '.join(told)}."

    def draw(self) -> Drawing:
        """Loss, changes, effective ranks and turns over the steps."""
        return Drawing(
            caption="Text, all seeds. The loss with the level of the best answer that reads nothing (dashed); "
            "the relative change of W_Q and W_K over that of the outer weights between saved steps; effective ranks "
            "over the first; |cosine| of the top singular vectors of successive saved steps; the second block "
            "dashed. Rows: embedding and readout fixed; all trained.",
            pictures={"": draw_anchor(self, legend=3)},
            tables=(self._table(),),
            data=self.columns_of_claims(),
            settings_extra={
                "effective rank": "exponential of the entropy of the singular values' shares",
                "level that reads nothing": "the least loss of one vector that the readout reads whatever the text; "
                "where the readout is trained, the entropy of the targets",
                "first stage": f"until {LEFT:.0%} of the way from the first loss down to that level",
                "plateau": f"from {REACHED:.0%} of that way on, until the loss is {BELOW:.0%} of it below",
            },
        )

    def _stages(self, one: TextCourse) -> tuple[str, str]:
        steps = one.run.saved
        first = "none" if one.stage_1 is None else str(steps[one.stage_1])
        return first, f"{steps[one.ends[1]]} to {steps[one.ends[2]]}" if one.has_stages else "none"

    def _table(self) -> Table:
        header = ("model", "seed", "first stage ends", "plateau", "its level", "loss at the end", "held-out loss")
        rows = [
            (MODELS[name], str(k), *self._stages(one), f"{one.plateau:.3f}", f"{one.run.loss[k, -1]:.3f}",
             f"{one.run.curves['test_loss'][k, -1]:.3f}")
            for name, courses in self.courses.items() for k, one in enumerate(courses)
        ]  # fmt: skip
        return Table("Steps of the stages, and what is learned in the end", header, tuple(rows))
