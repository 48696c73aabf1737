"""What one seed of the anchor task or of text does: stages by the loss, changes, spectra, and what is known ahead."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from ..._device import cores
from ..._precision import precision
from ...measure._rank import ranks_of
from ...measure._spectrum import Spectrum as Sizes
from ...networks import Attention
from ...runs import Trajectory

OUTER, ATTENTION = ("value1", "up1", "down1"), ("query1", "key1")
LEFT, REACHED = 0.1, 0.9  # shares of the way down to the plateau at which the first stage ends, and the plateau begins
BELOW = 0.1  # share of that way below the plateau at which it is over
SAMPLES = 2000  # of which F is a mean


class Spectrum(NamedTuple):
    """Singular values, the largest last, and the largest one's vector on the inputs' side."""

    values: Float[np.ndarray, " number"]
    top: Float[np.ndarray, " inputs"]

    @property
    def effective_rank(self) -> float:
        """The exponential of the entropy of the singular values' shares."""
        values = self.values[self.values > 0]
        return ranks_of(Sizes(values, np.ones(len(values))))[0]


def spectrum_of(weights: Float[np.ndarray, "units inputs"]) -> Spectrum:
    """By the smaller product, which is exact enough in float64 and several times as fast as a decomposition.

    >>> found = spectrum_of(np.array([[0.0, 2.0], [0.0, 0.0], [1.0, 0.0]]))
    >>> found.values, np.abs(found.top)
    (array([1., 2.]), array([0., 1.]))
    """
    weights = weights.astype(float)
    wide = weights.shape[0] < weights.shape[1]
    squares, vectors = np.linalg.eigh(weights @ weights.T if wide else weights.T @ weights)
    top = weights.T @ vectors[:, -1] if wide else vectors[:, -1]
    return Spectrum(np.sqrt(np.maximum(squares, 0)), top / np.linalg.norm(top))


