r"""Optimizers as frozen values; each builds an Optax transformation.

The *numbers* of an optimizer (its learning rate, Adam's eps) are arguments of the compiled program, so that
networks which differ only in them are trained by one program.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax.numpy as jnp
import optax

from ..errors import InputError, check_positive
from ..networks import Dense


@dataclass(frozen=True)
class GD:
    """Gradient descent: theta <- theta - learning_rate * gradient."""

    kind: ClassVar[str] = "gd"
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate",)

    learning_rate: float

    def __post_init__(self) -> None:
        check_positive("learning_rate", self.learning_rate)

    def transform(self, network: Dense, learning_rate: Any) -> optax.GradientTransformation:
        """The Optax transformation."""
        return optax.sgd(learning_rate)


@dataclass(frozen=True)
class Adam:
    r"""Adam: step $-\eta\, \hat m / (\sqrt{\hat v} + \epsilon)$, every constant exposed.

    Where gradients are below eps the step shrinks with them, and Adam is no longer Adam: training warns, and
    records the gradient sizes. A small eps (1e-30) wants float64: in float32 the second moment underflows.
    """

    kind: ClassVar[str] = "adam"
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate", "eps")

    learning_rate: float
    b1: float = 0.9
    b2: float = 0.999
    eps: float = 1e-8

    def __post_init__(self) -> None:
        check_positive("learning_rate", self.learning_rate)
        check_positive("eps", self.eps)
        for name, value in (("b1", self.b1), ("b2", self.b2)):
            if not 0 <= value < 1:
                raise InputError(f"{name} must be at least 0 and below 1, not {value!r}")

    def transform(self, network: Dense, learning_rate: Any, eps: Any) -> optax.GradientTransformation:
        """The Optax transformation."""
        return optax.adam(learning_rate, b1=self.b1, b2=self.b2, eps=eps)


@dataclass(frozen=True)
class NormalisedGD:
    r"""Neuron-normalised gradient descent: each neuron moves by the same length along its own gradient.

    With $g_j$ the gradient of neuron j's input weights (bias included) and, for the last hidden layer, of its
    output weights too: $(w_j, a_j) \leftarrow (w_j, a_j) - \eta\, g_j / |g_j|$. For a two-layer network each
    neuron so follows the path of gradient flow at its own speed. An output bias takes the plain step.
    """

    kind: ClassVar[str] = "normalised_gd"
    numbers: ClassVar[tuple[str, ...]] = ("learning_rate",)

    learning_rate: float

    def __post_init__(self) -> None:
        check_positive("learning_rate", self.learning_rate)

    def transform(self, network: Dense, learning_rate: Any) -> optax.GradientTransformation:
        """The Optax transformation."""
        *hidden, output = network.layers
        out = f"{output.name}.weight"

        def init(params: Any) -> Any:
            return optax.EmptyState()

        def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
            gradient = updates
            steps = {name: -learning_rate * g for name, g in gradient.items()}
            for layer in hidden:
                own = [gradient[name] for name in layer.parameters]
                squares = sum(jnp.sum(jnp.reshape(g, (g.shape[0], -1)) ** 2, axis=1) for g in own)
                if layer is hidden[-1]:
                    squares += jnp.sum(gradient[out] ** 2, axis=0)
                # a neuron without gradient stays where it is
                scale = jnp.where(squares > 0, 1 / jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)
                for name in layer.parameters:
                    steps[name] *= jnp.reshape(scale, (-1,) + (1,) * (gradient[name].ndim - 1))
                if layer is hidden[-1]:
                    steps[out] *= scale
            return steps, state

        return optax.GradientTransformation(init, update)


Optimizer = GD | Adam | NormalisedGD


def numbers_of(optimizer: Optimizer) -> dict[str, float]:
    """The optimizer's numbers by name.

    >>> numbers_of(Adam(1e-3))
    {'learning_rate': 0.001, 'eps': 1e-08}
    """
    return {name: getattr(optimizer, name) for name in optimizer.numbers}


def without_numbers(optimizer: Optimizer) -> Optimizer:
    """The optimizer with all its numbers set to one: what networks of one program have in common."""
    return replace(optimizer, **dict.fromkeys(optimizer.numbers, 1.0))
