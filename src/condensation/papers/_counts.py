"""Lines of a layer over the seeds, at the moment that a figure shows."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Bool, Float, Int

from .._phrases import plural
from ..measure import LineHistory, count_lines
from ..runs import INITIAL_STAGE, Trajectory
from ._claims import PerSeed
from ._variant import Variant


@dataclass(frozen=True)
class Counts:
    """Lines, orientations and k_eff in each seed at a step of its own, whether condensed; and at all saved steps."""

    column: Int[np.ndarray, " seeds"]
    steps: Int[np.ndarray, " seeds"]
    lines: Float[np.ndarray, " seeds"]
    orientations: Float[np.ndarray, " seeds"]
    k_eff: Float[np.ndarray, " seeds"]
    cover: Float[np.ndarray, " seeds"]
    condensed: Bool[np.ndarray, " seeds"]
    loss: Float[np.ndarray, " seeds"]
    weights: Float[np.ndarray, "seeds saved units inputs"]
    all_steps: Callable[[], LineHistory]

    @property
    def history(self) -> LineHistory:
        """Lines at all saved steps."""
        return self.all_steps()

    @property
    def shown(self) -> Float[np.ndarray, "units inputs"]:
        """The weights that a figure shows: those of the median seed."""
        return self.weights[self.median_seed, self.column[self.median_seed]]

    def lines_found(self) -> PerSeed:
        """The number of lines, which means something where the layer is condensed."""
        return PerSeed(self.lines, self.condensed)

    def sides_found(self) -> PerSeed:
        """The number of orientations of a single line; a seed without just one line decides nothing."""
        return PerSeed(self.orientations, decided=self.condensed & (self.lines == 1))

    def orientations_found(self) -> PerSeed:
        """The number of orientations on all lines; a layer that is not condensed decides nothing."""
        return PerSeed(self.orientations, decided=self.condensed)

    @property
    def median_seed(self) -> int:
        """The position of the seed that a figure shows."""
        return median_seed(self.lines, self.k_eff)

    def __str__(self) -> str:
        """Lines and orientations of each seed in words."""
        seeds = zip(self.lines, self.orientations, self.condensed, strict=True)
        return ", ".join(
            f"{plural(int(lines), 'line')} and {plural(int(turns), 'orientation')}"
            f"{'' if condensed else ' (not condensed)'}"
            if np.isfinite(lines)
            else "diverged"
            for lines, turns, condensed in seeds
        )

    def columns(self) -> dict[str, np.ndarray]:
        """A row for each seed, for the figure's data file."""
        names = ("steps", "lines", "orientations", "k_eff", "cover", "condensed", "loss")
        return {"seed": np.arange(len(self.lines))} | {name: getattr(self, name) for name in names}


def count(
    run: Trajectory, layer: str | int, epoch: int | None, variant: Variant | None = None,
    threshold: float | None = None, view: str | None = None, history: Callable[..., LineHistory] | None = None,
) -> Counts:  # fmt: skip
    """Count the lines of a layer at an epoch.

    Where there is none, or an optimizer with other steps than the captioned one makes it mean nothing, each seed is
    looked at where it is most condensed (least k_eff) within the initial stage.

    Args:
        run, layer: which layer of which run.
        epoch: the captioned step, which must have been saved; None where there is none.
        variant: what differs from the caption; its threshold comes before the one that is given.
        threshold: the cosine that decides, where the figure has one of its own.
        view: of a convolution layer, ``"kernel"`` (without it) or ``"filter"``.
        history: ``line_history``, or one that remembers what it has counted.
    """
    variant = variant or Variant()
    weights, cosine = run.history(layer, view=view), cosine_of(run, layer, variant, threshold)
    all_steps = partial(history or line_history, run, layer, cosine, view)
    seeds = np.arange(len(run.seeds))
    if epoch is not None and variant.by_caption:
        column = np.full(len(seeds), np.flatnonzero(run.saved == epoch)[0])
    else:
        k_eff = all_steps().k_eff
        column = np.where(in_stage(run) & np.isfinite(k_eff), k_eff, np.inf).argmin(axis=1)
    there = count_lines(weights[seeds, column][:, None], threshold=cosine)
    return Counts(
        column, run.saved[column], there.lines[:, 0], there.orientations[:, 0], there.k_eff[:, 0], there.cover[:, 0],
        there.condensed[:, 0], relative_loss(run)[seeds, column], weights, all_steps,
    )  # fmt: skip


def line_history(run: Trajectory, layer: str | int, threshold: float | None, view: str | None = None) -> LineHistory:
    """Lines of a layer at all saved steps."""
    return count_lines(run.history(layer, view=view), threshold=threshold)


def cosine_of(run: Trajectory, layer: str | int, variant: Variant, threshold: float | None = None) -> float | None:
    """The cosine that decides in a layer: the variant's or the figure's; none for two inputs: modes are counted."""
    return None if run.history(layer).shape[-1] == 2 else variant.threshold or threshold


def in_stage(run: Trajectory) -> Bool[np.ndarray, "seeds saved"]:
    """Which saved steps are in the initial stage: before the loss first falls below 70%."""
    return np.logical_and.accumulate(relative_loss(run) >= INITIAL_STAGE * (1 - 1e-6), axis=1)


def relative_loss(run: Trajectory) -> Float[np.ndarray, "seeds saved"]:
    """L/L0 at the saved steps."""
    return run.loss[:, np.searchsorted(run.recorded, run.saved)] / run.loss[:, :1]


def median_seed(lines: np.ndarray, k_eff: np.ndarray) -> int:
    """The position of the seed that a figure shows: the middle one when sorted by lines, then by k_eff.

    >>> median_seed(np.array([3, 1, 2]), np.array([3.0, 1.0, 2.0]))
    2
    """
    return int(np.lexsort((k_eff, lines))[len(lines) // 2])


def stack_columns(parts: dict[str, dict[str, np.ndarray]], name: str) -> dict[str, np.ndarray]:
    """Rows of several parts below each other, with a first column that names the part."""
    first = next(iter(parts.values()))
    labels = np.concatenate([np.full(len(part["seed"]), key) for key, part in parts.items()])
    return {name: labels} | {column: np.concatenate([part[column] for part in parts.values()]) for column in first}
