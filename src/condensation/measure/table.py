"""A table of measures: one row for each layer of a file of weights."""

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from .change import effective_rank
from .lines import find_lines


@dataclass(frozen=True)
class Row:
    """The measures of one layer; ``reason`` tells why there are none."""

    layer: str
    units: int = 0
    inputs: int = 0
    lines: int = 0
    orientations: int = 0
    cover: float = float("nan")
    k_eff: float = float("nan")
    effective_rank: float = float("nan")
    condensed: bool = False
    reason: str = ""


def measure_arrays(arrays: dict[str, np.ndarray], threshold: float | None = None) -> list[Row]:
    """Measure each array as a layer of units: its first axis counts the units, the others are their inputs.

    A vector NAME.bias that fits the array NAME.weight is its last input. What has no units is listed with the reason.

    >>> rows = measure_arrays({"a.weight": np.ones((20, 3)), "a.bias": np.ones(20), "b": np.ones(5)})
    >>> [(row.layer, row.lines, row.inputs, row.reason) for row in rows]
    [('a.weight', 1, 4, ''), ('b', 0, 0, 'a vector: it has no units')]
    """
    biases = {name: name.removesuffix("weight") + "bias" for name in arrays if name.endswith("weight")}
    used = {
        bias
        for name, bias in biases.items()
        if bias in arrays
        and arrays[bias].ndim == 1
        and arrays[name].ndim > 1
        and len(arrays[bias]) == len(arrays[name])
    }
    rows = []
    for name, array in arrays.items():
        if name in used:
            continue
        bias = arrays[biases[name]] if biases.get(name) in used else None
        rows.append(_measure(name, array, bias, threshold))
    return rows


def _measure(name: str, array: np.ndarray, bias: np.ndarray | None, threshold: float | None) -> Row:
    if array.ndim < 2:
        return Row(name, reason="a vector: it has no units" if array.ndim else "a single number")
    if not array.size:
        return Row(name, reason=f"empty: of shape {array.shape}")
    if array.dtype.kind != "f":
        return Row(name, reason=f"of type {array.dtype}, not floating-point")
    weights = array.reshape(len(array), -1)
    if bias is not None:
        weights = np.concatenate([weights, bias[:, None].astype(weights.dtype)], axis=1)
    units, inputs = weights.shape
    try:
        found = find_lines(weights, threshold=threshold)
        rank = effective_rank(weights)
    except InputError as error:
        return Row(name, units, inputs, reason=str(error))
    return Row(
        layer=name,
        units=units,
        inputs=inputs,
        lines=found.count,
        orientations=found.orientations,
        cover=found.cover,
        k_eff=found.k_eff,
        effective_rank=rank,
        condensed=found.condensed,
    )
