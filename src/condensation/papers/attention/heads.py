r"""Many heads early in training (the code TransformerHeaderCondensation): $2^w$ directions for heads of width w.

A transformer of four blocks, each with 128 heads of width 4, learns to give the token behind an anchor. Under Adam the
rows of a block's values, and then of its queries and keys, turn to one line $\pm u$ and grow alike. A head is then
$s u^T$ with signs $s$ in $\{-1, 1\}^4$, so that 128 heads have sixteen directions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from ...data import AnchorFunctions
from ...experiment import Experiment
from ...initialization import Init, Normal
from ...losses import Loss
from ...networks import Attention
from ...optimizers import GD, AdamW
from ...saving import At, Evenly
from .._claims import Claim, PerSeed, Rule, at_least, at_most
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table
from ._heads_course import ALIKE, CONDENSED, GROWN, PARTS, SEQUENCES, HeadsCourse
from ._heads_picture import draw_heads

PAPER = "TransformerHeaderCondensation"
STD, RATE, HEAD_WIDTH = 1e-3, 2e-4, 4
DESCENT_RATE = 0.3
DIRECTIONS = 2**HEAD_WIDTH
WORDS = dict(zip(PARTS, ("values", "queries", "keys"), strict=True))


@dataclass(frozen=True)
class Size:
    """How large the task, the transformer and the training are."""

    keys: tuple[int, int]
    length: int
    vocabulary: int
    sequences: int
    width: int
    depth: int
    heads: int
    batch: int


SIZES = {
    "paper": Size((20, 100), 9, 201, 2048, width=32, depth=4, heads=128, batch=256),
    "quick": Size((6, 30), 5, 31, 512, width=16, depth=2, heads=64, batch=64),
}
SAVED = (*range(0, 200, 10), *range(200, 400, 25))
STEPS = 400


def many_heads(scale: str) -> Experiment:
    """The transformer, and the first part of its training."""
    size = SIZES[scale]
    network = Attention(
        size.length, size.width, size.vocabulary, vocabulary=size.vocabulary, positions=True, depth=size.depth,
        heads=size.heads, head_width=HEAD_WIDTH, causal=True, feed_forward=size.width, residual=True, norm="post",
        activation="relu",
    )  # fmt: skip
    data = AnchorFunctions(
        size.sequences, size.vocabulary, size.length, shifts=((3, 0),), keys=size.keys, places="trained"
    )
    return Experiment(
        network, Init(Normal(STD), embedding=Normal(1.0)), data, AdamW(RATE, weight_decay=0.01, clip=1.0), STEPS,
        Loss("cross_entropy"), At(SAVED), Evenly(81), "float32", size.batch,
    )  # fmt: skip


def descent() -> Experiment:
    """The smaller transformer by gradient descent, whose steps are not of one size."""
    return many_heads("quick").replace(optimizer=GD(DESCENT_RATE))


UNEVEN = (
    "Rows turn to one line in all blocks, but in the deeper ones the gradients of queries and keys (1e-9 and less) are "
    "below Adam's eps of 1e-8: its steps then shrink with them, the rows of a head do not grow alike, and their sizes "
    "tell heads apart. With an eps of 1e-20 the second seed of the code's own size has at step 140 16 directions of "
    "queries in all blocks, where it had 16, 20, 37 and 77, and 16, 16, 20 and 39 of keys, where it had 16, 20, 40 and "
    "98."
)
CHOOSES = (
    "By the step at which the last block is condensed queries and keys have grown, and attention is no longer the mean "
    "everywhere."
)
STAYS = "Within the steps that are asked for values keep the directions that they came to."


def _claim(
    key: str, where: str, text: str, quantity: str, rule: Rule, measure: Callable[[HeadsCourse], float],
    name: str = "adam", condensed: tuple[str, ...] = (), reason: str = "",
) -> "Claim[Heads]":  # fmt: skip
    """A claim on one network; what is said of heads whose parts are condensed is decided by seeds where they are."""

    def measured(figure: "Heads") -> PerSeed:
        courses = figure.courses[name]
        return PerSeed([measure(one) for one in courses], decided=[one.condensed(condensed) for one in courses])

    return Claim(
        key, where or "additional question", text, quantity, rule, measured,
        lambda figure: f"{reason} {figure.in_words(name)}".strip(), ours=not where,
    )  # fmt: skip


FEWEST = "of the block that has most, at the saved step where it has fewest"


class Heads(PaperFigure):
    """Many heads of width 4 by AdamW, and by gradient descent."""

    name, title, paper = "attn-heads", "Many heads early in training: two to the power of their width", "ATTENTION"
    has_variants, on_request = False, True
    seed_count: ClassVar = 3
    words: ClassVar = WORDS
    titles: ClassVar = {"adam": "AdamW", "descent": "gradient descent, smaller"}
    chosen = (
        "a direction is that of a head's whole matrix (4 x d), counted as the source's code groups what heads give: "
        "one head takes all with a cosine above 0.9, the next one that is left does so, and so on. The code takes 1e-3 "
        "for a standard deviation, its flag calls it a variance; we take the code. Early is the first tenth of its 500 "
        "epochs, 400 steps; each block is counted at the saved step where it has fewest. Layer norms have no weights "
        "and the readout no bias, keys are 20 to 100 wherever they stand; three seeds, as one needs minutes. Outputs "
        "are compared in all blocks but the last, which gives something to one token alone. The quick scale has two "
        "blocks of 64 heads, d 16, 512 sequences of 5 tokens. A trial of the quick scale with one seed was seen before "
        "the rules were written, and another by gradient descent, whose network is the smaller one at both scales. "
        "In the first run a seed whose heads are not all condensed failed where attention and signs are asked; now it "
        "decides nothing there. The verdicts of the quick scale were then not reproduced, as now, and partly"
    )
    claims = (
        *(
            _claim(
                part, PAPER, f"early in training the heads' {WORDS[part]} have at most 2^{HEAD_WIDTH} directions",
                f"directions, {FEWEST}", at_most(DIRECTIONS), lambda one, part=part: one.fewest(part),
                reason=UNEVEN,
            )
            for part in PARTS
        ),
        *(
            _claim(
                f"{part}-held", "", f"all but a few heads have one of {DIRECTIONS} directions of {WORDS[part]}",
                f"share of the heads in the {DIRECTIONS} largest groups there, of the block that has least",
                at_least(CONDENSED), lambda one, part=part: one.held(part), reason=UNEVEN,
            )
            for part in PARTS
        ),
        _claim("uniform", PAPER, "meanwhile each head of each block attends to all tokens alike",
               "largest relative distance of a pattern's entry from the mean, at the last of these steps; where all "
               "are condensed", at_most(0.1), lambda one: one.unevenness_of_attention()[0], condensed=PARTS,
               reason=CHOOSES),
        _claim("uniform-values", "", "it does when the values are condensed, before queries and keys are",
               "the same at the last of the values' steps; where they are condensed", at_most(0.1),
               lambda one: one.unevenness_of_attention(("value",))[0], condensed=("value",), reason=CHOOSES),
        _claim("outputs", PAPER, "what heads give is condensed as their values are",
               f"of pairs of heads that are alike (cosine above {ALIKE:g}) in values or outputs of a sequence, the "
               "share that is alike in both, median", at_least(0.8), lambda one: one.outputs_follow),
        _claim("line", "", "why so many: all rows of a block are on one line, one way or the other",
               "median |cosine| of rows with their top singular vector, of the part and block that has least",
               at_least(0.95), lambda one: one.on_line(), reason=UNEVEN),
        _claim("even", "", "and the rows of a head have one size, as Adam's steps have",
               "least over largest norm of a head's rows, median, of the part and block that has least",
               at_least(0.8), lambda one: one.evenness(), reason=UNEVEN),
        _claim("signs", "", "the line is a vertex of the cube of sign descent",
               "its cosine with its own signs, median over parts and blocks; where all are condensed", at_least(0.9),
               lambda one: one.on_signs, condensed=PARTS),
        _claim("later", "", "it is early only: later the values have more directions",
               "directions of values at the end over those, of the block that has most", at_least(1.5),
               lambda one: one.later, reason=STAYS),
        _claim("descent", "", "it is Adam's: by gradient descent values have more directions",
               f"fewest directions of W_V, of the block that has fewest, once it has {GROWN:g} times its first size",
               at_least(DIRECTIONS + 1), lambda one: one.fewest_grown, name="descent"),
    )  # fmt: skip

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The transformer, and the smaller one by gradient descent."""
        return {"adam": many_heads(scale), "descent": descent()}

    @cached_property
    def courses(self) -> Available[list[HeadsCourse]]:
        """Each seed."""
        return self.runs.each(lambda _, run: [HeadsCourse(run, k) for k in range(len(run.seeds))])

    def in_words(self, name: str = "adam") -> str:
        """The fewest directions of each block and when, and how rows lie, seed by seed."""
        told = []
        for one in self.courses[name]:
            parts = []
            for part in PARTS:
                least, moments = one.counts(part).min(axis=1), one.run.saved[one.moments(part)]
                own = ", ".join(f"{n} at step {step}" for n, step in zip(least, moments, strict=True))
                parts.append(
                    f"{WORDS[part]} {own} ({one.held(part):.0%} of the heads in the {DIRECTIONS} largest groups)"
                )
            signs = ", ".join(f"{cosine:.2f}" for cosine in one.line_signs)
            most, median = one.unevenness_of_attention()
            attention = f"attention then {most:.2g} from the mean at most, {median:.2g} in the median"
            told.append(f"{'; '.join(parts)}; {attention}; cosines of the lines with their signs {signs}")
        return f"Fewest directions, block by block. Seed by seed: {'. '.join(told)}."

    def draw(self) -> Drawing:
        """Directions over the steps, and heads against heads."""
        return Drawing(
            caption="Directions of the heads' values, queries and keys over the steps, a line for each block, all "
            f"seeds (dotted: 2^{HEAD_WIDTH}); beside them those of a smaller network by gradient descent. Below the "
            "cosines of all pairs of heads of the first block, ordered, at the step where they have fewest directions, "
            "first seed, and the sizes of the groups.",
            pictures={"": draw_heads(self)},
            tables=(self._table(),),
            data=self.columns_of_claims(),
            settings_extra={
                "alike": f"a cosine above {ALIKE:g}",
                "condensed": f"{CONDENSED:.0%} of the heads in the {DIRECTIONS} largest groups, in each part and block",
                "attention and outputs": f"of {SEQUENCES} sequences",
            },
        )

    def _table(self) -> Table:
        header = ("network", "seed", "part", "fewest directions of each block", "at step", "held by the largest groups")
        rows = [
            (
                self.titles[name], str(k), WORDS[part], ", ".join(map(str, one.counts(part).min(axis=1))),
                ", ".join(map(str, one.run.saved[one.moments(part)])), f"{one.held(part):.0%}",
            )
            for name, courses in self.courses.items()
            for k, one in enumerate(courses)
            for part in PARTS
        ]  # fmt: skip
        return Table("Directions of heads", header, tuple(rows))
