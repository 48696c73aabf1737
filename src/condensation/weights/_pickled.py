"""Weights in PyTorch's own files, read without running the code that a pickle may hold."""

import pickle
import pickletools
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .._files import ADVICE, Stored
from .._memory import require
from ..errors import InputError
from ._files import no_weights

_OF_A_MODEL = (  # keys under which a model is saved, the surest first
    *("state_dict", "model_state_dict", "model_state", "model", "module", "net", "network", "weights"),
    *("params", "parameters"),
)
_PACKED = "._packed_params._packed_params"  # weight and bias of a quantised dense layer
_INSTEAD = "save model.state_dict() with torch.save, or the weights as .safetensors"
_SHOWN = 5  # keys that a note names


class _Beside:
    """Stands for what NumPy would make of a number, a type or an array beside the weights: none of it is made."""

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, _: object) -> None: ...


_NUMPYS = (
    *("numpy.dtype", "numpy.ndarray"),
    *(f"numpy.{core}.multiarray.{name}" for core in ("core", "_core") for name in ("scalar", "_reconstruct")),
)
_HARMLESS = ("torch.", "collections.OrderedDict", *_NUMPYS)


def open_pickled(path: Path) -> tuple[dict[str, Stored], tuple[str, ...]]:
    """The weights of a .pt, .pth, .bin or .ckpt file by name, and notes on where they were found.

    In a file that is more than a state dict, the dictionary is taken that is called as a model is, else all that hold
    weights, each with its key before the names; what is left out is told.
    """
    content = _load(path)
    if isinstance(content, torch.Tensor):
        return {path.stem: _stored(content)}, ()
    tensors, places = _state_dict(content, "", 2)
    if not tensors:
        tensors, places = _state_dict(content, "", 0)  # of vectors alone, as a shard may be
    left = list(_left_out(content, "", places)) if isinstance(content, Mapping) else []
    if not tensors:
        beside = f" ({_some(left)} not being called as weights are)" if left else ""
        raise InputError(f"{path} holds no tensors by name but a {type(content).__name__}{beside}: {_INSTEAD}")
    notes = [f"the weights are those under {_some(places)}"] if places != [""] else []
    if left:
        notes.append(f"other tensors of the file are left out: {_some(left)}")
    return {name: _stored(tensor) for name, tensor in tensors.items()}, tuple(notes)


def _some(names: list[str]) -> str:
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*(name or "the top" for name in names[:_SHOWN]), *more])


def _load(path: Path) -> Any:
    if not path.stat().st_size:
        raise InputError(f"{path} is empty")
    whole = zipfile.is_zipfile(path)
    with path.open("rb") as file:
        if file.read(2) == b"PK" and not whole:
            raise InputError(f"{path} is truncated: its end is missing, copy or save it again")
    if whole:
        members: list[zipfile.ZipInfo] = []
        with suppress(Exception), zipfile.ZipFile(path) as archive:  # a broken list is told when it is loaded
            members = archive.infolist()
        packed = (member for member in members if member.compress_type != zipfile.ZIP_STORED)  # PyTorch packs none
        require(sum(member.file_size for member in packed), f"unpacking {path}", ADVICE)
    else:  # an old file, which PyTorch cannot map
        require(path.stat().st_size, f"reading {path}", ADVICE)
    stand_ins: list[Any] = [(_Beside, name) for name in _NUMPYS]
    try:
        with warnings.catch_warnings(action="ignore"), torch.serialization.safe_globals(stand_ins):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=whole)
    except Exception as error:  # a foreign file fails in many ways
        problem = f"{path} cannot be read as a PyTorch file: it is broken, or of another kind"
        if isinstance(error, pickle.UnpicklingError):
            told = re.search(r"GLOBAL ([\w.]+)", str(error))
            name = told[1] if told else next((name for name in _names(path) if not name.startswith(_HARMLESS)), "")
            if name:
                problem = (
                    f"{path} was not read: it names {name}, which is not among what PyTorch loads safely, without "
                    f"running code from the file: {_INSTEAD}"
                )
        elif "TorchScript" in str(error):
            problem = f"{path} is a TorchScript archive, a program with its weights: {_INSTEAD}"
        raise InputError(problem) from error


