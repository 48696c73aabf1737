"""How the units of a parameter lie in it, and how they are taken out: arrays and names only, no framework.

A parameter of any shape is first a matrix of units x inputs, its bias the last input. Then it is cut: a fused
projection into its *parts* (q, k, v; the gates of a recurrent layer), a part into *heads*, a grouped convolution into
its *groups*, whose units read different inputs and so cannot be compared with each other's.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..errors import InputError, unknown_name

VIEWS = ("filter", "kernel")
Shape = tuple[int, ...]
Read = Callable[[], np.ndarray]
ReadPart = Callable[[int], np.ndarray]  # one of the matrices that are stacked


@dataclass(frozen=True)
class UnitLayout:
    """Where the units of a parameter are.

    Attributes:
        kind: what a unit is called: neuron, filter, embedding, query, ...
        axis: the axis that counts units: 0, or 1 where inputs stand first (a transposed convolution, GPT-2's Conv1D).
        groups: of a convolution.
        parts: names and numbers of units of the parts that stand one after the other.
        turns: how often the parts come in turn (attention heads whose q, k and v stand together).
        stacked: the first axis counts matrices, one an expert.
        head: size of an attention head, 0 where there are none.
        head_inputs: heads are blocks of inputs (the output projection), not of units.
        bias: name of the bias, and the place of its first entry.
    """

    kind: str = "neuron"
    axis: int = 0
    groups: int = 1
    parts: tuple[tuple[str, int], ...] = ()
    turns: int = 1
    stacked: bool = False
    head: int = 0
    head_inputs: bool = False
    bias: tuple[str, int] | None = None


@dataclass(frozen=True)
class Units:
    """Some units of a parameter, or the reason why it has none.

    Attributes:
        name: of the parameter, and in brackets which of its units: ``attn.c_attn.weight[q, head 3]``.
        parameter: name of the parameter.
        kind: what a unit is: neuron, filter, kernel, embedding, query, key, value, ...
        units: how many.
        inputs: of each, its bias included.
        reason: why there are no units.
        bias: whether the last input is the bias.
        quantised: whether the weights were stored as few levels.
    """

    name: str
    parameter: str
    kind: str = ""
    units: int = 0
    inputs: int = 0
    reason: str = ""
    bias: bool = False
    quantised: bool = False
    read: Read | None = field(default=None, repr=False, compare=False)

    def weights(self) -> Float[np.ndarray, "units inputs"]:
        """The input weights as they are now, the bias as the last input."""
        if self.read is None or self.reason:
            raise InputError(f"{self.name} has no units: {self.reason}")
        return self.read()


def list_units(
    reads: Mapping[str, tuple[Shape, Read]],
    layouts: Mapping[str, UnitLayout | str],
    *,
    heads: bool,
    view: str,
    quantised: Collection[str] = (),
    parts: Mapping[str, ReadPart] | None = None,
) -> list[Units]:
    """The units of all parameters, in their order; a parameter with a reason in place of a layout is listed with it.

    ``reads`` are the shape of each parameter and what reads its values; ``heads`` cuts attention projections; some
    parameters may be ``quantised``. ``parts`` read one of the matrices that are stacked in a parameter, where that
    takes less than to read all of them.
    """
    if view not in VIEWS:
        raise unknown_name("view of convolution layers", view, VIEWS)
    biases = {layout.bias[0] for layout in layouts.values() if isinstance(layout, UnitLayout) and layout.bias}
    units = []
    for name, layout in layouts.items():
        if name in biases:
            continue  # it is the last input of the units of its weight
        if isinstance(layout, str):
            units.append(Units(name, name, reason=layout, read=reads[name][1] if name in reads else None))
        else:
            own = _units_of(name, layout, reads, heads, view, (parts or {}).get(name))
            units += [replace(part, quantised=True) for part in own] if name in quantised else own
    return units


def _units_of(
    name: str,
    layout: UnitLayout,
    reads: Mapping[str, tuple[Shape, Read]],
    heads: bool,
    view: str,
    part: ReadPart | None,
) -> Iterable[Units]:
    shape, read = reads[name]
    bias = reads[layout.bias[0]][1] if layout.bias else None
    entries = prod(shape[2:])
    if view == "kernel" and entries > 1 and not layout.stacked:
        count = shape[0] * shape[1]
        yield Units(name, name, "kernel", count, entries, read=lambda: read().reshape(count, entries))
        return
    for label, kind, block in _blocks(layout, shape, heads):
        title = f"{name}[{label}]" if label else name
        whole = len(block.columns) == _matrix_shape(layout, shape)[2]  # of heads of inputs there is no bias
        own = bias if whole and kind != "key" else None  # that of keys is the same for all of them: softmax cancels it
        if layout.stacked and part is not None:
            values = partial(_read, replace(layout, stacked=False), shape[1:], block, partial(part, block.matrix), own)
        else:
            values = partial(_read, layout, shape, block, read, own)
        known = own is not None
        yield Units(title, name, kind, len(block.rows), len(block.columns) + known, bias=known, read=values)


class _Block(NamedTuple):
    """Which matrix of a parameter, which units of each turn of its parts, and which of these rows and columns."""

    matrix: int
    part: slice
    rows: range
    columns: range


_RECURRENT = ("input", "forget", "cell", "output", "reset", "update", "new")
_PART_KINDS = {"q": "query", "k": "key", "v": "value", "gate": "gated neuron", "up": "gated neuron"}
_PART_KINDS |= dict.fromkeys(_RECURRENT, "gate")


def _blocks(layout: UnitLayout, shape: Shape, heads: bool) -> Iterable[tuple[str, str, _Block]]:
    """The blocks of a parameter, each with its label and the kind of its units."""
    matrices, units, inputs = _matrix_shape(layout, shape)
    for matrix in range(matrices):
        where = [f"{'expert' if layout.stacked else 'group'} {matrix}"] if matrices > 1 else []
        first = 0
        for part, count in layout.parts or (("", units),):
            block = _Block(matrix, slice(first, first + count), range(count * layout.turns), range(inputs))
            first += count
            label, kind = [*where, part] if part else where, _PART_KINDS.get(part, layout.kind)
            kind = "expert neuron" if layout.stacked and kind == "neuron" else kind
            divided = block.columns if layout.head_inputs else block.rows
            number = len(divided) // layout.head if heads and layout.head else 1
            if number < 2:
                yield ", ".join(label), kind, block
                continue
            for head in range(number):
                own = divided[head * layout.head : (head + 1) * layout.head]
                cut = block._replace(columns=own) if layout.head_inputs else block._replace(rows=own)
                yield ", ".join([*label, f"head {head}"]), kind, cut


def _matrix_shape(layout: UnitLayout, shape: Shape) -> tuple[int, int, int]:
    """How many matrices a parameter is, and the units and inputs of each."""
    matrices = shape[0] if layout.stacked else layout.groups
    own = shape[1:] if layout.stacked else (shape[0] // matrices, *shape[1:])
    return matrices, own[layout.axis], prod(own) // own[layout.axis]


def _read(layout: UnitLayout, shape: Shape, block: _Block, read: Read, bias: Read | None) -> np.ndarray:
    """The weights of a block, with their bias as the last input if there is one."""
    matrices, units, _ = _matrix_shape(layout, shape)

    def rows_of(values: np.ndarray) -> np.ndarray:
        in_turn = values.reshape(layout.turns, -1, *values.shape[1:])[:, block.part]
        return in_turn.reshape(-1, *values.shape[1:])[block.rows.start : block.rows.stop]

    array = read()
    if array.shape != shape:
        raise InputError(f"it has the shape {array.shape} now, not {shape}")
    if layout.stacked:
        array = array[block.matrix]
    elif matrices > 1:
        array = np.split(array, matrices)[block.matrix]
    flat = np.moveaxis(array, layout.axis, 0).reshape(units, -1)
    weights = rows_of(flat)[:, block.columns.start : block.columns.stop]
    if bias is None or layout.bias is None:
        return weights
    first = layout.bias[1] + block.matrix * units
    last = rows_of(bias()[first : first + units])
    return np.concatenate([weights, last[:, None].astype(weights.dtype)], axis=1)
