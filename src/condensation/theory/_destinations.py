"""Lines on which neurons can end, on the sphere (gradient flow) or on the cube (sign descent), and their sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from .._display import Shown, entries, short_number
from .._phrases import plural
from .._sketch import bars
from ..errors import InputError


class AttractingSpace(NamedTuple):
    """A space of directions of one value that attract together: each neuron comes to a direction of its own in it."""

    basis: Float[np.ndarray, "inputs dimension"]  # orthonormal
    value: float
    serves: tuple[int, ...]  # the signs of a c that it attracts


MOST_SHOWN = 4  # lines that are told of when their directions are printed


@dataclass(frozen=True, eq=False, kw_only=True)
class AttractingLines(Shown):
    r"""Lines {u, -u} of the leading order, of largest |F| first, and which of them attract.

    For odd p a row is written with the u of $F(u) \ge 0$: u serves s = sign(a c) = +1 and -u serves s = -1. For even p
    both u and -u serve the same sign, that of F(u). Where ``oriented`` is true a row is u alone (relu).

    Attributes:
        p: multiplicity, or degree of homogeneity.
        directions: unit vectors u, or points of the cube with $\max_i |u_i| = 1$.
        values: F(u).
        attracts_positive: whether the line attracts neurons with a c > 0.
        attracts_negative: whether it attracts neurons with a c < 0.
        method: how the lines were found.
        certified: whether these are provably all there are, but for rounding errors: a field is zero if it is smaller
            than 1e-13 of the terms it is a sum of. On the sphere lines nearer than 1e-6 are not told apart, and
            directions whose field is weaker than 1e-10 of the strongest are left out; then nothing is certified.
        note: a sentence where lines are missing or not isolated, else empty.
        oriented: whether a row is an orientation and not a line.
        spaces: what attracts in place of a line, where the largest value is that of several directions.
        outputs: where there are several outputs, the output weights v that go with each line: unit vectors, or signs
            on the cube. A row is then a pair (u, v) that serves c > 0; (u, -v) serves c < 0, and with it go (-u, -v)
            for odd p and (-u, v) for even p.
    """

    p: int
    directions: Float[np.ndarray, "lines inputs"]
    values: Float[np.ndarray, " lines"]
    attracts_positive: Bool[np.ndarray, " lines"]
    attracts_negative: Bool[np.ndarray, " lines"]
    method: str
    certified: bool
    note: str = ""
    oriented: bool = False
    spaces: tuple[AttractingSpace, ...] = ()
    outputs: Float[np.ndarray, "lines outputs"] | None = None

    @property
    def count(self) -> int:
        """Number of lines (orientations where ``oriented``)."""
        return len(self.values)

    @property
    def attracts(self) -> Bool[np.ndarray, " lines"]:
        """Which lines attract neurons with a c > 0, or with a c < 0, or both."""
        return self.attracts_positive | self.attracts_negative

    def _title(self) -> str:
        noun, number = "orientation" if self.oriented else "line", int(self.attracts.sum())
        return (
            f"{type(self).__name__}: {plural(self.count, noun)} of {plural(self.directions.shape[1], 'input')}, "
            f"{number} of them attract{'s' * (number == 1)} (p = {self.p})"
        )

    def _facts(self) -> dict[str, str]:
        facts = {"method": f"{self.method}, {'certified' if self.certified else 'not certified'}"}
        for k in range(min(self.count, MOST_SHOWN)):
            signs = ["a c > 0"] * bool(self.attracts_positive[k]) + ["a c < 0"] * bool(self.attracts_negative[k])
            attracts = f"attracts {' and '.join(signs)}" if signs else "does not attract"
            facts[f"line {k + 1}"] = (
                f"F = {short_number(self.values[k])}, {attracts}, u = {entries(self.directions[k], 4)}"
            )
        if self.count > MOST_SHOWN:
            facts["others"] = f"{self.count - MOST_SHOWN}, F from {short_number(self.values[-1])}"
        spaces = ", ".join(str(space.basis.shape[1]) for space in self.spaces)
        return facts | {"spaces": f"of {spaces} dimensions attract" if spaces else "", "note": self.note}

    def _picture(self) -> str:
        return bars(self.values, label="F of each line", strong=self.attracts.tolist())

    def attracting(self, sign: int) -> Bool[np.ndarray, " lines"]:
        """Which lines attract neurons with a c of the given sign."""
        if sign not in (1, -1):
            raise InputError(f"the sign of a c is 1 or -1, not {sign!r}")
        return self.attracts_positive if sign == 1 else self.attracts_negative

    def sides(self, sign: int) -> tuple[int, ...]:
        """The sides of an attracting line on which neurons with a c of the given sign end."""
        if self.oriented:
            return (1,)
        return (sign,) if self.p % 2 and self.outputs is None else (1, -1)

    def orientations(self, sign: int) -> Float[np.ndarray, "orientations inputs"]:
        """Orientations that attract neurons with a c of the given sign (with several outputs: c of that sign)."""
        u = self.directions[self.attracting(sign)]
        return np.concatenate([side * u for side in self.sides(sign)])

    def check_network(self, p: int, inputs: int, outputs: int = 1) -> None:
        """Refuse a network of another multiplicity, or of another number of inputs or outputs."""
        own = self.p, self.directions.shape[1], 1 if self.outputs is None else self.outputs.shape[1]
        if own != (p, inputs, outputs):
            both = (own, (p, inputs, outputs))
            texts = [f"p = {power}, {plural(n, 'input')} and {plural(k, 'output')}" for power, n, k in both]
            raise InputError(f"the directions are of {texts[0]}, the network has {texts[1]}")


@dataclass(frozen=True, eq=False)
class Destinations:
    """The orientations that attract neurons, one entry for each sign of a c that one serves."""

    points: Float[np.ndarray, "ends inputs"]  # unit vectors, or points of the cube
    serves: Int[np.ndarray, " ends"]  # the sign of a c
    line: Int[np.ndarray, " ends"]
    side: Int[np.ndarray, " ends"]  # +1 along the line's direction, -1 against it

    @staticmethod
    def of(lines: AttractingLines) -> Destinations:
        """The destinations on some lines."""
        rows = []
        for sign in (1, -1):
            attracting = np.flatnonzero(lines.attracting(sign))
            rows += [(sign, line, side) for line in attracting for side in lines.sides(sign)]
        serves, line, side = np.array(rows, int).reshape(-1, 3).T
        return Destinations(side[:, None] * lines.directions[line], serves, line, side)


def count_fates(
    lines: Int[np.ndarray, " units"], signs: Int[np.ndarray, " units"], flips: Bool[np.ndarray, " units"]
) -> dict[str, str]:
    """How many neurons come to each of the first lines, along it and against it, and how many flip."""
    facts = {}
    for line in np.unique(lines[lines >= 0])[:MOST_SHOWN]:
        along, against = (int(((lines == line) & (signs == sign)).sum()) for sign in (1, -1))
        facts[f"line {line + 1}"] = f"{plural(along + against, 'neuron')}, {along} along it and {against} against it"
    return facts | {"no line": str(int((lines < 0).sum())), "flips": f"{int(flips.sum())} change the sign of a"}


def fates_picture(lines: Int[np.ndarray, " units"], directions: AttractingLines) -> str:
    """The number of neurons that come to each line."""
    counts = np.bincount(lines[lines >= 0], minlength=directions.count)
    return bars(counts, label="neurons by line", strong=directions.attracts.tolist())
