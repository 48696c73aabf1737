r"""Directions in which small neurons stay: the Z-eigenvectors of the leading-order field.

With w = r u the leading order $\dot w = a c\, T w^{p-1}$ reads $\dot u = a c\, r^{p-2} (T u^{p-1} - F(u) u)$,
$\dot r = a c\, r^{p-1} F(u)$ with $F(u) = T u^p$. Directions are stationary where $T u^{p-1} = F(u) u$, and attract
where $s F$ has a strict local maximum of positive value on the sphere, s the sign of a c. A maximum of negative value
attracts the angle while the amplitude shrinks: that is no line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Complex, Float, Int
from numpy.typing import ArrayLike
from scipy.special import comb

from .._threads import narrow_products
from ..errors import check_whole
from ._destinations import AttractingLines, AttractingSpace
from ._homotopy import Solutions, generic_count, refine_lines, track_lines
from ._power import ATTRACTS, search_attracting
from ._tensor import APART, SPAN, Restricted, Tensor, as_samples, flow_eigenvalues, group_lines, restrict_to_span

SIMPLE = 1e-9  # relative distance under which two eigenvalues are one
MOST_PATHS = 2000
STARTS = 1000


@dataclass(frozen=True, eq=False, kw_only=True)
class Directions(AttractingLines):
    r"""Unit vectors u with $T u^{p-1} = F(u)\, u$, $F(u) = T u^p$: stationary directions, the fastest growing first.

    Several outputs, a = |a| v: a pair (u, v) has the value $\frac1n \sum_i (r_i \cdot v)(u \cdot x_i)^p \ge 0$. At
    p = 1 neurons then condense on one line only as far as there is a gap between the first two values.

    The amplitude grows as $\dot r = a c\, r^{p-1} F(u)$. The method is one of closed form, polynomial,
    eigendecomposition, homotopy, power iteration, sectors and fixed points; by the last three only attracting lines are
    found. Certified lines are each isolated and simple.

    Attributes (more than those of ``AttractingLines``):
        eigenvalues: of the flow linearised at u, in ascending order, for a c = 1 at r = 1: those of
            $(p-1)\, P\, T u^{p-2} P - F$ on the tangent space of the sphere. In the flow they are multiplied by
            $a c\, r^{p-2}$. Several outputs: see ``flow_eigenvalues``. Infinite across a kink of F (relu).
        outside: dimension of the space in which the field is zero (outside of the inputs' span at least): a continuum
            of stationary directions of value 0.
        generic_count: number of complex lines of a generic tensor of this order in the dimension that is left.
        complex_count: number of complex lines found, real ones included.
        complex_directions: those that are not real, of Hermitian norm 1.
        starts: number of starts of a search.
        hits: how many starts ended in each line; 0 for lines that no search found. By Good and Turing's estimate one
            more start finds a new line with the chance ``(hits == 1).sum() / starts``.
    """

    eigenvalues: Float[np.ndarray, "lines tangents"]
    outside: int
    generic_count: int | None = None
    complex_count: int | None = None
    complex_directions: Complex[np.ndarray, "others inputs"]
    starts: int = 0
    hits: Int[np.ndarray, " lines"] | None = None

    @property
    def growth(self) -> Float[np.ndarray, " lines"]:
        r"""Growth rate |F(u)|: where the line attracts, $\dot r = |a c|\, r^{p-1} |F(u)|$."""
        return np.abs(self.values)


@narrow_products
def stationary_directions(
    x: ArrayLike, residual: ArrayLike, p: int, *, most_paths: int = MOST_PATHS, starts: int = STARTS
) -> Directions:
    r"""All real u with $\frac1n \sum_i r_i x_i (u \cdot x_i)^{p-1} = F(u) u$, and which of them attract.

    Exact for p = 1 (the mean of $r_i x_i$), p = 2 (eigenvectors) and two dimensions (roots of a polynomial); else all
    complex lines are followed from a known tensor, as long as there are no more than ``most_paths``; beyond, and for
    several outputs with p >= 2, the attracting ones are searched by power iterations, without a certificate.

    Args:
        x: inputs, samples x inputs; with a bias the last input is 1.
        residual: $r_i = y_i - f(x_i)$, samples or samples x outputs; at small weights the labels.
        p: multiplicity of the activation.
        most_paths: the generic count up to which lines are followed and certified.
        starts: number of starts of the search.

    >>> lines = stationary_directions(np.eye(2), np.array([2.0, 4.0]), 3)  # F(u) = u_1^3 + 2 u_2^3
    >>> lines.values.round(3), lines.attracts, lines.certified
    (array([2.   , 1.   , 0.894]), array([ True,  True, False]), True)
    """
    check_whole("the multiplicity p", p)
    check_whole("most_paths", most_paths, least=0)
    check_whole("starts", starts)
    points, residuals = as_samples(x, residual)
    restricted = restrict_to_span(points, residuals, int(p))
    tensor = restricted.tensor
    if tensor.outputs > 1:
        lines = _singular_vectors(tensor) if p == 1 else _searched(tensor, starts)
    elif tensor.dim == 1:
        lines = _Lines(np.ones((1, 1)), "closed form", complete=True)
    elif p == 2:
        lines = _eigenvectors(tensor)
    elif tensor.dim == 2:
        lines = _plane(tensor)
    elif generic_count(p, tensor.dim) <= most_paths:
        lines = _followed(tensor, starts)
    else:
        lines = _searched(tensor, starts)
    return _assemble(restricted, lines, residuals.shape[1])


@dataclass(frozen=True, eq=False)
class _Lines:
    """What a method finds, in the coordinates of the tensor's span."""

    u: np.ndarray
    method: str
    complete: bool
    v: np.ndarray | None = None
    others: np.ndarray | None = None
    hits: np.ndarray | None = None
    starts: int = 0
    note: str = ""


def _eigenvectors(tensor: Tensor) -> _Lines:
    """p = 2: eigenvectors of the symmetric matrix."""
    values, vectors = np.linalg.eigh(tensor.matrix(np.ones((1, tensor.dim)))[0])
    note = _repeated(values, "eigenvalue")
    return _Lines(vectors.T, "eigendecomposition", complete=not note, note=note)


def _singular_vectors(tensor: Tensor) -> _Lines:
    """p = 1 and several outputs: pairs of singular vectors of the matrix of mean fields, outputs x inputs."""
    left, values, right = np.linalg.svd(tensor.fields(np.ones((1, tensor.dim)))[0], full_matrices=False)
    note = _repeated(values, "singular value")
    return _Lines(right, "eigendecomposition", complete=not note, v=left.T, note=note)


def _differences(value: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Eigenvalues of the linearised flow at p = 2: an eigenvector's are the others' eigenvalues less its own."""
    plain = value * v[:, 0]
    others = ~np.eye(len(value), dtype=bool)
    return np.sort(((plain - plain[:, None]) * v)[others].reshape(len(value), -1), axis=1)


def _repeated(values: np.ndarray, what: str) -> str:
    """The sentence that tells which values are equal; empty if none are."""
    ordered = np.sort(values)
    groups = np.split(ordered, np.flatnonzero(np.diff(ordered) > SIMPLE * np.abs(values).max()) + 1)
    folds = " and ".join(f"{len(group)}-fold" for group in groups if len(group) > 1)
    return folds and f"the field has a {folds} {what}: every direction of its space is stationary, a basis is listed"


def _spaces(tensor: Tensor, value: np.ndarray, u: np.ndarray) -> list[AttractingSpace]:
    """Spaces of a repeated largest value, of either sign: at p = 2, and at p = 1 with several outputs."""
    if not (tensor.p == 2 and tensor.outputs == 1) and not (tensor.p == 1 and tensor.outputs > 1):
        return []
    spaces = []
    for sign in (1, -1) if tensor.p == 2 else (1,):
        largest = (sign * value).max()
        equal = sign * value > largest - SIMPLE * np.abs(value).max()
        if equal.sum() > 1 and largest > ATTRACTS:
            spaces.append(AttractingSpace(u[equal].T, sign * largest, (sign,) if tensor.p == 2 else (1, -1)))
    return spaces


def _plane(tensor: Tensor) -> _Lines:
    r"""Two dimensions: roots of one polynomial.

    With $z = e^{i\theta}$ for $u = (\cos\theta, \sin\theta)$ and each point as a complex number x,
    $u \cdot x = (z \bar x + x / z)/2$, so $F = \sum_j f_j z^{p-2j}$ with
    $f_j = 2^{-p} \binom pj \sum_i w_i \bar x_i^{p-j} x_i^j$, and $F' = 0$ is
    $\sum_j (p - 2j) f_j q^{p-j} = 0$ in $q = z^2$: real directions lie on the unit circle.
    """
    p = tensor.p
    point = tensor.points[:, 0] + 1j * tensor.points[:, 1]
    j = np.arange(p + 1)
    f = comb(p, j) * (tensor.weights[:, 0] @ (point.conj()[:, None] ** (p - j) * point[:, None] ** j)) / 2**p
    slope = (p - 2 * j) * f
    if np.abs(slope).max() < SIMPLE * np.abs(f).max():
        note = "F is the same in all directions of the plane: every one is stationary, a basis is listed"
        return _Lines(np.eye(2), "polynomial", complete=False, note=note)
    q = np.roots(np.where(np.abs(slope) > 1e-14 * np.abs(slope).max(), slope, 0))
    lines = np.stack([q + 1, -1j * (q - 1)], axis=1)
    at_infinity = np.tile([1, -1j], (p - len(q), 1))
    return _from_solutions(tensor, refine_lines(tensor, np.concatenate([lines, at_infinity])), "polynomial")


def _followed(tensor: Tensor, starts: int) -> _Lines:
    """All lines by homotopy; where their count is not reached, what a search finds is added."""
    solutions = track_lines(tensor)
    lines = _from_solutions(tensor, solutions, "homotopy")
    if solutions.complete:
        return lines
    searched, _, hits = search_attracting(tensor, starts)
    both = np.concatenate([searched, solutions.real])
    first, _ = group_lines(both)
    hits = np.concatenate([hits, np.zeros(len(solutions.real), int)])
    return _Lines(both[first], "homotopy", False, None, lines.others, hits[first], starts, lines.note)


def _from_solutions(tensor: Tensor, solutions: Solutions, method: str) -> _Lines:
    note = (
        f"{solutions.count} of the {generic_count(tensor.p, tensor.dim)} complex lines were found isolated and simple: "
        f"the others are multiple or nearly so, fill a continuum, or are nearer than {APART:.0e} to one of these"
    ) * (not solutions.complete)
    return _Lines(solutions.real, method, solutions.complete, others=solutions.others, note=note)


def _searched(tensor: Tensor, starts: int) -> _Lines:
    u, v, hits = search_attracting(tensor, starts)
    return _Lines(u, "power iteration", False, v if tensor.outputs > 1 else None, hits=hits, starts=starts)


def _assemble(restricted: Restricted, lines: _Lines, outputs: int) -> Directions:
    """Signs, order, attraction, and the way back to the coordinates of the caller."""
    tensor, p = restricted.tensor, restricted.tensor.p
    u, v = lines.u, np.ones((len(lines.u), 1)) if lines.v is None else lines.v
    largest = np.take_along_axis(u @ restricted.basis.T, np.abs(u @ restricted.basis.T).argmax(axis=1)[:, None], axis=1)
    u = u * np.where(largest < 0, -1, 1)
    value = np.einsum("lk,lk->l", v, tensor.value(u))
    turn = np.where(value < 0, -1, 1)
    if outputs > 1:
        v, value = v * turn[:, None], value * turn
    elif p % 2:
        u, value = u * turn[:, None], value * turn
    eigenvalues = _differences(value, v) if p == 2 and tensor.outputs == 1 else flow_eigenvalues(tensor, u, v)
    # Euler's number of the projective space; for odd p in even dimensions the lines' two orientations cancel
    euler = int(((-1) ** (eigenvalues > 0).sum(axis=1)).sum())
    fits = outputs > 1 or (p % 2 == 1 and tensor.dim % 2 == 0) or euler == tensor.dim % 2

    inert = len(restricted.basis) - tensor.dim + outputs - tensor.outputs
    eigenvalues = np.sort(np.concatenate([eigenvalues, np.repeat(-value[:, None], inert, axis=1)], axis=1), axis=1)
    up = (value > ATTRACTS) & (eigenvalues.max(axis=1, initial=-np.inf) < -ATTRACTS)
    down = (value < -ATTRACTS) & (eigenvalues.min(axis=1, initial=np.inf) > ATTRACTS)
    order = np.argsort(-np.abs(value), kind="stable")
    spaces = _spaces(tensor, value, u)
    single = tensor.outputs == 1
    others = np.zeros((0, tensor.dim), complex) if lines.others is None else lines.others
    exhaustive = lines.method != "power iteration" and single
    notes = [lines.note]
    if restricted.left_out:
        notes.append(
            f"directions in which the field is weaker than {SPAN:.0e} of the strongest, {restricted.left_out:.0e} of "
            "the whole field, are not zero but were left out with their lines"
        )
    if lines.complete and not fits:
        notes.append("the signs of the eigenvalues do not add up to Euler's number: some are rounding")
    return Directions(
        p=p,
        directions=(u @ restricted.basis.T)[order],
        values=value[order] * restricted.scale,
        eigenvalues=eigenvalues[order] * restricted.scale,
        attracts_positive=up[order],
        attracts_negative=(up if p % 2 or outputs > 1 else down)[order],
        method=lines.method,
        certified=lines.complete and fits and not restricted.left_out,
        outside=0 if p == 1 and single else len(restricted.basis) - tensor.dim,
        generic_count=generic_count(p, tensor.dim) if single else None,
        complex_count=len(u) + len(others) if exhaustive else None,
        complex_directions=others @ restricted.basis.T,
        outputs=(v @ restricted.outputs.T)[order] if outputs > 1 else None,
        starts=lines.starts,
        hits=None if lines.hits is None else lines.hits[order],
        note="; ".join(filter(None, notes)),
        spaces=tuple(
            AttractingSpace(restricted.basis @ space.basis, space.value * restricted.scale, space.serves)
            for space in spaces
        ),
    )
