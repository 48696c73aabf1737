"""A narrow network at a critical point, and the spectra of its Hessian when a neuron is split (see ``splitting``)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np
from jaxtyping import Float

from ..._precision import precision
from ...activations import get_activation
from ...derivatives import as_vector, gradient, hessian, loss_of
from ...networks import Model
from ...reduction import embed
from ._critical import moved, to_critical, to_minimum

COPIES = (1, 2, 3)
SHARES = ((0.5, 0.5), (0.9, 0.1), (1.5, -0.5))  # two within (0, 1), one beyond
ZERO = 1e-7  # of the largest eigenvalue: what is smaller is zero
CRITICAL = 1e-9  # the norm of a gradient
NUDGE = 1e-2  # of the norm of the weights, along the most negative direction


@dataclass(frozen=True, eq=False)
class Split:
    """A narrow network at a critical point, and what splitting its neurons does."""

    model: Model
    x: Float[np.ndarray, "samples inputs"]
    y: Float[np.ndarray, "samples outputs"]

    @classmethod
    def of(cls, trained: Model, x: np.ndarray, y: np.ndarray) -> "Split":
        """The critical point beside a trained network: damped least squares, then Newton's steps."""
        return cls(to_critical(to_minimum(trained, x, y), x, y), x, y)

    def gradient_norm(self, model: Model) -> float:
        """The norm of the gradient of a network."""
        return float(np.linalg.norm(as_vector(gradient(model, self.x, self.y))))

    @cached_property
    def own(self) -> Float[np.ndarray, " parameters"]:
        """The eigenvalues of the narrow network's Hessian."""
        return self.eigenvalues(self.model)

    def eigenvalues(self, model: Model) -> Float[np.ndarray, " parameters"]:
        """The eigenvalues of a network's Hessian."""
        matrix = hessian(model, self.x, self.y)
        return np.linalg.eigvalsh((matrix + matrix.T) / 2)

    def zeros(self, values: np.ndarray) -> int:
        """How many eigenvalues are zero."""
        return int((np.abs(values) <= ZERO * self.own[-1]).sum())

    def negative(self, values: np.ndarray) -> int:
        """How many are negative."""
        return int((values < -ZERO * self.own[-1]).sum())

    @property
    def critical(self) -> bool:
        """Whether the narrow network is at a critical point."""
        return self.gradient_norm(self.model) <= CRITICAL

    @property
    def units(self) -> range:
        """The neurons."""
        return range(len(self.model.weights(1)))

    def split(self, unit: int, shares: Sequence[float]) -> Model:
        """The network with one neuron split."""
        return embed(self.model, "dense1", unit, shares)

    @cached_property
    def copied(self) -> dict[tuple[int, int], np.ndarray]:
        """Eigenvalues with a neuron in a number of equal copies."""
        return {
            (unit, count): self.eigenvalues(self.split(unit, [1 / count] * count))
            for unit in self.units
            for count in COPIES
        }

    @cached_property
    def shared(self) -> dict[tuple[int, tuple[float, ...]], np.ndarray]:
        """Eigenvalues with a neuron in two copies of different shares."""
        return {(u, shares): self.eigenvalues(self.split(u, shares)) for u in self.units for shares in SHARES}

    def curvature(self, unit: int) -> Float[np.ndarray, "inputs others"]:
        """The matrix S of a neuron."""
        activation = get_activation(self.model.network.activations[0])
        inputs = np.c_[self.x, np.ones(len(self.x))]
        with precision("float64"):
            second = np.asarray(jax.vmap(jax.grad(jax.grad(activation)))(inputs @ self.model.weights(1)[unit]))
        a, residual = self.model.parameters["output.weight"][0, unit], (self.y - self.model(self.x))[:, 0]
        return -a / len(inputs) * (inputs.T * (residual * second)) @ inputs

    def predicted(self, unit: int, shares: Sequence[float]) -> int:
        """The number of negative eigenvalues after a split in two, by S."""
        return self.negative(self.own) + self.negative(np.linalg.eigvalsh(np.prod(shares) * self.curvature(unit)))

    @cached_property
    def left(self) -> float:
        """The least loss that a minimum has on the way down from a split with an escape direction, over this one.

        A split of each neuron is moved along its most negative direction, to both sides.
        """
        losses, before = [1.0], loss_of(self.model, self.x, self.y)
        for unit in self.units:
            shares = min(SHARES, key=lambda each: self.shared[unit, each][0])
            wide = self.split(unit, shares)
            matrix = hessian(wide, self.x, self.y)
            values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
            if not self.negative(values):
                continue
            step = NUDGE * np.linalg.norm(as_vector(wide.parameters)) * vectors[:, 0]
            ends = (to_minimum(moved(wide, sign * step), self.x, self.y) for sign in (1, -1))
            losses += [loss_of(end, self.x, self.y) / before for end in ends]
        return min(losses)
