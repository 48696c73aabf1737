"""Tensors of PyTorch and arrays of NumPy as a pickle describes them, rebuilt here from their bytes."""

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..._files import Stored
from ...errors import InputError
from .opened import check_shape, without_values
from .pickles import JOBLIB, PERSISTENT, StandIn, Unreadable, read_pickle

_STORAGES = {  # of PyTorch, by the type of their numbers
    **{"Double": "float64", "Float": "float32", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64"},
    **{"Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool"},
    **{"ComplexFloat": "complex64", "ComplexDouble": "complex128"},
    **{"QInt8": "qint8", "QUInt8": "quint8", "QInt32": "qint32", "Untyped": "uint8"},
}
_QUANTISED = {"qint8": "int8", "quint8": "uint8", "qint32": "int32"}
_TYPES = {*_STORAGES.values(), "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"} | {
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
}
_ITSELF = "torch.storage._load_from_bytes"  # of a storage that was saved by itself
_NUMPY_TYPE = re.compile(r"[<>=|]?([fiuc]\d{1,2}|b1|\?)")
_ARRAY = re.compile(r"numpy\.(core|_core)\.multiarray\._reconstruct|numpy\.ndarray")
_BUFFER = re.compile(r"numpy\.(core|_core)\.numeric\._frombuffer")
_SCALAR = re.compile(r"numpy\.(core|_core)\.multiarray\.scalar")
_JAX = re.compile(r"jax\.(_src|interpreters)[\w.]*\._?reconstruct_(device_)?array")

Content = Callable[[str], np.ndarray]  # the bytes of a storage


def dtype_of(name: str) -> np.dtype:
    """The type of NumPy, or of ml_dtypes, that has a name of PyTorch's."""
    import ml_dtypes

    plain = _QUANTISED.get(name, name)
    return np.dtype(getattr(ml_dtypes, plain, plain))


@dataclass(frozen=True)
class Storages:
    """The storages of a file.

    Attributes:
        content: gives the bytes of a storage, by its key.
        file: a name of the file, which tells storages of several files apart.
        swapped: the bytes of numbers are in big-endian order.
        embedded: what was read of storages that stand in the pickle itself, by the identity of their bytes.
    """

    content: Content
    file: str
    swapped: bool = False
    embedded: dict[int, tuple[str, str, int, np.ndarray]] = field(default_factory=dict)

    def array(self, value: Any) -> Stored | None:
        """The tensor or array that a stand-in describes; None where it describes something else."""
        if not isinstance(value, StandIn) or value.args is None:
            return None
        kind = value.name.rpartition(".")[2]
        if _ARRAY.fullmatch(value.name):
            return _numpy_array(value.state)
        if _BUFFER.fullmatch(value.name) and len(value.args) > 3:
            raw, dtype, shape, order = value.args[:4]
            return _numpy_array((1, shape, dtype, order == "F", raw))
        if _SCALAR.fullmatch(value.name) and len(value.args) == 2:
            return _numpy_array((1, (), value.args[0], False, value.args[1]))
        if value.name == JOBLIB and isinstance(value.state, dict) and value.items:
            told = value.state
            return _numpy_array((1, told.get("shape"), told.get("dtype"), told.get("order") == "F", value.items[0]))
        if _JAX.fullmatch(value.name) and len(value.args) > 2:
            return _numpy_array(value.args[2])
        if not value.name.startswith(("torch.", "__torch__.torch.")):
            return None
        if kind in ("_rebuild_parameter", "_rebuild_parameter_with_state") and value.args:
            return self.array(value.args[0])
        if kind in ("_rebuild_tensor", "_rebuild_tensor_v2") and len(value.args) >= 4:
            return self._tensor(*value.args[:4])
        if kind == "_rebuild_tensor_v3" and len(value.args) >= 7:
            return self._tensor(*value.args[:4], dtype=_name(value.args[6]))
        if kind == "_rebuild_qtensor" and len(value.args) >= 5:
            return self._quantised(*value.args[:5])
        if kind == "_rebuild_device_tensor_from_numpy" and value.args:
            return self.array(value.args[0])
        return _unusual(kind, value.args)

    def _tensor(self, storage: Any, offset: Any, size: Any, stride: Any, dtype: str = "") -> Stored:
        kind, key, count, kept = self._storage(storage)
        dtype = dtype or kind
        shape, strides = check_shape(_sizes(size)), _sizes(stride)
        if dtype not in _TYPES:
            return without_values(shape, dtype, f"of type {dtype}, which is not known here")
        if type(offset) is not int or offset < 0 or len(strides) != len(shape):
            raise InputError("a tensor's place in its storage is none")
        width, stored_width = dtype_of(dtype).itemsize, dtype_of(kind).itemsize
        last = offset + sum((n - 1) * step for n, step in zip(shape, strides, strict=True)) if 0 not in shape else -1
        if (last + 1) * width > count * stored_width:
            raise InputError("a tensor reaches beyond the end of its storage")

        def load() -> np.ndarray:
            known = dtype_of(dtype)
            content = self.content(key) if kept is None else kept
            if len(content) < (last + 1) * width:
                raise InputError("its values are missing: the file is truncated or broken")
            values = content[: len(content) // width * width].view(known.newbyteorder(">") if self.swapped else known)
            steps = tuple(step * width for step in strides)
            if 0 in shape:
                return np.empty(shape, known)
            made = np.lib.stride_tricks.as_strided(values[offset:], shape, steps, writeable=False)
            return made.astype(known) if self.swapped else made

        place = (self.file, key, offset, shape, strides)
        return Stored(shape, dtype, load, place if shape else None)

    def _storage(self, value: Any) -> tuple[str, str, int, np.ndarray | None]:
        """Type, key and number of entries of a storage, and its bytes where it was saved by itself, within a pickle."""
        raw = value.args[0] if isinstance(value, StandIn) and value.name == _ITSELF and value.args else None
        if not isinstance(raw, bytes):
            return *_storage(value), None
        if id(raw) not in self.embedded:
            file = io.BytesIO(raw)
            try:
                parts = [
                    read_pickle(file)[0] for _ in range(5)
                ]  # a number, versions, the machine, the storage, its key
            except Unreadable as error:
                raise InputError(f"its storage is broken: {error}") from error
            self.embedded[id(raw)] = (*_storage(parts[3]), np.frombuffer(raw, np.uint8)[file.tell() + 8 :])
        return self.embedded[id(raw)]

    def _quantised(self, storage: Any, offset: Any, size: Any, stride: Any, scheme: Any) -> Stored:
        whole = self._tensor(storage, offset, size, stride)
        kind = _name(scheme[0]) if isinstance(scheme, tuple) and scheme else ""
        if kind == "per_tensor_affine" and len(scheme) == 3:
            scale, zero = np.asarray(scheme[1], np.float32), np.asarray(scheme[2], np.float32)
        elif kind.startswith("per_channel_affine") and len(scheme) == 4 and type(axis := scheme[3]) is int:
            parts = [self.array(part) for part in scheme[1:3]]
            if not all(part is not None and part.shape == whole.shape[axis : axis + 1] for part in parts):
                return without_values(whole.shape, whole.dtype, "quantised, and its scales do not fit")
            spread = [1] * len(whole.shape)
            spread[axis] = -1

            def scaled() -> np.ndarray:
                scale, zero = (np.asarray(part.load(), np.float32).reshape(spread) for part in parts if part)
                return (whole.load().astype(np.float32) - zero) * scale

            return Stored(whole.shape, whole.dtype, scaled, whole.place)
        else:
            return without_values(whole.shape, whole.dtype, f"quantised in a way that is not known here ({kind})")
        return Stored(whole.shape, whole.dtype, lambda: (whole.load().astype(np.float32) - zero) * scale, whole.place)


def _unusual(kind: str, args: tuple[Any, ...]) -> Stored | None:
    """A tensor that has no plain values, with the reason."""
    if kind == "_rebuild_sparse_tensor":
        data = args[1] if len(args) > 1 and isinstance(args[1], tuple) else ()
        shape = next((part for part in data if isinstance(part, tuple) and all(type(n) is int for n in part)), ())
        layout = _name(args[0]) if args else ""
        return without_values(shape, "float32", f"a sparse tensor ({layout}): it has to be made dense first")
    if kind == "_rebuild_meta_tensor_no_storage" and len(args) > 1:
        return without_values(_sizes(args[1]), _name(args[0]), "on the meta device: it has no values")
    if kind in ("_rebuild_from_type_v2", "_rebuild_from_type", "_rebuild_wrapper_subclass") and args:
        named = next(
            (_name(part) for part in args[:2] if isinstance(part, StandIn) and "_rebuild" not in part.name), ""
        )
        reason = f"a {named or 'subclass of a tensor'}: it has to be turned into an ordinary tensor first"
        return without_values((), "float32", reason)
    return None


def _name(value: Any) -> str:
    """The last word of what a stand-in names; of a type, layout or scheme that was asked for by name, that name."""
    if isinstance(value, StandIn) and value.args and isinstance(value.args[0], str):
        return value.args[0].rpartition(".")[2]
    return value.name.rpartition(".")[2] if isinstance(value, StandIn) else ""


def storage_type(told: tuple[Any, ...]) -> str | None:
    """The type of the numbers of the storage that a persistent id names."""
    if (
        len(told) not in (5, 6)
        or told[0] != "storage"
        or type(told[4]) is not int
        or not isinstance(told[2], str | int)
    ):
        return None
    if len(told) == 6 and told[5] is not None:  # a view of another storage, as the oldest files have them
        return None
    return _STORAGES.get(_name(told[1]).removesuffix("Storage"))


def _storage(value: Any) -> tuple[str, str, int]:
    """Type, key and number of entries of a storage."""
    told = value.args[0] if isinstance(value, StandIn) and value.name == PERSISTENT and value.args else None
    kind = storage_type(told) if isinstance(told, tuple) else None
    if told is None or kind is None:
        raise InputError("a tensor has no storage of a kind that is known here")
    return kind, str(told[2]), told[4]


def _sizes(value: Any) -> tuple[int, ...]:
    if isinstance(value, StandIn) and value.args:  # torch.Size around a tuple
        value = value.args[0]
    if not isinstance(value, tuple | list) or not all(type(n) is int and 0 <= n < 2**62 for n in value):
        raise InputError("a tensor's sizes are none")
    return tuple(value)


def _numpy_array(state: Any) -> Stored | None:
    """The array that NumPy's state of a pickle describes: version, shape, type, order, bytes."""
    if not isinstance(state, tuple) or len(state) != 5:
        return None
    _, shape, described, fortran, raw = state
    shape = check_shape(_sizes(shape))
    dtype = numpy_type(described)
    if dtype is None:
        return None
    content = raw.encode("latin1") if isinstance(raw, str) else raw
    if not isinstance(content, bytes | bytearray) or len(content) != np.prod(shape, dtype=object) * dtype.itemsize:
        raise InputError("an array's bytes do not fit its shape")

    def load() -> np.ndarray:
        values = np.frombuffer(content, dtype).reshape(shape, order="F" if fortran else "C")
        return values.astype(dtype.newbyteorder("="), copy=False)

    return Stored(shape, dtype.name, load)


def objects_of(value: Any) -> list[Any] | None:
    """The entries of an array of Python objects."""
    if not isinstance(value, StandIn) or not _ARRAY.fullmatch(value.name):
        return None
    state = value.state
    return state[4] if isinstance(state, tuple) and len(state) == 5 and isinstance(state[4], list) else None


def numpy_type(value: Any) -> np.dtype | None:
    """The type that a pickle describes, if its entries are plain numbers."""
    if not isinstance(value, StandIn) or value.name not in ("numpy.dtype", "numpy.core.multiarray.dtype"):
        return None
    code = value.args[0] if value.args else ""
    order = value.state[1] if isinstance(value.state, tuple) and len(value.state) > 1 else "="
    if not isinstance(code, str) or not _NUMPY_TYPE.fullmatch(code) or order not in ("<", ">", "=", "|"):
        return None
    try:
        return np.dtype(code).newbyteorder(order)
    except TypeError:
        return None
