r"""One step of training as a pure function: what the engine compiles and repeats.

``fixed`` holds what does not change during a run: samples ``x`` (arranged for the network where each step sees all of
them), targets ``y``, held-out ones in ``test`` (or None),
the optimizer's traced ``hyperparameters``, the std ``noise`` of label noise (where there is any) and the ``key`` of the
random numbers used while training. Order, dropout and noise are functions of key and step alone, so a run can be
resumed anywhere.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax import Array, lax

from .._precision import storage
from ..losses import Loss
from ..networks import Network
from ..networks._model import fixed_parameters
from ..optimizers import GradientFlow, Optimizer

EVALUATED = 2**28  # numbers that layers give for the samples that are evaluated at once: 1 GiB in float32
Values = dict[str, Array]
Curves = dict[str, Array]


class TrainState(NamedTuple):
    """A network on its way: what is trained, what is not (fixed layers, running statistics), memory and order."""

    parameters: Values
    statistics: Values
    memory: Any
    order: Any


class Program(NamedTuple):
    """What networks trained by one compiled program have in common; hashable, so that it is compiled once.

    ``optimizer`` is its static part; ``classes`` tells that the targets are classes, so that accuracy is known;
    ``kept`` are the names of the values that are saved; ``noisy`` tells that there is label noise; ``penalty`` is the
    share of dropout whose mean effect is added to the loss of a step.
    """

    network: Network
    loss: Loss
    optimizer: Optimizer
    dtype: str
    kept: tuple[str, ...]
    batch_size: int | None = None
    classes: bool = False
    tested: bool = False
    noisy: bool = False
    penalty: float | None = None

    @property
    def storage(self) -> str:
        """The type of the numbers."""
        return storage(self.dtype)

    @property
    def stepwise(self) -> bool:
        """Whether each step is called from Python: a network with convolutions."""
        return any(layer.is_convolution for layer in self.network.layers)

    @property
    def sees_part(self) -> bool:
        """Whether a step's loss is not the network's own on all samples: batches, dropout (penalty), norms, noise."""
        parts = self.batch_size is not None or self.noisy or self.penalty is not None
        return parts or self.network.dropout > 0 or bool(self.network.norms)

    def curve_names(self) -> list[str]:
        """Names of the recorded curves: loss, accuracy, time, and the gradient size of each parameter."""
        scores = ["loss"] + ["accuracy"] * self.classes
        named = scores + [f"test_{name}" for name in scores * self.tested]
        named += ["time"] * isinstance(self.optimizer, GradientFlow)
        parts, fixed = (*self.network.layers, *self.network.norms), fixed_parameters(self.network)
        return named + [f"gradient.{name}" for part in parts for name in part.parameters if name not in fixed]

    def begin(self, init: Values, fixed: dict[str, Any]) -> TrainState:
        """The state before the first step."""
        order = jnp.arange(fixed["x"].shape[0], dtype=jnp.int32) if self.batch_size else ()
        fixed_names = fixed_parameters(self.network)
        parameters = {name: value for name, value in init.items() if name not in fixed_names}
        statistics = {name: init[name] for name in init if name in fixed_names}
        if isinstance(self.optimizer, GradientFlow):
            memory = self.optimizer.begin(self.objective(init, fixed["x"], fixed["y"])[0])
        else:
            memory = self._transform(fixed).init(parameters)
        return TrainState(parameters, statistics, memory, order)

    def saved(self, state: TrainState) -> Values:
        """The values that are kept at a saved step."""
        whole = state.parameters | state.statistics
        return {name: whole[name] for name in self.kept}

    def step(
        self, count: Array, state: TrainState, fixed: dict[str, Any], evaluate: bool = True
    ) -> tuple[TrainState, Callable[[], Curves]]:
        """The state after step number ``count``, and a function that gives the curves' values before it.

        What of them a pass over all samples gives (``evaluations``) is left out if that is not wanted.
        """
        x, y, order = self._batch(count, state.order, fixed)
        key = jax.random.fold_in(jax.random.fold_in(fixed["key"], 1), count) if self.network.dropout else None
        measure = jax.value_and_grad(self._learn, has_aux=True)
        targets = self.with_noise(count, y, fixed)
        (loss, (outputs, statistics)), gradient = measure(state.parameters, state.statistics, x, targets, key)
        updates, memory = self._transform(fixed).update(gradient, state.memory, state.parameters)

        def curves() -> Curves:
            seen = gradient_sizes(gradient)
            if not self.sees_part:
                seen |= self.scores(loss, outputs, y)
            return seen | self.evaluated(state, fixed) if evaluate else seen

        moved: Any = optax.apply_updates(state.parameters, updates)
        return TrainState(moved, statistics, memory, order), curves

    def with_noise(self, count: Array, y: Array, fixed: dict[str, Any]) -> Array:
        """The targets of a step: with label noise, Gaussian numbers that are fresh at each step are added to them."""
        if not self.noisy:
            return y
        key = jax.random.fold_in(jax.random.fold_in(fixed["key"], 2), count)
        return y + fixed["noise"] * jax.random.normal(key, y.shape, y.dtype)

    def objective(self, values: Values, x: Any, y: Array) -> tuple[Array, Array]:
        """The loss, and the outputs it comes from, as after training."""
        outputs = self.network.assemble(values)(x)
        return self.loss(outputs, y), outputs

    def _learn(self, parameters: Values, statistics: Values, x: Any, y: Array, key: Any) -> tuple[Array, Any]:
        """The loss of a training step, its outputs, and the statistics after it."""
        network: Any = self.network.assemble(parameters | statistics)
        if self.penalty is not None:
            outputs, read = network.trace(x)
            hidden = network.activations[-1](network.layers[-2](read[-2]))  # without what was added or stands above
            output = network.layers[-1].weight[:, -len(hidden) :]
            added = dropout_penalty(output, hidden, self.penalty, self.loss.reduction)
            return self.loss(outputs, y) + added, (outputs, statistics)
        outputs, statistics = network.learn(x, key) if self.network.norms else (network(x, key), statistics)
        return self.loss(outputs, y), (outputs, statistics)

    def evaluations(self, fixed: dict[str, Any]) -> list[tuple[str, Array, Array]]:
        """What is gone through at a recorded step: a prefix of the curves' names, samples and targets."""
        whole = [("", fixed["x"], fixed["y"])] if self.sees_part else []
        return whole + ([("test_", *fixed["test"])] if self.tested else [])

    def evaluated(self, state: TrainState, fixed: dict[str, Any]) -> Curves:
        """All evaluations."""
        curves = {}
        for prefix, x, y in self.evaluations(fixed):
            curves |= {prefix + name: value for name, value in self.evaluate(state, x, y).items()}
        return curves

    def evaluate(self, state: TrainState, x: Array, y: Array) -> Curves:
        """Loss and accuracy on some samples, as after training; of very many, in parts that fit into memory."""
        values, size = state.parameters | state.statistics, evaluated_at_once(self.network, len(y))

        def scored(part: tuple[Any, Array]) -> Curves:
            loss, outputs = self.objective(values, *part)
            return self.scores(loss, outputs, part[1])

        if size == len(y):
            return scored((x, y))
        whole = len(y) // size * size
        parts = jax.tree.map(lambda each: jnp.reshape(each[:whole], (-1, size, *each.shape[1:])), (x, y))
        found = jax.tree.map(lambda each: jnp.sum(each, axis=0), lax.map(scored, parts))
        rest = scored((x[whole:], y[whole:])) if whole < len(y) else dict.fromkeys(found, 0.0)
        summed = {"loss"} if self.loss.reduction == "sum" else set()
        return {
            name: found[name] + rest[name]
            if name in summed
            else (size * found[name] + (len(y) - whole) * rest[name]) / len(y)
            for name in found
        }

    def scores(self, loss: Array, outputs: Array, y: Array) -> Curves:
        """The loss, and the accuracy if the targets are classes."""
        if not self.classes:
            return {"loss": loss}
        right = jnp.argmax(outputs, axis=1) == jnp.argmax(y, axis=1)
        return {"loss": loss, "accuracy": jnp.mean(right.astype(outputs.dtype))}

    def _transform(self, fixed: dict[str, Any]) -> optax.GradientTransformation:
        assert not isinstance(self.optimizer, GradientFlow)
        return self.optimizer.transform(self.network, **fixed["hyperparameters"])

    def _batch(self, count: Array, order: Any, fixed: dict[str, Any]) -> tuple[Any, Array, Any]:
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


def evaluated_at_once(network: Network, samples: int) -> int:
    """How many of some samples are evaluated at once: all of them, where what layers give for them fits."""
    return min(samples, max(1, EVALUATED // max(1, network.passed_on)))


def dropout_penalty(output: Array, hidden: Array, share: float, reduction: str = "mean") -> Array:
    r"""What dropout of the last hidden layer adds to half the squared error in the mean over what it leaves out.

    $\frac{q}{2(1-q)} \frac1n \sum_i \sum_k \sum_j (a_{kj} h_j(x_i))^2$ with q the share left out.
    """
    each = jnp.sum(output**2 @ hidden**2, axis=0)
    return share / (2 * (1 - share)) * (jnp.sum(each) if reduction == "sum" else jnp.mean(each))


def gradient_sizes(gradient: dict[str, Array]) -> Curves:
    """Mean size of the entries of each parameter's gradient."""
    return {f"gradient.{name}": jnp.mean(jnp.abs(part)) for name, part in gradient.items()}
