"""What several figures of the fully connected paper share: words, a claim, and lines by activation."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from matplotlib.figure import Figure

from ...activations import label
from ...drawing._panels import draw_maps, draw_times
from ...runs import INITIAL_STAGE, Trajectory
from .._claims import Claim, PerSeed, at_least, at_most
from .._counts import Counts, stack_columns
from .._figure import Available, PaperFigure
from .experiments import EVEN, LINES, ONE_INPUT


def lines_in_words(activation: str) -> str:
    """The paper's number of lines.

    >>> lines_in_words("x_tanh")
    'two lines'
    """
    count = LINES[activation]
    return f"{('one', 'two', 'three')[count - 1]} line{'s' * (count > 1)}"


def with_multiplicity(activation: str) -> str:
    """An activation with its multiplicity: as many lines as that is what the paper states."""
    return f"{label(activation)} (multiplicity {LINES[activation]})"


ONE_INPUT_TITLES = {
    name: f"{label(activation)}, {'random' if spacing == 'random' else 'equally spaced'} points"
    for name, (activation, spacing) in ONE_INPUT.items()
}


def title_of_reading(key: str) -> str:
    """The activation of a network with one input, and that its points are equally spaced where they are.

    >>> title_of_reading("x_tanh"), title_of_reading("tanh-even")
    ('x tanh x', 'tanh, equally spaced points')
    """
    return label(ONE_INPUT[key][0]) + ", equally spaced points" * key.endswith(EVEN)


def in_initial_stage(
    key: str, title: str, epoch: int, loss: Callable[[Any], np.ndarray], *, ours: bool = False
) -> Claim[Any]:
    """The claim that a captioned epoch is in the initial stage; the loss is that of each seed there over the first."""
    return Claim(
        key, "Sec. 3, App. A.3", f"{title}: epoch {epoch} is in the initial stage, the loss above 70%",
        f"loss at epoch {epoch} over the first", at_least(INITIAL_STAGE), lambda figure: PerSeed(loss(figure)),
        lambda figure: f"By the captioned epoch the loss has fallen to {figure.measured(key).median:.2f} of its first "
        f"value (median): the figure is from beyond the initial stage ({INITIAL_STAGE:g}).",
        trained=False, ours=ours,
    )  # fmt: skip


def at_most_2p(
    key: str, where: str, layer: str, p: int, counts: Callable[[Any], Counts], why: str | Callable[[Any], str] = "",
    *, ours: bool = False,
) -> Claim[Any]:  # fmt: skip
    """The claim that a layer of multiplicity p has at most 2p orientations."""
    return Claim(
        f"{key}-most", f"{where}, Sec. 4.3", f"{layer}: at most 2p = {2 * p} orientations",
        "orientations at the same step", at_most(2 * p), lambda figure: counts(figure).orientations_found(), why,
        ours=ours,
    )  # fmt: skip


def by_kind(
    claims_of: Callable[[Any], Sequence[Claim[Any] | None]], names: Iterable[str | int]
) -> tuple[Claim[Any], ...]:
    """The claims of several panels, all of the first kind first; None where a panel has no claim of a kind."""
    kinds = zip(*map(claims_of, names), strict=True)
    return tuple(claim for kind in kinds for claim in kind if claim is not None)


class LinesByActivation(PaperFigure):
    """Lines of the first dense layer at the captioned epoch, an activation a panel."""

    paper = "FC"
    titles: ClassVar = {name: label(name) for name in LINES}
    epoch: ClassVar[int | None] = None  # the last step

    def _epoch(self, run: Trajectory) -> int:
        return self.epoch or int(run.saved[-1])

    @cached_property
    def counts(self) -> Available[Counts]:
        """Lines of each panel at the captioned epoch."""
        return self.runs.each(lambda name, run: self.count(run, "dense1", self._epoch(run)))

    def _draw_maps(self) -> Figure:
        lines = {self.titles[name]: LINES[name.partition("-")[0]] for name in self.runs}
        return draw_maps(self.counts.renamed(self.titles), lines)

    def _draw_times(self, names: Iterable[str] | None = None) -> Figure:
        titles = {name: self.titles[name] for name in names or self.titles}
        runs = self.runs.renamed(titles)
        epochs = {title: self._epoch(run) for title, run in runs.items()}
        return draw_times(runs, self.counts.renamed(titles), epochs)

    def _columns(self) -> dict[str, np.ndarray]:
        return stack_columns(self.counts.each(lambda _, counts: counts.columns()), "activation")
