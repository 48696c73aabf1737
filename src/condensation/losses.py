r"""Losses. The reduction over samples is explicit: it changes the time scale of gradient descent.

With $f_i$ the output and $y_i$ the target of sample i, the loss of a sample is

- ``mse``: $\frac12 \sum_k (f_{ik} - y_{ik})^2$, so that the mean is the papers' $\frac1{2n}\sum_i$;
- ``squared_error``: $\sum_k (f_{ik} - y_{ik})^2$, twice as much: the mean squared error of PyTorch, for one output;
- ``softmax_mse``: $\frac12 \sum_k (\mathrm{softmax}(f_i)_k - y_{ik})^2$;
- ``cross_entropy``: $-\sum_k y_{ik} \log \mathrm{softmax}(f_i)_k$, y being one-hot or probabilities;
- ``exponential``: $\sum_k e^{-y_{ik} f_{ik}}$, for labels of 1 and -1;
- a function of yours of the outputs and the targets of one sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from ._functions import called, described, name_of
from ._serialization import Part
from .errors import InputError, brief, one_of


def _square(difference: Float[Array, "samples outputs"]) -> Float[Array, " samples"]:
    return jnp.sum(difference**2, axis=1)


def _half_square(difference: Float[Array, "samples outputs"]) -> Float[Array, " samples"]:
    return 0.5 * _square(difference)


PER_SAMPLE = {
    "mse": lambda f, y: _half_square(f - y),
    "squared_error": lambda f, y: _square(f - y),
    "softmax_mse": lambda f, y: _half_square(jax.nn.softmax(f, axis=1) - y),
    "cross_entropy": lambda f, y: -jnp.sum(y * jax.nn.log_softmax(f, axis=1), axis=1),
    "exponential": lambda f, y: jnp.sum(jnp.exp(-y * f), axis=1),
}
OF_CLASSES = ("softmax_mse", "cross_entropy")  # whose targets are shares of classes
REDUCTIONS = {"mean": jnp.mean, "sum": jnp.sum}
PHRASES = {
    "mse": "half the squared error",
    "squared_error": "the squared error",
    "softmax_mse": "half the squared error after softmax",
    "cross_entropy": "cross-entropy",
    "exponential": "exp(-y f)",
}


@dataclass(frozen=True)
class Loss(Part, of_function=True):
    r"""A loss of each sample, and how it is reduced over the n samples. With $f_i$ the outputs, $y_i$ the targets:

    - ``Loss("mse")`` is $\frac1{2n} \sum_i \sum_k (f_{ik} - y_{ik})^2$;
    - ``Loss("squared_error")`` is $\frac1n \sum_i \sum_k (f_{ik} - y_{ik})^2$;
    - ``Loss("softmax_mse")`` is $\frac1{2n} \sum_i \sum_k (\mathrm{softmax}(f_i)_k - y_{ik})^2$;
    - ``Loss("cross_entropy")`` is $-\frac1n \sum_i \sum_k y_{ik} \log \mathrm{softmax}(f_i)_k$;
    - ``Loss("exponential")`` is $\frac1n \sum_i \sum_k e^{-y_{ik} f_{ik}}$;
    - ``Loss(function)`` is $\frac1n \sum_i \ell(f_i, y_i)$ with a function $\ell$ of yours.

    The reduction ``"sum"`` leaves out the $\frac1n$.

    Args:
        name: a name, or ``function(outputs, targets)``, written with ``jax.numpy``: it gets the vectors of one sample
            and gives one number. An experiment takes it as ``loss=function``, too.
        reduction: ``"mean"`` or ``"sum"``.
    """

    name: Annotated[str, one_of("loss", PER_SAMPLE)] | Callable[[Any, Any], Any] = "mse"
    reduction: Annotated[str, one_of("reduction", REDUCTIONS)] = "mean"

    def __call__(
        self, outputs: Float[Array, "samples outputs"], targets: Float[Array, "samples outputs"]
    ) -> Float[Array, ""]:
        """The loss of a batch.

        >>> float(Loss()(jnp.array([[1.0], [3.0]]), jnp.array([[0.0], [0.0]])))
        2.5
        >>> float(Loss(lambda f, y: jnp.abs(f - y).max())(jnp.array([[1.0], [3.0]]), jnp.array([[0.0], [0.0]])))
        2.0
        """
        per_sample = PER_SAMPLE[self.name] if isinstance(self.name, str) else jax.vmap(self._own)
        return REDUCTIONS[self.reduction](per_sample(outputs, targets))

    @property
    def of_classes(self) -> bool:
        """Whether the targets must be shares of classes."""
        return self.name in OF_CLASSES

    def check(self, outputs: int) -> None:
        """Refuse a function of the user that gives no number for a sample with so many outputs; nothing is computed."""
        if not isinstance(self.name, str):
            vectors = jax.ShapeDtypeStruct((1, outputs), jnp.float32)
            jax.eval_shape(self, vectors, vectors)

    def _own(self, outputs: Float[Array, " outputs"], targets: Float[Array, " outputs"]) -> Float[Array, ""]:
        """The user's function of one sample."""
        assert callable(self.name)
        size = len(outputs)
        what = f"the loss {name_of(self.name)} of one sample (of two vectors of {size}: its outputs and its targets)"
        value = called(what, self.name, outputs, targets)
        try:
            number = jnp.asarray(value)
        except (TypeError, ValueError):
            raise InputError(f"{what} must give one number, not {brief(value)}") from None
        if number.shape != () or not jnp.issubdtype(number.dtype, jnp.floating):
            raise InputError(
                f"{what} must give one real number, not an array of {number.dtype} of shape {number.shape}"
            )
        return number

    def describe(self) -> str:
        """The loss in words.

        >>> Loss().describe(), Loss("softmax_mse", "sum").describe()
        ('1/(2n) sum of squares', 'half the squared error after softmax, summed over the samples')
        >>> Loss("squared_error").describe(), Loss(jnp.hypot).describe()
        ('1/n sum of squares', 'own loss hypot, mean over the samples')
        """
        means = {"mse": "1/(2n) sum of squares", "squared_error": "1/n sum of squares"}
        if isinstance(self.name, str) and self.name in means and self.reduction == "mean":
            return means[self.name]
        phrase = PHRASES[self.name] if isinstance(self.name, str) else described("own loss", self.name)
        return f"{phrase}, {'mean' if self.reduction == 'mean' else 'summed'} over the samples"