def _names(path: Path) -> Iterator[str]:
    """What a pickle would import, told from its bytes; nothing is run."""
    words: list[str] = []
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                inside = [name for name in archive.namelist() if name.endswith("data.pkl")]
                content = archive.read(inside[0]) if inside else b""
        else:
            content = path.read_bytes()
        for code, value, _ in pickletools.genops(content):
            if code.name == "GLOBAL":
                yield str(value).replace(" ", ".")
            elif code.name == "STACK_GLOBAL" and len(words) > 1:
                yield ".".join(words[-2:])
            elif isinstance(value, str):
                words.append(value)
    except Exception:  # a broken archive fails in many ways; no pickle from here on
        return


def _state_dict(content: Any, place: str, axes: int) -> tuple[dict[str, torch.Tensor], list[str]]:
    """The weights in a dictionary by name, and the keys that lead to them.

    Only a dictionary with a tensor of so many axes has weights: others hold steps, losses and the like.
    """
    if not isinstance(content, Mapping):
        return {}, []
    own = _tensors(content)
    inside = {
        key: _state_dict(value, f"{place}.{key}" if place else key, axes)
        for key, value in content.items()
        if isinstance(key, str) and not no_weights(key)
    }
    inside = {key: state for key, state in inside.items() if state[0]}
    called = next((key for key in _OF_A_MODEL if key in inside), None)
    if called is not None:
        return inside[called]
    has_own = any(tensor.ndim >= axes for tensor in own.values())
    if not has_own and len(inside) == 1:
        return next(iter(inside.values()))
    tensors, places = (own, [place]) if has_own else ({}, [])
    for key, (more, where) in inside.items():
        tensors |= {f"{key}.{name}": tensor for name, tensor in more.items()}
        places += where
    return tensors, places


def _left_out(content: Mapping[Any, Any], place: str, places: list[str]) -> Iterator[str]:
    """The keys of tensors that are under none of some places."""
    for key, value in content.items():
        where = f"{place}.{key}" if place else str(key)
        if isinstance(value, Mapping) and any(f"{taken}.".startswith(f"{where}.") for taken in places):
            yield from _left_out(value, where, places)
        elif isinstance(value, torch.Tensor) or where.endswith(_PACKED):
            if place not in places and getattr(value, "ndim", 2) > 1:
                yield where
        elif _holds_tensors(value):
            yield where


def _holds_tensors(value: Any) -> bool:
    inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return isinstance(value, torch.Tensor) or any(map(_holds_tensors, inside))


def _tensors(content: Mapping[Any, Any]) -> dict[str, torch.Tensor]:
    """The tensors of a dictionary by name."""
    tensors: dict[str, Any] = {}
    for key, value in content.items():
        if not isinstance(key, str):
            continue
        if isinstance(value, torch.Tensor):
            tensors[key] = value
        elif key.endswith(_PACKED) and isinstance(value, tuple):
            layer = key.removesuffix(_PACKED)
            tensors |= {f"{layer}.{own}": part for own, part in zip(("weight", "bias"), value, strict=False)}
    return {name: tensor for name, tensor in tensors.items() if isinstance(tensor, torch.Tensor)}


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """A tensor's values, copied to the CPU; half precision as float32."""
    values = tensor.detach()
    if values.is_quantized:
        values = values.dequantize()
    if values.dtype not in (torch.float32, torch.float64):
        values = values.to(torch.float32)
    return values.cpu().numpy()


def _stored(tensor: torch.Tensor) -> Stored:
    shape, dtype = tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")
    reason = ""
    if tensor.layout is not torch.strided:
        reason = f"a sparse tensor ({tensor.layout}): it has to be made dense first"
    elif tensor.is_meta:
        reason = "on the meta device: it has no values"
    elif type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        reason = f"a {type(tensor).__name__}: it has to be turned into an ordinary tensor first"
    if reason:
        return Stored(shape, dtype, lambda: np.empty(0), reason=reason)
    place = (tensor.untyped_storage().data_ptr(), tensor.storage_offset(), shape, tensor.stride())
    floating = tensor.is_floating_point() or tensor.is_quantized
    return Stored(shape, dtype, lambda: as_array(tensor) if floating else tensor.numpy(), place if shape else None)
