"""Arrays in files: .npy, .npz and .safetensors, read and written without pickle."""

import os
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from safetensors import SafetensorError, safe_open

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
        return {path.stem: found} if isinstance(found, np.ndarray) else {name: found[name] for name in found.files}
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def read_tensors(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    """Metadata and arrays of a safetensors file."""
    try:
        with safe_open(path, "np") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise InputError(f"there is no file {path}") from None
    except (OSError, SafetensorError, TypeError) as error:
        raise InputError(f"{path} cannot be read as safetensors: {error}") from error


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
