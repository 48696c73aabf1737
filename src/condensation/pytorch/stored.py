"""Weights in PyTorch's own files, read without running the code that a pickle may hold."""

import pickle
import pickletools
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..errors import InputError
from ..files import Stored
from .units import as_array

_NOT_WEIGHTS = re.compile(r"optim|sched|scaler|callback|loops|rng|amp$", re.IGNORECASE)
_PACKED = "._packed_params._packed_params"  # weight and bias of a quantised dense layer
_INSTEAD = "save model.state_dict() with torch.save, or the weights as .safetensors"
_HARMLESS = ("torch.", "torch ", "collections.OrderedDict")


def open_pickled(path: Path) -> tuple[dict[str, Stored], tuple[str, ...]]:
    """The weights of a .pt, .pth, .bin or .ckpt file by name, and notes on where they were found.

    A file that is more than a state dict is searched for the dictionary with the most tensors; states of optimizers
    are passed over.
    """
    content = _load(path)
    if isinstance(content, torch.Tensor):
        return {path.stem: _stored(content)}, ()
    found = dict(_dictionaries(content, ""))
    if not found:
        raise InputError(f"{path} holds no tensors by name but a {type(content).__name__}: {_INSTEAD}")
    where = max(found, key=lambda place: len(found[place]))
    others = [f"{place or 'the top'} ({len(inside)})" for place, inside in found.items() if place != where]
    notes = [f"the weights are those under {where!r}"] if where else []
    if others:
        notes.append(f"tensors elsewhere in the file are left out: {', '.join(others[:5])}")
    return {name: _stored(tensor) for name, tensor in found[where].items()}, tuple(notes)


def _load(path: Path) -> Any:
    if not path.stat().st_size:
        raise InputError(f"{path} is empty")
    whole = zipfile.is_zipfile(path)
    with path.open("rb") as file:
        if file.read(2) == b"PK" and not whole:
            raise InputError(f"{path} is truncated: its end is missing, copy or save it again")
    try:
        with warnings.catch_warnings(action="ignore"):
            return torch.load(path, map_location="cpu", weights_only=True, mmap=whole)
    except pickle.UnpicklingError as error:
        name = _refused(path, str(error))
        if not name:
            raise InputError(f"{path} cannot be read as a PyTorch file: it is broken, or of another kind") from error
        raise InputError(
            f"{path} was not read: it names {name}, code that reading would run, as whole pickled models and attacks "
            f"do: {_INSTEAD}"
        ) from error
    except Exception as error:  # a foreign file fails in many ways
        if "TorchScript" in str(error):
            raise InputError(f"{path} is a TorchScript archive, a program with its weights: {_INSTEAD}") from error
        said = str(error).partition("\n")[0].partition(". ")[0] or type(error).__name__
        raise InputError(f"{path} cannot be read as a PyTorch file: {said}") from error


def _refused(path: Path, message: str) -> str:
    """The name in a pickle that was refused: told by PyTorch, else the first one that is not PyTorch's own."""
    told = re.search(r"GLOBAL ([\w.]+)", message)
    return told[1] if told else next((name for name in _names(path) if not name.startswith(_HARMLESS)), "")


def _names(path: Path) -> Iterator[str]:
    """What a pickle would import, told from its bytes; nothing is run."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            inside = [name for name in archive.namelist() if name.endswith("data.pkl")]
            content = archive.read(inside[0]) if inside else b""
    else:
        content = path.read_bytes()
    said: list[str] = []
    try:
        for code, value, _ in pickletools.genops(content):
            if code.name == "GLOBAL":
                yield str(value).replace(" ", ".")
            elif code.name == "STACK_GLOBAL" and len(said) > 1:
                yield ".".join(said[-2:])
            elif isinstance(value, str):
                said.append(value)
    except ValueError:
        return  # no pickle from here on


def _dictionaries(content: Any, place: str) -> Iterator[tuple[str, dict[str, torch.Tensor]]]:
    """All dictionaries with tensors in them, by the keys that lead there."""
    if not isinstance(content, Mapping):
        return
    tensors: dict[str, torch.Tensor] = {}
    for key, value in content.items():
        if not isinstance(key, str):
            continue
        if isinstance(value, torch.Tensor):
            tensors[key] = value
        elif key.endswith(_PACKED) and isinstance(value, tuple):
            layer = key.removesuffix(_PACKED)
            tensors |= {f"{layer}.{own}": part for own, part in zip(("weight", "bias"), value, strict=False)}
    if tensors:
        yield place, {name: tensor for name, tensor in tensors.items() if isinstance(tensor, torch.Tensor)}
    for key, value in content.items():
        if isinstance(key, str) and not _NOT_WEIGHTS.search(key):
            yield from _dictionaries(value, f"{place}.{key}" if place else key)


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
