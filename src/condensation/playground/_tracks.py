"""The arrays of many frames as small whole numbers: what a recording keeps of them.

- Weights are kept to ``WEIGHT_BITS`` bits after the leading one, as the numbers that their float32 bits are.
- Outputs of networks are kept to ``LEVELS`` levels up to the largest of their frame: they are drawn, not read.
- ``DERIVED`` arrays are left out; the page computes them from the weights.

The whole numbers are replaced by their differences over time or over the grid, which are small, and written byte by
byte: first the lowest byte of all, then the next one. ``page/tracks.js`` reads them.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

DERIVED = ("cos", "xy", "angle", "amplitude", "curve")
OUTPUTS = ("f", "poly", "reduced", "fit")
WEIGHT_BITS, FLOAT_BITS = 14, 23
LEVELS = 2000
WIDTH = 4  # bytes of a number before compression

Track = dict[str, Any]


def encode(frames: Sequence[dict[str, np.ndarray]]) -> tuple[list[Track], dict[str, np.ndarray]]:
    """How each array is written, and its bytes.

    >>> tracks, arrays = encode([{"w": np.ones((2, 3), np.float32)}, {"w": np.ones((2, 3), np.float32)}])
    >>> tracks[0]["rows"], arrays["w"].shape, decode(tracks, arrays)[1]["w"].tolist()
    ([0, 0], (4, 6), [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    """
    names = dict.fromkeys(name for frame in frames for name in frame if name not in DERIVED)
    tracks, arrays = [], {}
    for name in names:
        has = [name in frame for frame in frames]
        values = np.stack([frame[name] for frame in frames if name in frame])
        rows = np.where(has, np.cumsum(has) - 1, -1)
        if (values == values[:1]).all():
            values, rows = values[:1], np.minimum(rows, 0)
        track, whole = _whole(name, values)
        tracks.append({"name": name, "rows": rows.tolist(), **track})
        arrays[name] = _planes(_differences(whole, track["orders"]))
    return tracks, arrays


def decode(tracks: Sequence[Track], arrays: dict[str, np.ndarray]) -> list[dict[str, np.ndarray]]:
    """The arrays of each frame, without the derived ones, as the page reads them."""
    frames: list[dict[str, np.ndarray]] = [{} for _ in tracks[0]["rows"]] if tracks else []
    for track in tracks:
        whole = _joined(arrays[track["name"]], [max(track["rows"]) + 1, *track["shape"]])
        for axis, order in enumerate(track["orders"]):
            for _ in range(order):
                whole = np.cumsum(whole, axis=axis, dtype=np.int32)
        if "drop" in track:
            values = (whole << track["drop"]).view(np.float32)
        elif "scales" in track:
            scales = np.array(track["scales"]).reshape(-1, *[1] * (whole.ndim - 1))
            values = (whole * scales).astype(np.float32)
        else:
            values = whole.astype(track["type"])
        for frame, row in zip(frames, track["rows"], strict=True):
            if row >= 0:
                frame[track["name"]] = values[row]
    return frames


def _whole(name: str, values: np.ndarray) -> tuple[Track, np.ndarray]:
    """How an array over time is written, and its whole numbers."""
    shape, inner = list(values.shape[1:]), values.ndim - 1
    if values.dtype.kind in "iu":
        track = {"type": str(values.dtype), "shape": shape, "orders": [1] + [0] * inner}
        return track, values.astype(np.int32)
    if values.dtype != np.float32:
        raise TypeError(f"the array {name} has the type {values.dtype}, which a recording does not keep")
    if name in OUTPUTS and np.isfinite(values).all():
        largest = np.abs(values.reshape(len(values), -1)).max(axis=1, initial=0).astype(float)
        scales = np.array([float(f"{one / LEVELS:.4g}") for one in np.where(largest > 0, largest, 1)])
        track = {"type": "float32", "shape": shape, "orders": [0] + [1] * inner, "scales": scales.tolist()}
        return track, np.rint(values / scales.reshape(-1, *[1] * inner)).astype(np.int32)
    drop = FLOAT_BITS - WEIGHT_BITS if np.isfinite(values).all() else 0
    bits = np.ascontiguousarray(values).view(np.uint32).astype(np.int64)
    half = 1 << (drop - 1) if drop else 0
    track = {"type": "float32", "shape": shape, "orders": [2] + [0] * inner, "drop": drop}
    return track, ((bits + half) >> drop).astype(np.uint32).view(np.int32)


def _differences(whole: np.ndarray, orders: Sequence[int]) -> np.ndarray:
    with np.errstate(over="ignore"):  # they wrap around, there and back
        for axis, order in enumerate(orders):
            for _ in range(order):
                whole = np.diff(whole, axis=axis, prepend=np.zeros_like(whole.take([0], axis)))
    return whole


def _planes(whole: np.ndarray) -> np.ndarray:
    """The bytes of whole numbers, lowest first; signs stand in the lowest bit, so that high bytes are zero."""
    folded = np.ascontiguousarray((whole << 1) ^ (whole >> 31)).reshape(-1)
    return np.ascontiguousarray(folded.astype("<i4").view(np.uint8).reshape(-1, WIDTH).T)


def _joined(planes: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    folded = np.ascontiguousarray(planes.T).view("<u4").reshape(shape)
    return (folded >> 1).astype(np.int32) ^ -(folded & 1).astype(np.int32)
