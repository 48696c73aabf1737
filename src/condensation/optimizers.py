r"""Optimizers as frozen values; each builds an Optax transformation.

An optimizer's *traced* hyperparameters (its learning rate, Adam's and Muon's eps) are arguments of the compiled
program, so that networks which differ only in them are trained by one program. The others are its *static part*.

Where there is a ``clip``, a gradient whose norm over all parameters is larger is scaled down to that norm first, before
momentum and moments see it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Annotated, Any, ClassVar

import jax.numpy as jnp
import optax
from jax import Array
from optax.contrib import MuonDimensionNumbers, muon

from ._serialization import Count, Part, Positive
from .errors import InputError, check_not_negative
from .networks import Network
from .schedules import Constant, Schedule


def _check_average(what: str, value: float) -> None:
    """Refuse what cannot weigh the past in a moving average."""
    if not 0 <= value < 1:
        raise InputError(f"{what} must be at least 0 and below 1, not {value!r}")


def _check_ratio(what: str, value: float) -> None:
    if not 0 < value < 1:
        raise InputError(f"{what} is a share between 0 and 1, not {value!r}")


Average = Annotated[float, _check_average]


class _Descent(Part):
    """An optimizer with a learning rate, and its description."""

    traced: ClassVar[tuple[str, ...]] = ("learning_rate",)
    name: ClassVar[str]

    learning_rate: Positive
    schedule: Schedule

    @property
    def _decay(self) -> float:
        return getattr(self, "weight_decay", 0.0)

    @property
    def _clip(self) -> float | None:
        return getattr(self, "clip", None)

    def _finish(self, direction: list[Any], learning_rate: Any) -> optax.GradientTransformation:
        """The gradient, clipped or not, its direction, weight decay apart from it (by the rate), the learning rate."""
        clip = [] if self._clip is None else [optax.clip_by_global_norm(self._clip)]
        decay = [optax.add_decayed_weights(self._decay)] if self._decay else []
        rate = optax.scale_by_learning_rate(self.schedule.scaled(learning_rate))
        return optax.chain(*clip, *direction, *decay, rate)

    def _others(self) -> list[str]:
        """What the description tells besides the learning rate and the weight decay."""
        return []

    def describe(self) -> str:
        """The optimizer in words.

        >>> GD(5e-6).describe(), Muon(0.02).describe()
        ('gradient descent, learning rate 5e-06', 'Muon, learning rate 0.02, Nesterov momentum 0.95, eps 1e-08')
        """
        course = self.schedule.describe()
        rate = f"learning rate {self.learning_rate:g}" + (f" ({course})" if course else "")
        decay = [f"weight decay {self._decay:g}"] if self._decay else []
        clip = [] if self._clip is None else [f"gradients clipped to norm {self._clip:g}"]
        return ", ".join([self.name, rate, *self._others(), *decay, *clip])


@dataclass(frozen=True)
class GD(_Descent, kind="gd"):
    r"""Gradient descent: $\theta \leftarrow \theta - \eta_t (\nabla L + \lambda \theta)$, weight decay $\lambda$."""

    name: ClassVar[str] = "gradient descent"

    learning_rate: Positive
    weight_decay: Annotated[float, check_not_negative] = 0.0
    schedule: Schedule = Constant()
    clip: Positive | None = None

    def transform(self, network: Network, learning_rate: Any) -> optax.GradientTransformation:
        """The Optax transformation."""
        return self._finish([], learning_rate)


@dataclass(frozen=True)
class Momentum(_Descent, kind="momentum"):
    r"""Gradient descent with momentum: $\theta \leftarrow \theta - \eta_t (v + \lambda \theta)$.

    Here $v \leftarrow \mu v + \nabla L$ before each step.

    With ``nesterov`` the step is along $\nabla L + \mu v$. Where gradients change slowly it is gradient descent with a
    learning rate of $\eta/(1 - \mu)$. Weight decay $\lambda$ is apart from the momentum.
    """

    name: ClassVar[str] = "gradient descent"

    learning_rate: Positive
    momentum: Average = 0.9
    nesterov: bool = False
    weight_decay: Annotated[float, check_not_negative] = 0.0
    schedule: Schedule = Constant()
    clip: Positive | None = None

    def transform(self, network: Network, learning_rate: Any) -> optax.GradientTransformation:
        """The Optax transformation."""
        return self._finish([optax.trace(self.momentum, self.nesterov)], learning_rate)

    def _others(self) -> list[str]:
        return [f"{'Nesterov momentum' if self.nesterov else 'momentum'} {self.momentum:g}"]


@dataclass(frozen=True)
class RMSprop(_Descent, kind="rmsprop"):
    r"""RMSprop: $\theta \leftarrow \theta - \eta_t (\nabla L / (\sqrt v + \epsilon) + \lambda \theta)$.

    v is the moving average of squared gradients, which forgets by ``decay``, begins at zero and is not corrected for
    that, as in PyTorch: a weight's first step has the length $\eta / \sqrt{1 - \mathrm{decay}}$. Weight decay $\lambda$
    is apart from it.
    """

    name: ClassVar[str] = "RMSprop"
    traced: ClassVar[tuple[str, ...]] = ("learning_rate", "eps")

    learning_rate: Positive
    decay: Average = 0.99
    eps: Positive = 1e-8
    weight_decay: Annotated[float, check_not_negative] = 0.0
    schedule: Schedule = Constant()
    clip: Positive | None = None

    def transform(self, network: Network, learning_rate: Any, eps: Any) -> optax.GradientTransformation:
        """The Optax transformation."""
        return self._finish([optax.scale_by_rms(self.decay, eps, eps_in_sqrt=False)], learning_rate)

    def _others(self) -> list[str]:
        return [f"decay {self.decay:g}", f"eps {self.eps:g}"]


@dataclass(frozen=True)
class Adam(_Descent, kind="adam"):
    r"""Adam: $\theta \leftarrow \theta - \eta_t (\hat m / (\sqrt{\hat v} + \epsilon) + \lambda \theta)$.

    Where gradients are below eps the step shrinks with them, and Adam is no longer Adam: training warns, and
    records the gradient sizes. A small eps (1e-30) wants float64: in float32 the second moment underflows.
    Weight decay $\lambda$ is apart from the moments: with one this is AdamW (see there).
    """

    name: ClassVar[str] = "Adam"
    traced: ClassVar[tuple[str, ...]] = ("learning_rate", "eps")

    learning_rate: Positive
    b1: Average = 0.9
    b2: Average = 0.999
    eps: Positive = 1e-8
    weight_decay: Annotated[float, check_not_negative] = 0.0
    schedule: Schedule = Constant()
    clip: Positive | None = None

    def transform(self, network: Network, learning_rate: Any, eps: Any) -> optax.GradientTransformation:
        """The Optax transformation."""
        return self._finish([optax.scale_by_adam(b1=self.b1, b2=self.b2, eps=eps)], learning_rate)

    def _others(self) -> list[str]:
        usual = (self.b1, self.b2) == (0.9, 0.999)
        return [f"eps {self.eps:g}"] + ([] if usual else [f"b1 {self.b1:g}", f"b2 {self.b2:g}"])


@dataclass(frozen=True)
class AdamW(Adam, kind="adamw"):
    r"""Adam with a weight decay of 0.01, if no other is given, as PyTorch has it.

    >>> AdamW(1e-3).describe()
    'AdamW, learning rate 0.001, eps 1e-08, weight decay 0.01'
    """

    name: ClassVar[str] = "AdamW"

    weight_decay: Annotated[float, check_not_negative] = 0.01


@dataclass(frozen=True)
class NormalisedGD(_Descent, kind="normalised_gd"):
    r"""Neuron-normalised gradient descent: each neuron moves by the same length along its own gradient.

    With $g_j$ the gradient of neuron j's input weights (bias included) and, for the last hidden layer, of its
    output weights too: $(w_j, a_j) \leftarrow (w_j, a_j) - \eta\, g_j / |g_j|$. For a two-layer network each
    neuron so follows the path of gradient flow at its own speed. An output bias takes the plain step.
    """

    name: ClassVar[str] = "neuron-normalised gradient descent"

    learning_rate: Positive
    schedule: Schedule = Constant()

    def transform(self, network: Network, learning_rate: Any) -> optax.GradientTransformation:
        """The Optax transformation."""
        *hidden, output = network.layers
        out = f"{output.name}.weight"

        def init(params: Any) -> Any:
            return optax.EmptyState()

        def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
            steps = dict(updates)
            for layer in hidden:
                whole = [jnp.reshape(updates[name], (layer.weight[0], -1)) for name in layer.parameters]
                if layer is hidden[-1]:  # the output weights of a unit: all columns that its outputs go to
                    columns = jnp.reshape(updates[out], (output.weight[0], layer.weight[0], -1))
                    whole.append(jnp.reshape(jnp.moveaxis(columns, 1, 0), (layer.weight[0], -1)))
                gradient = jnp.concatenate(whole, axis=1)
                largest = jnp.max(jnp.abs(gradient), axis=1)  # taken out first: tiny gradients have squares of zero
                safe = jnp.where(largest > 0, largest, 1)
                length = safe * jnp.sqrt(jnp.sum((gradient / safe[:, None]) ** 2, axis=1))
                length = jnp.where(largest > 0, length, 1)  # a neuron without gradient stays where it is
                for name in layer.parameters:
                    steps[name] /= jnp.reshape(length, (-1,) + (1,) * (updates[name].ndim - 1))
                if layer is hidden[-1]:
                    steps[out] /= jnp.repeat(length, output.weight[1] // layer.weight[0])
            return steps, state

        return self._finish([optax.GradientTransformation(init, update)], learning_rate)


@dataclass(frozen=True)
class SignGD(_Descent, kind="sign_gd"):
    r"""Sign descent: $\theta \leftarrow \theta - \eta_t\, \mathrm{sign}(\nabla L)$, steepest descent in the max norm.

    What Adam is early, as long as gradients keep their signs. The learning rate has to be well below the initial
    weights: with one as large, a third of a two-layer network's neurons stay near zero, their input and output weights
    changing signs in turn.
    """

    name: ClassVar[str] = "sign descent"

    learning_rate: Positive
    schedule: Schedule = Constant()

    def transform(self, network: Network, learning_rate: Any) -> optax.GradientTransformation:
        """The Optax transformation."""
        return self._finish([optax.scale_by_sign()], learning_rate)


@dataclass(frozen=True)
class Muon(_Descent, kind="muon"):
    r"""Muon: a weight matrix moves along the polar factor $U V^T$ of its gradients' moving average $M = U S V^T$.

    Steepest descent in the spectral norm, as Optax has it: a weight of m units with D inputs moves by
    $\eta_t \sqrt{\max(1, m/D)}\, P(M / (|M| + \epsilon))$ with the Frobenius norm and P five Newton-Schulz steps. These
    take a singular value to between 0.68 and 1.21 if it is large enough, as they multiply it by 485 at most. So eps has
    to be far below the gradient's norm, as Adam's below its entries. A convolution's weight is the matrix of filters.

    Biases and all else that is no weight take Adam's steps of the same learning rate (b1 = 0.9, b2 = 0.999, Nesterov's
    momentum as in the rest), so a neuron's bias is not part of the matrix: for Muon on the whole neuron, take
    ``Dense(..., bias=False)`` and an input that is always 1.
    """

    name: ClassVar[str] = "Muon"
    traced: ClassVar[tuple[str, ...]] = ("learning_rate", "eps")

    learning_rate: Positive
    momentum: Average = 0.95
    nesterov: bool = True
    eps: Positive = 1e-8
    schedule: Schedule = Constant()

    def transform(self, network: Network, learning_rate: Any, eps: Any) -> optax.GradientTransformation:
        """The Optax transformation."""
        axes = {f"{layer.name}.weight": tuple(range(1, len(layer.weight))) for layer in network.layers}

        def matrices(params: Any) -> dict[str, Any]:
            return {name: MuonDimensionNumbers(axes[name], 0) if name in axes else None for name in params}

        return muon(
            self.schedule.scaled(learning_rate),
            beta=self.momentum,
            eps=eps,
            nesterov=self.nesterov,
            muon_weight_dimension_numbers=matrices,
        )

    def _others(self) -> list[str]:
        return [f"{'Nesterov momentum' if self.nesterov else 'momentum'} {self.momentum:g}", f"eps {self.eps:g}"]


@dataclass(frozen=True)
class GradientFlow(Part, kind="gradient_flow"):
    r"""Gradient flow $\dot\theta = -\nabla L(\theta)$, integrated by adaptive steps of order 5 (Tsitouras).

    A step of the experiment stands for ``time_step`` units of time, so that step k is what gradient descent with a
    learning rate of ``time_step`` approximates after k steps. The local error is kept below
    ``atol + rtol * |theta|``; the integrator starts anew at each recorded step. So weights of any size are followed
    to the same relative error, however small they start.

    Args:
        time_step: time that one step of the experiment stands for.
        stop_ratio: stop exactly where the loss has fallen to this share of its first value. Saved steps beyond that
            hold the weights at the stop, and ``trajectory.curves["time"]`` tells its time.
        rtol: relative tolerance of the integrator.
        atol: absolute tolerance. If not given, a tenth of rtol times the mean absolute value of the smallest array of
            parameters that is not zero, at each recorded step.
        most_steps: of the integrator between two records, 100,000 if not given; a flow that needs more has diverged.
    """

    traced: ClassVar[tuple[str, ...]] = ("time_step",)

    time_step: Positive
    stop_ratio: Annotated[float, _check_ratio] | None = None
    rtol: Positive = 1e-8
    atol: Positive | None = None
    most_steps: Count | None = None

    def begin(self, loss: Array) -> dict[str, Array]:
        """What the flow remembers between rows."""
        zero = jnp.zeros_like(loss)
        return {"time": zero, "pace": zero + jnp.inf, "first_loss": loss, "stopped": jnp.zeros((), bool)}

    def describe(self) -> str:
        """The flow in words.

        >>> GradientFlow(0.05, stop_ratio=0.99).describe()
        'gradient flow to L/L0 = 0.99, time 0.05 a step, rtol 1e-08'
        """
        stop = "" if self.stop_ratio is None else f" to L/L0 = {self.stop_ratio:g}"
        most = "" if self.most_steps is None else f", at most {self.most_steps} integrator steps between records"
        atol = "" if self.atol is None else f", atol {self.atol:g}"
        return f"gradient flow{stop}, time {self.time_step:g} a step, rtol {self.rtol:g}{atol}{most}"


Optimizer = GD | Momentum | RMSprop | Adam | AdamW | NormalisedGD | SignGD | Muon | GradientFlow


def traced_hyperparameters(optimizer: Optimizer) -> dict[str, float]:
    """The traced hyperparameters by name.

    >>> traced_hyperparameters(Adam(1e-3))
    {'learning_rate': 0.001, 'eps': 1e-08}
    """
    return {name: getattr(optimizer, name) for name in optimizer.traced}


def static_part(optimizer: Optimizer) -> Optimizer:
    """The optimizer with 1 for all its traced hyperparameters: what networks of one program have in common."""
    values = {field.name: getattr(optimizer, field.name) for field in fields(optimizer)}
    return _made(type(optimizer), *(values | dict.fromkeys(optimizer.traced, 1.0)).values())


@lru_cache(maxsize=256)  # the cells of a sweep share a few
def _made(kind: type[Optimizer], *values: Any) -> Optimizer:
    return kind(*values)
