"""A user's own arrays as data."""

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from .._files import read_arrays
from .._phrases import counted
from .._stored import StoredArrays, check_beside
from ..errors import InputError, unknown_name
from ..seeds import Seed


@dataclass(frozen=True, eq=False)
class Arrays(StoredArrays, kind="arrays"):
    """Samples x (n x inputs, or n x channels x height x width) and targets y (n x outputs, or n), for every seed.

    The arrays are copied and frozen; two such data are equal when all their numbers are. ``Arrays.load`` reads them
    from a file, whose name an experiment file then carries.
    """

    x: np.ndarray
    y: np.ndarray
    file: str | None = None

    def __post_init__(self) -> None:
        if np.iscomplexobj(self.x) or np.iscomplexobj(self.y):
            raise InputError("x and y must be arrays of real numbers, not of complex ones")
        try:
            x, y = (np.array(value, dtype=float) for value in (self.x, self.y))
        except (ValueError, TypeError) as error:
            raise InputError(f"x and y must be arrays of numbers: {error}") from error
        x, y = (value[:, None] if value.ndim == 1 else value for value in (x, y))
        if x.ndim < 2 or y.ndim != 2 or len(x) != len(y) or not len(x):
            raise InputError(f"x must be samples x inputs and y samples x outputs, not {x.shape} and {y.shape}")
        for name, value in (("x", x), ("y", y)):
            bad = ~np.isfinite(value.reshape(len(value), -1)).all(axis=1)
            if bad.any():
                raise InputError(
                    f"{name} holds NaN or Inf in {bad.sum()} of {len(value)} samples, first in {bad.argmax()}"
                )
            value.setflags(write=False)
            object.__setattr__(self, name, value)

    @property
    def n(self) -> int:
        """Number of samples."""
        return len(self.x)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of a sample."""
        return self.x.shape[1:]

    @property
    def outputs(self) -> int:
        """Number of targets of a sample."""
        return self.y.shape[1]

    @property
    def most_samples(self) -> int:
        """Number of samples."""
        return self.n

    def draw(self, seed: Seed) -> tuple[Float[np.ndarray, "samples ..."], Float[np.ndarray, "samples outputs"]]:
        """The arrays, whatever the seed."""
        return self.x, self.y

    def describe(self) -> str:
        """The shapes in words, and the file where there is one.

        >>> Arrays(np.zeros((80, 5)), np.zeros(80)).describe()
        '80 samples of 5 inputs and one target, own arrays'
        """
        sides = " x ".join(map(str, self.x.shape[1:]))
        inputs = counted(self.x.shape[1], "input") if self.x.ndim == 2 else f"{sides} inputs"
        samples = f"{counted(self.n, 'sample')} of {inputs} and {counted(self.y.shape[1], 'target')}"
        return f"{samples}, {'own arrays' if self.file is None else f'from {self.file}'}"

    @property
    def origin(self) -> dict[str, Any]:
        """The file, if the arrays were loaded from one."""
        return {} if self.file is None else {"file": self.file}

    def at(self, file: str) -> "Arrays":
        """The same arrays, as loaded from a file."""
        return replace(self, file=file)

    def tensors(self) -> dict[str, np.ndarray]:
        """Samples and targets by name."""
        return {"x": self.x, "y": self.y}

    @classmethod
    def load(cls, file: str | Path, folder: str | Path = ".") -> "Arrays":
        """The arrays ``x`` and ``y`` of an .npz or .safetensors file; the name is kept relative to ``folder``."""
        path = Path(folder) / file
        arrays = read_arrays(path)
        if not {"x", "y"} <= arrays.keys():
            raise InputError(f"the data file {path} must hold arrays x and y, not {', '.join(arrays)}")
        return cls(arrays["x"], arrays["y"], str(file))

    @classmethod
    def __from_plain__(cls, plain: dict[str, Any], place: str, folder: Path) -> "Arrays":
        known = ("kind", "file", "x_shape", "y_shape", "x_sha256", "y_sha256")
        for name in plain:
            if name not in known:
                raise unknown_name(f"field in {place}", name, known)
        if not isinstance(plain.get("file"), str):
            raise InputError(f"missing in {place}: file (an .npz or .safetensors file with arrays x and y)")
        check_beside(place, plain["file"], folder)
        arrays = cls.load(plain["file"], folder)
        for name, value in arrays.__plain__().items():
            if plain.get(name, value) != value:
                raise InputError(
                    f"the data file {plain['file']} is not the one this experiment used: its {name} differs"
                )
        return arrays

    def __plain__(self) -> dict[str, Any]:
        shapes = {"x_shape": list(self.x.shape), "y_shape": list(self.y.shape)}
        return {"kind": self.kind} | shapes | self._digests

    @cached_property
    def _digests(self) -> dict[str, str]:
        return {
            name: hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            for name, value in (("x_sha256", self.x), ("y_sha256", self.y))
        }
