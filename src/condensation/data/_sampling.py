"""Where targets are sampled: points in a cube, random or on an even grid; turns in the plane, random rotations."""

from typing import Annotated, Any

import numpy as np
from jaxtyping import Float

from .._memory import in_digits, require
from .._phrases import counted
from .._serialization import Count, Part
from ..errors import InputError, one_of
from ..seeds import Seed

_COPIES = 3  # of the samples while they, and their targets, are computed
SPACINGS = {"random": "uniform", "even": "evenly spaced"}  # in words
Spacing = Annotated[str, one_of("spacing", SPACINGS)]


class Vectors(Part):
    """Data of n samples with dim coordinates and one target each."""

    dim: Any
    n: Any

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of a sample."""
        return (self.dim,)

    @property
    def outputs(self) -> int:
        """Number of targets of a sample."""
        return 1

    @property
    def most_samples(self) -> int:
        """Number of samples."""
        return self.n


class InCube(Vectors):
    """Data whose samples are n points with dim coordinates from low to high. A dataclass adds these fields."""

    dim: Count
    n: Count
    low: float
    high: float
    spacing: Spacing

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.low, self.high
        if not -np.inf < low < high < np.inf:
            raise InputError(f"the range must go from low to a higher high, not {low} to {high}")
        if high - low == np.inf:
            raise InputError(f"the range from {low} to {high} is wider than numbers go: at most 1.7e308 will do")
        if self.spacing == "even" and self._side**self.dim != self.n:
            raise InputError(f"an even grid in {self.dim} dimensions needs n = k^{self.dim}, not n = {self.n}")

    @property
    def _side(self) -> int:
        return round(self.n ** (1 / self.dim))

    def points(self, seed: Seed) -> Float[np.ndarray, "samples dim"]:
        """The sampled points, not turned: uniform by the data seed, or an even grid for every seed."""
        drawn = f"drawing {in_digits(self.n)} samples of {counted(self.dim, 'coordinate')}"
        require(_COPIES * 8 * self.n * (self.dim + 1), drawn, "a smaller n would fit")
        if self.spacing == "random":
            return seed.data_stream().uniform(self.low, self.high, size=(self.n, self.dim))
        side = np.linspace(self.low, self.high, self._side)
        return np.stack(np.meshgrid(*[side] * self.dim, indexing="ij"), axis=-1).reshape(-1, self.dim)

    def describe_points(self, target: str, variable: str) -> str:
        """The points in words, as in ``80 points of TARGET, VARIABLE uniform on [-4, 2]``."""
        points = f"{counted(self.n, 'point')} of {target}"
        return f"{points}, {variable} {SPACINGS[self.spacing]} on [{self.low:g}, {self.high:g}]"


def describe_turn(turned: float) -> str:
    """A turn in words, behind a comma; nothing for none.

    >>> describe_turn(30)
    ', turned by 30 degrees'
    """
    return f", turned by {turned:g} degrees" if turned else ""


def check_turn(turned: float, dim: int) -> None:
    """Refuse an angle that is not finite, and a turn of points that are not in a plane."""
    if not np.isfinite(turned):
        raise InputError(f"points are turned by a finite number of degrees, not by {turned!r}")
    if turned and dim != 2:
        raise InputError(f"points are turned in a plane: turned = {turned:g} needs 2 coordinates, not {dim}")


def turn(x: Float[np.ndarray, "samples dim"], degrees: float) -> Float[np.ndarray, "samples dim"]:
    """Points of a plane, turned counterclockwise about the origin; by 0 degrees they stay what they are, bit for bit.

    >>> turn(np.array([[2.0, 0.0]]), 90).round(12)
    array([[0., 2.]])
    """
    if not degrees:
        return x
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return x @ np.array([[cos, sin], [-sin, cos]])


def rotation(dim: int, seed: int) -> Float[np.ndarray, "inputs inputs"]:
    """A random orthogonal matrix Q, uniform on the group.

    On inputs ``x @ Q.T`` gradient flow has the lines ``u @ Q.T``, sign descent and Adam have other ones. It is drawn by
    hand because ``scipy.stats.ortho_group`` gives other matrices for the same seed.

    >>> q = rotation(3, seed=0)
    >>> bool(np.allclose(q @ q.T, np.eye(3)))
    True
    """
    require(4 * 8 * dim**2, f"a rotation of {in_digits(dim)} coordinates", "fewer would fit, or data not rotated")
    q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))
    return q * np.sign(np.diagonal(r))
