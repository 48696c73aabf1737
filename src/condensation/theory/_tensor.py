r"""The symmetric tensor of the leading-order field, never formed unless that is cheaper.

For an activation of multiplicity p with $c = \sigma^{(p)}(0)/(p-1)!$ a small neuron moves as
$\dot w = a c\, T w^{p-1}$ with $T = \frac1n \sum_i r_i x_i^{\otimes p}$ and residuals $r_i = y_i - f(x_i)$. Three
contractions say all: $F(u) = T u^p$, the field $T u^{p-1}$, and the matrix $T u^{p-2}$. Several outputs have one
tensor each, $T_k$ with the residuals of output k; an output weight v in $R^K$ sees $\sum_k v_k T_k$.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Inexact, Int
from numpy.typing import ArrayLike

from ..errors import InputError
from ..measure._similarity import as_floats

LARGEST_ARRAY = 2e7  # numbers held at once, for instance in a tensor written out
SPAN = 1e-10  # directions in which the field is this much weaker than in the strongest do not count
APART = 1e-6  # distance of different lines
ROUNDING = 1e-13  # a field this much smaller than its own terms is rounding
PROJECTED = 1e-14  # error of a projection, relative to the largest number

Vectors = Inexact[np.ndarray, "lines inputs"]
OutputWeights = Inexact[np.ndarray, "lines outputs"]
Samples = Float[np.ndarray, "samples inputs"]
Residuals = Float[np.ndarray, "samples outputs"]


@dataclass(frozen=True, eq=False)
class Tensor:
    r"""$T_k = \sum_i w_{ik} x_i^{\otimes p}$, contracted with many vectors u at once, real or complex.

    Attributes:
        points: the $x_i$.
        weights: the $w_{ik}$, a column for each output.
        p: the order.

    >>> cube = Tensor(np.eye(2), np.array([[1.0], [2.0]]), 3)  # F(u) = u_1^3 + 2 u_2^3
    >>> u = np.array([[3.0, 1.0]])
    >>> cube.value(u), cube.field(u), cube.matrix(u)[0].diagonal()
    (array([[29.]]), array([[9., 2.]]), array([3., 2.]))
    """

    points: Samples
    weights: Residuals
    p: int

    @property
    def dim(self) -> int:
        """Dimension D of the points, and of the vectors u."""
        return self.points.shape[1]

    @property
    def outputs(self) -> int:
        """Number K of outputs, and so of tensors $T_k$."""
        return self.weights.shape[1]

    def fields(self, u: Vectors) -> Inexact[np.ndarray, "lines outputs inputs"]:
        """The field $T_k u^{p-1}$ of each output."""
        if self._is_small and self.dim ** (self.p - 1) < len(self.points):
            flat = _outer_power(u, self.p - 1) @ self._array
        else:
            terms = _terms(self.points, self.weights)
            parts = np.array_split(u, _parts(len(u) * len(self.points)))
            flat = np.concatenate([integer_power(part @ self.points.T, self.p - 1) @ terms for part in parts])
        return flat.reshape(len(u), self.outputs, self.dim)

    def field(self, u: Vectors, v: OutputWeights | None = None) -> Vectors:
        """The field $T u^{p-1}$ that the output weight v sees; v = 1 for a single output."""
        fields = self.fields(u)
        return fields[:, 0] if v is None else np.einsum("lk,lkd->ld", v, fields)

    def value(self, u: Vectors) -> OutputWeights:
        """$F_k(u) = T_k u^p$ of each output."""
        return np.einsum("lkd,ld->lk", self.fields(u), u)

    def matrix(self, u: Vectors, v: OutputWeights | None = None) -> Inexact[np.ndarray, "lines inputs inputs"]:
        """The matrix $T u^{p-2}$ that the output weight v sees; zero for p = 1, where the field is constant."""
        dim = self.dim
        if self.p == 1:
            return np.zeros((len(u), dim, dim))
        if self._is_small and self.outputs * dim ** (self.p - 2) < len(self.points):
            flat = _outer_power(u, self.p - 2) @ self._array.reshape(dim ** (self.p - 2), -1)
            each = flat.reshape(len(u), dim, self.outputs, dim)
            return each[:, :, 0] if v is None else np.einsum("lk,ldke->lde", v, each)
        seen = self.weights[:, 0] if v is None else v @ self.weights.T
        scaled = integer_power(u @ self.points.T, self.p - 2) * seen
        parts = np.array_split(scaled, _parts(scaled.size * dim))
        return np.concatenate([(self.points.T * part[:, None, :]) @ self.points for part in parts])

    @cached_property
    def norm(self) -> float:
        r"""Frobenius norm of a single output's tensor: $|T|^2 = \sum_{ij} w_i w_j (x_i \cdot x_j)^p$."""
        if self._is_small and self.dim ** (self.p - 1) < len(self.points):
            return float(np.linalg.norm(self._array))
        square = self.weights[:, 0] @ integer_power(self.points @ self.points.T, self.p) @ self.weights[:, 0]
        return float(np.sqrt(max(square, 0)))

    @property
    def _is_small(self) -> bool:
        return self.p > 1 and self.outputs * float(self.dim) ** self.p <= LARGEST_ARRAY

    @cached_property
    def _array(self) -> Float[np.ndarray, "powers outputs_inputs"]:
        """The tensors written out: rows for the first p-1 indices, columns for the output and the last index."""
        total = np.zeros((self.dim ** (self.p - 1), self.outputs * self.dim))
        parts = _parts(len(self.points) * len(total))
        for x, w in zip(np.array_split(self.points, parts), np.array_split(self.weights, parts), strict=True):
            total += _outer_power(x, self.p - 1).T @ _terms(x, w)
        return total


