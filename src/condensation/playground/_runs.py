"""Runs that a page can show: a training that goes on while the page watches, and a saved run."""

from typing import Any

import numpy as np

from ..experiment import Experiment
from ..networks import Attention, Model
from ..networks._layer import LayerShape
from ..networks._model import find_layer
from ..runs import Run
from ..seeds import Seed
from ..training import Live, Moment
from ._recording import Recording

LAST_STEP = 10_000_000  # where every training ends
ON_THE_WAY, SLICE = 60, 20  # moments recorded on the way to a step, and steps between them at least


class ShownRun:
    """A run, its recording, and the network at each moment of it.

    Attributes:
        experiment: None for a run that was watched and not trained by an experiment.
        data: samples and targets; None for a watched run.
        layers: names of the layers that can be shown.
        diverged: the step at which the loss was no longer finite.
    """

    trains = False
    experiment: Experiment | None
    seed: Seed
    data: tuple[np.ndarray, np.ndarray] | None
    layers: tuple[str, ...]
    recording: Recording
    diverged: int | None = None

    @property
    def end(self) -> int:
        """The last recorded step."""
        return self.recording.last.step

    @property
    def first(self) -> Moment:
        """The first moment, before training."""
        return self.recording.moments[0]

    def later(self, shown: int, steps: int, seconds: float) -> Moment:
        """A recorded moment that is some steps after the one shown, or the next one if they are farther apart."""
        moment = self.recording.at(shown + steps)
        return moment if moment.step > shown else self.recording.after(shown) or moment

    def seek(self, step: int, seconds: float) -> Moment:
        """The recorded moment nearest to a step."""
        return self.recording.nearest(step)

    def layer(self, name: str) -> LayerShape | None:
        """A layer of the network; None if the network is unknown."""
        return None if self.experiment is None else find_layer(self.experiment.network, name)

    def activation(self, name: str) -> Any:
        """The activation after a layer; None if there is none, or it is unknown."""
        network = None if self.experiment is None else self.experiment.network
        if isinstance(network, Attention):  # activations are those of the dense hidden layers alone
            return network.activation if name.startswith(("dense", "up")) else None
        names = [] if network is None else [layer.name for layer in network.layers[:-1]]
        return network.activations[names.index(name)] if network is not None and name in names else None

    @property
    def shown_first(self) -> str:
        """The layer that is shown at first: of attention its values, which condense first."""
        return next((name for name in self.layers if name.startswith("value")), self.layers[0])

    def model(self, moment: Moment) -> Model | None:
        """The network at a moment; None if some of its parameters are unknown."""
        if self.experiment is None or self.experiment.kept_layers is not None:
            return None
        return Model(self.experiment.network, moment.parameters)

    def weights(self, moment: Moment, name: str, view: str | None) -> np.ndarray:
        """Input weights of a layer's units at a moment."""
        layer = self.layer(name)
        if layer is None:
            return np.asarray(moment.parameters[name], float)
        return np.asarray(layer.units(moment.parameters, view if layer.is_convolution else None), float)


class LiveRun(ShownRun):
    """A training that goes on when the page asks for it. If it diverges, it stays at its last finite moment."""

    trains = True

    def __init__(self, experiment: Experiment, seed: Seed) -> None:
        self.experiment, self.seed = experiment, seed
        self.layers = tuple(layer.name for layer in experiment.network.layers[:-1])
        self.live = Live(experiment, seed)
        self.data = self.live.x, self.live.y
        self.recording = Recording()
        self.recording.add(self.live.first())

    def later(self, shown: int, steps: int, seconds: float) -> Moment:
        """A recorded moment while there are some, then the moment after some steps of training."""
        return super().later(shown, steps, seconds) if shown < self.end else self._train(steps, seconds)

    def seek(self, step: int, seconds: float) -> Moment:
        """The recorded moment nearest to a step; beyond the recording, a moment on the way there."""
        if step <= self.end:
            return super().seek(step, seconds)
        return self._train(min(step - self.end, max(step // ON_THE_WAY, SLICE)), seconds)

    def _train(self, steps: int, seconds: float) -> Moment:
        if self.diverged is None and self.end < LAST_STEP:
            moment = self.live.advance(min(steps, LAST_STEP - self.end), seconds)
            if moment.finite:
                self.recording.add(moment)
            else:
                self.diverged = moment.step
        return self.recording.last


class SavedRun(ShownRun):
    """One seed of a saved run. Its recording is the saved steps."""

    def __init__(self, run: Run, seed: Seed) -> None:
        self.run, self.seed = run, seed
        self.experiment = run.origin
        self.data = None if run.origin is None else run.origin.samples(seed)
        self.diverged = run.diverged.get(seed)
        layers = run.layers
        if self.experiment is not None and layers != ("output",):
            layers = tuple(name for name in layers if name != "output")
        self.layers = layers
        number = run.seeds.index(seed)
        finite = run.saved if self.diverged is None else run.saved[run.saved < self.diverged]
        columns = np.searchsorted(run.recorded, finite)
        curves = {name: run.curves[name][number] for name in ("loss", "accuracy", "time") if name in run.curves}
        self.recording = Recording()
        self.recording.moments = [
            Moment(
                int(step),
                {name: values[number, k] for name, values in run.parameters.items()},
                {name: float(values[columns[k]]) for name, values in curves.items()},
            )
            for k, step in enumerate(finite)
        ]
