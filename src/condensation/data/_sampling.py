"""Where targets are sampled: points in a cube, random or on an even grid; turns in the plane, random rotations."""

import numpy as np
from jaxtyping import Float

from ..errors import InputError, check_whole, unknown_name
from ..seeds import Seed

SPACINGS = {"random": "uniform", "even": "evenly spaced"}  # in words


def check_spread(dim: int, n: int, low: float, high: float, spacing: str) -> None:
    """Refuse what no points can be drawn by."""
    if spacing not in SPACINGS:
        raise unknown_name("spacing", spacing, SPACINGS)
    check_whole("dim", dim)
    check_whole("n", n)
    if not -np.inf < low < high < np.inf:
        raise InputError(f"the range must go from low to a higher high, not {low} to {high}")
    if high - low == np.inf:
        raise InputError(f"the range from {low} to {high} is wider than numbers go: at most 1.7e308 will do")
    if spacing == "even" and round(n ** (1 / dim)) ** dim != n:
        raise InputError(f"an even grid in {dim} dimensions needs n = k^{dim}, not n = {n}")


def spread(dim: int, n: int, low: float, high: float, spacing: str, seed: Seed) -> Float[np.ndarray, "samples dim"]:
    """n points with coordinates from low to high: uniform by the data seed, or an even grid for every seed."""
    if spacing == "random":
        return seed.data_stream().uniform(low, high, size=(n, dim))
    side = np.linspace(low, high, round(n ** (1 / dim)))
    return np.stack(np.meshgrid(*[side] * dim, indexing="ij"), axis=-1).reshape(-1, dim)


def describe_spread(variable: str, low: float, high: float, spacing: str) -> str:
    """Where a variable is sampled, in words.

    >>> describe_spread("x_k", -4, 2, "random")
    'x_k uniform on [-4, 2]'
    """
    return f"{variable} {SPACINGS[spacing]} on [{low:g}, {high:g}]"


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


def rotation(dim: int, seed: int, *, bias: bool = False) -> Float[np.ndarray, "inputs inputs"]:
    """A random orthogonal matrix Q, uniform on the group; with a bias the last input stays.

    On inputs ``x @ Q.T`` gradient flow has the lines ``u @ Q.T``, sign descent and Adam have other ones. It is drawn by
    hand because ``scipy.stats.ortho_group`` gives other matrices for the same seed.

    >>> q = rotation(3, seed=0, bias=True)
    >>> bool(np.allclose(q @ q.T, np.eye(3))), q[2]
    (True, array([0., 0., 1.]))
    """
    check_whole("the dimension", dim, least=1 + bias)
    turned = dim - bias
    q, r = np.linalg.qr(np.random.default_rng(seed).normal(size=(turned, turned)))
    whole = np.eye(dim)
    whole[:turned, :turned] = q * np.sign(np.diagonal(r))
    return whole
