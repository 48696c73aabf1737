"""Figures that are heat maps of kernels: which panels, what is claimed of them, how they are drawn."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from ..._phrases import joined, plural
from ...drawing._panels import draw_maps, draw_times
from ...runs import Trajectory
from .._claims import Claim, PerSeed, at_most, exactly
from .._counts import Counts, stack_columns
from .._figure import Available, Drawing, PaperFigure
from .._tables import Table, in_brackets
from .._variant import Variant

ACCURACY = 0.21  # Figs. 2 and 3 say below 20%; with 500 images that is blurred by a percentage point


def last_step(run: Trajectory) -> int:
    """The last saved step: where a run ends with the captioned epoch."""
    return int(run.saved[-1])


class Panel(NamedTuple):
    """One heat map: the kernels of a layer of a run.

    Attributes:
        key: of its claims.
        run: which run.
        layer: which layer.
        text: what it is, in words.
        title: what stands above it.
        sides: the number of orientations that the paper states; None where it states none.
        epoch: at which step of the run; None: where each seed is most condensed within the initial stage.
        final: it shows the end of training, whatever a variant makes of the captioned epochs.
    """

    key: str
    run: str
    layer: str
    text: str
    title: str
    sides: int | None = None
    epoch: Callable[[Trajectory], int | None] = last_step
    final: bool = False


def map_claims(where: str, panels: Sequence[Panel], when: str, accuracy: bool = False) -> "tuple[Claim[HeatMaps], ...]":
    """What a figure of heat maps states: one line a panel, its orientations, and the accuracy of its runs.

    Where the paper does not state that the accuracy is below 20%, that is an additional question.
    """
    last_of_runs = {panel.run: panel for panel in panels}
    return (
        *(_line(panel, where, when) for panel in panels),
        *(_sides(panel, where, when) for panel in panels if panel.sides is not None),
        *(_accuracy(panel, where, when, accuracy) for panel in last_of_runs.values()),
    )


def _line(panel: Panel, where: str, when: str) -> "Claim[HeatMaps]":
    return Claim(
        panel.key, where, f"{panel.text}: a clear condensation of the kernels (read as: one line)",
        f"lines of kernels {when}", exactly(1), lambda figure: figure.counts["kernel"][panel.key].lines_found(),
        lambda figure: figure.there_and_before(panel),
    )  # fmt: skip


def _sides(panel: Panel, where: str, when: str) -> "Claim[HeatMaps]":
    text = f"{panel.text}: in {'two opposite directions' if panel.sides == 2 else 'one direction'}"
    return Claim(
        f"{panel.key}-sides", where, text, f"orientations of kernels {when}", exactly(panel.sides or 0),
        lambda figure: figure.counts["kernel"][panel.key].sides_found(), lambda figure: figure.there_and_before(panel),
    )  # fmt: skip


def _accuracy(panel: Panel, where: str, when: str, stated: bool) -> "Claim[HeatMaps]":
    text = f"{panel.text.split(', layer')[0]}: that is the initial stage, the accuracy is below 20% (21% allowed)"
    return Claim(
        f"{panel.run}-accuracy", where if stated else "ours, by Fig. 3's rule", text, f"training accuracy {when}",
        at_most(ACCURACY), lambda figure: PerSeed(figure.accuracy(panel)), trained=False, ours=not stated,
    )  # fmt: skip


class HeatMaps(PaperFigure):
    """A figure of heat maps: its panels, their caption, and which settings the text does not tell.

    With ``times`` the lines against time are drawn too.
    """

    paper = "CNN"
    panels: ClassVar[tuple[Panel, ...]]
    caption: ClassVar[str]
    times: ClassVar[bool] = False

    @cached_property
    def counts(self) -> dict[str, Available[Counts]]:
        """Lines of kernels and of filters, by the view and the key of the panel."""
        shown, missing = [panel for panel in self.panels if panel.run in self.runs], self.runs.missing
        reasons = {panel.key: missing[panel.run] for panel in self.panels if panel.run in missing}
        return {
            view: Available({panel.key: self._count(panel, view) for panel in shown}, reasons)
            for view in ("kernel", "filter")
        }

    def _count(self, panel: Panel, view: str) -> Counts:
        at_the_end = Variant(threshold=self.variant.threshold)  # the last step means something under any optimizer
        run, variant = self.runs[panel.run], at_the_end if panel.final else self.variant
        return self.count(run, panel.layer, panel.epoch(run), variant, view=view)

    def accuracy(self, panel: Panel) -> Float[np.ndarray, " seeds"]:
        """The training accuracy of each seed at a panel's step."""
        return accuracy_at(self.runs[panel.run], self.counts["kernel"][panel.key])

    def there_and_before(self, panel: Panel) -> str:
        """What the seeds of a panel that fails show, there and at the best moment of the initial stage."""
        best = self.count(self.runs[panel.run], panel.layer, None, view="kernel")
        return (
            f"At this step: {self.counts['kernel'][panel.key]}. Where most condensed within the initial stage (step "
            f"{joined(best.steps)}): {best}."
        ) + " These are verdicts on the reduced network, not on the paper's." * self.quick

    def draw(self) -> Drawing:
        """Heat maps of the median seed, lines over the seeds, both views in a table."""
        kernels = self.counts["kernel"]
        shown = [panel for panel in self.panels if panel.key in kernels]
        counts = {panel.title: kernels[panel.key] for panel in shown}
        steps = {title: int(np.median(each.steps)) for title, each in counts.items()}
        pictures = {"": draw_maps(counts, dict.fromkeys(counts, 1))}
        if self.times:
            runs = {panel.title: self.runs[panel.run] for panel in shown if not panel.final}
            pictures["time"] = draw_times(runs, counts, steps)
        quick = f" (At the quick scale: step {joined(dict.fromkeys(steps.values()))}.)" * self.quick
        header = ("panel", "step", "lines of kernels", "lines of filters", "loss / first loss", "training accuracy")
        title = "Both views of a layer, seed by seed (in brackets: not condensed)"
        return Drawing(
            caption=f"{self.caption}{quick} Top: cosine similarity of all pairs of kernels, the median seed; bottom: "
            f"the number of lines over {plural(self.seeds, 'seed')}.",
            pictures=pictures, tables=(Table(title, header, tuple(map(self._both_views, shown))),),
            data=stack_columns(kernels.each(lambda key, counts: counts.columns()), "panel"),
        )  # fmt: skip

    def _both_views(self, panel: Panel) -> tuple[str, ...]:
        kernels, filters = (counts[panel.key] for counts in self.counts.values())
        return (
            panel.text, joined(dict.fromkeys(kernels.steps)), in_brackets(kernels.lines_found()),
            in_brackets(filters.lines_found()), f"{np.median(kernels.loss):.4f}", joined(self.accuracy(panel), ".0%"),
        )  # fmt: skip


def accuracy_at(run: Trajectory, counts: Counts) -> Float[np.ndarray, " seeds"]:
    """The training accuracy of each seed where its lines were counted."""
    return run.accuracy[np.arange(len(run.seeds)), np.searchsorted(run.recorded, counts.steps)]