def _terms(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """$w_{ik} x_i$, samples x (outputs inputs)."""
    return (weights[:, :, None] * points[:, None, :]).reshape(len(points), -1)


def _parts(numbers: int) -> int:
    """In how many parts so many numbers are worked through."""
    return max(1, -(-numbers // int(LARGEST_ARRAY)))


def _outer_power(u: np.ndarray, k: int) -> np.ndarray:
    r"""$u^{\otimes k}$ of each row, flattened."""
    power = np.ones((len(u), 1))
    for _ in range(k):
        power = (power[:, :, None] * u[:, None, :]).reshape(len(u), power.shape[1] * u.shape[1])
    return power


def integer_power(z: Inexact[np.ndarray, "*shape"], k: int) -> Inexact[np.ndarray, "*shape"]:
    """$z^k$ for a whole k by multiplication, many times faster than NumPy's power."""
    power = z if k else np.ones_like(z)
    for _ in range(k - 1):
        power = power * z
    return power


def unit(vectors: Inexact[np.ndarray, "*rest inputs"]) -> Inexact[np.ndarray, "*rest inputs"]:
    """Each vector divided by its norm; a zero vector stays."""
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)


def group_lines(lines: Vectors, apart: float = APART) -> tuple[Int[np.ndarray, " groups"], Int[np.ndarray, " lines"]]:
    """Unit vectors that repeat, signs and phases aside: the first of each line, and the line of each vector.

    >>> group_lines(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]))
    (array([0, 1]), array([0, 1, 0]))
    """
    first: list[int] = []
    labels = np.full(len(lines), -1)
    while len(left := np.flatnonzero(labels < 0)):
        cosines = np.abs(lines[left] @ lines[left[0]].conj())
        cosines[0] = 1
        labels[left[cosines > 1 - apart**2 / 2]] = len(first)
        first.append(int(left[0]))
    return np.array(first, int), labels


def tangents(u: Float[np.ndarray, "lines inputs"]) -> Float[np.ndarray, "lines inputs tangents"]:
    """Orthonormal basis of the tangent space of the sphere at each unit vector: columns of Householder's reflection."""
    w = u.copy()
    w[:, 0] += np.where(u[:, 0] < 0, -1, 1)
    reflection = np.eye(u.shape[1]) - 2 * unit(w)[:, :, None] * unit(w)[:, None, :]
    return reflection[:, :, 1:]


def flow_eigenvalues(tensor: Tensor, u: Vectors, v: OutputWeights) -> Float[np.ndarray, "lines tangents"]:
    r"""Eigenvalues, in ascending order, of the flow on the spheres linearised at stationary pairs (u, v).

    Single output, v = 1: $\dot u = T u^{p-1} - F u$ gives $(p-1)\, P\, T u^{p-2} P - F$ on the tangent space.
    Several outputs, with $\Phi = \sum_k v_k T_k u^p$: (w, a) at leading order and at the balance $|w|^2 = p |a|^2$
    moves, in units of time $\sqrt p / (c |w|^{p-1})$, as $\dot u = P \sum_k v_k T_k u^{p-1}$,
    $\dot v_k = P\, T_k u^p$; the eigenvalues are those of

    $$\begin{pmatrix} (p-1)\sum_k v_k T_k u^{p-2} - \Phi & \sqrt p\, M^T \\ \sqrt p\, M & -\Phi \end{pmatrix},
    \quad M_k = T_k u^{p-1},$$

    on the tangent spaces of u and v. Away from the balance the signs are the same.

    >>> cube = Tensor(np.eye(2), np.array([[1.0], [2.0]]), 3)  # F(u) = u_1^3 + 2 u_2^3
    >>> flow_eigenvalues(cube, np.array([[0.0, 1.0]]), np.ones((1, 1)))
    array([[-2.]])
    """
    parts = _parts(u.size * u.shape[1])
    if parts > 1:
        split = zip(np.array_split(u, parts), np.array_split(v, parts), strict=True)
        return np.concatenate([flow_eigenvalues(tensor, *part) for part in split])
    fields, along_u, along_v = tensor.fields(u), tangents(u), tangents(v)
    value = np.einsum("lk,lkd,ld->l", v, fields, u)
    matrix = (tensor.p - 1) * along_u.mT @ tensor.matrix(u, v) @ along_u
    if tensor.outputs > 1:
        cross = np.sqrt(tensor.p) * along_v.mT @ fields @ along_u
        matrix = np.block([[matrix, cross.mT], [cross, np.zeros((len(u), *along_v.shape[2:] * 2))]])
    return np.linalg.eigvalsh(matrix) - value[:, None]


def as_samples(x: ArrayLike, residual: ArrayLike) -> tuple[Samples, Residuals]:
    """Inputs as samples x inputs and residuals as samples x outputs; refused if they do not fit or vanish."""
    points, residuals = as_floats("inputs", x).astype(float), as_floats("residuals", residual).astype(float)
    if points.ndim != 2 or 0 in points.shape:
        raise InputError(f"inputs must be samples x inputs, both at least 1, not of shape {points.shape}")
    if residuals.ndim not in (1, 2) or len(residuals) != len(points) or 0 in residuals.shape:
        raise InputError(
            f"residuals of {len(points)} samples are needed, one number or a row of outputs each, not an array of "
            f"shape {residuals.shape}"
        )
    residuals = residuals.reshape(len(points), -1)
    for what, array in (("inputs", points), ("residuals", residuals)):
        finite = np.isfinite(array).all(axis=1)
        if not finite.all():
            raise InputError(f"{what} of {(~finite).sum()} samples are NaN or Inf, first of sample {finite.argmin()}")
        if not array.any():
            raise InputError(f"all {what} are zero: there is no field and no direction")
    return points, residuals


@dataclass(frozen=True, eq=False)
class Restricted:
    """A tensor restricted to its span, where its field is not zero: outputs of full rank, size about one."""

    tensor: Tensor  # in the coordinates of the span
    basis: Float[np.ndarray, "inputs dim"]  # orthonormal basis of the span
    outputs: Float[np.ndarray, "outputs rank"]  # orthonormal basis of the outputs that have a field
    scale: float  # what values are multiplied by to be those of the original tensor
    left_out: float  # share of the field outside of the span and of the outputs; 0 where it is but rounding


def restrict_to_span(x: Samples, residual: Residuals, p: int) -> Restricted:
    r"""Restrict $T = \frac1n \sum_i r_i x_i^{\otimes p}$ to its span and divide it by its size.

    The span is that of the fields $T u^{p-1}$ at random u: never more than the span of the inputs, and less where
    the residuals leave a direction out. Outside it the field is zero, or weaker by ``SPAN`` than in the strongest
    direction: ``left_out`` tells these two apart, up to ``ROUNDING`` of the terms that the field is a sum of.
    """
    stream = np.random.default_rng(0)
    size_x, size_r = float(np.abs(x).max()), float(np.abs(residual).max())
    points, weights = x / size_x, residual / size_r / len(x)
    u = unit(stream.normal(size=(x.shape[1] + 5, x.shape[1])))
    fields = Tensor(points, weights, p).fields(u)
    terms = np.abs(u @ points.T) ** (p - 1) @ (np.linalg.norm(points, axis=1) * np.abs(weights).sum(axis=1))
    least = ROUNDING * float(np.linalg.norm(terms))
    if not np.linalg.norm(fields) > least:
        raise InputError(
            f"the leading-order field (1/n) sum r_i x_i (u.x_i)^{p - 1} is zero for every u, so nothing condenses "
            f"at order p = {p}; residuals that correlate with some product of {p} inputs are needed"
        )
    basis = span(fields.reshape(-1, x.shape[1]), least)
    by_output = np.moveaxis(fields, 1, 2).reshape(-1, residual.shape[1])
    outputs = span(by_output, least) if residual.shape[1] > 1 else np.ones((1, 1))
    few = np.abs(u[:5] @ points.T) ** (p - 1) @ _terms(np.abs(points), np.abs(weights))
    left_out = _left_out(fields[:5], few.reshape(fields[:5].shape), basis, outputs)
    points, weights = points @ basis, weights @ outputs

    tensor = Tensor(points, weights, p)
    u = unit(stream.normal(size=(20, basis.shape[1])))
    size = 0.0
    for _ in range(10):  # power steps: the largest value on the way is near enough to the tensor's size
        value = tensor.value(u)
        size = max(size, float(np.linalg.norm(value, axis=1).max()))
        u = unit(tensor.field(u, value))
    with np.errstate(over="ignore", under="ignore"):
        scale = float(np.float64(size_x) ** p * size_r * size)
    if not 1e-290 < scale < 1e290:
        raise InputError(
            f"inputs of size {size_x:.3g} and residuals of size {size_r:.3g} give values of order {scale:.3g} at "
            f"p = {p}; scale them nearer to one"
        )
    return Restricted(Tensor(points, weights / size, p), basis, outputs, scale, left_out)


def span(rows: np.ndarray, least: float = 0.0) -> np.ndarray:
    """Orthonormal basis, as columns, of what the rows span but for rounding; columns of zeros stay exactly zero."""
    some = rows.any(axis=0)
    _, strength, directions = np.linalg.svd(rows[:, some], full_matrices=False)
    kept = strength > max(SPAN * strength[0], least)
    basis = np.zeros((rows.shape[1], kept.sum()))
    basis[some] = directions[kept].T
    return basis


def _left_out(fields: np.ndarray, terms: np.ndarray, basis: np.ndarray, outputs: np.ndarray) -> float:
    """Share of the fields, lines x outputs x inputs and sums of terms of these sizes, that the bases leave out.

    An input or an output so weak that what the bases say of it is their own rounding is left out as a whole.
    """
    size = np.abs(fields)
    least = PROJECTED * size.max()
    lost = (size.max(axis=(0, 1)) < least) | (size.max(axis=(0, 2)) < least)[:, None]
    kept = np.einsum("lkd,de,fe,kj,mj->lmf", fields, basis, basis, outputs, outputs, optimize=True)
    rest = np.where(lost, fields, fields - kept)
    rest[np.abs(rest) <= ROUNDING * terms + np.where(lost, 0, least)] = 0
    return float(np.linalg.norm(rest) / np.linalg.norm(fields))
