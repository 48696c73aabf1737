"""What one seed of the theory's model does: the energy, its invariants, Assumption 1, ranks and singular vectors."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ...measure import effective_rank
from ...runs import Trajectory
from ...theory import query_key_matrix, value_direction
from ._data import WIDTH, matrix_at_plateau

OUTER, ATTENTION = ("value1", "dense1", "output"), ("query1", "key1")
STAGE_1 = 0.99  # of the first loss, where the first stage ends
SMALL = 0.999  # where the slope of the energy is taken
FALLEN = 0.9  # what counts as the blow-up


def rank(matrix: np.ndarray, share: float = 0.1) -> int:
    """Number of singular values of at least a share of the largest."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return int((values >= share * values[0]).sum())


@dataclass(frozen=True, eq=False)
class Course:
    """One seed, at its saved steps; in the words of the theory, weights in units of their first standard deviation."""

    run: Trajectory
    seed: int

    def weights(self, layer: str) -> np.ndarray:
        """A layer at all saved steps."""
        return self.run.history(layer)[self.seed]

    @cached_property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Sequences and labels."""
        x, y = self.run.data(self.run.seeds[self.seed])
        return x, y[:, 0]

    @cached_property
    def eps(self) -> float:
        """The first standard deviation."""
        return self.run.experiment.init.hidden.std  # type: ignore[union-attr]

    @cached_property
    def loss(self) -> np.ndarray:
        """The loss over the first."""
        return self.run.loss[self.seed] / self.run.loss[self.seed, 0]

    def before(self, share: float) -> int:
        """The last saved step before the loss falls below a share; the last one of all where it does not."""
        below = self.loss < share
        return max(int(below.argmax()) - 1, 1) if below.any() else len(self.loss) - 1

    @cached_property
    def scaled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """W_v, W1 and W2 at all saved steps, over the first standard deviation."""
        v, _ = value_direction(*self.data)
        outputs = self.weights("output")[:, 0]
        return (
            self.weights("value1") @ v / self.eps,
            self.weights("dense1").swapaxes(1, 2) / self.eps,
            outputs / self.eps,
        )

    @cached_property
    def time(self) -> np.ndarray:
        """The theory's time."""
        return self.eps * value_direction(*self.data)[1] * self.run.curves["time"][self.seed]

    @cached_property
    def energy(self) -> np.ndarray:
        """E = W_v W1 W2."""
        return np.einsum("tk,tkl,tl->t", *self.scaled)

    @cached_property
    def slopes(self) -> np.ndarray:
        """Slope of E^(-1/3) between saved steps; NaN where E is not positive or time does not pass."""
        root = np.where(self.energy > 0, self.energy, np.nan) ** (-1 / 3)
        passed = np.diff(self.time)
        return np.diff(root) / np.where(passed > 0, passed, np.nan)

    @property
    def last_slope(self) -> float:
        """The slope at the end of the small regime."""
        return float(self.slopes[self.before(SMALL) - 1])

    @property
    def largest_slope(self) -> float:
        """The largest one until then."""
        slopes = self.slopes[: self.before(SMALL)]
        return float(np.nanmax(slopes)) if np.isfinite(slopes).any() else np.nan

    @property
    def blow_up(self) -> float:
        """The time of the blow-up, that is of the loss's fall; NaN where there is none."""
        fallen = self.loss < FALLEN
        return float(self.time[fallen.argmax()]) if fallen.any() else np.nan

    @property
    def over_bound(self) -> float:
        """That time over E(0)^(-1/3)."""
        return self.blow_up * self.energy[0] ** (1 / 3) if self.energy[0] > 0 else np.nan

    @property
    def drift(self) -> float:
        """Largest change of the invariants until E is 100 times as large, over their first size."""
        wv, w1, w2 = (value**2 for value in self.scaled)
        both = np.concatenate([wv - w1.sum(axis=2), w2 - w1.sum(axis=1)], axis=1)
        grown = self.energy > 100 * abs(self.energy[0])
        if not grown.any():
            return np.nan
        return float(np.abs(both[: grown.argmax() + 1] - both[0]).max() / np.sqrt((both[0] ** 2).mean()))

    @cached_property
    def shares(self) -> np.ndarray:
        """Share of Assumption 1's inequalities that are true, at each saved step."""
        wv, w1, w2 = self.scaled
        single = [w2 * np.einsum("tk,tkl->tl", wv, w1), wv * np.einsum("tkl,tl->tk", w1, w2)]
        columns, rows = w2[:, :, None] * w1.swapaxes(1, 2), wv[:, :, None] * w1
        pairs = [(part @ part.swapaxes(1, 2)).reshape(len(part), -1) for part in (columns, rows)]
        return (np.concatenate([*single, *pairs], axis=1) > 0).mean(axis=1)

    @property
    def assumed_from(self) -> int | None:
        """The first saved step at which all of them are true."""
        return int((self.shares == 1).argmax()) if (self.shares == 1).any() else None

    @property
    def output_there(self) -> float:
        """The largest output on the data at that step; NaN where it never comes true."""
        if self.assumed_from is None:
            return np.nan
        model = self.run.model(int(self.run.saved[self.assumed_from]), self.run.seeds[self.seed])
        return float(np.abs(model(self.data[0])).max())

    @property
    def outer_rate(self) -> float:
        """The speed of W2 over its squared norm, by the leading order, at the end of the small regime."""
        wv, w1, w2 = (part[self.before(SMALL)] for part in self.scaled)
        return float(np.linalg.norm(w1.T @ wv) / (w2 @ w2))

    @property
    def least_parallel(self) -> float:
        """Least cosine of two rows W_v,i W1_i there, of those of at least a tenth of the largest norm."""
        wv, w1, _ = (part[self.before(SMALL)] for part in self.scaled)
        rows = wv[:, None] * w1
        norms = np.linalg.norm(rows, axis=1)
        grown = (rows / norms[:, None])[norms >= 0.1 * norms.max()]
        return float((grown @ grown.T).min())

    @property
    def largest_rise(self) -> float:
        """Largest rise of W_V's effective rank between fifty saved steps of the first stage, over its first one."""
        steps = np.linspace(0, self.before(STAGE_1), 50).astype(int)
        ranks = np.array([effective_rank(self.weights("value1")[k]) for k in steps])
        return float(np.diff(ranks).max() / ranks[0]) if ranks[-1] < 0.5 * ranks[0] else np.nan

    @property
    def violations(self) -> int:
        """Saved steps of the first stage after that one, at which not all of them are true."""
        first = self.assumed_from
        return 0 if first is None else int((self.shares[first : self.before(STAGE_1) + 1] < 1).sum())

    @property
    def cosines(self) -> np.ndarray:
        """How near each column of W_V is to the line of v at the end of the first stage."""
        values, (v, _) = self.weights("value1")[self.before(STAGE_1)], value_direction(*self.data)
        return np.abs(values @ v) / np.linalg.norm(values, axis=1)

    def change(self, layer: str, begin: int, end: int) -> float:
        """How far a layer moves, over its norm at the beginning."""
        first, last = self.weights(layer)[begin], self.weights(layer)[end]
        return float(np.linalg.norm(last - first) / np.linalg.norm(first))

    @property
    def attention_over_outer(self) -> tuple[float, float]:
        """Relative change of W_Q over that of W_V, in the first stage and from then to the stop; NaN if none moves."""
        middle = self.before(STAGE_1)
        spans = ((0, middle), (middle, len(self.loss) - 1))
        changes = [(self.change("query1", *span), self.change("value1", *span)) for span in spans]
        first, second = (a / b if b > 0 else np.nan for a, b in changes)
        return first, second

    def effective_ranks(self, layer: str) -> tuple[float, float, float]:
        """At the beginning, at the end of the first stage and at the stop."""
        weights = self.weights(layer)
        first, middle, last = (effective_rank(weights[k]) for k in (0, self.before(STAGE_1), -1))
        return first, middle, last

    @property
    def least_kept(self) -> float:
        """Least cosine of W_V's top singular vectors between successive saved steps of the second stage."""
        stage = range(self.before(STAGE_1), self.stopped + 1)
        tops = [np.linalg.svd(self.weights("value1")[k])[2][0] for k in stage]
        return float(min((abs(one @ other) for one, other in pairwise(tops)), default=np.nan))

    @property
    def stopped(self) -> int:
        """The first saved step of the stop, after which nothing moves."""
        return int((self.loss <= self.loss[-1]).argmax())

    @property
    def same_values(self) -> float:
        """Cosine of W_V's top singular vectors at the end of the first stage and at the stop."""
        tops = [np.linalg.svd(self.weights("value1")[k])[2][0] for k in (self.before(STAGE_1), -1)]
        return float(abs(tops[0] @ tops[1]))

    def on_matrix(self, predicted: bool) -> float:
        """The lesser cosine of W_Q's and W_K's top singular vectors at the stop with those of F.

        F is that of the weights at the stop, or the one that was predicted before training.
        """
        x, y = self.data
        value, dense, output = (self.weights(layer)[-1] for layer in OUTER)
        matrix = (
            matrix_at_plateau(x, y) if predicted else query_key_matrix(x, y, value.T @ dense.T @ output[0], WIDTH**-0.5)
        )
        left, _, right = np.linalg.svd(matrix)
        tops = [np.linalg.svd(self.weights(layer)[-1])[2][0] for layer in ATTENTION]
        return float(min(abs(tops[0] @ left[:, 0]), abs(tops[1] @ right[0])))
