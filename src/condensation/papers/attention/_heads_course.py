"""What the heads of one seed do: how many directions their matrices have, what they attend to, what they give."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from ...measure import directions
from ...networks import Attention
from ...runs import Trajectory

PARTS = ("value", "query", "key")
ALIKE = 0.9  # cosine from which on two heads have one direction
CONDENSED = 0.9  # share of a block's heads in its 2^width largest groups
GROWN = 10  # times its first size: a matrix has left its initialization
SEQUENCES = 16  # on which attention and outputs are looked at


def group_sizes(vectors: Float[np.ndarray, "heads numbers"]) -> Int[np.ndarray, " groups"]:
    """Sizes of groups, the largest first: the first vector that is left takes all that are alike to it, and so on.

    >>> group_sizes(np.array([[1.0, 0.0], [-2.0, 0.0], [3.0, 0.1], [0.0, 1.0]]))
    array([2, 1, 1])
    """
    cosines = directions(vectors) @ directions(vectors).T
    left, sizes = np.ones(len(cosines), bool), []
    while left.any():
        first = int(left.argmax())
        taken = left & (cosines[first] > ALIKE)
        taken[first] = True
        sizes.append(int(taken.sum()))
        left &= ~taken
    return np.sort(np.array(sizes))[::-1]


def alike_in_both(one: Float[np.ndarray, "heads numbers"], other: Float[np.ndarray, "heads others"]) -> float:
    """Of the pairs of heads that are alike in one or the other, the share that is alike in both; NaN without any.

    >>> alike_in_both(np.eye(2)[[0, 0, 1]], np.eye(2)[[0, 0, 0]])  # of three pairs one
    0.3333333333333333
    """
    above = np.triu_indices(len(one), 1)
    first, second = ((directions(each) @ directions(each).T)[above] > ALIKE for each in (one, other))
    either = int((first | second).sum())
    return int((first & second).sum()) / either if either else float("nan")


@dataclass(frozen=True, eq=False)
class HeadsCourse:
    """One seed, at its saved steps."""

    run: Trajectory
    seed: int

    @property
    def network(self) -> Attention:
        """The transformer."""
        network = self.run.experiment.network
        assert isinstance(network, Attention)
        return network

    @property
    def most(self) -> int:
        """Two to the power of a head's width."""
        return 2**self.network.key_outputs

    @property
    def blocks(self) -> range:
        """Numbers of the blocks."""
        return range(1, self.network.depth + 1)

    def heads(self, part: str, block: int, place: int) -> Float[np.ndarray, "heads rows inputs"]:
        """The matrix of each head."""
        weight = self.run.parameters[f"{part}{block}.weight"][self.seed, place].astype(float)
        return weight.reshape(self.network.heads, -1, weight.shape[1])

    @cached_property
    def sizes(self) -> dict[str, list[list[Int[np.ndarray, " groups"]]]]:
        """Sizes of the groups of heads of each part: by block, by saved step."""
        places = range(len(self.run.saved))
        return {
            part: [
                [group_sizes(self.heads(part, block, place).reshape(self.network.heads, -1)) for place in places]
                for block in self.blocks
            ]
            for part in PARTS
        }

    def counts(self, part: str) -> Int[np.ndarray, "blocks saved"]:
        """Directions of a part's heads."""
        return np.array([[len(sizes) for sizes in block] for block in self.sizes[part]])

    def moments(self, part: str) -> Int[np.ndarray, " blocks"]:
        """The place of the saved step at which each block has the fewest directions, the first such."""
        return self.counts(part).argmin(axis=1)

    def fewest(self, part: str) -> int:
        """The directions at that step, of the block that has most."""
        return int(self.counts(part).min(axis=1).max())

    def held(self, part: str) -> float:
        """The share of the heads that the 2^width largest groups hold there, of the block that has least."""
        found = [
            block[place][: self.most].sum() for block, place in zip(self.sizes[part], self.moments(part), strict=True)
        ]
        return float(min(found)) / self.network.heads

    def condensed(self, parts: tuple[str, ...] = PARTS) -> bool:
        """Whether these parts of all blocks are so at some saved step."""
        return all(self.held(part) >= CONDENSED for part in parts)

    def _at_moments(self, parts: tuple[str, ...]) -> Iterator[Float[np.ndarray, "heads rows inputs"]]:
        for part in parts:
            for block, place in zip(self.blocks, self.moments(part), strict=True):
                yield self.heads(part, block, int(place))

    def on_line(self, parts: tuple[str, ...] = PARTS) -> float:
        """Median |cosine| of the rows of a block with its top singular vector, of the block that has least."""
        found = []
        for heads in self._at_moments(parts):
            rows = directions(heads.reshape(-1, heads.shape[2]))
            found.append(np.median(np.abs(rows @ _top(rows))))
        return float(min(found))

    @cached_property
    def line_signs(self) -> list[float]:
        """The cosine of that vector with its own signs, by part and block."""
        tops = [_top(directions(heads.reshape(-1, heads.shape[2]))) for heads in self._at_moments(PARTS)]
        return [float(np.abs(top).sum() / np.sqrt(len(top))) for top in tops]

    @property
    def on_signs(self) -> float:
        """Their median."""
        return float(np.median(self.line_signs))

    def evenness(self, parts: tuple[str, ...] = PARTS) -> float:
        """The least norm of a head's rows over the largest: median over heads, of the block that has least."""
        norms = (np.linalg.norm(heads, axis=2) for heads in self._at_moments(parts))
        return float(min(np.median(own.min(axis=1) / own.max(axis=1)) for own in norms))

    @property
    def later(self) -> float:
        """Directions of the values at the end over the fewest, of the block whose fewest are most."""
        return float(self.counts("value")[:, -1].max() / self.fewest("value"))

    @property
    def fewest_grown(self) -> float:
        """The fewest directions of the values of any block that has grown; NaN where none has."""
        found = []
        for block in self.blocks:
            sizes = np.linalg.norm(self.run.parameters[f"value{block}.weight"][self.seed], axis=(1, 2))
            found += [*self.counts("value")[block - 1][sizes >= GROWN * sizes[0]]]
        return float(min(found)) if found else float("nan")

    @cached_property
    def sequences(self) -> np.ndarray:
        """Some of the sequences that are trained on."""
        return self.run.data(self.run.seeds[self.seed])[0][:SEQUENCES]

    def unevenness_of_attention(self, parts: tuple[str, ...] = PARTS) -> tuple[float, float]:
        """Distance of a pattern's entries from the mean over what it may read, relative to it: largest and median.

        At the last of the steps at which one of these parts of a block has the fewest directions.
        """
        last = max(int(self.moments(part).max()) for part in parts)
        model = self.network.assemble(self._parameters(last))
        found = []
        for pattern in model.patterns(jnp.asarray(self.sequences)):
            seen = np.arange(self.network.length - pattern.shape[2], self.network.length) + 1
            reads = np.arange(self.network.length) < seen[:, None]
            found.append(np.abs(np.asarray(pattern) * seen[:, None] - 1)[..., reads].ravel())
        distances = np.concatenate(found)
        return float(distances.max()), float(np.median(distances))

    @property
    def outputs_follow(self) -> float:
        """How far heads are alike in what they give where they are alike in the values: a median over sequences.

        Of the block that has least, each at its own step. The last block gives something to one token alone.
        """
        found = []
        for block, place in list(zip(self.blocks, self.moments("value"), strict=True))[:-1]:
            model = self.network.assemble(self._parameters(int(place)))
            x = jnp.asarray(self.sequences)
            tokens, patterns = (np.asarray(each[block - 1], float) for each in (model.tokens(x), model.patterns(x)))
            values = np.einsum("nik,hrk->nhir", tokens, self.heads("value", block, int(place)))
            outputs = np.einsum("nhij,nhjr->nhir", patterns, values)
            shares = [
                alike_in_both(v.reshape(len(v), -1), o.reshape(len(o), -1))
                for v, o in zip(values, outputs, strict=True)
            ]
            found.append(np.nan if np.isnan(shares).all() else np.nanmedian(shares))
        return float(np.min(found))

    def _parameters(self, place: int) -> dict[str, np.ndarray]:
        return {name: own[self.seed, place] for name, own in self.run.parameters.items()}


def _top(rows: Float[np.ndarray, "rows inputs"]) -> Float[np.ndarray, " inputs"]:
    """The top singular vector on the inputs' side."""
    return np.linalg.eigh(rows.T @ rows)[1][:, -1]
