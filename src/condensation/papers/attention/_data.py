"""Sequences and weights for the theory of attention, whose paper gives none: chosen."""

import numpy as np
from jaxtyping import Float

from ...theory import plateau_amplitude, query_key_matrix, value_direction

WIDTH, LENGTH, SAMPLES = 8, 5, 40
STRETCH = 4.0  # of the plane in which sequences are turned, so that its two singular values are the largest
Sequences = tuple[Float[np.ndarray, "samples length width"], Float[np.ndarray, " samples"]]


def random_sequences(rng: np.random.Generator) -> Sequences:
    """Tokens of N(0, I) and random labels of 1 and -1."""
    return rng.normal(size=(SAMPLES, LENGTH, WIDTH)), rng.choice([-1.0, 1.0], size=SAMPLES)


def one_top(rng: np.random.Generator) -> Sequences:
    """One set of random sequences for all seeds: F has one largest singular value."""
    return random_sequences(np.random.default_rng(0))


def two_top(rng: np.random.Generator) -> Sequences:
    """Sequences that stand four times, turned by right angles in a plane: F has two equal singular values there.

    F commutes with the turn, and what commutes with a turn of a plane is a multiple of a rotation there.
    """
    x, y = random_sequences(np.random.default_rng(0))
    x, y = x[: SAMPLES // 4], np.repeat(y[: SAMPLES // 4], 4)
    turned = []
    for cos, sin in ((1, 0), (0, 1), (-1, 0), (0, -1)):
        plane = STRETCH * x[..., :2] @ np.array([[cos, sin], [-sin, cos]])
        turned.append(np.concatenate([plane, x[..., 2:]], axis=-1))
    return np.stack(turned, axis=1).reshape(SAMPLES, LENGTH, WIDTH), y


def read_at_plateau(x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " width"]:
    """What outer weights on the line v read of a mean token, where they come to rest."""
    return (plateau_amplitude(x, y) or 1.0) * value_direction(x, y)[0]


def matrix_at_plateau(x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, "width width"]:
    """The matrix F there, known before training."""
    return query_key_matrix(x, y, read_at_plateau(x, y), WIDTH**-0.5)


def identity(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Values that pass on what they read."""
    return np.eye(shape[0], shape[1])


def read_one_top(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Output weights at the plateau of ``one_top``."""
    return read_at_plateau(*one_top(rng))[None]


def read_two_top(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Output weights at the plateau of ``two_top``."""
    return read_at_plateau(*two_top(rng))[None]
