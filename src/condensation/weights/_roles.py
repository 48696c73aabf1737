"""What the units of a parameter are for, where its place among the others tells it: outputs, depthwise filters."""

import re
from collections.abc import Mapping
from dataclasses import replace
from math import prod

from ._layout import Shape, UnitLayout

DEPTHWISE = "depthwise filter"
OUTPUT = "output"
GATED = "gated neuron"
ROUTER = "router"
_PAIRS = (("gate_proj", "up_proj"), ("wi_0", "wi_1"), ("w1", "w3"), ("ffn_gate", "ffn_up"))  # that are multiplied
_PARTNERS = dict(_PAIRS) | {up: gate for gate, up in _PAIRS}
_GATED = re.compile(rf"(?<![^.])(?!^w\d)({'|'.join(_PARTNERS)})(?=(_exps)?(\.weight)?$)")
_EXPERT = re.compile(r"(?<![^.])(\w*experts?\.|\w*experts?$|\w+_exps)")
_ROUTER = re.compile(r"(gate|router|gate\.wg|router\.\w+|ffn_gate_inp|shared_expert_gate)(\.weight)?$")
_OUTPUT = re.compile(r"(lm_?head|heads?|classifier|logits?|score|predictions?|fc_out|output|out|final)(_?layer)?")


def with_roles(layouts: Mapping[str, UnitLayout | str], shapes: Mapping[str, Shape]) -> dict[str, UnitLayout | str]:
    """The layouts, with the kinds of a model's outputs, of neurons that have gates, and of what chooses experts.

    Of two layers that are multiplied with each other both are there, in one shape. What chooses experts stands beside
    them. An output is a dense layer whose units no other weight reads, and which is called so, or is the last one and
    is fed by another one.

    >>> layers = {"a.weight": (50, 5), "b.weight": (2, 50)}
    >>> [own.kind for own in with_roles(dict.fromkeys(layers, UnitLayout()), layers).values()]
    ['neuron', 'output']
    """
    known = {name: own for name, own in layouts.items() if isinstance(own, UnitLayout) and len(shapes[name]) > 1}
    sizes = {name: _sizes(own, shapes[name]) for name, own in known.items()}
    found = dict(layouts)
    last = next(reversed(known), "")
    above = {name[: place.start()] for name in shapes if (place := _EXPERT.search(name))}
    for name, own in known.items():
        if own.kind != "neuron" or own.parts or len(known) < 2:
            continue
        if _is_gated(name, shapes):
            found[name] = replace(own, kind=GATED)
            continue
        if own.stacked:
            continue
        chooses = _ROUTER.search(name)
        if chooses and name[: chooses.start()] in above:
            found[name] = replace(own, kind=ROUTER)
            continue
        units, inputs = sizes[name]
        others = [size for other, size in sizes.items() if other != name]
        dense = [size for other, size in sizes.items() if other != name and len(shapes[other]) == 2]
        read = any(fed == units for _, fed in others) or any(  # flattened, but not by what it reads itself
            fed % units == 0 and units > 1 and fed < 64 * units and count != inputs for count, fed in dense
        )
        called = any(_OUTPUT.fullmatch(part.lower()) for part in name.split("."))
        fed = name == last and any(count == inputs for count, _ in others)
        if (called or fed) and not (read and units > 2):
            found[name] = replace(own, kind=OUTPUT)
    return found


def with_depthwise(layouts: Mapping[str, UnitLayout | str], shapes: Mapping[str, Shape]) -> dict[str, UnitLayout | str]:
    """The layouts, with the kind of depthwise filters.

    A filter of one channel is depthwise unless it is the first one, which may read grey images or sound.

    >>> layers = {"a.weight": (8, 1, 3, 3), "b.weight": (8, 1, 3, 3), "c.weight": (9, 8, 1, 1)}
    >>> [own.kind for own in with_depthwise(dict.fromkeys(layers, UnitLayout("filter")), layers).values()]
    ['filter', 'depthwise filter', 'filter']
    """
    filters = [name for name, own in layouts.items() if isinstance(own, UnitLayout) and own.kind == "filter"]
    found = dict(layouts)
    for name in filters[1:]:
        shape, own = shapes[name], found[name]
        fed = any(shapes[other][0] == shape[0] for other in filters if other != name)
        if shape[0] > 1 and shape[1] == 1 and prod(shape[2:]) > 1 and fed and isinstance(own, UnitLayout):
            found[name] = replace(own, kind=DEPTHWISE)
    return found


def _is_gated(name: str, shapes: Mapping[str, Shape]) -> bool:
    """Whether the layer that it would be multiplied with is there, in its shape."""
    own = _GATED.search(name)
    return bool(own) and shapes.get(name[: own.start()] + _PARTNERS[own[1]] + name[own.end() :]) == shapes[name]


def _sizes(layout: UnitLayout, shape: Shape) -> tuple[int, int]:
    """Units, and the inputs or channels that each reads."""
    own = shape[1:] if layout.stacked else shape
    return own[layout.axis], own[1 - layout.axis] * layout.groups
