r"""One step of training as a pure function: what the engine compiles and repeats.

A *state* is (parameters, the optimizer's memory, the order of the samples). ``fixed`` holds what does not change during
a run: samples ``x``, targets ``y``, the optimizer's ``numbers`` and the ``key`` of the random numbers used while
training. Order and dropout are functions of key and step alone, so a run can be resumed anywhere.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from ..networks import Network
from .losses import Loss
from .optimizers import GradientFlow, Optimizer

State = tuple[dict[str, Array], Any, Any]
Curves = dict[str, Array]


class Program(NamedTuple):
    """What networks trained by one compiled program have in common; hashable, so that it is compiled once.

    ``optimizer`` comes without its numbers; ``classes`` tells that the targets are classes, so that accuracy is known.
    """

    network: Network
    loss: Loss
    optimizer: Optimizer
    dtype: str
    batch_size: int | None = None
    classes: bool = False

    @property
    def is_stochastic(self) -> bool:
        """Whether a step sees less than the whole: a batch of the samples, or a network with dropout."""
        return self.batch_size is not None or self.network.dropout > 0

    def curve_names(self) -> list[str]:
        """Names of the recorded curves: loss, accuracy, time, and the gradient size of each parameter."""
        named = ["loss"] + ["accuracy"] * self.classes + ["time"] * isinstance(self.optimizer, GradientFlow)
        return named + [f"gradient.{name}" for layer in self.network.layers for name in layer.parameters]

    def begin(self, parameters: dict[str, Array], fixed: dict[str, Any]) -> State:
        """The state before the first step."""
        order = jnp.arange(fixed["x"].shape[0], dtype=jnp.int32) if self.batch_size else ()
        if isinstance(self.optimizer, GradientFlow):
            return parameters, self.optimizer.begin(self.objective(parameters, fixed["x"], fixed["y"])[0]), order
        return parameters, self._transform(fixed).init(parameters), order

    def step(
        self, count: Array, state: State, fixed: dict[str, Any], evaluate: bool = True
    ) -> tuple[State, Callable[[], Curves]]:
        """The state after step number ``count``, and a function that gives the curves' values before it.

        Of a stochastic program loss and accuracy are those of ``evaluate``; they are left out if that is not wanted.
        """
        parameters, memory, order = state
        x, y, order = self._batch(count, order, fixed)
        key = jax.random.fold_in(jax.random.fold_in(fixed["key"], 1), count) if self.network.dropout else None
        measure = jax.value_and_grad(self.objective, has_aux=True)
        (loss, outputs), gradient = measure(parameters, x, y, key)
        updates, memory = self._transform(fixed).update(gradient, memory, parameters)

        def curves() -> Curves:
            if not self.is_stochastic:
                return self.scores(loss, outputs, y) | gradient_sizes(gradient)
            return (self.evaluate(parameters, fixed) if evaluate else {}) | gradient_sizes(gradient)

        moved: Any = optax.apply_updates(parameters, updates)
        return (moved, memory, order), curves

    def objective(self, parameters: dict[str, Array], x: Array, y: Array, key: Any = None) -> tuple[Array, Array]:
        """The loss, and the outputs it comes from."""
        outputs = self.network.assemble(parameters)(x, key=key)
        return self.loss(outputs, y), outputs

    def evaluate(self, parameters: dict[str, Array], fixed: dict[str, Any]) -> Curves:
        """Loss and accuracy on all samples, without dropout."""
        loss, outputs = self.objective(parameters, fixed["x"], fixed["y"])
        return self.scores(loss, outputs, fixed["y"])

    def scores(self, loss: Array, outputs: Array, y: Array) -> Curves:
        """The loss, and the accuracy if the targets are classes."""
        if not self.classes:
            return {"loss": loss}
        right = jnp.argmax(outputs, axis=1) == jnp.argmax(y, axis=1)
        return {"loss": loss, "accuracy": jnp.mean(right.astype(outputs.dtype))}

    def _transform(self, fixed: dict[str, Any]) -> optax.GradientTransformation:
        assert not isinstance(self.optimizer, GradientFlow)
        return self.optimizer.transform(self.network, **fixed["numbers"])

    def _batch(self, count: Array, order: Any, fixed: dict[str, Any]) -> tuple[Array, Array, Any]:
        """The samples of a step: each epoch goes through a new order, a last incomplete batch is left out."""
        x, y, size = fixed["x"], fixed["y"], self.batch_size
        if size is None:
            return x, y, order
        epoch, place = count // (len(x) // size), count % (len(x) // size)
        key = jax.random.fold_in(jax.random.fold_in(fixed["key"], 0), epoch)
        shuffle = lambda: jax.random.permutation(key, len(x)).astype(jnp.int32)  # noqa: E731
        order = lax.cond(place == 0, shuffle, lambda: order)
        chosen = lax.dynamic_slice(order, (place * size,), (size,))
        return x[chosen], y[chosen], order


def gradient_sizes(gradient: dict[str, Array]) -> Curves:
    """Mean size of the entries of each parameter's gradient."""
    return {f"gradient.{name}": jnp.mean(jnp.abs(part)) for name, part in gradient.items()}
