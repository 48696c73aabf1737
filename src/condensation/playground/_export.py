"""An experiment as a Python program."""

import dataclasses
import re
from typing import Any

from ..experiment import Experiment
from ..seeds import Seed

LINE = 100  # characters in a line


def as_program(experiment: Experiment, seed: Seed, layer: str) -> str:
    """A program that trains the experiment for one seed and counts the lines of a layer."""
    code = as_code(experiment)
    classes = re.findall(r"\b[A-Z]\w*(?=\()", code)  # formulas and activations have lower-case names
    names = sorted({"Seed", "find_lines", "train", *classes}, key=str.lower)
    return (
        f"from condensation import {', '.join(names)}\n\n"
        f"experiment = {code}\n"
        f"trajectory = train(experiment, seeds=[Seed({seed.data}, {seed.init})], progress=True)\n"
        f"last = int(trajectory.saved[-1])\n"
        f"lines = find_lines(trajectory.weights({layer!r}, last)[0])\n"
        'print(f"step {last}: loss {trajectory.loss[0, -1]:.4g}, {lines.count} lines, k_eff {lines.k_eff:.3g}")\n'
    )


def as_code(value: Any, indent: int = 0) -> str:
    """A value as the expression that makes it, without fields at their defaults.

    >>> from condensation import Dense, Init, Normal
    >>> as_code(Init(Normal(0.1))), as_code(Dense((1, 5, 1), "relu", bias=False))
    ('Init(hidden=Normal(std=0.1))', "Dense(widths=(1, 5, 1), activation='relu', bias=False)")
    """
    if isinstance(value, tuple):
        name, parts = "", [as_code(part, indent + 4) for part in value]
        flat = f"({', '.join(parts)}{',' * (len(parts) == 1)})"
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        name, parts = type(value).__name__, []
        for field in dataclasses.fields(value):
            content = getattr(value, field.name)
            if field.default is dataclasses.MISSING or content != field.default:
                parts.append(f"{field.name}={as_code(content, indent + 4)}")
        flat = f"{name}({', '.join(parts)})"
    else:
        return repr(value)
    if len(flat) + indent <= LINE:
        return flat
    return f"{name}(\n" + "".join(f"{' ' * (indent + 4)}{part},\n" for part in parts) + " " * indent + ")"
