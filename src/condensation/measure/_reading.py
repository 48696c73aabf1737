"""What a row says: one sentence with what was found, the number beside its null, and what one could do.

``RULES`` are asked in their order, and the first that has something to say gives the reading. k_eff beside its null
decides what is alike, never the count of lines alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite, isnan
from typing import TYPE_CHECKING

from ._copies import beyond_chance

if TYPE_CHECKING:
    from ._table import Row

ALIKE = 0.8  # k_eff over its null below which units are said to be alike, if it is below every draw of the null, too
LOW = 0.5  # effective rank over its null below which the rank is low
EVEN = 0.9  # (sum r)^2 / sum r^2 over units: random initial weights are more even, whatever their law
RANDOM = 0.01  # how near effective rank and its null are where weights look random
TELLING = 32  # units and inputs from which on the rank tells trained weights from random ones
COMMON = 0.5  # share of the squared norm from which on a mean is worth a word
BIAS = 0.9  # share of the squared norm from which on the bias is all there is to see
MOVED = 0.1  # relative change since the first step below which a layer has hardly been trained


class Action(StrEnum):
    """What one could do."""

    NOTHING = "nothing to do"
    REDUCE = "reduce"
    LOOK = "look at this layer"
    TRAIN = "train longer"
    NONE = ""


@dataclass(frozen=True)
class Reading:
    """A reading of one layer.

    Attributes:
        finding: what was found, in a few words.
        evidence: the number and its null.
        action: what one could do.
        how: more about that.
        saving: parameters of this layer that doing it would save; those of what reads the units come on top.
    """

    finding: str
    evidence: str = ""
    action: Action = Action.NONE
    how: str = ""
    saving: int = 0

    @property
    def advice(self) -> str:
        """What one could do, in words."""
        return ": ".join(filter(None, (self.action.value, self.how)))

    def __str__(self) -> str:
        return "; ".join(filter(None, (": ".join(filter(None, (self.finding, self.evidence))), self.advice)))


NO_MERGING = {  # kinds of units whose lines are no licence to merge, and why
    "depthwise filter": "its filters read different channels, so that alike ones cannot be merged",
    "kernel": "kernels of one filter are summed over channels, so that alike ones cannot be merged",
    "embedding": "its units are tokens or positions; rows that repeat are mostly ones that training never met",
    "query": "queries act by their products with keys, so that a smaller head is meant, not merged units",
    "key": "keys act by their products with queries, so that a smaller head is meant, not merged units",
    "row": "neither its name nor a graph tells that its rows are units of a layer",
    "attention output": "its units write into a stream that other layers share",
    "block output": "its units write into a stream that other layers share",
    "output": "its units are the outputs of the model, which stay",
    "gate": "a recurrent unit is its rows in all gates at once, and is merged only where all agree",
    "recurrent neuron": "a recurrent unit is its rows for inputs and state, and is merged only where both agree",
    "adapter": "its rows are added to those of the layer that it adapts, which stay",
    "router": "its units choose experts, which stay",
    "gated neuron": "a neuron is its row and that of its gate, and is merged only where both agree",
}

CONSTANT = ("depthwise filter", "gated neuron")  # that have no use without weights, though they are not merged
UNTOLD = ("embedding", "depthwise filter", "kernel", "row")  # that may look random though they are trained, or no layer
OF_CHANNELS = ("filter", "depthwise filter", "kernel", "embedding")  # whose inputs are more than one a channel, or none

TURNED = "an odd activation would let them be merged, a relu does not"  # units on both sides of a line


def read(row: Row) -> Reading:
    """The reading of a row."""
    return next(found for rule in RULES if (found := rule(row)) is not None)


def _not_measured(row: Row) -> Reading | None:
    return Reading(row.reason) if row.reason else None


def _without_null(row: Row) -> Reading | None:
    """Where no null was asked for, random units in the same dimensions are what k_eff is beside."""
    if isfinite(row.mean):
        return None
    number = _beside_random(row)
    if not row.lines:
        return Reading("not condensed", number + _empty(row), Action.NOTHING)
    return _to_merge(row, _on_lines(row.lines, row.cover, condensed=row.condensed), number, 0)


def _bias(row: Row) -> Reading | None:
    if not row.bias >= BIAS:
        return None
    share = f"{_percent(row.bias)} of the squared norm; without it {_beside_null(row)}"
    what = "what its units have in common is their bias, which says little of what they read"
    if _alike(row) or not isfinite(row.null_k_eff):
        what = "its units are alike without it, too; whether they can be merged, data tell"
    return Reading("dominated by its bias", share + _empty(row), Action.LOOK, what)


def _two(row: Row) -> Reading | None:
    """Two units have nothing to be compared with: without their mean they are opposite whatever they are."""
    if row.units != 2 or row.zeros or _copies(row):
        return None
    share = f"their mean has {_percent(row.mean)} of the squared norm where unrelated units have 50%"
    if row.kind == "output":
        found = "two outputs, opposite to each other as a softmax makes them" if row.mean < 0.25 else "two outputs"
        return Reading(found, share, Action.NOTHING)
    return Reading("two units", share, Action.NOTHING, "lines of two cannot be told from chance")


def _lines(row: Row) -> Reading | None:
    if not (_alike(row) and row.lines and (row.mean <= COMMON or row.condensed)):
        return None
    spare = max(row.spare, _copies(row))
    if not row.condensed and row.kind not in NO_MERGING and spare * row.inputs < _by_rank(row):
        return _low_rank(row)
    found, number = _on_lines(row.lines, row.cover, condensed=row.condensed), _beside_null(row)
    other = round(row.centred_k_eff) != round(row.k_eff)  # without their mean two lines are one, and three many
    if row.condensed and isfinite(row.null_k_eff) and other:
        number = f"k_eff {_short(row.k_eff)}, and without the mean {number.removeprefix('k_eff ')}"
    return _to_merge(row, found, number, spare)


def _repeated(row: Row) -> Reading | None:
    count = _copies(row)
    if not count or count * row.inputs < _by_rank(row):
        return None
    number = _beside_null(row)
    if row.condensed and row.mean > COMMON and isfinite(row.null_k_eff):
        if row.units > 2 and row.centred_k_eff > LOW * row.chance_k_eff:  # near their mean, and unlike beyond it
            return None
        number = _beside_random(row)
    by_chance = f"about {expected}" if (expected := round(row.chance_copies)) else "none"
    found = f"{count:,} of {row.units:,} units repeat others"
    return _to_merge(row, found, f"where chance makes {by_chance}, {number}", count)


def _without_weights(row: Row) -> Reading | None:
    if not row.zeros or (row.kind in NO_MERGING and row.kind not in CONSTANT):
        return None
    found = f"{row.zeros:,} of {row.units:,} units without weights"
    saving = row.zeros * row.inputs
    what = f"they are constants and can go, {saving:,} of {row.units * row.inputs:,} parameters"
    return Reading(found, _beside_null(row) + _zero_inputs(row), Action.REDUCE, what, saving)


def _lines_by_chance(row: Row) -> Reading | None:
    """Lines where k_eff is as its null: by a mean that all units share, or by a few heavy units."""
    if not row.condensed:
        return None
    if row.mean <= COMMON:
        few = "units carry the norm" if row.k_eff > LOW * row.chance_k_eff else "inputs carry the weights of all units"
        what = NO_MERGING.get(row.kind, f"a few {few}, and chance would leave about as few lines")
        return Reading(f"condensed on {_count(row.lines)}", _beside_null(row) + _empty(row), Action.LOOK, what)
    share = f"the common mean of its units has {_percent(row.mean)} of the squared norm; without it {_beside_null(row)}"
    what = "if its inputs hardly vary along the mean, that acts as a bias"
    if row.kind == "embedding":
        what = "what all rows share tells no token from another"
    elif row.kind in ("depthwise filter", "kernel"):
        what = NO_MERGING[row.kind]
    return Reading(f"condensed on {_count(row.lines)}", share + _empty(row), Action.LOOK, what)


def _beyond_mean(row: Row) -> Reading | None:
    if not (_alike(row) and row.centred_lines):
        return None
    found = _on_lines(row.centred_lines, row.centred_cover, condensed=False) + ", the mean removed"
    what = NO_MERGING.get(row.kind, "units differ from their mean along few lines")
    return Reading(found, _beside_null(row) + _empty(row), Action.LOOK, what)


def _low_rank(row: Row) -> Reading | None:
    if not row.effective_rank < LOW * row.null_rank:
        return None
    what, saving = f"{row.kept_rank:,} dimensions hold 99% of the squared norm", _by_rank(row)
    if saving > 0:
        what += f", and as two factors they would save {saving:,} of {_parameters(row):,} parameters"
    return Reading("low rank", f"{_rank(row)}, {_beside_null(row)}" + _empty(row), Action.LOOK, what, saving)


def _turned_round(row: Row) -> Reading | None:
    if not beyond_chance(row.opposites, row.chance_copies):
        return None
    found = f"{row.opposites:,} of {row.units:,} units are others turned round"
    what = NO_MERGING.get(row.kind, TURNED)
    return Reading(found, _beside_null(row) + _empty(row), Action.LOOK, what)


def _some_alike(row: Row) -> Reading | None:
    if not _alike(row):
        return None
    what = NO_MERGING.get(row.kind, "units are alike in small groups")
    return Reading("some alike", _beside_null(row) + _empty(row), Action.LOOK, what)


def _unread(row: Row) -> Reading | None:
    if not row.zero_inputs or row.kind in OF_CHANNELS:
        return None
    found = f"{row.zero_inputs:,} of {_inputs(row):,} inputs without weights"
    return Reading(found, _beside_null(row), Action.LOOK, "what nothing else reads of them can go")


def _hardly_moved(row: Row) -> Reading | None:
    """Against the first step: weights that have hardly moved say nothing yet."""
    if not row.change < MOVED:
        return None
    what = f"the weights have moved by {_percent(row.change)} since the first step"
    return Reading("as chance", _beside_null(row) + _empty(row), Action.TRAIN, what)


def _random(row: Row) -> Reading | None:
    """Nothing tells the weights from random initial ones: lines, rank, norms or biases; layers of some size alone."""
    large = min(row.units, _inputs(row)) >= TELLING and row.kind not in UNTOLD
    told = row.zeros or row.zero_inputs or row.mean > COMMON or row.bias > COMMON or row.centred_k_eff < row.null_low
    even = row.chance_k_eff > EVEN * row.units
    if not large or told or not even or not abs(row.effective_rank / row.null_rank - 1) < RANDOM:
        return None
    what = "these could be the weights of an untrained layer"
    return Reading("as random weights", f"{_beside_null(row)}, {_rank(row)}", Action.TRAIN, what)


def _chance(row: Row) -> Reading | None:
    found = "as chance"
    if row.mean > COMMON:
        found = f"a common mean with {_percent(row.mean)} of the squared norm, else as chance"
    return Reading(found, _beside_null(row) + _empty(row), Action.NOTHING)


RULES: tuple[Callable[[Row], Reading | None], ...] = (
    *(_not_measured, _without_null, _bias, _two, _lines, _repeated, _without_weights, _lines_by_chance, _beyond_mean),
    *(_low_rank, _turned_round, _some_alike, _unread, _hardly_moved, _random, _chance),
)


def _alike(row: Row) -> bool:
    """Whether units are alike beyond their mean, their norms and chance."""
    return row.ratio < ALIKE and row.centred_k_eff < row.null_low


def _copies(row: Row) -> int:
    """Units that repeat others, where chance would hardly make as many."""
    return row.copies if beyond_chance(row.copies, row.chance_copies) else 0


def _to_merge(row: Row, found: str, number: str, spare: int) -> Reading:
    """What to do where units are alike: merge them, if that is what such units and weights are for."""
    number += _empty(row)
    if row.kind in NO_MERGING:
        return Reading(found, number, Action.LOOK, NO_MERGING[row.kind])
    if row.quantised:
        what = "rounding makes weights alike, so that the model before it was quantised is the one to reduce"
        return Reading(found, number, Action.LOOK, what)
    if not isfinite(row.mean):  # no null was asked for, and what can go was not counted
        return Reading(found, number, Action.REDUCE)
    if not spare:
        return Reading(found, number, Action.LOOK, TURNED)
    spare += row.zeros
    saving = spare * row.inputs
    what = f"up to {spare:,} of {row.units:,} units can go, {saving:,} of {row.units * row.inputs:,} parameters"
    return Reading(found, number, Action.REDUCE, what, saving)


def _inputs(row: Row) -> int:
    """Inputs of a unit, without its bias where it is known."""
    return row.inputs - (not isnan(row.bias))


def _parameters(row: Row) -> int:
    return row.units * _inputs(row)


def _by_rank(row: Row) -> int:
    """Parameters that two factors would save, where the rank is low."""
    if not row.effective_rank < LOW * row.null_rank:
        return 0
    return max(0, _parameters(row) - row.kept_rank * (row.units + _inputs(row)))


def _beside_null(row: Row) -> str:
    if isnan(row.null_k_eff):
        return _beside_random(row)
    return f"k_eff {_short(row.centred_k_eff)} where chance leaves {_short(row.null_k_eff)}"


def _beside_random(row: Row) -> str:
    return f"k_eff {_short(row.k_eff)} where random units have {_short(row.chance_k_eff)}"


def _rank(row: Row) -> str:
    return f"effective rank {_short(row.effective_rank)} where chance leaves {_short(row.null_rank)}"


def _on_lines(count: int, cover: float, *, condensed: bool) -> str:
    return (
        f"condensed on {_count(count)}" if condensed else f"partly: {_count(count)} with {_percent(cover)} of the norm"
    )


def _count(lines: int) -> str:
    return "1 line" if lines == 1 else f"{lines} lines"


def _empty(row: Row) -> str:
    """Units and inputs without weights, as more evidence."""
    zero = "1 unit is zero" if row.zeros == 1 else f"{row.zeros:,} units are zero"
    return (f"; {zero}" if row.zeros else "") + _zero_inputs(row)


def _zero_inputs(row: Row) -> str:
    return f"; {row.zero_inputs:,} of {_inputs(row):,} inputs without weights" if row.zero_inputs else ""


def _percent(share: float) -> str:
    return f"{share:.1%}" if share > 0.995 and share < 0.9995 else f"{share:.0%}"


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"
