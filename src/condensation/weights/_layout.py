"""How the units of a parameter lie in it, and how they are taken out: arrays and names only, no framework.

A parameter of any shape is first a matrix of units x inputs, its bias the last input. Then it is cut: a fused
projection into its *parts* (q, k, v; the gates of a recurrent layer), a part into *heads*, a grouped convolution into
its *groups*, whose units read different inputs and so cannot be compared with each other's.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float

from ..errors import InputError, unknown_name

View = Literal["filter", "kernel"]
VIEWS = ("filter", "kernel")
Read = Callable[[], np.ndarray]


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
    """

    name: str
    parameter: str
    kind: str = ""
    units: int = 0
    inputs: int = 0
    reason: str = ""
    read: Callable[[], np.ndarray] | None = field(default=None, repr=False, compare=False)

    def weights(self) -> Float[np.ndarray, "units inputs"]:
        """The input weights as they are now, the bias as the last input."""
        if self.read is None:
            raise InputError(f"{self.name} has no units: {self.reason}")
        return self.read()


def list_units(
    reads: Mapping[str, tuple[tuple[int, ...], Read]],
    layouts: Mapping[str, "UnitLayout | str"],
    *,
    heads: bool,
    view: str,
) -> list[Units]:
    """The units of all parameters, in their order; a parameter with a reason in place of a layout is listed with it.

    Args:
        reads: shape of each parameter by name, and what reads its values.
        layouts: of each parameter its layout, or why it has no units.
        heads: cut attention projections into their heads.
        view: of convolution layers, ``"filter"`` or ``"kernel"``.
    """
    if view not in VIEWS:
        raise unknown_name("view of convolution layers", view, VIEWS)
    biases = {layout.bias[0] for layout in layouts.values() if isinstance(layout, UnitLayout) and layout.bias}
    units = []
    for name, layout in layouts.items():
        if name in biases:
            continue  # it is the last input of the units of its weight
        if isinstance(layout, str):
            units.append(Units(name, name, reason=layout))
        else:
            units += _units_of(name, layout, reads, heads, view)
    return units


def _units_of(
    name: str, layout: UnitLayout, reads: Mapping[str, tuple[tuple[int, ...], Read]], heads: bool, view: str
) -> Iterable[Units]:
    shape, read = reads[name]
    bias = reads[layout.bias[0]][1] if layout.bias else None
    if view == "kernel" and len(shape) > 2 and not layout.stacked:
        entries = int(np.prod(shape[2:]))
        if entries > 1:
            count = shape[0] * shape[1]
            yield Units(name, name, "kernel", count, entries, read=lambda: read().reshape(count, entries))
            return
    for label, block in _blocks(layout, shape, heads):
        title = f"{name}[{label}]" if label else name
        kind = layout.kind if block.kind is None else block.kind
        units, inputs = len(block.rows), len(block.columns) + (bias is not None and block.has_bias)
        yield Units(title, name, kind, units, inputs, read=_reader(layout, shape, block, read, bias))


@dataclass(frozen=True)
class _Block:
    """Which matrix of a parameter, and which of its rows and columns."""

    rows: range | np.ndarray
    columns: range
    matrix: int = 0
    kind: str | None = None
    has_bias: bool = True


_PART_KINDS = {"q": "query", "k": "key", "v": "value"}


def _blocks(layout: UnitLayout, shape: tuple[int, ...], heads: bool) -> Iterable[tuple[str, _Block]]:
    """The blocks of a parameter, each with its label."""
    matrices, units, inputs = _matrix_shape(layout, shape)
    names = "expert" if layout.stacked else "group"
    for matrix in range(matrices):
        where = [f"{names} {matrix}"] if matrices > 1 else []
        for part, rows in _parts(layout, units):
            label = [*where, part] if part else where
            kind = _PART_KINDS.get(part)
            blocks = (len(rows) if not layout.head_inputs else inputs) // layout.head if layout.head else 1
            if not heads or blocks < 2:
                yield ", ".join(label), _Block(rows, range(inputs), matrix, kind)
                continue
            for number in range(blocks):
                own = slice(number * layout.head, (number + 1) * layout.head)
                block = (
                    _Block(rows, range(inputs)[own], matrix, kind, has_bias=False)
                    if layout.head_inputs
                    else _Block(rows[own], range(inputs), matrix, kind)
                )
                yield ", ".join([*label, f"head {number}"]), block


def _matrix_shape(layout: UnitLayout, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """How many matrices a parameter is, and the units and inputs of each."""
    if layout.stacked:
        return shape[0], shape[1 + layout.axis], int(np.prod(shape[1:])) // shape[1 + layout.axis]
    entries = int(np.prod(shape[2:]))
    if layout.axis == 0:
        return layout.groups, shape[0] // layout.groups, int(np.prod(shape[1:]))
    return layout.groups, shape[1], shape[0] // layout.groups * entries


def _parts(layout: UnitLayout, units: int) -> list[tuple[str, range | np.ndarray]]:
    """Name and rows of each part; one without a name if there are none."""
    if not layout.parts:
        return [("", range(units))]
    turn = sum(count for _, count in layout.parts)
    starts = np.cumsum([0, *(count for _, count in layout.parts)])
    parts: list[tuple[str, range | np.ndarray]] = []
    for (name, count), start in zip(layout.parts, starts, strict=False):
        if layout.turns == 1:
            parts.append((name, range(int(start), int(start) + count)))
        else:
            turns = np.arange(layout.turns)[:, None] * turn
            parts.append((name, (turns + start + np.arange(count)).ravel()))
    return parts


def _reader(layout: UnitLayout, shape: tuple[int, ...], block: _Block, read: Read, bias: Read | None) -> Read:
    matrices, units, _ = _matrix_shape(layout, shape)

    def weights() -> np.ndarray:
        array = read()
        if array.shape != shape:
            raise InputError(f"it has the shape {array.shape} now, not {shape}")
        if layout.stacked:
            array = array[block.matrix]
        elif matrices > 1:
            array = np.split(array, matrices)[block.matrix]
        flat = np.moveaxis(array, layout.axis, 0).reshape(units, -1)
        rows = slice(block.rows.start, block.rows.stop) if isinstance(block.rows, range) else block.rows
        flat = flat[rows, block.columns.start : block.columns.stop]
        if bias is None or not block.has_bias or layout.bias is None:
            return flat
        first = layout.bias[1] + block.matrix * units
        last = bias()[first : first + units][rows]
        return np.concatenate([flat, last[:, None].astype(flat.dtype)], axis=1)

    return weights
