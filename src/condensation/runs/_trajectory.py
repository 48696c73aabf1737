"""A trajectory: what the training of an experiment leaves, for all seeds, as NumPy arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ..errors import InputError
from ..experiment import Experiment
from ..networks import Model
from ..networks._model import find_layer
from ..seeds import Seed
from ._run import Record, Run, stack_records


@dataclass(frozen=True, eq=False, kw_only=True)
class Trajectory(Run):
    """Weights at the saved steps; loss and gradient sizes at the recorded steps (the saved ones among them).

    ``parameters`` maps a name such as ``dense1.weight`` to an array of seeds x saved steps x its shape. ``curves`` maps
    ``loss``, ``accuracy`` (where the targets are classes), the same with ``test_`` before (where the experiment has
    held-out data), ``time`` (of gradient flow) and ``gradient.NAME`` (the mean size |g| of the entries of a parameter's
    gradient: what Adam's eps is compared with) to seeds x recorded steps.
    """

    experiment: Experiment

    @property
    def origin(self) -> Experiment:
        """The experiment, which a watched run lacks."""
        return self.experiment

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers with weights that were kept."""
        shapes = self.experiment.network.layers
        return tuple(layer.name for layer in shapes if f"{layer.name}.weight" in self.parameters)

    def model(self, step: int, seed: int | Seed) -> Model:
        """The network with its parameters at a saved step of one seed."""
        if self.experiment.kept_layers is not None:
            raise InputError(f"only the layers {', '.join(self.experiment.kept_layers)} were kept, not a whole network")
        return Model(self.experiment.network, self.parameters_at(step, seed))

    def models(self, step: int) -> dict[Seed, Model]:
        """The networks of all seeds at a saved step, but for those that have diverged before it.

        ``Given(trajectory.models(step))`` is the initialization that goes on from them, each seed from its own.
        """
        return {seed: self.model(step, seed) for seed in self.seeds if self.diverged.get(seed, step + 1) > step}

    def output(
        self, x: Float[np.ndarray, "samples ..."], step: int, seed: int | Seed
    ) -> Float[np.ndarray, "samples outputs"]:
        """The network's output on any samples at a saved step, in the experiment's precision (float32 for TF32)."""
        return self.model(step, seed)(x)

    def data(self, seed: int | Seed) -> tuple[Float[np.ndarray, "samples ..."], Float[np.ndarray, "samples outputs"]]:
        """Samples and targets that a seed was trained on; labels of classes as rows of one 1 and zeros."""
        return self.experiment.samples(self.seeds[self._seed(seed)])

    def _units(self, layer: str | int, view: str | None, get: Callable[[str], np.ndarray]) -> np.ndarray:
        shape = find_layer(self.experiment.network, layer)
        if f"{shape.name}.weight" not in self.parameters:
            raise InputError(f"the layer {shape.name} was not kept; kept_layers are {self.experiment.kept_layers}")
        return shape.units({name: get(name) for name in shape.parameters}, view)


def collect(experiment: Experiment, seeds: tuple[Seed, ...], records: Sequence[Record]) -> Trajectory:
    """The trajectory of all seeds, from the record of each."""
    saved, recorded = np.array(experiment.saved_steps()), np.array(experiment.recorded_steps())
    return Trajectory(experiment=experiment, saved=saved, recorded=recorded, **stack_records(seeds, records))
