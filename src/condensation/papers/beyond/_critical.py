r"""Critical points of small networks: how near one is, and the way to it.

With half the mean squared error the gradient is $-J^T r/n$. A residual r of this size could give a gradient of up to
$|J| |r|/n$, |J| being the largest singular value: the share of it says how far a point is from critical, whatever the
units of weights and loss.
"""

import numpy as np
from scipy.optimize import least_squares

from ...derivatives import as_parameters, as_vector, gradient, hessian, jacobian, trained_parameters
from ...networks import Model

NEWTON = 30  # steps at most
CALLS = 300  # of the search for a minimum


def gradient_share(model: Model, x: np.ndarray, y: np.ndarray) -> float:
    r"""The gradient's norm as a share of $|J| |r|/n$, the largest that a residual of this size could give."""
    slopes, residual = _jacobian(model, x), (y - model(x)).ravel()
    return float(np.linalg.norm(slopes.T @ residual) / (np.linalg.norm(slopes, 2) * np.linalg.norm(residual)))


def to_minimum(model: Model, x: np.ndarray, y: np.ndarray) -> Model:
    """The local minimum of the squared error that damped least squares come to from a model (trust region)."""
    start = as_vector(trained_parameters(model))
    found = least_squares(
        lambda vector: (_at(model, vector)(x) - y).ravel(),
        start,
        lambda vector: _jacobian(_at(model, vector), x),  # pyright: ignore[reportArgumentType]
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
        max_nfev=CALLS,
    )
    return _at(model, found.x)


def to_critical(model: Model, x: np.ndarray, y: np.ndarray) -> Model:
    """The critical point beside a model, by Newton's steps as long as the gradient gets smaller.

    Directions in which the loss is flat are left as they are (the pseudoinverse of the Hessian).
    """
    best = np.linalg.norm(as_vector(gradient(model, x, y)))
    for _ in range(NEWTON):
        slope, bends = as_vector(gradient(model, x, y)), hessian(model, x, y)
        step = np.linalg.lstsq((bends + bends.T) / 2, slope, rcond=1e-10)[0]
        further = _at(model, as_vector(trained_parameters(model)) - step)
        now = np.linalg.norm(as_vector(gradient(further, x, y)))
        if not now < best:
            break
        model, best = further, now
    return model


def moved(model: Model, vector: np.ndarray) -> Model:
    """A model with a vector added to its trained parameters."""
    return _at(model, as_vector(trained_parameters(model)) + vector)


def _at(model: Model, vector: np.ndarray) -> Model:
    return Model(model.network, as_parameters(model, vector))


def _jacobian(model: Model, x: np.ndarray) -> np.ndarray:
    """Samples and outputs x parameters."""
    return np.concatenate([part.reshape(len(x) * model.network.outputs, -1) for part in jacobian(model, x).values()], 1)
