"""A trajectory: what training leaves, for all seeds, as NumPy arrays."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError, unknown_name
from ..experiment import Experiment
from ..networks import LayerShape, Model
from ..networks._model import find_layer
from ..seeds import Seed, as_seed
from ._checkpoint import Record
from ._watched import Watched


@dataclass(frozen=True, eq=False)
class Trajectory:
    """Weights at the saved steps; loss and gradient sizes at the recorded steps (the saved ones among them).

    ``parameters`` maps a name such as ``dense1.weight`` to an array of seeds x saved steps x its shape. ``curves`` maps
    ``loss``, ``accuracy`` (where the targets are classes), the same with ``test_`` before (where the experiment has
    held-out data), ``time`` (of gradient flow) and ``gradient.NAME`` (the mean
    size |g| of the entries of a parameter's gradient: what Adam's eps is compared with) to seeds x recorded steps. What
    a seed would have left after its loss was no longer finite is NaN; ``diverged`` tells the step of each such seed.

    Of a training that was watched, not done here, ``source`` is a ``Watched``: ``parameters`` has the layers that were
    to be kept, as units x inputs, ``curves`` the loss and ``QUANTITY/LAYER`` (``k_eff/0.weight``).
    """

    source: Experiment | Watched
    seeds: tuple[Seed, ...]
    saved: Int[np.ndarray, " saved"]
    recorded: Int[np.ndarray, " recorded"]
    parameters: dict[str, np.ndarray]
    curves: dict[str, Float[np.ndarray, "seeds recorded"]]
    diverged: dict[Seed, int]
    seconds: float

    @property
    def experiment(self) -> Experiment:
        """The experiment; a watched run has none."""
        if isinstance(self.source, Watched):
            raise InputError(
                f"this run of {self.source.model} was watched, not trained here: it has curves and kept weights, "
                "but no network, data and optimizer of ours"
            )
        return self.source

    @property
    def loss(self) -> Float[np.ndarray, "seeds recorded"]:
        """The loss at the recorded steps."""
        return self.curves["loss"]

    @property
    def accuracy(self) -> Float[np.ndarray, "seeds recorded"]:
        """The share of samples put into the right class, at the recorded steps."""
        if "accuracy" not in self.curves:
            raise InputError("this trajectory has no accuracy: its targets are not classes (one 1 and zeros in a row)")
        return self.curves["accuracy"]

    @property
    def gradient(self) -> dict[str, Float[np.ndarray, "seeds recorded"]]:
        """Mean size of the entries of each parameter's gradient, at the recorded steps."""
        prefix = "gradient."
        return {name[len(prefix) :]: curve for name, curve in self.curves.items() if name.startswith(prefix)}

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers with weights that were kept."""
        if isinstance(self.source, Watched):
            return tuple(self.parameters)
        shapes = self.experiment.network.layers
        return tuple(layer.name for layer in shapes if f"{layer.name}.weight" in self.parameters)

    def weights(
        self, layer: str | int, step: int, seed: int | Seed | None = None, *, view: str | None = None
    ) -> Float[np.ndarray, "..."]:
        """Input weights of a layer's units at a saved step, the bias as the last input.

        Args:
            layer: its name, or its number from 1 on.
            step: a saved step.
            seed: one seed, for an array of units x inputs; without it, seeds x units x inputs.
            view: for a convolution layer ``"kernel"`` (one a channel pair, no bias; the default) or ``"filter"``; of a
                watched run the units are those that were watched.
        """
        if isinstance(self.source, Watched):
            return self._at(self._watched_layer(self.source, layer, view), step, seed)
        shape = self._layer(layer)
        return shape.units({name: self._at(name, step, seed) for name in shape.parameters}, view)

    def history(self, layer: str | int, *, view: str | None = None) -> Float[np.ndarray, "seeds saved units inputs"]:
        """Input weights of a layer's units at all saved steps, the bias as the last input."""
        if isinstance(self.source, Watched):
            return self.parameters[self._watched_layer(self.source, layer, view)]
        shape = self._layer(layer)
        return shape.units({name: self.parameters[name] for name in shape.parameters}, view)

    def model(self, step: int, seed: int | Seed) -> Model:
        """The network with its parameters at a saved step of one seed."""
        if self.experiment.kept_layers is not None:
            raise InputError(f"only the layers {', '.join(self.experiment.kept_layers)} were kept, not a whole network")
        return Model(self.experiment.network, self.parameters_at(step, seed))

    def parameters_at(self, step: int, seed: int | Seed) -> dict[str, np.ndarray]:
        """All parameters by name, at a saved step, of one seed."""
        return {name: self._at(name, step, seed) for name in self.parameters}

    def output(
        self, x: Float[np.ndarray, "samples ..."], step: int, seed: int | Seed
    ) -> Float[np.ndarray, "samples outputs"]:
        """The network's output on any samples at a saved step, in the experiment's precision (float32 for TF32)."""
        return self.model(step, seed)(x)

    def data(self, seed: int | Seed) -> tuple[Float[np.ndarray, "samples ..."], Float[np.ndarray, "samples outputs"]]:
        """Samples and targets that a seed was trained on."""
        return self.experiment.data.draw(self.seeds[self._seed(seed)])

    def initial_stage_end(self, fraction: float = 0.7) -> tuple[int | None, ...]:
        """For each seed the first recorded step at which the loss is at most 70% of its first value."""
        told = int(isinstance(self.source, Watched) and len(self.recorded) > 1)  # step 1 tells the loss at the start
        below = self.loss <= fraction * self.loss[:, told : told + 1]
        return tuple(int(self.recorded[row.argmax()]) if row.any() else None for row in below)

    def _layer(self, layer: str | int) -> LayerShape:
        shape = find_layer(self.experiment.network, layer)
        if f"{shape.name}.weight" not in self.parameters:
            raise InputError(f"the layer {shape.name} was not kept; kept_layers are {self.experiment.kept_layers}")
        return shape

    def _watched_layer(self, watched: Watched, layer: str | int, view: str | None) -> str:
        if view is not None:
            raise InputError(f"the units of a watched run are those that were watched, not {view!r} ones")
        kept = self.layers
        if not kept:
            raise InputError("no weights were kept of this watched run; watch(..., keep=...) names layers to keep")
        if isinstance(layer, int) and 1 <= layer <= len(kept):
            return kept[layer - 1]
        if layer not in kept:
            if layer in [one.name for one in watched.layers]:
                raise InputError(f"the layer {layer} was measured but not kept; kept are {_listed(list(kept))}")
            raise unknown_name("kept layer", layer, kept)
        return str(layer)

    def _at(self, name: str, step: int, seed: int | Seed | None) -> np.ndarray:
        found = np.flatnonzero(self.saved == step)
        if not len(found):
            raise InputError(f"step {step} was not saved; saved are {_listed(self.saved.tolist())}")
        if seed is None:
            return self.parameters[name][:, found[0]]
        number = self._seed(seed)
        if self.diverged.get(self.seeds[number], step + 1) <= step:
            before = self.saved[self.saved < self.diverged[self.seeds[number]]]
            raise InputError(
                f"seed {seed} diverged at step {self.diverged[self.seeds[number]]}; its last saved step is {before[-1]}"
                if len(before)
                else f"seed {seed} diverged at step {self.diverged[self.seeds[number]]}, before anything was saved"
            )
        return self.parameters[name][number, found[0]]

    def _seed(self, seed: int | Seed) -> int:
        try:
            return self.seeds.index(as_seed(seed))
        except ValueError:
            known = [str(s.data) if s.data == s.init else str(s) for s in self.seeds]
            raise InputError(f"seed {seed} was not run; the seeds are {_listed(known)}") from None


def collect(source: Experiment | Watched, seeds: tuple[Seed, ...], records: list[Record]) -> Trajectory:
    """The trajectory of all seeds from the record of each; a watched one's tells its steps itself."""
    first = records[0]
    if isinstance(source, Watched):
        saved = recorded = first.curves["step"].astype(int)
    else:
        saved, recorded = np.array(source.saved_steps()), np.array(source.recorded_steps())
    return Trajectory(
        source=source,
        seeds=seeds,
        saved=saved,
        recorded=recorded,
        parameters={name: np.stack([record.weights[name] for record in records]) for name in first.weights},
        curves={n: np.stack([record.curves[n] for record in records]) for n in first.curves if n != "step"},
        diverged={s: r.diverged for s, r in zip(seeds, records, strict=True) if r.diverged is not None},
        seconds=sum(record.seconds for record in records),
    )


def _listed(items: list[Any]) -> str:
    """Items in a row, the middle of a long row left out."""
    texts = [str(item) for item in items]
    return ", ".join(texts if len(texts) <= 12 else [*texts[:6], "...", *texts[-5:]])
