"""A trajectory: what the training of an experiment leaves, for all seeds, as NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from .._display import short_number
from .._phrases import plural
from ..errors import InputError
from ..experiment import Experiment
from ..measure import count_lines
from ..networks import Model
from ..networks._model import find_layer
from ..seeds import Seed
from ._run import Record, Run, stack_records

MOST_LAYERS, MOST_SEEDS, MOST_PAIRS = 2, 10, 10**6  # that are measured when a trajectory is printed


@dataclass(frozen=True, eq=False, kw_only=True)
class Trajectory(Run):
    """Weights at the saved steps; loss and gradient sizes at the recorded steps (the saved ones among them).

    ``parameters`` maps a name such as ``dense1.weight`` to an array of seeds x saved steps x its shape. ``curves`` maps
    ``loss``, ``accuracy`` (where the targets are classes), the same with ``test_`` before (where the experiment has
    held-out data), ``time`` (of gradient flow) and ``gradient.NAME`` (the mean size |g| of the entries of a parameter's
    gradient: what Adam's eps is compared with) to seeds x recorded steps.
    """

    experiment: Experiment

    def _title(self) -> str:
        return f"Trajectory of {plural(len(self.seeds), 'seed')}: {self.experiment.network.describe()}"

    def _facts(self) -> dict[str, str]:
        experiment = self.experiment
        stage = [end for end in self.initial_stage_end() if end is not None]
        many = f" (median of {len(stage)} of {plural(len(self.seeds), 'seed')})" if len(self.seeds) > 1 else ""
        return {
            "data": experiment.data.describe(),
            "optimizer": experiment.optimizer.describe(),
            **self._curve_facts(),
            "initial stage": f"ends at step {short_number(float(np.median(stage)))}{many}"
            if stage
            else "has not ended",
            **self._k_effs(),
        }

    def _k_effs(self) -> dict[str, str]:
        """k_eff of the kept hidden layers at the first and the last saved step, where that takes no time."""
        found = {}
        for layer in self.layers:
            if layer == "output" or len(found) == MOST_LAYERS or len(self.saved) == 0:
                continue
            shape = find_layer(self.experiment.network, layer)
            seeds = min(len(self.seeds), MOST_SEEDS)
            units = shape.weight[0] * (shape.weight[1] if shape.is_convolution else 1)
            if seeds * units**2 > MOST_PAIRS:
                continue
            weights = shape.units({name: self.parameters[name][:seeds, [0, -1]] for name in shape.parameters})
            if weights.shape[-1] < 2:
                continue
            history = count_lines(weights)
            known = history.k_eff[np.isfinite(history.k_eff).all(axis=1)]
            if len(known):
                first, last = map(short_number, np.median(known, axis=0))
                found[f"k_eff {layer}"] = f"{first} at first, {last} at last, of {plural(units, 'unit')}"
        return found

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
