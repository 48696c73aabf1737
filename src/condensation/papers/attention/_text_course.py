"""What one seed does on text: the courses of the anchor task, with the plateau of a readout that may be fixed."""

from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import logsumexp

from ...networks import Attention
from ._anchor_course import AnchorCourse


def best_constant(
    readout: Float[np.ndarray, "tokens width"], shares: Float[np.ndarray, " tokens"]
) -> tuple[float, Float[np.ndarray, " width"]]:
    """The least cross-entropy of one vector that is read out whatever the input, and the vector: a convex problem.

    >>> shares = np.array([0.5, 0.25, 0.25])
    >>> loss, _ = best_constant(np.eye(3), shares)
    >>> bool(np.isclose(loss, 1.5 * np.log(2)))
    True
    """
    basis, sizes, _ = np.linalg.svd(readout, full_matrices=False)  # as well conditioned as can be
    basis = basis[:, sizes > 1e-9 * sizes[0]] * np.sqrt(len(shares))

    def loss(h: np.ndarray) -> tuple[float, np.ndarray]:
        logits = basis @ h
        total = logsumexp(logits)
        return float(total - shares @ logits), basis.T @ (np.exp(logits - total) - shares)

    options = {"maxiter": 5000, "gtol": 1e-9, "ftol": 1e-14}
    found = minimize(loss, np.zeros(basis.shape[1]), jac=True, method="L-BFGS-B", options=options)
    return float(found.fun), np.linalg.lstsq(readout, basis @ found.x, rcond=None)[0]


class TextCourse(AnchorCourse):
    """One seed on text, at its saved steps."""

    @cached_property
    def shares(self) -> Float[np.ndarray, " tokens"]:
        """How often each token is the target."""
        return np.bincount(self.data[1], minlength=self.vocabulary) / len(self.data[1])

    @cached_property
    def plateau(self) -> float:
        """The loss of the best answer that reads nothing; with a fixed readout of one that it can give."""
        network = self.run.experiment.network
        assert isinstance(network, Attention)
        if "output" not in network.fixed:
            return super().plateau
        return best_constant(self.parameters(0)["output.weight"].astype(float), self.shares)[0]

    def block_over_outer(self, block: int, begin: int, end: int) -> float:
        """The relative change of a block's queries and keys over that of its outer weights."""
        own = [tuple(layer for layer in part if layer.endswith(str(block))) for part in (self.attention, self.outer)]
        return self.change(own[0], begin, end) / self.change(own[1], begin, end)

    @property
    def queries(self) -> tuple[str, ...]:
        """The query of each block."""
        return tuple(layer for layer in self.attention if layer.startswith("query"))

    @property
    def values(self) -> tuple[str, ...]:
        """The values' matrix of each block."""
        return tuple(layer for layer in self.outer if layer.startswith("value"))

    @property
    def on_lines(self) -> float:
        """The lesser median |cosine| of a W_V's columns with its top singular vector, at the end of the first stage."""
        assert self.stage_1 is not None
        return min(self.on_line(self.spectra[own][self.stage_1].top, self.stage_1, own) for own in self.values)

    @property
    def left_over(self) -> float:
        """The held-out loss at the end over the plateau's level, which no answer without reading is below."""
        return float(self.run.curves["test_loss"][self.seed, -1] / self.plateau)
