"""How far a function of one variable is a polynomial of a given order."""

import numpy as np
from jaxtyping import Float


def fit_polynomial(
    x: Float[np.ndarray, " points"], values: Float[np.ndarray, " points"], order: int
) -> tuple[Float[np.ndarray, " points"], float]:
    """The best polynomial of an order through some values, and its distance relative to their own variation.

    >>> x = np.linspace(-1, 1.5, 251)
    >>> round(fit_polynomial(x, x**2, 2)[1], 12), round(fit_polynomial(x, x**2, 1)[1], 2)
    (0.0, 0.79)
    """
    fit = np.polynomial.Polynomial.fit(x, values, order)(x)
    size = np.linalg.norm(values - values.mean())
    return fit, float(np.linalg.norm(values - fit) / size) if size > 0 else float("nan")
