"""Quantised weights of a checkpoint: dequantised where a scale stands beside them, told where they are packed."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from .._files import Stored
from ..errors import InputError

_SCALES = ("weight_scale", "weight_scale_inv", "SCB")  # factors; SCB is the largest size in a row, which is 127
_BLOCK = 128  # units and inputs of a block, of which the last may be smaller
_PACKED = {  # names of packed weights, who packs so, and the names beside them
    "qweight": ("GPTQ or AWQ", ("qzeros", "scales", "g_idx")),
    "weight_packed": ("compressed-tensors", ("weight_scale", "weight_shape", "weight_zero_point", "weight_g_idx")),
}
_FOUR_BIT = ".quant_state.bitsandbytes__"
_FIRST = "it has to be dequantised first"


def dequantised(arrays: Mapping[str, Stored]) -> dict[str, Stored]:
    """The arrays with quantised weights read as floats; what cannot be dequantised, and every scale, has a reason."""
    weights = dict(arrays)
    for name in arrays:
        layer, _, own = name.rpartition(".")
        beside = {key: f"{layer}.{key}" if layer else key for key in (*_SCALES, "weight_zero_point", "weight_format")}
        if own in _PACKED:
            who, others = _PACKED[own]
            _give_reason(weights, [name], f"packed by {who}, several weights a number: {_FIRST}")
            _give_reason(weights, [f"{layer}.{other}" if layer else other for other in others], f"belongs to {name}")
        elif _FOUR_BIT in name:
            weight = name.partition(_FOUR_BIT)[0]
            _give_reason(weights, [weight], f"packed by bitsandbytes, two weights a byte: {_FIRST}")
            _give_reason(weights, [other for other in arrays if other.startswith(f"{weight}.")], f"belongs to {weight}")
        elif (
            own == "weight"
            and arrays[name].dtype.startswith(("int8", "float8"))
            and (scale := next((beside[key] for key in _SCALES if beside[key] in arrays), ""))
        ):
            zero = beside["weight_zero_point"]
            weights[name] = _scaled(arrays[name], scale, arrays[scale], arrays.get(zero))
            _give_reason(weights, [scale, zero, beside["weight_format"]], f"belongs to {name}")
        elif own.endswith(("_blocks", "_scales")) and arrays[name].dtype == "uint8":
            _give_reason(weights, [name], f"packed, several weights a byte: {_FIRST}")
    return weights


def is_quantised(stored: Stored) -> bool:
    """Whether numbers were stored as few levels, of eight bits or less each.

    >>> kinds = ("float32 from int8", "bfloat16", "float8_e5m2", "float64")
    >>> [is_quantised(Stored((2, 2), kind, lambda: np.ones((2, 2)))) for kind in kinds]
    [True, False, True, False]
    """
    _, made, source = stored.dtype.partition(" from ")
    return stored.dtype.startswith(("q", "float4_", "float6_", "float8_")) or (
        bool(made) and source not in ("f16", "bf16", "float16", "bfloat16")
    )


def _give_reason(weights: dict[str, Stored], names: list[str], reason: str) -> None:
    for name in names:
        if name in weights:
            weights[name] = replace(weights[name], reason=reason)


def _scaled(weight: Stored, scale_name: str, scale: Stored, zero: Stored | None) -> Stored:
    if len(weight.shape) != 2 or not scale.floating:
        reason = f"of type {weight.dtype} and shape {weight.shape}, which {scale_name} cannot scale"
        return replace(weight, reason=reason)
    try:
        _spread(np.ones(scale.shape), weight.shape)
    except InputError as error:
        return replace(weight, reason=f"quantised, and {scale_name} does not fit: {error}")

    def load() -> np.ndarray:
        factor = np.asarray(scale.read(), np.float32) / (127 if scale_name.endswith("SCB") else 1)
        values = weight.read().astype(np.float32)
        if zero is not None:
            values -= _spread(np.asarray(zero.read(), np.float32), weight.shape)
        return values * _spread(np.asarray(factor), weight.shape)

    return Stored(weight.shape, f"float32 from {weight.dtype}", load)


def _spread(scale: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """A scale as an array that multiplies the weights: of the whole, of each row, or of each block.

    >>> _spread(np.array([1.0, 2.0]), (2, 5)).shape, _spread(np.ones((2, 2)), (130, 200)).shape
    ((2, 1), (130, 200))
    """
    if scale.size == 1:
        return scale.reshape(1, 1)
    misfit = InputError(f"a scale of shape {scale.shape} for weights of shape {shape}")
    if scale.ndim == 1 and len(scale) == shape[0]:
        return scale[:, None]
    if scale.ndim != 2:
        raise misfit
    for axis, (count, entries) in enumerate(zip(scale.shape, shape, strict=True)):
        block = _BLOCK if count == -(-entries // _BLOCK) else entries // count
        if count > 1 and -(-entries // max(block, 1)) != count:
            raise misfit
        if 1 < count < entries:
            scale = np.repeat(scale, block, axis=axis)
    return scale[: shape[0], : shape[1]]
