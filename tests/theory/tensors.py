"""Tensors with given entries, orthonormal matrices, and the leading-order motion of neurons: for the tests here."""

from itertools import combinations_with_replacement
from math import factorial

import numpy as np

from condensation.theory import Tensor
from condensation.theory._paths import NeuronDynamics


def samples_of(entries, dim, p, seed=0):
    """(x, r) with (1/n) sum r_i x_i^(tensor p) = T, T given by its entries {"112": value, ...}; others are zero."""
    indices = list(combinations_with_replacement(range(dim), p))
    x = np.random.default_rng(seed).normal(size=(len(indices), dim))
    wanted = [entries.get("".join(str(i + 1) for i in index), 0.0) for index in indices]
    monomials = np.array([np.prod(x[:, index], axis=1) for index in indices])
    return x, np.linalg.solve(monomials, wanted) * len(x)


def entries_of(function, dim, p):
    """Entries of the symmetric tensor of a homogeneous polynomial, by polarisation: exact but for rounding."""
    entries = {}
    for index in combinations_with_replacement(range(dim), p):
        total = 0.0
        for mask in range(2**p):
            signs = np.array([1 if mask >> k & 1 else -1 for k in range(p)])
            total += signs.prod() * function(np.eye(dim)[list(index)].T @ signs)
        entries["".join(str(i + 1) for i in index)] = total / (2**p * factorial(p))
    return entries


def rotation(dim, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0]


def same_lines(a, b):
    """The largest distance from a line of one set to the nearest of the other, both ways; signs do not count."""
    away = np.minimum(np.linalg.norm(a[:, None] - b, axis=2), np.linalg.norm(a[:, None] + b, axis=2))
    return max(away.min(axis=1).max(), away.min(axis=0).max())


def leading(x, residual, p, c):
    """The dynamics of neurons at leading order, for multiplicity p and coefficient c."""
    return NeuronDynamics(Tensor(x, residual[:, None] / len(x), p).field, p, c)
