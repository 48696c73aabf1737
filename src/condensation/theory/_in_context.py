r"""Linear regression in context, learned by linear attention: the levels at which its loss stands still.

With N pairs and a query of $N(0, \Lambda)$, tasks of $N(0, I)$ and the squared error, heads that have learned the m
largest eigenvalues leave
$L_m = \mathrm{tr} \Lambda - \sum_{d \le m} \lambda_d / (1 + (1 + \mathrm{tr} \Lambda/\lambda_d)/N)$.
Any heads with the output weights $o_h$, keys $k_h$ and queries $q_h$ have the expected loss
$\mathrm{tr} \Lambda - 2 \mathrm{tr}(M \Lambda^2) + \mathrm{tr}(M^T C M \Lambda)$, where $M = \sum_h o_h k_h q_h^T$ and
$C = (1 + 1/N) \Lambda^2 + \mathrm{tr} \Lambda\, \Lambda / N$ is the covariance of $\sum_j y_j x_j / N$.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from ..errors import InputError, brief, check_whole


def context_weights(eigenvalues: Sequence[float] | np.ndarray, context: int) -> Float[np.ndarray, " dim"]:
    r"""The best weight of each eigenvalue given: $1 / [\lambda_d (1 + (1 + \mathrm{tr} \Lambda/\lambda_d)/N)]$.

    >>> context_weights([1.0], 2)  # 1/(1 + 2/2)
    array([0.5])
    """
    values = _checked(eigenvalues, context)
    return 1 / (values * (1 + (1 + values.sum() / values) / context))


def context_losses(eigenvalues: Sequence[float] | np.ndarray, context: int) -> Float[np.ndarray, " dim_and_1"]:
    """The levels L_0 to L_D.

    >>> context_losses([0.4, 0.3, 0.2, 0.1], 31).round(3)
    array([1.   , 0.641, 0.377, 0.21 , 0.136])
    """
    values = np.sort(_checked(eigenvalues, context))[::-1]
    gains = values**2 * context_weights(values, context)
    return values.sum() - np.concatenate([[0.0], np.cumsum(gains)])


def context_loss(
    matrix: Float[np.ndarray, "dim dim"], eigenvalues: Sequence[float] | np.ndarray, context: int
) -> float:
    """The expected loss of heads whose keys read the mean of y x and whose queries read x by a matrix M.

    >>> best = np.diag(context_weights([0.3, 0.4], 31))  # in coordinates of the eigenvectors
    >>> print(round(context_loss(best, [0.3, 0.4], 31), 9), context_losses([0.3, 0.4], 31)[-1].round(9))
    0.061718806 0.061718806
    """
    values = _checked(eigenvalues, context)
    matrix = _of_heads(matrix, values)
    learned = 2 * (np.diag(matrix) * values**2).sum()
    return float(values.sum() - learned + np.einsum("d,de,e,de->", _read(values, context), matrix, values, matrix))


def context_gradient(
    matrix: Float[np.ndarray, "dim dim"], eigenvalues: Sequence[float] | np.ndarray, context: int
) -> Float[np.ndarray, "dim dim"]:
    """The gradient of that loss by M.

    >>> context_gradient(np.diag(context_weights([0.4, 0.3], 31)), [0.4, 0.3], 31).round(12) + 0.0
    array([[0., 0.],
           [0., 0.]])
    """
    values = _checked(eigenvalues, context)
    return 2 * (_read(values, context)[:, None] * _of_heads(matrix, values) * values - np.diag(values**2))


def _read(values: np.ndarray, context: int) -> np.ndarray:
    """Variances of the mean of y x along the eigenvectors."""
    return (1 + 1 / context) * values**2 + values.sum() * values / context


def _checked(eigenvalues: Sequence[float] | np.ndarray, context: int) -> np.ndarray:
    check_whole("context", context)
    values = np.asarray(eigenvalues, float)
    if values.ndim != 1 or not values.size or not (np.isfinite(values) & (values > 0)).all():
        raise InputError(f"eigenvalues are positive numbers, at least one, not {brief(eigenvalues)}")
    return values


def _of_heads(matrix: np.ndarray, values: np.ndarray) -> np.ndarray:
    own = np.asarray(matrix, float)
    if own.shape != (len(values), len(values)):
        raise InputError(f"the matrix of {len(values)} eigenvalues is square of that size, not {own.shape}")
    return own
