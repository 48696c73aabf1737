"""Sequences of tokens: anchor functions, linear regression in context, and random tokens with random labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float

from .._memory import in_digits, require
from .._phrases import counted, listed
from .._serialization import Count, Part, Positive
from ..errors import InputError, one_of
from ..seeds import Seed
from ._sampling import rotation

SIDES = ("before", "after")
PLACES = ("any", "trained", "held_out")


class Tokens(Part):
    """Data of n sequences of length tokens, each with one token of a vocabulary as its target."""

    n: Any
    length: Any
    vocabulary: Any

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of a sample."""
        return (self.length,)

    @property
    def outputs(self) -> int:
        """Numbers of a target: one for each token."""
        return self.vocabulary

    @property
    def most_samples(self) -> int:
        """Number of samples."""
        return self.n


@dataclass(frozen=True)
class AnchorFunctions(Tokens, kind="anchor_functions"):
    """Sequences of keys with anchors at a random place; the target is the key beside them, shifted by each anchor.

    With one anchor a and its key behind it: ..., a, x, ... has the target x + shift(a). Several anchors stand side by
    side, and their shifts are added, unless their own shift is given.

    >>> data = AnchorFunctions(n=2, vocabulary=60, length=4, shifts=((1, 1), (2, 0)), keys=(10, 50))
    >>> x, y = data.draw(Seed(0, 0))
    >>> x.shape, y.shape
    ((2, 4), (2, 60))

    Args:
        n: number of sequences.
        vocabulary: number of tokens; the target is a row of one 1 and zeros.
        length: tokens in a sequence.
        shifts: the shift of each anchor, pairs of token and shift. By default the anchors 1 to 4 add a mod 2.
        keys: the least and the largest token of the others.
        count: anchors side by side in a sequence.
        side: where the key stands, ``"after"`` or ``"before"`` the anchors.
        own_shifts: shifts of whole groups of anchors, in the place of the sum: ``((3, 4, -6),)`` for the group (3, 4).
        only: the groups of anchors that are drawn; all of them if not given.
        places: where a key may stand with its anchors. With P places in a sequence (length - count of them, from 0)
            ``"held_out"`` draws the keys x with x mod P = place alone, ``"trained"`` all others: for test sequences of
            keys that were never seen at their place.
    """

    n: Count
    vocabulary: Count = 201
    length: Count = 10
    shifts: tuple[tuple[int, int], ...] = ((1, 1), (2, 0), (3, 1), (4, 0))
    keys: tuple[int, int] = (5, 100)
    count: Count = 1
    side: Annotated[str, one_of("side", SIDES)] = "after"
    own_shifts: tuple[tuple[int, ...], ...] = ()
    only: tuple[tuple[int, ...], ...] = ()
    places: Annotated[str, one_of("places", PLACES)] = "any"

    def __post_init__(self) -> None:
        super().__post_init__()
        anchors, (low, high) = dict(self.shifts), self.keys
        if not anchors or low > high or any(low <= anchor <= high for anchor in anchors):
            raise InputError(f"anchors must lie apart from the keys {low} to {high}, not at {listed(anchors)}")
        told = [f"anchor {anchor}" for anchor, _ in self.shifts] + [f"group {own[:-1]}" for own in self.own_shifts]
        for name in told:
            if told.count(name) > 1:
                raise InputError(f"the {name} has more than one shift: one would do")
        if self.length < self.count + 1:
            raise InputError(f"a sequence of {self.length} has no place for {counted(self.count, 'anchor')} and a key")
        count = self.length - self.count
        if self.places != "any" and not (count > 1 and high - low >= count - 1):
            raise InputError(
                f"places = {self.places!r} tells keys apart by their remainder modulo {counted(count, 'place')}: at "
                f"least two places and as many keys would do, not the keys {low} to {high}"
            )
        for group in (*self.only, *(own[:-1] for own in self.own_shifts)):
            if len(group) != self.count or not set(group) <= set(anchors):
                raise InputError(f"{group} is not a group of {self.count} of the anchors {listed(anchors)}")
        reached = [*anchors, low, high, *(side + self._shift(group) for group in self._groups() for side in self.keys)]
        if min(reached) < 0 or max(reached) >= self.vocabulary:
            raise InputError(
                f"tokens and targets from {min(reached)} to {max(reached)} do not fit a vocabulary of "
                f"{self.vocabulary}: they count from 0"
            )

    def _groups(self) -> list[tuple[int, ...]]:
        """The groups of anchors that are drawn."""
        grid = np.meshgrid(*[[anchor for anchor, _ in self.shifts]] * self.count, indexing="ij")
        return list(self.only) or [tuple(map(int, group)) for group in np.stack(grid, -1).reshape(-1, self.count)]

    def _shift(self, group: tuple[int, ...]) -> int:
        own = {tuple(each[:-1]): each[-1] for each in self.own_shifts}
        return own[group] if group in own else sum(dict(self.shifts)[anchor] for anchor in group)

    def draw(self, seed: Seed) -> tuple[Float[np.ndarray, "samples length"], Float[np.ndarray, "samples vocabulary"]]:
        """The sequences, and the target of each."""
        drawn = f"drawing {in_digits(self.n)} sequences with targets of {in_digits(self.vocabulary)} tokens"
        require(2 * 8 * self.n * (self.length + self.vocabulary), drawn, "a smaller n would fit")
        stream, groups = seed.data_stream(), np.array(self._groups())
        x = stream.integers(self.keys[0], self.keys[1] + 1, size=(self.n, self.length))
        chosen = stream.integers(len(groups), size=self.n)
        begin = stream.integers(self.length - self.count, size=self.n)  # of anchors and key together
        first = begin + (self.side == "before")
        rows = np.arange(self.n)
        x[rows[:, None], first[:, None] + np.arange(self.count)] = groups[chosen]
        key = begin + (self.count if self.side == "after" else 0)
        if self.places != "any":
            x[rows, key] = self._apart(stream, begin)
        shifts = np.array([self._shift(tuple(map(int, group))) for group in groups])
        y = np.zeros((self.n, self.vocabulary))
        y[rows, x[rows, key] + shifts[chosen]] = 1
        return x.astype(float), y

    def _apart(self, stream: np.random.Generator, begin: np.ndarray) -> np.ndarray:
        """Keys that are drawn for their place: with its remainder, or with another one."""
        keys, count = np.arange(self.keys[0], self.keys[1] + 1), self.length - self.count
        drawn = np.empty_like(begin)
        for place in range(count):
            own, here = (keys % count == place) == (self.places == "held_out"), begin == place
            drawn[here] = stream.choice(keys[own], size=int(here.sum()))
        return drawn

    def describe(self) -> str:
        """The sequences in words.

        >>> AnchorFunctions(1000).describe()
        '1000 sequences of 10 tokens, keys 5 to 100, one anchor of 1 (+1), 2 (+0), 3 (+1), 4 (+0) before its key'
        """
        anchors = ", ".join(f"{anchor} ({shift:+d})" for anchor, shift in self.shifts)
        place = "before its key" if self.side == "after" else "behind its key"
        own = "".join(f", {own[:-1]} together {own[-1]:+d}" for own in self.own_shifts)
        only = f", of {counted(len(self.only), 'group')} only" if self.only else ""
        tokens = f"{counted(self.n, 'sequence')} of {self.length} tokens, keys {self.keys[0]} to {self.keys[1]}"
        held_out = {"any": "", "trained": ", but for", "held_out": ", only"}[self.places]
        modulo = f"{held_out} keys x with x mod {self.length - self.count} = place" if held_out else ""
        return f"{tokens}, {counted(self.count, 'anchor')} of {anchors} {place}{own}{only}{modulo}"


