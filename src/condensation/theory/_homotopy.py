r"""All complex lines $T x^{p-1} = \lambda x$ of a tensor of order p >= 3, by continuation from a diagonal one.

A generic T in D dimensions has $((p-1)^D - 1)/(p-2)$ complex lines (Cartwright and Sturmfels 2013). The tensor
$S = \sum_i g_i e_i^{\otimes p}$ with random $g_i$ on the complex unit circle has that many, and they are known: each
$x_i$ is 0 or a root of $g_i x_i^{p-2} = 1$. They are followed along $t S + (1-t) T$ from t = 1 to 0. The unknowns are x
and $\lambda$, with x on a plane through its last position (a projective patch renewed at each step), so that lines with
$x \cdot x = 0$ or $\lambda = 0$, which run to infinity where one sets $x \cdot x = 1$ or $\lambda = 1$, are ordinary.

How the lines were found does not matter for the certificate: no tensor has more isolated lines than the generic
count, so as many that are distinct and regular are all of them. A line counts when Newton's method must converge from
it by Kantorovich's theorem: $L\, |J^{-1}|^2 |\text{residual}| < 1/2$, J the Jacobian in (x, lambda) and
$L = 2 + (p-1)(p-2) |T|$ a bound on how fast it changes.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float, Inexact

from ._tensor import APART, Tensor, group_lines, integer_power, unit

ATTEMPTS = 4  # random diagonal tensors before the count is given up
PREDICTED = 1e-4  # the predictor's error that steps are chosen for
REFUSED = 10 * PREDICTED  # and the one from which a step is repeated
CORRECTED = 1e-6
FIRST_STEP, SMALLEST_STEP = 0.05, 1e-13
ROUNDS = 2000
ROUNDING = 1e-15  # no residual is known better, relative to its terms
KANTOROVICH = 0.1


def generic_count(p: int, dim: int) -> int:
    """How many complex lines a generic symmetric tensor of order p has in ``dim`` dimensions.

    >>> generic_count(3, 6), generic_count(4, 3), generic_count(5, 2), generic_count(2, 7), generic_count(1, 7)
    (63, 13, 5, 7, 1)
    """
    return dim if p == 2 else ((p - 1) ** dim - 1) // (p - 2)


@dataclass(frozen=True, eq=False)
class Solutions:
    r"""Solutions of $T x^{p-1} = \lambda x$: distinct, regular and exact lines."""

    real: Float[np.ndarray, "real inputs"]  # unit vectors
    others: Complex[np.ndarray, "others inputs"]  # of Hermitian norm 1, both of each conjugate pair
    complete: bool  # whether they are as many as the generic count, and close under conjugation

    @property
    def count(self) -> int:
        """Number of lines found, the complex ones included."""
        return len(self.real) + len(self.others)


def track_lines(tensor: Tensor) -> Solutions:
    """The lines of a tensor of order p >= 3, followed from random diagonal tensors until their count is reached."""
    lines = np.zeros((0, tensor.dim), complex)
    solutions = Solutions(np.zeros(lines.shape), lines, complete=False)
    for attempt in range(ATTEMPTS):
        before, lines = solutions, np.concatenate([lines, track_paths(tensor, np.random.default_rng(attempt))])
        solutions = refine_lines(tensor, lines)
        if solutions.complete or (attempt and solutions.count == before.count):
            break
    return solutions


def refine_lines(tensor: Tensor, lines: Inexact[np.ndarray, "lines inputs"]) -> Solutions:
    """Approximate complex lines made exact by Newton's method, singular and double ones left out, real ones apart."""
    x, lam = _refine(tensor, lines.astype(complex), 4)
    jacobian, residual = _system(tensor.p, tensor.matrix(x), x, lam, x.conj())
    change = 2 + (tensor.p - 1) * (tensor.p - 2) * tensor.norm
    rounding = ROUNDING * np.linalg.norm(np.abs(tensor.matrix(x)) @ np.abs(x)[:, :, None], axis=(1, 2))
    off = np.maximum(np.linalg.norm(residual, axis=1), rounding)
    x = x[change * off < KANTOROVICH * np.linalg.svd(jacobian, compute_uv=False)[:, -1] ** 2]
    if not len(x):
        return Solutions(np.zeros(x.shape), x, False)
    x = x[group_lines(x)[0]]
    # T is real, so the conjugate of a line is a line: it is a real one if that is itself and no other
    mirrored = np.abs(x @ x.T)
    real = (mirrored.argmax(axis=1) == np.arange(len(x))) & (mirrored.diagonal() > 1 - APART**2)
    turned = x[real] / np.sqrt(np.einsum("ld,ld->l", x[real], x[real]))[:, None]
    closed = bool((mirrored.max(axis=1) > 1 - APART**2).all())
    return Solutions(
        real=_refine(tensor, turned.real, 3)[0],
        others=x[~real],
        complete=closed and len(x) == generic_count(tensor.p, tensor.dim),
    )


