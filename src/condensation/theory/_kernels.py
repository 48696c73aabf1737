r"""Kernels of a two-layer convolutional network at leading order (the CNN paper's Sec. 4).

Near zero weights, with $\sigma(0) = 0$, a filter $\theta_\beta = (W_\beta, b_\beta)$ and its output weights $a_\beta$
(one for each output and position) move linearly, whatever the other filters do:

$$\frac{d}{dt}\begin{pmatrix}\theta_\beta\\ a_\beta\end{pmatrix}
  = \begin{pmatrix}0 & Z^T\\ Z & 0\end{pmatrix}\begin{pmatrix}\theta_\beta\\ a_\beta\end{pmatrix}, \qquad
  Z = \sigma'(0) \begin{pmatrix}\text{patches of } \frac1n \sum_i r_i x_i & \frac1n \sum_i r_i\end{pmatrix},$$

a row for each output and position, a column for each entry of a filter and one for its bias; r is the residual at
output zero. With $Z = U \Lambda V^T$ the parts along $v_k$ and $u_k$ grow as cosh and sinh of $\lambda_k t$, and what
lies outside does not move: filters turn to $\pm v_1$, if there is a gap between $\lambda_1$ and $\lambda_2$.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from .._display import Shown
from .._serialization import coerce
from .._threads import narrow
from ..errors import InputError, check_positive, check_whole
from ..losses import Loss
from ..measure._similarity import as_floats
from ..networks._arrangement import windows
from ..networks._conv import Padding, Pooling, PoolSize
from ..networks._geometry import Geometry, as_image

RANK = 1e-10  # singular values below this share of the largest are rounding
ROUNDING = 1e-13  # means below this share of the mean of absolute values are zero
Filters = Float[np.ndarray, "units columns"]
FilterOutputs = Float[np.ndarray, "units rows"]


def residual_at_zero(y: ArrayLike, loss: Loss | None = None) -> Float[np.ndarray, "samples outputs"]:
    r"""$r_i = -\partial \ell_i / \partial f$ at output zero.

    That is y for MSE, y - 1/K for cross-entropy, (y - 1/K)/K for MSE after softmax.

    Args:
        y: targets, samples x outputs.
        loss: half the squared error if not given; one that is summed over samples gives n times the mean's.

    >>> residual_at_zero([[1.0, 0.0]], Loss("softmax_mse"))
    array([[ 0.25, -0.25]])
    """
    targets, chosen = as_floats("targets", y).astype(float), loss or Loss()
    if targets.ndim != 2:
        raise InputError(f"targets must be samples x outputs, not of shape {targets.shape}")
    with jax.enable_x64(True):
        slope = jax.grad(lambda f: chosen(f, jnp.asarray(targets)))(jnp.zeros_like(targets))
    return -np.asarray(slope) * len(targets)


def patch_matrix(
    x: ArrayLike,
    residual: ArrayLike,
    kernel: int,
    *,
    padding: int | str = 0,
    slope: float = 1.0,
    stride: int = 1,
    pooling: str | None = None,
    pool_size: int | str | None = None,
) -> Float[np.ndarray, "rows columns"]:
    r"""The matrix Z: patches of $\frac1n \sum_i r_i x_i$, stacked over outputs, and a column of mean residuals.

    Args:
        x: images, samples x channels x height x width (or, of one dimension, samples x channels x length or samples x
            length).
        residual: samples x outputs (see ``residual_at_zero``).
        kernel: side m of the kernels.
        padding: zeros at each side of an image, or ``"same"``, as in ``Conv``.
        slope: $\sigma'(0)$ of the convolution layer's activation.
        stride: distance of the patches.
        pooling: ``"average"`` or ``"sum"`` behind the layer: rows are those of the windows then. (The largest value of
            a window is no linear function of its filter: there is no Z for it.)
        pool_size: side of the windows, as in ``Conv``.

    >>> patch_matrix(np.arange(4.0).reshape(1, 1, 2, 2), [[2.0]], 2)
    array([[0., 2., 4., 6., 2.]])
    >>> patch_matrix([[1.0, 2.0, 5.0]], [[1.0]], 2, pooling="sum", pool_size="all")  # (1, 2, 1) + (2, 5, 1)
    array([[3., 7., 2.]])
    """
    images, r = as_floats("images", x).astype(float), as_floats("residuals", residual).astype(float)
    check_whole("the kernel's side", kernel)
    coerce(Padding, padding, "padding")
    check_whole("stride", stride)
    coerce(Pooling | None, pooling, "pooling")
    coerce(PoolSize | None, pool_size, "pool_size")
    if not 2 <= images.ndim <= 4 or r.ndim != 2 or len(r) != len(images) or not len(r):
        raise InputError(
            f"images must be samples x channels x height x width and residuals samples x outputs, not {images.shape} "
            f"and {r.shape}"
        )
    shape = images.shape[1:]
    geometry = Geometry.of(shape, kernel, stride, padding, pooling, pool_size)
    if min(geometry.places) < 1:
        image = f"an image of {shape[1]} x {shape[2]}" if len(shape) == 3 else f"a sample of length {shape[-1]}"
        raise InputError(f"{image} is smaller than a kernel of side {kernel}")
    if min(geometry.pooled) < 1:
        raise InputError(f"a window of {pool_size or 2} is larger than what the kernels give")
    return matrix_of(images, r, geometry, slope)


def matrix_of(
    x: Float[np.ndarray, "samples ..."],
    r: Float[np.ndarray, "samples outputs"],
    geometry: Geometry,
    slope: float = 1.0,
) -> Float[np.ndarray, "rows columns"]:
    """The matrix Z of kernels that lie so on samples, or a sentence where pooling is not linear."""
    if geometry.pools and geometry.pooling == "max":
        raise InputError("there is no matrix Z behind max pooling, which is not linear: average or sum has one")
    images = x.reshape(len(x), *as_image(x.shape[1:]))
    patches = windows(_mean_product(r, images), geometry)  # outputs channels rows columns and the kernel's
    patches = patches.transpose(0, 2, 3, 1, 4, 5).reshape(len(patches), *geometry.places, -1)
    bias = np.broadcast_to(_mean_product(r, np.ones(len(r)))[:, None, None, None], (*patches.shape[:3], 1))
    rows = geometry.pool(np.concatenate([patches, bias], axis=3), (1, 2))
    return slope * rows.reshape(-1, rows.shape[3])


def _mean_product(r: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The mean of r times values over the samples; exactly zero where only rounding is left of it."""
    mean = np.tensordot(r, values, axes=(0, 0)) / len(r)
    largest = max(values.max(), -values.min()) * np.abs(r).mean(axis=0).max()
    if (np.abs(mean) > ROUNDING * largest).all():
        return mean
    scale = np.tensordot(np.abs(r), np.abs(values), axes=(0, 0)) / len(r)
    return np.where(np.abs(mean) > ROUNDING * scale, mean, 0)