@dataclass(frozen=True)
class InContextRegression(Part, kind="in_context_regression"):
    r"""Sequences $(x_1, w^T x_1), ..., (x_N, w^T x_N), (x_q, 0)$ with the target $w^T x_q$: w is another one in each.

    The x are $N(0, \Lambda)$, the w $N(0, I)$.

    >>> x, y = InContextRegression(n=100, eigenvalues=(0.4, 0.3, 0.2, 0.1), context=31).draw(Seed(0, 0))
    >>> x.shape, y.shape
    ((100, 32, 5), (100, 1))

    Args:
        n: number of sequences.
        eigenvalues: those of Λ.
        context: number N of tokens with a target.
        rotated: Λ has random eigenvectors, by the data seed; else the coordinates are.
        whitened: the w of the n sequences have mean zero and covariance I exactly, not only on average.
    """

    n: Count
    eigenvalues: tuple[Positive, ...]
    context: Count
    rotated: bool = False
    whitened: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.eigenvalues:
            raise InputError("at least one eigenvalue is needed, not eigenvalues=()")
        if self.whitened and self.n <= self.dim:
            raise InputError(
                f"{counted(self.n, 'vector')} of {self.dim} coordinates cannot be whitened: more are needed"
            )

    @property
    def dim(self) -> int:
        """Coordinates of an x."""
        return len(self.eigenvalues)

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of a sample: tokens, and their coordinates."""
        return (self.context + 1, self.dim + 1)

    @property
    def outputs(self) -> int:
        """Number of targets of a sample."""
        return 1

    @property
    def most_samples(self) -> int:
        """Number of samples."""
        return self.n

    def axes(self, seed: Seed) -> Float[np.ndarray, "dim dim"]:
        """The eigenvectors of Λ, one a row."""
        return rotation(self.dim, seed.task).T if self.rotated else np.eye(self.dim)

    def draw(self, seed: Seed) -> tuple[Float[np.ndarray, "samples tokens width"], Float[np.ndarray, "samples 1"]]:
        """The sequences, and the target of each."""
        size = self.n * (self.context + 1) * (self.dim + 1)
        require(3 * 8 * size, f"drawing {in_digits(self.n)} sequences", "a smaller n would fit")
        stream = seed.data_stream()
        x = stream.standard_normal((self.n, self.context + 1, self.dim)) * np.sqrt(self.eigenvalues) @ self.axes(seed)
        w = stream.standard_normal((self.n, self.dim))
        if self.whitened:
            w = w - w.mean(axis=0)
            left, _, right = np.linalg.svd(w, full_matrices=False)
            w = np.sqrt(self.n) * left @ right
        tokens = np.concatenate([x, np.einsum("ijk,ik->ij", x, w)[..., None]], axis=2)
        y = tokens[:, -1, -1:].copy()
        tokens[:, -1, -1] = 0
        return tokens, y

    def describe(self) -> str:
        """The sequences in words.

        >>> InContextRegression(5000, (0.4, 0.3, 0.2, 0.1), 31).describe()
        '5000 sequences of 31 pairs x, w x and a query, Λ with the eigenvalues 0.4, 0.3, 0.2, 0.1'
        """
        values = ", ".join(f"{value:g}" for value in self.eigenvalues)
        rotated = " and random eigenvectors" if self.rotated else ""
        white = ", w whitened" if self.whitened else ""
        pairs = f"{counted(self.n, 'sequence')} of {counted(self.context, 'pair')} x, w x and a query"
        return f"{pairs}, Λ with the eigenvalues {values}{rotated}{white}"


@dataclass(frozen=True)
class RandomSequences(Part, kind="random_sequences"):
    """Sequences of tokens from N(0, I), each with a random label of 1 or -1, for the loss ``"exponential"``.

    >>> x, y = RandomSequences(n=40, length=5, width=8).draw(Seed(0, 0))
    >>> x.shape, y.shape, np.unique(y)
    ((40, 5, 8), (40, 1), array([-1.,  1.]))

    Args:
        n: number of sequences.
        length: tokens in a sequence.
        width: coordinates of a token.
    """

    n: Count
    length: Count
    width: Count

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of a sample: tokens, and their coordinates."""
        return (self.length, self.width)

    @property
    def outputs(self) -> int:
        """Number of targets of a sample."""
        return 1

    @property
    def most_samples(self) -> int:
        """Number of samples."""
        return self.n

    def draw(self, seed: Seed) -> tuple[Float[np.ndarray, "samples tokens width"], Float[np.ndarray, "samples 1"]]:
        """The sequences, and the label of each."""
        size = self.n * self.length * self.width
        require(2 * 8 * size, f"drawing {in_digits(self.n)} sequences", "a smaller n would fit")
        stream = seed.data_stream()
        x = stream.standard_normal((self.n, self.length, self.width))
        return x, stream.choice([-1.0, 1.0], size=(self.n, 1))

    def describe(self) -> str:
        """The sequences in words.

        >>> RandomSequences(40, 5, 8).describe()
        '40 sequences of 5 tokens of N(0, I) in 8 coordinates, labels 1 and -1 by chance'
        """
        tokens = f"{counted(self.length, 'token')} of N(0, I) in {counted(self.width, 'coordinate')}"
        return f"{counted(self.n, 'sequence')} of {tokens}, labels 1 and -1 by chance"
