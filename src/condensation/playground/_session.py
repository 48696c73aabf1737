"""One page's session: what it has opened, which moment it shows, and the answers to its requests.

A session belongs to one websocket. Requests are answered in two ways: at once, or, where that may take seconds
(compiling, predicting, reading folders), in a lane of their own while frames go on.
"""

import itertools
import threading
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..activations import label as activation_label
from ..activations import multiplicity
from ..errors import InputError, unknown_name
from ..networks._model import find_layer
from ..seeds import Seed
from ._export import as_program
from ._forecast import Forecast, forecast, no_forecast
from ._frame import Frame, output_grid
from ._library import Library, sweep_map
from ._runs import FAR, LiveRun, SavedRun, ShownRun, model_of, weights_of
from ._settings import LIMITS, MOST_TARGET, Settings

MOST_STEPS = 100_000  # in one request
CURVE_POINTS = 200  # of a curve that is computed at once, when another layer is chosen
VIEWS = (None, "kernel", "filter")
Answer = tuple[dict[str, Any], dict[str, np.ndarray]]
_keys = itertools.count(1)


class Session:
    """What one page looks at."""

    def __init__(self, shelf: Library | None = None) -> None:
        self.shelf = shelf or Library()
        self.lock = threading.Lock()
        self.run: ShownRun | None = None
        self.look: Frame | None = None
        self.key, self.shown, self.prepared = 0, 0, False
        self.curve_end = -1  # the last step whose row of the curve was sent
        self.pace = 0.0  # steps a second while training

    # -- opening

    def open(self, words: Any) -> Answer:
        """A new training from its start."""
        if not isinstance(words, Mapping):
            raise InputError("the words of a setting are a table of texts")
        settings = Settings.from_words(words)
        run = LiveRun(settings.experiment(), settings.seeds)
        if not np.abs(run.live.y).max() <= MOST_TARGET:
            raise InputError(
                f"the targets reach {np.abs(run.live.y).max():.1g}: beyond {MOST_TARGET:g} nothing is shown"
            )
        return self._show(run, _said(settings), settings)

    def open_run(self, name: Any, seed: Any = None) -> Answer:
        """A saved run, one of its seeds."""
        trajectory = self.shelf.run(name)
        number = 0 if seed is None else seed
        if type(number) is not int or not 0 <= number < len(trajectory.seeds):
            raise InputError(f"the run {name} has the seeds 0 to {len(trajectory.seeds) - 1}, not {seed!r}")
        if not trajectory.layers:
            raise InputError(f"the run {name} kept no weights; watch(..., keep=...) names layers to keep")
        run = SavedRun(trajectory, trajectory.seeds[number])
        if not run.known:
            raise InputError(f"this seed of {name} diverged before anything was saved")
        answer, arrays = self._show(run, self.shelf.title(name), None)
        answer |= {"seeds": [_seed_name(one) for one in trajectory.seeds], "seed": number}
        return answer, arrays

    def open_cell(self, name: Any, cell: Any, seed: Any = 0) -> Answer:
        """The run of a sweep's cell, trained live."""
        experiment, chosen, said = self.shelf.cell(name, cell, seed)
        return self._show(LiveRun(experiment, chosen), f"{name}: {said}, seed {_seed_name(chosen)}", None)

    def _show(self, run: ShownRun, title: str, settings: Settings | None) -> Answer:
        layer, view = run.layers[0], None
        look = Frame(run, layer, view, no_forecast(weights_of(run, run.known[0], layer, view)))
        rows = [look.curve_row(moment) for moment in _spread(run.known)]
        with self.lock:
            self.run, self.look = run, look
            self.key, self.shown, self.prepared = next(_keys), run.known[0].step, False
            self.curve_end, self.pace = run.known[-1].step, 0.0
        data, (_, dim, grid) = run.data(), output_grid(run)
        experiment = run.experiment
        header = {
            "kind": "opened",
            "key": self.key,
            "words": None if settings is None else settings.words(),
            "title": title,
            "live": run.trains,
            "last": None if run.trains else run.end,
            "steps": None if run.trains else [moment.step for moment in run.known],
            "inputs": None if data is None else int(np.prod(data[0].shape[1:])),
            "layers": [self._layer_entry(run, name) for name in run.layers],
            "dim": dim,
            "classes": bool(data is not None and data[1].shape[1] > 1),
            "seeds": [],
            "seed": None,
            "fingerprint": None if experiment is None else experiment.fingerprint(),
        }
        arrays = {"curve": np.array(rows, float)}
        if data is not None:
            arrays["y"] = data[1].astype(np.float32)
        if data is not None and data[0].ndim == 2:
            arrays["x"] = data[0].astype(np.float32)
        if grid is not None:
            arrays["grid"] = grid.astype(np.float32)
        return header, arrays

    def _layer_entry(self, run: ShownRun, name: str) -> dict[str, Any]:
        weights = weights_of(run, run.known[0], name, None)
        entry: dict[str, Any] = {"name": name, "label": name, "units": len(weights), "inputs": weights.shape[1]}
        if run.experiment is not None:
            names = [one.name for one in run.experiment.network.layers]
            activations = run.experiment.network.activations
            convolution = find_layer(run.experiment.network, name).is_convolution
            entry["views"] = ["kernel", "filter"] if convolution else []
            if names.index(name) < len(activations):
                entry["label"] = f"layer {names.index(name) + 1}, {activation_label(activations[names.index(name)])}"
        return entry

    # -- the layer that is looked at, and what is predicted for it

    def choose_layer(self, name: Any, view: Any = None) -> Answer:
        """Look at a layer; its lines are predicted now, which may take seconds."""
        with self.lock:
            run, key = self._opened(), self.key
        if name not in run.layers:
            raise unknown_name("layer", name, run.layers)
        if view not in VIEWS:
            raise unknown_name("view", view, [one for one in VIEWS if one])
        first = run.known[0]
        weights = weights_of(run, first, name, view)
        found = self._forecast(run, str(name), view, weights)
        look = Frame(run, str(name), view, found)
        rows = [look.curve_row(moment) for moment in _spread(run.known)]
        with self.lock:
            if self.key == key:
                self.look = look
        shown = look.chosen
        network = None if run.experiment is None else run.experiment.network
        activation = look.activation
        image = None
        if network is not None and find_layer(network, str(name)).is_convolution:
            weight = find_layer(network, str(name)).weight
            image = [weight[1] if view == "filter" else 1, weight[2]]
        header = {
            "kind": "layer",
            "key": key,
            "look": look.number,
            "name": name,
            "view": view,
            "label": self._layer_entry(run, str(name))["label"],
            "units": len(weights),
            "inputs": weights.shape[1],
            "p": None if activation is None else multiplicity(activation),
            "forecast": found.kind,
            "count": found.count,
            "orientations": found.orientations,
            "method": found.method,
            "certified": found.certified,
            "share": found.share,
            "note": found.note,
            "why": found.why,
            "colouring": "fate" if len(found.fate) else "nearest",
            "plane": {"exact": weights.shape[1] == 2, "labels": _axes(run, str(name), found)},
            "image": image,
        }
        fated = len(found.fate) > 0
        arrays = {
            "lines": found.lines.astype(np.float32),
            "line_xy": (found.lines @ found.basis.T).astype(np.float32),
            "attracts": found.attracts.astype(np.uint8),
            "values": found.values.astype(np.float32),
            "fate": found.fate[shown].astype(np.int16) if fated else np.zeros(0, np.int16),
            "fate_sign": found.sign[shown].astype(np.int8) if fated else np.zeros(0, np.int8),
            "confidence": found.confidence[shown].astype(np.float32)
            if len(found.confidence)
            else np.zeros(0, np.float32),
            "arrows": found.arrows.astype(np.float32),
            "basis": found.basis.astype(np.float32),
            "curve": np.array(rows, float),
        }
        return header, arrays

    def _forecast(self, run: ShownRun, name: str, view: str | None, weights: np.ndarray) -> Forecast:
        data, model = run.data(), model_of(run, run.known[0])
        if run.experiment is None or data is None:
            return no_forecast(weights, "this run was watched, not trained here: its data are not known")
        if model is None:
            return no_forecast(weights, "only some layers of this run were kept, so that nothing can be predicted")
        return forecast(run.experiment, model, *data, name, view)

    # -- moments

    @property
    def must_prepare(self) -> bool:
        """Whether something has to be compiled before training goes on."""
        return self.run is not None and self.run.trains and not self.prepared

    def will_train(self, request: Mapping[str, Any]) -> bool:
        """Whether a request for a frame goes beyond what is known."""
        run = self.run
        if run is None or not run.trains:
            return False
        at: Any = request.get("at")
        return at > run.end if _is_whole(at) else self.shown >= run.end and bool(request.get("steps"))

    def prepare(self) -> None:
        """Compile the training."""
        with self.lock:
            run = self.run
        if run is not None:
            run.prepare()
            with self.lock:
                self.prepared = self.prepared or self.run is run

    def frame(self, request: Mapping[str, Any], seconds: float) -> Answer:
        """The next moment, or the one at a step; ``seconds`` is what training may take."""
        reduce_to = _reduced(request.get("reduce"))
        with self.lock:
            run, look = self._opened(), self.look
            assert look is not None
            before, began = run.end, time.perf_counter()
            at, steps = request.get("at"), request.get("steps", 0)
            if at is not None:
                if not _is_whole(at):
                    raise InputError(f"a step is a whole number of at least 0, not {at!r}")
                moment = run.seek(at, seconds)
            elif _is_whole(steps) and steps <= MOST_STEPS:
                moment = run.later(self.shown, steps, seconds) if steps else run.seek(self.shown, seconds)
            else:
                raise InputError(f"steps is a whole number from 0 to {MOST_STEPS}, not {steps!r}")
            if run.end > before:
                pace = (run.end - before) / max(time.perf_counter() - began, 1e-9)
                self.pace = pace if not self.pace else 0.8 * self.pace + 0.2 * pace
            self.shown = moment.step
            header, arrays = look.frame(moment, reduce_to, bool(request.get("settled")))
            new = _fresh(run, self.curve_end)
            arrays["curve"] = np.array([look.curve_row(one) for one in new], float).reshape(-1, 6)
            self.curve_end = run.end
            header |= {
                "kind": "frame",
                "key": self.key,
                "end": run.end,
                "rate": self.pace,
                "diverged": run.diverged,
                "ended": moment.step >= run.end and (not run.trains or run.end >= FAR),
                "message": "",
            }
            if header["diverged"] is not None and moment.step >= run.end:
                header["message"] = (
                    f"the loss was no longer finite at step {header['diverged']}: the network has diverged, and this "
                    "is its last moment before; a smaller rate or start keeps it finite"
                )
            return header, arrays

    def _opened(self) -> ShownRun:
        if self.run is None:
            raise InputError("nothing is opened yet")
        return self.run

    # -- the rest

    def map(self, name: Any, quantity: Any = None, x: Any = None, y: Any = None) -> Answer:
        """A sweep as a map."""
        header, arrays = sweep_map(self.shelf.sweep(name), quantity, x, y)
        return {"kind": "map", "title": str(name), "name": name, **header}, arrays

    def export(self) -> Answer:
        """The experiment that is shown, up to the step that is shown, as TOML and as Python."""
        with self.lock:
            run, layer = self._opened(), self.look.layer if self.look else ""
            experiment, step = run.experiment, self.shown
        if experiment is None:
            raise InputError("a watched run has no experiment of ours that could be written down")
        chosen = experiment.replace(steps=max(step, 1)) if run.trains else experiment
        program = as_program(chosen, run.seed, layer)
        return {"kind": "text", "toml": f"# seed {_seed_name(run.seed)}\n{chosen.to_toml()}", "python": program}, {}


