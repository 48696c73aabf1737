r"""Attention from small weights: the line of the values, and the matrix that queries and keys follow.

For $f = \tanh(\mathrm{softmax}(c X W_Q W_K^T X^T) X W_V W_1) W_2$ at the last token, labels $y_i$ of 1 and -1 and the
loss $\frac1n \sum_i e^{-y_i f_i}$, gradient flow from small weights has two stages. First the outer weights grow: with
$v \propto \sum_i y_i \sum_j X_{ij}$ they ascend $E = v^T W_V W_1 W_2$, and the columns of $W_V$ turn to $\pm v$. Then
$\dot W_Q = F W_K$, $\dot W_K = F^T W_Q$, so that queries and keys turn to the top singular vectors of F.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar

from ..errors import InputError

LARGEST = 1e3  # amplitude up to which the plateau is sought, over that of the mean tokens
ROUNDING = 1e-12  # a sum this much smaller than its parts is what rounding leaves of zero


def value_direction(x: ArrayLike, y: ArrayLike) -> tuple[Float[np.ndarray, " width"], float]:
    r"""The unit vector v along $\sum_i y_i \bar X_i$ with the mean tokens $\bar X_i$, and the norm of their mean.

    >>> value_direction([[[3.0, 0.0], [3.0, 8.0]]], [1.0])
    (array([0.6, 0.8]), 5.0)
    """
    tokens, labels = _sequences(x, y)
    means = tokens.mean(axis=1)
    mean = labels @ means / len(tokens)
    size = float(np.linalg.norm(mean))
    if size <= ROUNDING * np.mean(np.abs(labels)[:, None] * np.linalg.norm(tokens, axis=2)):
        raise InputError("the tokens' means, weighted by the labels, add up to zero: the values have no line to go to")
    return mean / size, size


def query_key_matrix(x: ArrayLike, y: ArrayLike, read: ArrayLike, scale: float) -> Float[np.ndarray, "width width"]:
    r"""The matrix F: $\frac{c}{ns} \sum_i y_i e^{-y_i \bar X_i g} X_{is} g^T \sum_j X_{ij}^T (X_{ij} - \bar X_i)$.

    It is zero where tokens of a sequence are equal, as attention then reads the same however it is distributed.

    Args:
        x: samples x tokens x coordinates.
        y: labels of 1 and -1.
        read: $g = W_V W_1 W_2$, what the output reads of a mean token (the activation left out).
        scale: the factor c of the scores.

    >>> query_key_matrix([[[1.0, 0.0], [0.0, 1.0]]], [1.0], [1.0, 0.0], 2.0).round(3).tolist()
    [[0.0, 0.0], [0.303, -0.303]]
    """
    tokens, labels = _sequences(x, y)
    g = np.asarray(read, float)
    if g.shape != tokens.shape[2:]:
        raise InputError(f"read must have a number for each of the {tokens.shape[2]} coordinates, not {g.shape}")
    mean = tokens.mean(axis=1)
    factors = labels * np.exp(-labels * (mean @ g))
    spread = np.einsum("ijk,ij->ik", tokens, (tokens - mean[:, None]) @ g)
    matrix = np.einsum("i,ik,il->kl", factors, tokens[:, -1], spread)
    lengths = np.linalg.norm(tokens, axis=2)
    parts = np.abs(factors) @ (lengths[:, -1] * (lengths**2).sum(axis=1)) * np.linalg.norm(g)
    if np.linalg.norm(matrix) <= ROUNDING * parts:
        return np.zeros_like(matrix)
    return scale / (len(tokens) * tokens.shape[1]) * matrix


def plateau_amplitude(x: ArrayLike, y: ArrayLike) -> float | None:
    r"""The a for which $\frac1n \sum_i e^{-a y_i \bar X_i v}$ is least: where outer weights on one line come to rest.

    None where v separates the labels: then the loss has no least value.
    """
    (tokens, labels), (v, _) = _sequences(x, y), value_direction(x, y)
    margins = labels * (tokens.mean(axis=1) @ v)
    if (margins >= 0).all():
        return None
    size = np.abs(margins).max()
    margins = margins / size
    found = minimize_scalar(
        lambda a: np.exp(np.clip(-a * margins, -700, 700)).mean(), (0, 1), bounds=(0, LARGEST), method="bounded"
    )
    return float(found.x / size)


def _sequences(x: ArrayLike, y: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    tokens, labels = np.asarray(x, float), np.asarray(y, float).reshape(-1)
    if tokens.ndim != 3 or len(labels) != len(tokens):
        raise InputError(
            f"x must be samples x tokens x coordinates and y a label each, not {tokens.shape} and {labels.shape}"
        )
    if not tokens.size or not (np.isfinite(tokens).all() and np.isfinite(labels).all()):
        raise InputError("tokens and labels must be finite numbers, of at least one sample")
    return tokens, labels
