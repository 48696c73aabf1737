"""A user's own arrays as data."""

import hashlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from ..errors import InputError
from ..seeds import Seed


@dataclass(frozen=True, eq=False)
class Arrays:
    """Samples x (n x inputs) and targets y (n x outputs, or n), the same for every seed.

    The arrays are copied and frozen; two such data are equal when all their numbers are.
    """

    kind: ClassVar[str] = "arrays"

    x: np.ndarray
    y: np.ndarray

    def __post_init__(self) -> None:
        x, y = (np.array(value, dtype=float) for value in (self.x, self.y))
        x, y = (value[:, None] if value.ndim == 1 else value for value in (x, y))
        if x.ndim != 2 or y.ndim != 2 or len(x) != len(y) or not len(x):
            raise InputError(f"x must be samples x inputs and y samples x outputs, not {x.shape} and {y.shape}")
        for name, value in (("x", x), ("y", y)):
            bad = ~np.isfinite(value).all(axis=1)
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
    def dim(self) -> int:
        """Number of inputs."""
        return self.x.shape[1]

    def draw(self, seed: Seed) -> tuple[Float[np.ndarray, "samples inputs"], Float[np.ndarray, "samples outputs"]]:
        """The arrays, whatever the seed."""
        return self.x, self.y

    def __plain__(self) -> dict[str, Any]:
        digests = {
            name: hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            for name, value in (("x_sha256", self.x), ("y_sha256", self.y))
        }
        return {"kind": self.kind, "x_shape": list(self.x.shape), "y_shape": list(self.y.shape)} | digests

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Arrays) and np.array_equal(self.x, other.x) and np.array_equal(self.y, other.y)

    def __hash__(self) -> int:
        return hash((self.x.tobytes(), self.y.tobytes()))