def _fresh(run: ShownRun, after: int) -> list[Any]:
    """Known moments after a step, the latest last; they come one or a few at a time."""
    fresh = []
    for moment in reversed(run.known):
        if moment.step <= after:
            break
        fresh.append(moment)
    return fresh[::-1]


def _spread(moments: list[Any]) -> list[Any]:
    """Some of the moments, evenly chosen, the first and the last among them."""
    chosen = np.unique(np.linspace(0, len(moments) - 1, min(len(moments), CURVE_POINTS)).round().astype(int))
    return [moments[k] for k in chosen]


def _axes(run: ShownRun, layer: str, found: Forecast) -> list[str]:
    """What the two axes of the plane are."""
    if found.basis.shape[1] != 2:
        return ["along the first predicted line", "across it"] if found.count else ["widest spread", "second widest"]
    network = None if run.experiment is None else run.experiment.network
    has_bias = network is not None and find_layer(network, layer).has_bias
    return ["weight w", "bias b"] if has_bias else ["weight w₁", "weight w₂"]


def _said(settings: Settings) -> str:
    """The settings in a line."""
    known = {name: multiplicity(name) for name in settings.layers}
    told = [activation_label(name) + (f" (p = {p})" if p else "") for name, p in known.items()]
    what = {"formula": settings.formula, "points": f"{len(settings.points)} points", "digits": "digits"}[settings.data]
    size = f"{len(settings.layers)} layers of {settings.width}" if len(settings.layers) > 1 else str(settings.width)
    units = "kernels" if settings.data == "digits" else "neurons"
    return f"{size} {units} of {', '.join(told)} on {what}"


def _seed_name(seed: Seed) -> str:
    return str(seed.data) if seed.data == seed.init else f"{seed.data}/{seed.init}"


def _is_whole(value: Any) -> bool:
    return type(value) is int and value >= 0


def _reduced(value: Any) -> int | None:
    if value in (None, "auto"):
        return None
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        number = 0
    least, most = LIMITS["reduce"]
    if not least <= number <= most:
        raise InputError(f"reduce is auto or a number from {least:g} to {most:g}, not {value!r}")
    return number
