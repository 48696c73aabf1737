"""Messages to the page: a JSON header and typed arrays in one binary frame.

    uint32 H | H bytes of JSON, padded to a multiple of 8 with the four before | arrays, each padded to a multiple of 8

All numbers are little-endian. JSON has no NaN: a number that is not finite is null in the header. In arrays it stays.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

TYPES = ("float32", "float64", "int8", "uint8", "int16", "uint16", "int32")


def pack(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray] | None = None) -> bytes:
    """A header and arrays as one message.

    >>> message = pack({"id": 1, "kind": "frame", "loss": float("nan")}, {"w": np.zeros((2, 3), np.float32)})
    >>> len(message) % 8, unpack(message)[0]["loss"], unpack(message)[1]["w"].shape
    (0, None, (2, 3))
    """
    packed = {name: np.ascontiguousarray(array) for name, array in (arrays or {}).items()}
    for name, array in packed.items():
        if str(array.dtype) not in TYPES:
            raise TypeError(f"the array {name} has the type {array.dtype}, which the page does not know")
    layout = [{"name": n, "type": str(a.dtype), "shape": list(a.shape)} for n, a in packed.items()]
    text = json.dumps(_finite({**header, "arrays": layout}), allow_nan=False).encode()
    parts = [len(text).to_bytes(4, "little"), text, b"\0" * (-(4 + len(text)) % 8)]
    for array in packed.values():
        parts += [array.tobytes(), b"\0" * (-array.nbytes % 8)]
    return b"".join(parts)


def unpack(message: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a message, as the page reads it."""
    length = int.from_bytes(message[:4], "little")
    header = json.loads(message[4 : 4 + length])
    place, arrays = 4 + length + -(4 + length) % 8, {}
    for entry in header.pop("arrays"):
        dtype, count = np.dtype(entry["type"]), math.prod(entry["shape"])
        arrays[entry["name"]] = np.frombuffer(message, dtype, count, place).reshape(entry["shape"])
        size = count * dtype.itemsize
        place += size + -size % 8
    return header, arrays


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