@dataclass(frozen=True, eq=False)
class KernelDynamics(Shown):
    r"""The linear dynamics $\dot\theta = Z^T a$, $\dot a = Z \theta$ of filters and their output weights.

    Attributes:
        z: rows (outputs x positions) x columns (channels x m x m and the bias); of one dimension, channels x m.
        channels: number of input channels.

    >>> dynamics = KernelDynamics(np.array([[3.0, 4.0]]))  # one position, kernels of side 1: lambda_1 = 5
    >>> dynamics.values.round(12), dynamics.v1.round(12)
    (array([5.]), array([0.6, 0.8]))
    >>> dynamics.evolve(np.zeros((1, 2)), np.ones((1, 1)), 0.2)[0].round(4)  # sinh(1) v_1
    array([[0.7051, 0.9402]])
    """

    z: Float[np.ndarray, "rows columns"]
    channels: int = 1

    def __post_init__(self) -> None:
        entries = self.z.shape[1] - 1 if self.z.ndim == 2 else 0
        if not np.isfinite(self.z).all() or not len(self.z) or entries < 1 or entries % self.channels:
            raise InputError(f"Z must be finite, rows x ({self.channels} entries + 1), not of shape {self.z.shape}")

    @staticmethod
    def of(
        x: ArrayLike,
        y: ArrayLike,
        kernel: int,
        loss: Loss | None = None,
        *,
        padding: int | str = 0,
        slope: float = 1.0,
        stride: int = 1,
        pooling: str | None = None,
        pool_size: int | str | None = None,
    ) -> "KernelDynamics":
        """The dynamics that images, targets and a loss give at output zero; the kernels lie as in ``patch_matrix``."""
        images, r = np.asarray(x), residual_at_zero(y, loss)
        pooled: dict[str, Any] = {"pooling": pooling, "pool_size": pool_size}
        z = patch_matrix(images, r, kernel, padding=padding, slope=slope, stride=stride, **pooled)
        return KernelDynamics(z, as_image(images.shape[1:])[0])

    @cached_property
    def _parts(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """U, the singular values and V; Z is tall, so that they come from its QR decomposition."""
        with narrow(self.z.shape[1]):
            q, r = np.linalg.qr(self.z)
            u, values, vt = np.linalg.svd(r, full_matrices=False)
            return q @ u, values, vt.T

    @property
    def values(self) -> Float[np.ndarray, " values"]:
        r"""Singular values $\lambda_1 \ge \lambda_2 \ge ...$ of Z."""
        return self._parts[1]

    @property
    def rank(self) -> int:
        """Rank of Z, at most that of its smaller side; 0 where Z = 0."""
        return int((self.values > RANK * self.values[0]).sum()) if self.values[0] > 0 else 0

    @property
    def gap(self) -> float:
        r"""The spectral gap $\lambda_1 - \lambda_2$ over $\lambda_1$: without one there is no single direction.

        It is 1 where Z has rank 1, and 0 where Z = 0 and no filter moves.
        """
        if not self.rank:
            return 0.0
        return float(1 - self.values[1] / self.values[0]) if len(self.values) > 1 else 1.0

    @property
    def v1(self) -> Float[np.ndarray, " columns"]:
        """The filter (bias last) that grows fastest, turned so that its kernel entries add up to a positive number."""
        if not self.rank:
            raise InputError("Z is zero: no filter grows at leading order, so there is no direction v1")
        v = self._parts[2][:, 0]
        return v if v[:-1].sum() >= 0 else -v

    @property
    def u1(self) -> Float[np.ndarray, " rows"]:
        r"""The output weights that grow with v1: $u_1 = Z v_1 / \lambda_1$."""
        return self.z @ self.v1 / self.values[0]

    @property
    def bias_part(self) -> float:
        """|v1's entry for the bias|: its share of the unit vector."""
        return float(abs(self.v1[-1]))

    @property
    def channel_cosines(self) -> Float[np.ndarray, " channels"]:
        """The cosine of each input channel's part of v1 with the kernel of ones."""
        parts = self.v1[:-1].reshape(self.channels, -1)
        size = np.linalg.norm(parts, axis=1)
        return parts.sum(axis=1) / np.where(size > 0, size, 1) / parts.shape[1] ** 0.5

    def evolve(self, filters: Filters, outputs: FilterOutputs, time: float) -> tuple[Filters, FilterOutputs]:
        r"""Filters and output weights after a time of gradient flow, in closed form (eqs. 9 and 10)."""
        u, values, v = self._parts
        w, a = filters @ v[:, : len(values)], outputs @ u
        grow, mix = np.cosh(values * time), np.sinh(values * time)
        moved = filters + (w * (grow - 1) + a * mix) @ v[:, : len(values)].T
        return moved, outputs + (a * (grow - 1) + w * mix) @ u.T

    def orientations(self, filters: Filters, outputs: FilterOutputs) -> Int[np.ndarray, " units"]:
        r"""The side of v1 that each filter goes to: the sign of $\langle\theta, v_1\rangle + \langle a, u_1\rangle$."""
        return np.sign(filters @ self.v1 + outputs @ self.u1).astype(int)


def effective_time(lambda1: float, width: int, gamma: float, eta: float | None = None) -> float:
    r"""The lower bound (13) of $T_{eff}$: $\frac1{\lambda_1}[\log\frac14 + (\frac{\gamma-1}4 - \eta_0)\log M]$.

    Args:
        lambda1: the largest singular value of Z.
        width: number of filters M.
        gamma: of the theory's initialization, of variance $\varepsilon^2 = M^{-\gamma}$; above 1.
        eta: $\eta_0$, above (gamma - 1)/100; that if not given.

    >>> round(effective_time(1.0, 4096, 4.0), 3)
    4.602
    >>> effective_time(1.0, 10**12, 4.0) > effective_time(1.0, 4096, 4.0)  # widths of the limit, too
    True
    """
    check_positive("lambda1", lambda1)
    check_whole("the width", width, bits=63)  # of a limit, no array has it
    if not gamma > 1:
        raise InputError(f"the theory's gamma must be above 1, not {gamma!r}")
    eta = (gamma - 1) / 100 if eta is None else eta
    return float((np.log(0.25) + ((gamma - 1) / 4 - eta) * np.log(width)) / lambda1)


def heuristic_time(lambda1: float, width: int, gamma: float) -> float:
    r"""The paper's heuristic $T = \frac{\delta}{\lambda_1} \log M$ with $\delta = (\gamma - 1)/4$.

    >>> round(heuristic_time(2.0, 100, 3.0), 4)
    1.1513
    """
    check_positive("lambda1", lambda1)
    check_whole("the width", width, bits=63)  # of a limit, no array has it
    return float((gamma - 1) / 4 * np.log(width) / lambda1)
