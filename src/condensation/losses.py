r"""Losses. The reduction over samples is explicit: it changes the time scale of gradient descent.

With $f_i$ the output and $y_i$ the target of sample i, summed over outputs:

- ``mse``: $\frac12 |f_i - y_i|^2$, so that the mean is the papers' $\frac1{2n}\sum_i$;
- ``softmax_mse``: $\frac12 |\mathrm{softmax}(f_i) - y_i|^2$;
- ``cross_entropy``: $-\sum_k y_{ik} \log \mathrm{softmax}(f_i)_k$, y being one-hot or probabilities.
"""

from dataclasses import dataclass
from typing import Annotated

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ._serialization import Part
from .errors import one_of


def _half_square(difference: Float[Array, "samples outputs"]) -> Float[Array, " samples"]:
    return 0.5 * jnp.sum(difference**2, axis=1)


PER_SAMPLE = {
    "mse": lambda f, y: _half_square(f - y),
    "softmax_mse": lambda f, y: _half_square(jax.nn.softmax(f, axis=1) - y),
    "cross_entropy": lambda f, y: -jnp.sum(y * jax.nn.log_softmax(f, axis=1), axis=1),
}
REDUCTIONS = {"mean": jnp.mean, "sum": jnp.sum}
PHRASES = {
    "mse": "half the squared error",
    "softmax_mse": "half the squared error after softmax",
    "cross_entropy": "cross-entropy",
}


@dataclass(frozen=True)
class Loss(Part):
    """A loss by name, and how it is reduced over the samples: ``"mean"`` or ``"sum"``."""

    name: Annotated[str, one_of("loss", PER_SAMPLE)] = "mse"
    reduction: Annotated[str, one_of("reduction", REDUCTIONS)] = "mean"

    def __call__(
        self, outputs: Float[Array, "samples outputs"], targets: Float[Array, "samples outputs"]
    ) -> Float[Array, ""]:
        """The loss of a batch.

        >>> float(Loss()(jnp.array([[1.0], [3.0]]), jnp.array([[0.0], [0.0]])))
        2.5
        """
        return REDUCTIONS[self.reduction](PER_SAMPLE[self.name](outputs, targets))

    def describe(self) -> str:
        """The loss in words.

        >>> Loss().describe(), Loss("softmax_mse", "sum").describe()
        ('1/(2n) sum of squares', 'half the squared error after softmax, summed over the samples')
        """
        if (self.name, self.reduction) == ("mse", "mean"):
            return "1/(2n) sum of squares"
        return f"{PHRASES[self.name]}, {'mean' if self.reduction == 'mean' else 'summed'} over the samples"
