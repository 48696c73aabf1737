"""The session of one page: the run that it has opened, the moment that it shows, and the answers to its requests.

A session belongs to one websocket. A method that may take seconds (compiling, predicting, reading folders) runs in
another thread than the frames, so the lock is held only while the session's own fields change.
"""

import itertools
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._phrases import printable
from ..errors import InputError, unknown_name
from ..training import Moment
from ._answers import describe_experiment, describe_layer, describe_run, seed_name, settings_title
from ._forecast import forecast, no_forecast
from ._frame import Answer, FrameBuilder
from ._library import Library, sweep_map
from ._runs import LAST_STEP, LiveRun, SavedRun, ShownRun
from ._settings import MOST_TARGET, Settings

MOST_STEPS = 100_000  # in one request
VIEWS = (None, "kernel", "filter")
_keys = itertools.count(1)


class Session:
    """The state of one page."""

    def __init__(self, library: Library | None = None) -> None:
        self.library = library or Library()
        self.lock = threading.Lock()
        self.run: ShownRun | None = None
        self.builder: FrameBuilder | None = None
        self.key, self.shown, self.prepared = 0, 0, False
        self.curve_end = -1  # the last step whose row of the curve was sent

    # -- opening

    def open(self, texts: Any) -> Answer:
        """Open a new training from the page's settings."""
        if not isinstance(texts, Mapping):
            raise InputError("settings are a JSON table of texts")
        settings = Settings.from_text(texts)
        run = LiveRun(settings.experiment(), settings.seeds)
        largest = np.abs(run.live.y).max()
        if not largest <= MOST_TARGET:
            raise InputError(f"the targets reach {largest:.1g}, and the page shows targets up to {MOST_TARGET:g}")
        return self.show(run, settings_title(settings), settings)

    def open_run(self, name: Any, seed: Any = None) -> Answer:
        """Open one seed of a saved run."""
        trajectory = self.library.run(name)
        number = 0 if seed is None else seed
        if type(number) is not int or not 0 <= number < len(trajectory.seeds):
            raise InputError(f"the run {name} has the seeds 0 to {len(trajectory.seeds) - 1}, not {seed!r}")
        if not trajectory.layers:
            raise InputError(f"the run {name} kept no weights; watch(..., keep=...) names layers to keep")
        run = SavedRun(trajectory, trajectory.seeds[number])
        if not len(run.recording):
            raise InputError(f"this seed of {name} diverged before anything was saved")
        header, arrays = self.show(run, self.library.title(name), None)
        return header | {"seeds": [seed_name(seed) for seed in trajectory.seeds], "seed": number}, arrays

    def open_cell(self, name: Any, cell: Any, seed: Any = 0) -> Answer:
        """Open a new training of a sweep's cell."""
        experiment, chosen, coordinates = self.library.cell(name, cell, seed)
        return self.show(
            LiveRun(experiment, chosen), printable(f"{name}: {coordinates}, seed {seed_name(chosen)}"), None
        )

    def show(self, run: ShownRun, title: str, settings: Settings | None) -> Answer:
        """Open a run; ``settings`` is None if the controls cannot express it."""
        layer = run.shown_first
        builder = FrameBuilder(run, layer, None, no_forecast(run.weights(run.first, layer, None)))
        header, arrays = describe_run(run, title, settings, builder)
        with self.lock:
            self.run, self.builder = run, builder
            self.key, self.shown, self.prepared = next(_keys), run.first.step, False
            self.curve_end = run.end
            return header | {"key": self.key}, arrays

    def choose_layer(self, name: Any, view: Any = None) -> Answer:
        """Show another layer. This predicts its lines, which may take seconds."""
        with self.lock:
            run, key = self._opened(), self.key
        if name not in run.layers:
            raise unknown_name("layer", name, run.layers)
        if view not in VIEWS:
            raise unknown_name("view", view, [name for name in VIEWS if name])
        builder = FrameBuilder(run, name, view, forecast(run, name, view))
        header, arrays = describe_layer(builder)
        with self.lock:
            if self.key == key:
                self.builder = builder
        return header | {"key": key}, arrays

    # -- frames

    def must_compile(self, request: Mapping[str, Any]) -> bool:
        """Whether a request for a frame trains beyond the recording, and the training is not compiled yet."""
        run = self.run
        if run is None or not run.trains or self.prepared:
            return False
        at: Any = request.get("at")
        return at > run.end if _is_whole(at) else self.shown >= run.end and bool(request.get("steps"))

    def prepare(self) -> None:
        """Compile the training."""
        with self.lock:
            run = self.run
        if isinstance(run, LiveRun):
            run.live.prepare()
            with self.lock:
                self.prepared = self.prepared or self.run is run

    def frame(self, request: Mapping[str, Any], seconds: float) -> Answer:
        """The frame some steps later, or at a step; it trains for ``seconds`` at most."""
        reduce_to = Settings.from_text({"reduce": str(request.get("reduce", "auto"))}).reduce
        with self.lock:
            run, builder = self._opened(), self.builder
            assert builder is not None
            moment = self._moment(run, request.get("at"), request.get("steps", 0), seconds)
            self.shown = moment.step
            header, arrays = builder.build(moment, reduce_to, bool(request.get("settled")))
            arrays["curve"] = np.array([builder.curve_row(new) for new in self._new_moments(run)], float).reshape(-1, 6)
            if builder.heads is not None:
                arrays["spectra"] = builder.heads.curve(self._new_moments(run))
            self.curve_end = run.end
            message = ""
            if run.diverged is not None and moment.step >= run.end:
                message = (
                    f"Training diverged: the loss was no longer finite at step {run.diverged}. This is the last moment "
                    "before. Try a smaller rate or smaller initial weights."
                )
            return header | {
                "kind": "frame",
                "key": self.key,
                "end": run.end,
                "diverged": run.diverged,
                "ended": moment.step >= run.end and (not run.trains or run.end >= LAST_STEP),
                "message": message,
            }, arrays

    def _moment(self, run: ShownRun, at: Any, steps: Any, seconds: float) -> Moment:
        if at is not None:
            if not _is_whole(at):
                raise InputError(f"a step is a whole number of at least 0, not {at!r}")
            return run.seek(at, seconds)
        if not _is_whole(steps) or steps > MOST_STEPS:
            raise InputError(f"steps is a whole number from 0 to {MOST_STEPS}, not {steps!r}")
        return run.later(self.shown, steps, seconds) if steps else run.seek(self.shown, seconds)

    def _new_moments(self, run: ShownRun) -> list[Moment]:
        """Recorded moments whose rows of the curve were not sent yet: one or a few, at the end."""
        newest_first = itertools.takewhile(lambda moment: moment.step > self.curve_end, reversed(run.recording.moments))
        return [*newest_first][::-1]

    def _opened(self) -> ShownRun:
        if self.run is None:
            raise InputError("nothing is opened yet")
        return self.run

    # -- maps and exports

    def map(self, name: Any, quantity: Any = None, x: Any = None, y: Any = None) -> Answer:
        """A sweep as a map."""
        header, arrays = sweep_map(self.library.sweep(name), quantity, x, y)
        return {"kind": "map", "title": printable(name), "name": name, **header}, arrays

    def export(self) -> Answer:
        """The experiment, up to the step shown, as TOML and as Python."""
        with self.lock:
            run, layer = self._opened(), self.builder.layer if self.builder else ""
            experiment, step = run.experiment, self.shown
        if experiment is None:
            raise InputError("a watched run has no experiment that could be exported")
        experiment = experiment.replace(steps=max(step, 1)) if run.trains else experiment
        return {"kind": "text", **describe_experiment(experiment, run.seed, layer)}, {}


def _is_whole(value: Any) -> bool:
    return type(value) is int and value >= 0
