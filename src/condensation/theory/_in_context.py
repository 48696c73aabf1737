r"""Linear regression in context, learned by linear attention: the levels at which its loss stands still.

With N pairs and a query of $N(0, \Lambda)$, tasks of $N(0, I)$ and the squared error, heads that have learned the m
largest eigenvalues leave
$L_m = \mathrm{tr} \Lambda - \sum_{d \le m} \lambda_d / (1 + (1 + \mathrm{tr} \Lambda/\lambda_d)/N)$.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float


def context_weights(eigenvalues: Sequence[float] | np.ndarray, context: int) -> Float[np.ndarray, " dim"]:
    r"""The best weight of each eigenvector: $1 / [\lambda_d (1 + (1 + \mathrm{tr} \Lambda/\lambda_d)/N)]$.

    >>> context_weights([1.0], 2)  # 1/(1 + 2/2)
    array([0.5])
    """
    values = np.sort(np.asarray(eigenvalues, float))[::-1]
    return 1 / (values * (1 + (1 + values.sum() / values) / context))


def context_losses(eigenvalues: Sequence[float] | np.ndarray, context: int) -> Float[np.ndarray, " dim_and_1"]:
    """The levels L_0 to L_D.

    >>> context_losses([0.4, 0.3, 0.2, 0.1], 31).round(3)
    array([1.   , 0.641, 0.377, 0.21 , 0.136])
    """
    values = np.sort(np.asarray(eigenvalues, float))[::-1]
    gains = values**2 * context_weights(values, context)
    return values.sum() - np.concatenate([[0.0], np.cumsum(gains)])
