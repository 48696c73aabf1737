"""Variants: what a careful reader would change in any of the papers' experiments, in one place for all of them."""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .._precision import DTYPES
from .._serialization import coerce_fields
from ..data import Synthetic
from ..errors import InputError, check_positive, check_threshold, unknown_name
from ..experiment import Experiment
from ..initialization import Init, Normal
from ..optimizers import GD, Adam, GradientFlow, NormalisedGD
from ..saving import At, Geometric

OPTIMIZERS = ("adam", "gradient_flow", "normalised_gd", "gd")
FLOW_STEPS, FLOW_TIME, FLOW_STOP = 10**7, 1e-2, 0.9  # saved geometrically; it stops itself when 10% of the loss is gone
GD_RATE, GD_STEPS = 0.01, 30_000


class NotRun(Exception):
    """A figure, or a variant of it, cannot be made; the message is the reason."""


@dataclass(frozen=True)
class Variant:
    """Changes to the captioned settings; a field that is not given leaves its setting as it is.

    Args:
        optimizer: in Adam's place ``"gradient_flow"`` (stops when 10% of the loss is gone), ``"normalised_gd"`` (a step
            takes a neuron as far as the captioned Adam would) or ``"gd"`` (rate 0.01).
        learning_rate: of the optimizer.
        eps: Adam's.
        threshold: the cosine that decides which units are of one line.
        init_scale: factor of all stds of the start.
        output_scale: factor of the output layer's std alone, a against w.
        dtype: ``"float32"``, say.
        rotated: inputs turned by a random rotation, one a seed; for synthetic data.
    """

    optimizer: str | None = None
    learning_rate: float | None = None
    eps: float | None = None
    threshold: float | None = None
    init_scale: float | None = None
    output_scale: float | None = None
    dtype: str | None = None
    rotated: bool | None = None

    def __post_init__(self) -> None:
        coerce_fields(self)
        if self.optimizer not in (None, *OPTIMIZERS):
            raise unknown_name("optimizer of a variant", self.optimizer, OPTIMIZERS)
        if self.dtype not in (None, *DTYPES):
            raise unknown_name("dtype", self.dtype, DTYPES)
        for name in ("learning_rate", "eps", "init_scale", "output_scale"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        check_threshold(self.threshold)

    def __str__(self) -> str:
        """The changes in words.

        >>> str(Variant(eps=1e-30, optimizer="adam")), str(Variant())
        ('optimizer adam, eps 1e-30', '')
        """
        given = {field.name: value for field in fields(self) if (value := getattr(self, field.name))}
        if self.rotated:
            given["rotated"] = "inputs"
        return ", ".join(f"{name} {value}".replace("_", " ") for name, value in given.items())

    @property
    def tag(self) -> str:
        """The changes as a part of a file name."""
        return str(self).replace(", ", "_").replace(" ", "-")

    @property
    def options(self) -> tuple[str, ...]:
        """The changes as options of ``condensation reproduce``.

        >>> Variant(init_scale=0.1, rotated=True).options
        ('--init-scale', '0.1', '--rotated')
        """
        given = {f"--{field.name.replace('_', '-')}": getattr(self, field.name) for field in fields(self)}
        options = ((name,) if value is True else (name, str(value)) for name, value in given.items() if value)
        return tuple(part for option in options for part in option)

    @property
    def by_caption(self) -> bool:
        """Whether the captioned epochs still mean something: an optimizer with other steps has its own times."""
        return self.optimizer in (None, "adam", "normalised_gd") and self.learning_rate is None

    def apply(self, experiment: Experiment) -> Experiment:
        """The experiment with the changes; refused where one of them does not fit it."""
        changes: dict[str, Any] = {}
        if self.rotated:
            if not isinstance(experiment.data, Synthetic) or experiment.data.dim < 2:
                raise NotRun("only synthetic data of two and more inputs are rotated, no images and no single input")
            changes["data"] = replace(experiment.data, rotated=True)
        if self.dtype is not None:
            changes["dtype"] = self.dtype
        if self.init_scale is not None or self.output_scale is not None:
            changes["init"] = self._start(experiment)
        changes |= self._optimizer(experiment)
        try:
            return experiment.replace(**changes) if changes else experiment
        except InputError as error:
            raise NotRun(f"{self}: {error}") from error

    def _start(self, experiment: Experiment) -> Init:
        """The laws as explicit stds, scaled; those of a ResNet's convolutions, which are not small, stay."""
        network, init = experiment.network, experiment.init
        if not isinstance(init, Init):
            raise NotRun(f"{self}: weights that are given have no laws to scale")
        *hidden, output = [layer for layer in network.layers if not layer.is_convolution]
        kernels = [layer for layer in network.layers if layer.is_convolution and not network.norms]
        laws = dict(zip((layer.name for layer in network.layers), init.laws(network), strict=True))
        both = self.init_scale or 1.0

        def scaled(layer: Any, factor: float) -> Normal:
            law = laws[layer.name]
            if not law.draws_bias:
                raise NotRun(f"the start {law.kind} of {layer.name} cannot be scaled")
            return Normal(law.std_of(layer, layer.weight[1 if layer is output else 0]) * factor)

        return replace(
            init,
            hidden=tuple(scaled(layer, both) for layer in hidden),
            convolution=tuple(scaled(layer, both) for layer in kernels) or init.convolution,
            output=scaled(output, both * (self.output_scale or 1.0)),
        )

    def _optimizer(self, experiment: Experiment) -> dict[str, Any]:
        """The optimizer, and the steps and schedules that go with it."""
        captioned = experiment.optimizer
        if not (self.optimizer or self.learning_rate or self.eps):
            return {}
        if not isinstance(captioned, Adam):
            raise NotRun(f"variants are of experiments with Adam, not with {captioned.kind}")
        rate = self.learning_rate
        if self.optimizer in (None, "adam"):
            adam = replace(captioned, learning_rate=rate or captioned.learning_rate, eps=self.eps or captioned.eps)
            return {} if adam == captioned else {"optimizer": adam}
        if self.eps is not None:
            raise NotRun(f"eps is Adam's: {self.optimizer} has none")
        if self.optimizer == "normalised_gd":
            inputs = int(np.prod(experiment.network.layers[0].weight[1:])) + 2  # the bias and the output weight too
            return {"optimizer": NormalisedGD(rate or captioned.learning_rate * inputs**0.5)}
        if self.optimizer == "gd":
            slow = any(layer.is_convolution for layer in experiment.network.layers)
            steps, chosen = max(0 if slow else GD_STEPS, experiment.steps), GD(rate or GD_RATE)
        else:
            steps, chosen = FLOW_STEPS, GradientFlow(rate or FLOW_TIME, stop_ratio=FLOW_STOP)
        captioned_steps = [step for step in experiment.saved_steps() if step <= steps]
        saved = At((*Geometric(12).steps(steps), *captioned_steps))
        return {"optimizer": chosen, "steps": steps, "save": saved, "record": saved}
