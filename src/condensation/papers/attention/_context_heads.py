"""Heads of linear attention with which a set of eigenvectors is learned, and the network with them on its sequences."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from ...data import InContextRegression
from ...derivatives import gradient, loss_of
from ...experiment import Experiment
from ...networks import Model
from ...seeds import Seed
from ...theory import context_weights

EIGENVALUES, CONTEXT = (0.4, 0.3, 0.2, 0.1), 31
DIM = len(EIGENVALUES)
Parts = tuple[Float[np.ndarray, " heads"], Float[np.ndarray, "heads dim"], Float[np.ndarray, "heads dim"]]


def heads_of(learned: tuple[int, ...], heads: int) -> Parts:
    """Output weight, key and query of each head, in coordinates of the eigenvectors, the largest eigenvalue first."""
    sizes, keys = np.zeros(heads), np.zeros((heads, DIM))
    for head, axis in enumerate(learned):
        sizes[head] = keys[head, axis] = np.cbrt(context_weights(EIGENVALUES, CONTEXT)[axis])
    return sizes, keys, keys.copy()


@dataclass(frozen=True, eq=False)
class Sample:
    """Sequences, and the network on them."""

    experiment: Experiment
    seed: Seed

    @property
    def source(self) -> InContextRegression:
        """Where the sequences come from."""
        assert isinstance(self.experiment.data, InContextRegression)
        return self.experiment.data

    @cached_property
    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Sequences and targets."""
        return self.source.draw(self.seed)

    def model(self, parts: Parts) -> Model:
        """The network with these heads, turned to the data's eigenvectors."""
        axes, (sizes, keys, queries) = self.source.axes(self.seed), parts
        weights = {"query1.weight": queries @ axes, "key1.weight": keys @ axes, "output.weight": sizes[None]}
        return Model(self.experiment.network, weights)

    def gradient(self, parts: Parts) -> float:
        """The norm of the network's gradient."""
        found = gradient(self.model(parts), *self.data, self.experiment.loss)
        return float(np.sqrt(sum((own**2).sum() for own in found.values())))

    def loss(self, parts: Parts) -> float:
        """The loss of the network."""
        return loss_of(self.model(parts), *self.data, self.experiment.loss)
