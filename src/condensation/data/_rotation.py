"""Random rotations of inputs, by hand because ``scipy.stats.ortho_group`` draws other matrices for the same seed."""

import numpy as np
from jaxtyping import Float

from ..errors import check_whole


def rotation(dim: int, seed: int, *, bias: bool = False) -> Float[np.ndarray, "inputs inputs"]:
    """A random orthogonal matrix Q, uniform on the group; with a bias the last input stays.

    On inputs ``x @ Q.T`` gradient flow has the lines ``u @ Q.T``, sign descent and Adam have other ones.

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
