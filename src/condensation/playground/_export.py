"""An experiment as a Python program."""

import dataclasses
from typing import Any

from ..experiment import Experiment
from ..seeds import Seed

LINE = 100  # characters in a line


def as_program(experiment: Experiment, seed: Seed, layer: str) -> str:
    """A program that trains the experiment for one seed and counts the lines of a layer."""
    names = sorted({"Experiment", "Seed", "find_lines", "train", *_names(experiment)}, key=str.lower)
    return (
        f"from condensation import {', '.join(names)}\n\n"
        f"experiment = {as_code(experiment)}\n"
        f"trajectory = train(experiment, seeds=[Seed({seed.data}, {seed.init})], progress=True)\n"
        f"last = int(trajectory.saved[-1])\n"
        f"lines = find_lines(trajectory.weights({layer!r}, last)[0])\n"
        'print(f"step {last}: loss {trajectory.loss[0, -1]:.4g}, {lines.count} lines, k_eff {lines.k_eff:.3g}")\n'
    )


def as_code(value: Any, indent: int = 0) -> str:
    """A value as the expression that makes it; fields at their defaults are left out.

    >>> from condensation import Dense, Normal, Start
    >>> as_code(Init(Normal(0.1))), as_code(Dense((1, 5, 1), "relu", bias=False))
    ('Init(hidden=Normal(std=0.1))', "Dense(widths=(1, 5, 1), activation='relu', bias=False)")
    """
    if isinstance(value, tuple):
        inner = [as_code(part, indent + 4) for part in value]
        flat = f"({', '.join(inner)}{',' * (len(inner) == 1)})"
        return flat if len(flat) + indent <= LINE else _block("(", inner, ")", indent)
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return repr(value)
    parts = []
    for one in dataclasses.fields(value):
        given = getattr(value, one.name)
        if one.default is dataclasses.MISSING or given != one.default:
            parts.append(f"{one.name}={as_code(given, indent + 4)}")
    name = type(value).__name__
    flat = f"{name}({', '.join(parts)})"
    return flat if len(flat) + indent <= LINE else _block(f"{name}(", parts, ")", indent)


def _block(opening: str, parts: list[str], closing: str, indent: int) -> str:
    pad = " " * (indent + 4)
    return opening + "\n" + "".join(f"{pad}{part},\n" for part in parts) + " " * indent + closing


def _names(value: Any) -> set[str]:
    """Names of the classes that a value is made of, but for those at a field's default."""
    if isinstance(value, tuple):
        return set().union(*map(_names, value)) if value else set()
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return set()
    own = {type(value).__name__}
    for one in dataclasses.fields(value):
        given = getattr(value, one.name)
        if one.default is dataclasses.MISSING or given != one.default:
            own |= _names(given)
    return own
