"""Runs that a page can show: one that is trained while it is looked at, and one that was run.

Of both the page asks for what is known (``known``, ``end``), for a moment some steps after another (``later``: through
what is known first), and for the one at a step (``seek``: on the way there, if it is far ahead).
"""

from typing import Any

import numpy as np

from ..experiment import Experiment
from ..networks import Model
from ..networks._model import find_layer
from ..runs import Run
from ..seeds import Seed
from ..training import Live, Moment
from ._recording import Recording

FAR = 10_000_000  # steps beyond which nobody is taken
ON_THE_WAY, SLICE = 60, 20  # moments that are kept of the way to a step, if they are not nearer than this


class LiveRun:
    """A training on its way. One that diverges stops at its last finite moment."""

    trains = True

    def __init__(self, experiment: Experiment, seed: Seed) -> None:
        self.experiment = experiment
        self.seed = seed
        self.live = Live(experiment, seed)
        self.film = Recording()
        self.film.add(self.live.first())
        self.diverged: int | None = None

    @property
    def layers(self) -> tuple[str, ...]:
        """The hidden layers."""
        return tuple(layer.name for layer in self.experiment.network.layers[:-1])

    @property
    def known(self) -> list[Moment]:
        """The moments on film."""
        return self.film.moments

    @property
    def end(self) -> int:
        """The last step on film."""
        return self.film.last.step

    def data(self) -> tuple[np.ndarray, np.ndarray]:
        """Samples and targets."""
        return self.live.x, self.live.y

    def prepare(self) -> None:
        """Compile the training."""
        self.live.prepare()

    def later(self, shown: int, steps: int, seconds: float) -> Moment:
        """Through the film, then training on."""
        if shown < self.end:
            there = self.film.at(shown + steps)
            return there if there.step > shown else self.film.after(shown) or there
        return self._train(steps, seconds)

    def seek(self, step: int, seconds: float) -> Moment:
        """On film, or training on towards it."""
        if step <= self.end:
            return self.film.nearest(step)
        return self._train(min(step - self.end, max(step // ON_THE_WAY, SLICE)), seconds)

    def _train(self, steps: int, seconds: float) -> Moment:
        if self.diverged is None and self.end < FAR:
            moment = self.live.advance(min(steps, FAR - self.end), seconds)
            if moment.finite:
                self.film.add(moment)
            else:
                self.diverged = moment.step
        return self.film.last


class SavedRun:
    """One seed of a saved run."""

    trains = False
    diverged: int | None

    def __init__(self, run: Run, seed: Seed) -> None:
        self.run, self.seed = run, seed
        self.experiment = run.origin
        self.diverged = run.diverged.get(seed)
        number = run.seeds.index(seed)
        alive = run.saved if self.diverged is None else run.saved[run.saved < self.diverged]
        at = np.searchsorted(run.recorded, alive)
        named = ("loss", "accuracy", "time")
        self._moments = [
            Moment(
                int(step),
                {name: run.parameters[name][number, k] for name in run.parameters},
                {name: float(run.curves[name][number, at[k]]) for name in named if name in run.curves},
            )
            for k, step in enumerate(alive)
        ]

    @property
    def layers(self) -> tuple[str, ...]:
        """The layers that were kept."""
        kept = self.run.layers
        return kept if self.experiment is None or kept == ("output",) else tuple(n for n in kept if n != "output")

    @property
    def known(self) -> list[Moment]:
        """The saved moments."""
        return self._moments

    @property
    def end(self) -> int:
        """The last saved step."""
        return self._moments[-1].step

    def data(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Samples and targets, of runs that were trained here."""
        return None if self.experiment is None else self.experiment.data.draw(self.seed)

    def prepare(self) -> None:
        """Nothing."""

    def later(self, shown: int, steps: int, seconds: float) -> Moment:
        """The next saved moment, or one further on."""
        after = [moment for moment in self._moments if moment.step > shown]
        before = [moment for moment in after if moment.step <= shown + steps]
        return before[-1] if before else after[0] if after else self._moments[-1]

    def seek(self, step: int, seconds: float) -> Moment:
        """The nearest saved moment."""
        return min(self._moments, key=lambda moment: abs(moment.step - step))


ShownRun = LiveRun | SavedRun


def model_of(run: ShownRun, moment: Moment) -> Model | None:
    """The whole network at a moment, where all of it is known."""
    if run.experiment is None or run.experiment.kept_layers is not None:
        return None
    return Model(run.experiment.network, moment.parameters)


def weights_of(run: ShownRun, moment: Moment, layer: str, view: str | None) -> np.ndarray:
    """Input weights of a layer's units at a moment."""
    if run.experiment is None:
        return np.asarray(moment.parameters[layer], float)
    shape: Any = find_layer(run.experiment.network, layer)
    return np.asarray(shape.units(moment.parameters, view if shape.is_convolution else None), float)
