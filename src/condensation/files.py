"""Arrays in files: .npy, .npz and .safetensors, read and written without pickle."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

from .errors import InputError, unknown_name

SUFFIXES = (".npy", ".npz", ".safetensors")


def read_arrays(path: str | Path) -> dict[str, np.ndarray]:
    """All arrays of a file by name (an .npy file has one, named by the file)."""
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise unknown_name("kind of file", path.suffix or path.name, SUFFIXES)
    if path.suffix == ".safetensors":
        about, tensors = read_tensors(path)
        if "condensation" in about:
            raise InputError(f"{path} is one seed of a run; its folder {path.parent} is what can be read")
        return tensors
    try:
        found = np.load(path, allow_pickle=False)
        arrays = {path.stem: found} if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except Exception as error:  # a broken archive fails in many ways
        raise InputError(f"{path} cannot be read: {type(error).__name__}: {error}") from error
    if not arrays:
        raise InputError(f"{path} holds no arrays")
    return arrays


def read_tensors(path: Path, arrays: bool = True) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Metadata of a safetensors file, and its arrays if they are wanted; bfloat16 is read as float32."""
    try:
        with safe_open(path, "np") as file:
            about = file.metadata() or {}
            names = list(file.keys()) if arrays else []
            return about, {name: _tensor(file, path, name) for name in names}
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except Exception as error:  # a foreign file fails in many ways
        raise InputError(f"{path} cannot be read as safetensors: {error}") from error


def _tensor(file: Any, path: Path, name: str) -> np.ndarray:
    if file.get_slice(name).get_dtype() != "BF16":
        return file.get_tensor(name)
    with path.open("rb") as raw:  # NumPy has no bfloat16: the upper half of a float32
        length = int.from_bytes(raw.read(8), "little")
        entry = json.loads(raw.read(length))[name]
        raw.seek(8 + length + entry["data_offsets"][0])
        words = np.frombuffer(raw.read(entry["data_offsets"][1] - entry["data_offsets"][0]), np.uint16)
    return (words.astype(np.uint32) << 16).view(np.float32).reshape(entry["shape"])


def make_folder(path: Path) -> None:
    """Make a folder, and those above it, if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {path} cannot be made: {error.strerror}") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror}; what was saved before stays") from error
