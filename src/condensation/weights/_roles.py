"""What the units of a parameter are for, where its place among the others tells it: outputs, depthwise filters."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from math import prod
from typing import NamedTuple

from ._layout import Shape, UnitLayout

DEPTHWISE = "depthwise filter"
OUTPUT = "output"
EMBEDDING = "embedding"
GATED = "gated neuron"
RECURRENT = "recurrent neuron"
ROUTER = "router"
ADAPTER = "adapter"
ATTENTION_OUTPUT = "attention output"
BLOCK_OUTPUT = "block output"
_PAIRS = (("gate_proj", "up_proj"), ("wi_0", "wi_1"), ("w1", "w3"), ("ffn_gate", "ffn_up"))  # that are multiplied
_PARTNERS = dict(_PAIRS) | {up: gate for gate, up in _PAIRS}
_GATED = re.compile(rf"(?<![^.])(?!^w\d)({'|'.join(_PARTNERS)})(?=(_exps)?(\.weight)?$)")
_EXPERT = re.compile(r"(?<![^.])(\w*experts?\.|\w*experts?$|\w+_exps)")
_ROUTER = re.compile(r"(gate|router|gate\.wg|router\.\w+|ffn_gate_inp|shared_expert_gate)(\.weight)?$")
_DOWN = re.compile(r"(^|[._])(down_proj|ffn_down(_exps)?)(\.weight)?$")  # what a feed-forward layer gives
_BLOCK = re.compile(r".*?\.\d+(?=\.)|\d+(?=\.)|")  # the part of a name that counts blocks
_ADDED = re.compile(r"(^|[._])lora_(B|up|embedding_B)([._]|$)")  # the second factor of what is added to a weight
_OUTPUT = re.compile(r"(lm_?head|heads?|classifier|logits?|score|predictions?|fc_out|output|out|final)(_?layer)?")


def with_roles(layouts: Mapping[str, UnitLayout | str], shapes: Mapping[str, Shape]) -> dict[str, UnitLayout | str]:
    """The layouts, with the kinds of outputs, of neurons that have gates, of what chooses experts, and of adapters.

    What a feed-forward layer gives is added to what the attention of its block gives, and has as many units.
    Of two layers that are multiplied with each other both are there, in one shape. What chooses experts stands beside
    them. An output is a dense layer whose units no other weight reads, and which is called so, or is fed by another one
    and is the last one, or the only one that is not read: the order of a file may be that of its names.

    >>> layers = {"a.weight": (50, 5), "b.weight": (2, 50)}
    >>> [own.kind for own in with_roles(dict.fromkeys(layers, UnitLayout()), layers).values()]
    ['neuron', 'output']
    """
    known = {name: own for name, own in layouts.items() if isinstance(own, UnitLayout) and len(shapes[name]) > 1}
    sizes = {name: _sizes(own, shapes[name]) for name, own in known.items()}
    flow = Counter(sizes.values())  # a model may have 90,000 arrays, but of few sizes
    givers: dict[int, list[_Size]] = {}
    for size in flow:
        givers.setdefault(size.units, []).append(size)
    read = {size: _is_read(size, flow, givers) for size in flow}
    ends = [name for name, own in known.items() if own.kind not in (EMBEDDING, "row") and not read[sizes[name]]]
    found = dict(layouts)
    last = next(reversed(known), "")
    streams = {
        (_BLOCK.match(name)[0], sizes[name].units)  # pyright: ignore[reportOptionalSubscript]
        for name, own in known.items()
        if own.kind == ATTENTION_OUTPUT
    }
    above = {name[: place.start()] for name in shapes if (place := _EXPERT.search(name))}
    for name, own in known.items():
        if own.kind != "neuron" or own.parts or len(known) < 2:
            continue
        if _ADDED.search(name):
            found[name] = replace(own, kind=ADAPTER)
            continue
        if _is_gated(name, shapes):
            found[name] = replace(own, kind=GATED)
            continue
        if _gives_block(name, sizes[name], streams):
            found[name] = replace(own, kind=BLOCK_OUTPUT)
            continue
        if own.stacked:
            continue
        chooses = _ROUTER.search(name)
        if chooses and name[: chooses.start()] in above:
            found[name] = replace(own, kind=ROUTER)
            continue
        size = sizes[name]
        called = any(_OUTPUT.fullmatch(part.lower()) for part in name.split("."))
        fed = (name == last or ends == [name]) and _is_fed(size, flow)
        if (called or fed) and not (read[size] and size.units > 2):
            found[name] = replace(own, kind=OUTPUT)
    return found


def with_depthwise(layouts: Mapping[str, UnitLayout | str], shapes: Mapping[str, Shape]) -> dict[str, UnitLayout | str]:
    """The layouts, with the kind of depthwise filters.

    A filter of one channel is depthwise unless it is the first one, which may read grey images or sound. There may be
    several for each channel.

    >>> layers = {"a.weight": (8, 1, 3, 3), "b.weight": (8, 1, 3, 3), "c.weight": (9, 8, 1, 1)}
    >>> [own.kind for own in with_depthwise(dict.fromkeys(layers, UnitLayout("filter")), layers).values()]
    ['filter', 'depthwise filter', 'filter']
    """
    filters = [name for name, own in layouts.items() if isinstance(own, UnitLayout) and own.kind == "filter"]
    found = dict(layouts)
    for name in filters[1:]:
        shape, own = shapes[name], found[name]
        others = [shapes[other] for other in filters if other != name]
        fed = any(other[0] == shape[0] or (min(other[:2]) > 1 and shape[0] % other[0] == 0) for other in others)
        if shape[0] > 1 and shape[1] == 1 and prod(shape[2:]) > 1 and fed and isinstance(own, UnitLayout):
            found[name] = replace(own, kind=DEPTHWISE)
    return found


def _is_gated(name: str, shapes: Mapping[str, Shape]) -> bool:
    """Whether the layer that it would be multiplied with is there, in its shape."""
    own = _GATED.search(name)
    return bool(own) and shapes.get(name[: own.start()] + _PARTNERS[own[1]] + name[own.end() :]) == shapes[name]


def _gives_block(name: str, size: "_Size", streams: Collection[tuple[str, int]]) -> bool:
    """Whether a layer has as many units as the attention of its block gives, and reads more, or is called so."""
    block = _BLOCK.match(name)
    return bool(block) and (block[0], size.units) in streams and (size.inputs > size.units or bool(_DOWN.search(name)))


class _Size(NamedTuple):
    """Units that a layer gives, the inputs or channels that each reads (none are read of tokens), and its axes.

    ``many``: whether a unit gives more than one number, as a filter does, or a recurrent unit in two directions.
    """

    units: int
    inputs: int
    axes: int
    many: bool = False


def _sizes(layout: UnitLayout, shape: Shape) -> _Size:
    own = shape[1:] if layout.stacked else shape
    units, inputs = own[layout.axis], own[1 - layout.axis] * layout.groups
    if layout.kind == EMBEDDING:
        return _Size(inputs, 0, len(shape))
    if layout.parts:
        units = layout.parts[-1][1] * layout.turns
    return _Size(units, inputs, len(shape), len(own) > 2 or bool(layout.parts))


def _is_read(size: _Size, flow: Counter[_Size], givers: Mapping[int, list[_Size]]) -> bool:
    """Whether another weight has the units of one as its inputs; it may read them flattened, many of each channel.

    What stands before a layer does not read it: that a network has 64 inputs says nothing of its 8 outputs.
    """
    units, flattened = size.units, set[_Size]()
    for other, count in flow.items():
        if not other.inputs or (other == size and count < 2):
            continue
        if other.inputs == units:
            return True
        if other.inputs % units == 0 and units > 1 and (size.many or other.inputs < 64 * units) and other.axes == 2:
            flattened.add(other)
    return bool(flattened and flattened - _before(size, givers))


def _before(size: _Size, givers: Mapping[int, list[_Size]]) -> set[_Size]:
    """The layers before one: those that give as many units as it reads, and so on."""
    before: set[_Size] = set()
    waiting = [size]
    while waiting:
        new = set(givers.get(waiting.pop().inputs, ())) - before
        before |= new
        waiting += new
    return before


def _is_fed(size: _Size, flow: Counter[_Size]) -> bool:
    """Whether another weight gives the inputs of one, or some of each."""
    for other, count in flow.items():
        flattened = other.many and other.units > 1 and size.inputs % other.units == 0
        if (other != size or count > 1) and (flattened or size.inputs == other.units):
            return True
    return False
