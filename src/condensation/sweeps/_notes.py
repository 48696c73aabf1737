"""Notes on a sweep's table: what its numbers do not show by themselves, and the warnings that tell it."""

import warnings
from typing import TYPE_CHECKING

import numpy as np

from .._phrases import plural
from ._grid import cell_name, seed_name
from ._measures import QUANTITIES

if TYPE_CHECKING:
    from ._table import SweepTable

MOST_CELLS = 3  # that a note names


class SweepWarning(UserWarning):
    """A sweep's table has numbers that are not what they seem."""


class IncompleteTable(SweepWarning):
    """A sweep's table lacks rows."""


def warn_of_notes(table: "SweepTable") -> None:
    """Warn of each note on a table, of missing rows by ``IncompleteTable``."""
    missing = not table.complete  # then the first note is about it
    for number, (note, detail) in enumerate(table.notes.items()):
        category = IncompleteTable if missing and number == 0 else SweepWarning
        warnings.warn(f"{note}: {detail}", category, stacklevel=3)


def notes_on(table: "SweepTable") -> dict[str, str]:
    """The notes on a table, each with its details; those on missing rows first."""
    notes = {}
    total = len(table.sweep) * len(table.seeds)
    if not table.complete:
        reason = next(iter(table.missing.values()))
        number = int((~table.has_rows).sum())
        notes[f"{number} of {total} networks have no row"] = f"{_cells(table)}; the first reason: {reason}"
    _, once = np.unique(table.places, axis=0, return_index=True)  # a row of each network
    diverged = table.column("diverged") >= 0

    def networks(chosen: np.ndarray) -> str:
        return f"{int(chosen[once].sum())} of {len(once)} networks"

    if diverged.any():
        notes[f"{networks(diverged)} diverged"] = (
            "what is measured of them is NaN from that step on (column diverged), and medians are of the others"
        )
    names = table.rows.column_names
    if "stage_ended" in names:
        lasting = np.equal(table.column("stage_ended"), False) & ~diverged
        if lasting.any():
            notes[f"in {networks(lasting)} the initial stage did not end"] = (
                "they were measured at the last saved step, where the loss was still at least 70% of its first value "
                "(column stage_ended)"
            )
        untrained = np.equal(table.column("stage_ended"), True) & (table.column("step") == 0)
        if untrained.any():
            notes[f"{networks(untrained)} were measured at step 0"] = (
                "no step after it was saved before their loss fell below 70%: save more steps"
            )
    if "rising" in names and (rising := np.equal(table.column("rising"), True)).any():
        notes[f"in {networks(rising)} the loss still rises"] = (
            f"with the learning rate halved {table.sweep.backoffs} times (column rising); a smaller rate to begin "
            "with, more back-offs or gradient flow may help"
        )
    return notes | _notes_on_measures(table, diverged)


def _cells(table: "SweepTable") -> str:
    """The first cells that lack rows, each with the seeds that it lacks."""
    cells, has_rows = [*table.sweep.cells()], table.has_rows.reshape(len(table.sweep), -1)
    lacking = np.flatnonzero(~has_rows.all(axis=1))
    texts = []
    for number in lacking[:MOST_CELLS]:
        seeds = [seed_name(seed) for seed, there in zip(table.seeds, has_rows[number], strict=True) if not there]
        texts.append(f"{cell_name(cells[number].coordinates)} (seed{'s' * (len(seeds) > 1)} {', '.join(seeds)})")
    more = len(lacking) - MOST_CELLS
    return "; ".join(texts) + (f"; and {plural(more, 'more cell')}" if more > 0 else "")


def _notes_on_measures(table: "SweepTable", diverged: np.ndarray) -> dict[str, str]:
    """Notes on named measures without a value in networks that did not diverge."""
    notes = {}
    cells = [*table.sweep.cells()]
    for measure in (name for name in QUANTITIES if name in table.sweep.measure):
        columns = [name for name in table.rows.column_names if name.endswith(f".{QUANTITIES[measure][0]}")]
        if not columns and not diverged.all():
            notes[f"the measure {measure} has no value in any row"] = "no layer has weights that it could be taken of"
        for column in columns:
            layer = column.rpartition(".")[0]
            empty = np.flatnonzero(np.isnan(table.column(column).astype(float)) & ~diverged)
            networks = [cells[number].experiment.network for number in table.places[empty, 0]]
            count = sum(any(own.name == layer for own in network.layers) for network in networks)
            if count:
                notes[f"{column} has no value in {count} of {len(table)} rows"] = (
                    "the layer's weights have none there; weights that are all zero have no directions, for instance"
                )
    return notes