@dataclass(frozen=True, eq=False)
class AnchorCourse:
    """One seed, at its saved steps."""

    run: Trajectory
    seed: int

    def weights(self, layer: str) -> Float[np.ndarray, "saved units inputs"]:
        """A layer at all saved steps."""
        return self.run.parameters[f"{layer}.weight"][self.seed]

    @cached_property
    def data(self) -> tuple[Int[np.ndarray, "samples length"], Int[np.ndarray, " samples"]]:
        """Sequences, and the token that is the target of each."""
        x, y = self.run.data(self.run.seeds[self.seed])
        return x.astype(np.int32), y.argmax(axis=1).astype(np.int32)

    @property
    def outer(self) -> tuple[str, ...]:
        """The outer weights of all blocks."""
        return self._of_blocks(OUTER)

    @property
    def attention(self) -> tuple[str, ...]:
        """Queries and keys of all blocks."""
        return self._of_blocks(ATTENTION)

    def _of_blocks(self, layers: tuple[str, ...]) -> tuple[str, ...]:
        network = self.run.experiment.network
        assert isinstance(network, Attention)
        return tuple(f"{layer[:-1]}{block}" for block in range(1, network.depth + 1) for layer in layers)

    @property
    def vocabulary(self) -> int:
        """Number of tokens."""
        return self.run.experiment.network.outputs

    @cached_property
    def plateau(self) -> float:
        """The loss of the best answer that reads nothing: the entropy of the targets. Known before training."""
        counts = np.bincount(self.data[1])
        shares = counts[counts > 0] / counts.sum()
        return float(-(shares * np.log(shares)).sum())

    @cached_property
    def way(self) -> Float[np.ndarray, " recorded"]:
        """How much of the way from the first loss down to the plateau is gone, at each recorded step."""
        loss = self.run.loss[self.seed].astype(float)
        return (loss[0] - loss) / (loss[0] - self.plateau)

    @cached_property
    def saved_way(self) -> Float[np.ndarray, " saved"]:
        """The same at the saved steps."""
        return self.way[np.searchsorted(self.run.recorded, self.run.saved)]

    def _first(self, share: float) -> int | None:
        """The first saved step at which so much of the way is gone."""
        gone = self.saved_way >= share
        return int(gone.argmax()) if gone.any() else None

    @cached_property
    def stage_1(self) -> int | None:
        """The saved step that ends the first stage, the last one before the loss falls; None if it never does."""
        first = self._first(LEFT)
        return None if first is None or first < 2 else first - 1

    @cached_property
    def on_plateau(self) -> tuple[int, int] | None:
        """The first and the last saved step on the plateau; None if it is never reached, or left at once."""
        first, after = self._first(REACHED), self._first(1 + BELOW)
        last = len(self.saved_way) - 1 if after is None else after - 1
        return None if first is None or self.stage_1 is None or last <= first else (first, last)

    @property
    def has_stages(self) -> bool:
        """Whether there are a first stage and a plateau."""
        return self.stage_1 is not None and self.on_plateau is not None

    @property
    def ends(self) -> tuple[int, int, int]:
        """Saved steps: the end of the first stage, the begin and the end of the plateau, where there are both."""
        assert self.stage_1 is not None
        assert self.on_plateau is not None
        return self.stage_1, *self.on_plateau

    @cached_property
    def attention_over_outer(self) -> Float[np.ndarray, " intervals"]:
        """Relative change of queries and keys over that of the outer weights, from saved step to saved step."""
        return np.array([self.over_outer(k, k + 1) for k in range(len(self.run.saved) - 1)])

    @cached_property
    def spectra(self) -> dict[str, list[Spectrum]]:
        """Of each layer at each saved step; one that has not moved is not decomposed again."""
        found: dict[str, list[Spectrum]] = {}
        with ThreadPoolExecutor(cores()) as pool:  # BLAS may have one thread only
            for layer in (*self.outer, *self.attention):
                weights = self.weights(layer)
                moved = [k == 0 or not np.array_equal(each, weights[k - 1]) for k, each in enumerate(weights)]
                own = list(pool.map(spectrum_of, weights[moved]))
                found[layer] = [own[k] for k in np.cumsum(moved) - 1]
        return found

    def ranks(self, layer: str) -> Float[np.ndarray, " saved"]:
        """Effective rank at each saved step."""
        return np.array([each.effective_rank for each in self.spectra[layer]])

    def share(self, layer: str, step: int) -> float:
        """Effective rank at a saved step over the first."""
        return float(self.ranks(layer)[step] / self.ranks(layer)[0])

    def change(self, layers: tuple[str, ...], begin: int, end: int) -> float:
        """How far the layers together move between two saved steps, over their norm at the first of them."""
        pairs = [(self.weights(layer)[begin], self.weights(layer)[end]) for layer in layers]
        moved, size = sum(np.sum((b - a) ** 2) for a, b in pairs), sum(np.sum(a**2) for a, _ in pairs)
        return float(np.sqrt(moved / size))

    def over_outer(self, begin: int, end: int) -> float:
        """That of queries and keys over that of the outer weights; NaN where these do not move."""
        outer = self.change(self.outer, begin, end)
        return self.change(self.attention, begin, end) / outer if outer > 0 else np.nan

    @cached_property
    def halved(self) -> int | None:
        """The first saved step at which W_Q's effective rank is half of the first; None if it never is."""
        below = self.ranks("query1") <= 0.5 * self.ranks("query1")[0]
        return int(below.argmax()) if below.any() else None

    def abruptness(self, layer: str = "query1") -> float:
        """The steps in which a layer's effective rank falls from 0.9 to half of the first, over the first stage's."""
        shares, steps = self.ranks(layer) / self.ranks(layer)[0], self.run.saved.astype(float)
        if self.stage_1 is None or shares.min() > 0.5:
            return np.nan
        falling = np.minimum.accumulate(shares)[::-1]
        begin, end = np.interp([0.9, 0.5], falling, steps[::-1])
        return float((end - begin) / steps[self.stage_1])

    def turns(self, layers: tuple[str, ...]) -> Float[np.ndarray, " intervals"]:
        """The least |cosine| of the layers' top singular vectors between a saved step and the next."""
        each = [[own.top for own in self.spectra[layer]] for layer in layers]
        return np.min([[abs(a @ b) for a, b in pairwise(own)] for own in each], axis=0)

    def on_line(self, line: Float[np.ndarray, " width"], step: int, layer: str = "value1") -> float:
        """Median |cosine| of W_V's columns with a line."""
        columns = self.weights(layer)[step].astype(float)
        return float(np.median(np.abs(columns @ line) / np.linalg.norm(columns, axis=1) / np.linalg.norm(line)))

    def parameters(self, step: int) -> dict[str, np.ndarray]:
        """All parameters at a saved step: what is not trained is not kept, and is that of the first step."""
        own = {name: values[self.seed, step] for name, values in self.run.parameters.items()}
        return self.run.experiment.initial_model(self.run.seeds[self.seed]).parameters | own

    @cached_property
    def mean_token(self) -> Float[np.ndarray, " width"]:
        r"""The line of W_V's columns: the top left singular vector of $\sum_i \bar x_i (y_i - 1/K)^T R$.

        $\bar x_i$ is the mean token of a sequence, which uniform attention passes on, K the number of tokens and R the
        readout: the gradient by $W_V$ of small weights is a sum of $\bar x_i$ with these weights.
        """
        (x, y), first = self.data, self.parameters(0)
        (n, length), number = x.shape, self.vocabulary
        pairs = np.bincount((x * number + y[:, None]).ravel(), minlength=number**2).reshape(number, number) / length
        wrong = pairs - pairs.sum(axis=1, keepdims=True) / number  # a row for each token that is read
        mean = np.bincount(y, minlength=number) - n / number
        read = first["embedding.weight"].T @ wrong + np.outer(first["positions.weight"].mean(axis=0), mean)
        return np.linalg.svd(read @ first["output.weight"])[0][:, 0]

    def query_key_matrix(self, step: int) -> Float[np.ndarray, "width width"]:
        """F: minus the gradient by W_Q^T W_K, where that is zero, of the loss of the other weights at a saved step."""
        network = self.run.experiment.network
        assert isinstance(network, Attention)
        merged = replace(network, merged=True, head_width=None, value_width=network.value_outputs, scale=network.factor)
        rest = {name: v.astype(float) for name, v in self.parameters(step).items() if not name.startswith(ATTENTION)}
        x, y = (part[:SAMPLES] for part in self.data)
        tokens = x.astype(float)

        def loss(product: jax.Array) -> jax.Array:
            targets = jax.nn.one_hot(y, self.vocabulary)
            return self.run.experiment.loss(merged.assemble(rest | {"key_query1.weight": product})(tokens), targets)

        with precision("float64"):
            return -np.asarray(jax.grad(loss)(np.zeros((network.width, network.width))))

    @cached_property
    def matrix(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """F of the outer weights at the end of the first stage: left vectors, singular values, right vectors."""
        assert self.stage_1 is not None
        left, values, right = np.linalg.svd(self.query_key_matrix(self.stage_1))
        return left.T, values, right

    @property
    def on_matrix(self) -> float:
        """The lesser |cosine| of W_Q's and W_K's top vectors with those of F, where W_Q's effective rank is halved."""
        if self.stage_1 is None or self.halved is None:
            return np.nan
        tops = [self.spectra[layer][self.halved].top for layer in ATTENTION]
        return float(min(abs(tops[0] @ self.matrix[0][0]), abs(tops[1] @ self.matrix[2][0])))

    @property
    def accuracy(self) -> float:
        """On held-out sequences, at the end."""
        return float(self.run.curves["test_accuracy"][self.seed, -1])