def _refine(tensor: Tensor, x: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Lines and their lambda after Newton's method, from the Rayleigh quotient $\bar x \cdot T x^{p-1}$ on."""
    x = unit(x)
    lam = np.einsum("ld,ld->l", x.conj(), tensor.field(x))
    for _ in range(steps):
        x, lam = _newton(tensor, x, lam)
    return x, lam


def start_lines(g: Complex[np.ndarray, " inputs"], p: int) -> Complex[np.ndarray, "lines inputs"]:
    r"""The lines of $\sum_i g_i e_i^{\otimes p}$: each $x_i$ is 0 or one of the p-2 roots of $g_i x_i^{p-2} = 1$.

    Of the p-2 multiples by a root of unity, which are the same line, the one is taken whose first coordinate that is
    not zero is the principal root.
    """
    digits = np.indices((p - 1,) * len(g)).reshape(len(g), -1).T
    first = np.take_along_axis(digits, (digits > 0).argmax(axis=1)[:, None], axis=1)[:, 0]
    digits = digits[first == 1]
    roots = g ** (-1 / (p - 2)) * np.exp(2j * np.pi * digits / (p - 2))
    return np.where(digits > 0, roots * np.exp(-2j * np.pi / (p - 2)), 0)


def track_paths(tensor: Tensor, stream: np.random.Generator) -> Complex[np.ndarray, "arrived inputs"]:
    """The ends of the paths that arrive, from a diagonal tensor drawn from ``stream``."""
    g = np.exp(2j * np.pi * stream.random(tensor.dim))
    x = start_lines(g, tensor.p)
    length = np.linalg.norm(x, axis=1)
    x, lam = x / length[:, None], length ** -float(tensor.p - 2) + 0j
    left, step = np.ones(len(x)), np.full(len(x), FIRST_STEP)
    for _ in range(ROUNDS):
        on = np.flatnonzero((left > 0) & (step > SMALLEST_STEP))
        if not len(on):
            break
        h = np.minimum(step[on], left[on])
        new_x, new_lam, first, second = _advance(tensor, g, x[on], lam[on], left[on], h)
        good = (first < REFUSED) & (second < CORRECTED)
        length = np.linalg.norm(new_x, axis=1)
        x[on[good]] = (new_x / length[:, None])[good]
        lam[on[good]] = (new_lam * length ** -float(tensor.p - 2))[good]
        left[on[good]] = (left[on] - h)[good]
        better = 0.9 * (PREDICTED / np.maximum(first, 1e-30)) ** 0.2  # the error goes as the fifth power of the step
        step[on] = h * np.clip(np.where(good, better, np.minimum(better, 0.5)), 0.1, 3)
    return x[left == 0]


def _advance(
    tensor: Tensor, g: np.ndarray, x: np.ndarray, lam: np.ndarray, left: np.ndarray, h: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A step of all paths by the classical Runge-Kutta method, two corrections by Newton's, and the sizes of these."""
    p, dim, plane = tensor.p, tensor.dim, x.conj()

    def mixed(state: np.ndarray, share: np.ndarray, wanted: str) -> np.ndarray:
        y = state[:, :dim]
        end, start = tensor.matrix(y), g * integer_power(y, p - 2)
        matrix = (1 - share)[:, None, None] * end
        matrix[:, range(dim), range(dim)] += share[:, None] * start
        jacobian, residual = _system(p, matrix, y, state[:, dim], plane)
        if wanted == "tangent":
            residual[:, :dim] = np.einsum("lde,le->ld", end, y) - start * y
        return -_solve(jacobian, residual)

    state = np.concatenate([x, lam[:, None]], axis=1)
    full = h[:, None]
    k1 = mixed(state, left, "tangent")
    k2 = mixed(state + full / 2 * k1, left - h / 2, "tangent")
    k3 = mixed(state + full / 2 * k2, left - h / 2, "tangent")
    k4 = mixed(state + full * k3, left - h, "tangent")
    state = state + full / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    first = mixed(state, left - h, "correction")
    state = state + first
    second = mixed(state, left - h, "correction")
    state = state + second
    return state[:, :dim], state[:, dim], np.linalg.norm(first, axis=1), np.linalg.norm(second, axis=1)


def _newton(tensor: Tensor, x: np.ndarray, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""One step of Newton's method on $T x^{p-1} = \lambda x$, x orthogonal to its change and then of norm 1 again."""
    change = -_solve(*_system(tensor.p, tensor.matrix(x), x, lam, x.conj()))
    x = x + change[:, :-1]
    length = np.linalg.norm(x, axis=1)
    return x / length[:, None], (lam + change[:, -1]) * length ** -float(tensor.p - 2)


def _system(p: int, matrix: np.ndarray, x: np.ndarray, lam: np.ndarray, plane: np.ndarray) -> tuple[np.ndarray, ...]:
    r"""Jacobian and residual of $T x^{p-1} - \lambda x = 0$ in (x, lambda), x moving in the given plane."""
    dim = x.shape[1]
    jacobian = np.block([[(p - 1) * matrix, -x[:, :, None]], [plane[:, None, :], np.zeros((len(x), 1, 1))]])
    jacobian[:, range(dim), range(dim)] -= lam[:, None]
    off = np.einsum("lde,le->ld", matrix, x) - lam[:, None] * x
    return jacobian, np.concatenate([off, np.zeros((len(x), 1))], axis=1)


def _solve(jacobian: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Batched solution; where a matrix is singular to the last bit all are moved by a rounding error."""
    try:
        return np.linalg.solve(jacobian, residual[..., None])[..., 0]
    except np.linalg.LinAlgError:
        moved = jacobian + 1e-14 * np.random.default_rng(0).normal(size=jacobian.shape[1:])
        return np.linalg.solve(moved, residual[..., None])[..., 0]
