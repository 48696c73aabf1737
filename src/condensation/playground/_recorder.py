"""Records trainings and saved runs: the messages of a session, kept, so that a page can show them without a server.

A recording is a text of lines. The first one has the hello, which lists what was recorded; the others have the
messages, each compressed and in base64: of each run what was opened, and of each of its layers the prediction and the
frames. ``page/recorded.js`` reads them.
"""

import base64
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import numpy as np

from ..errors import InputError, unknown_name
from ._answers import describe_experiment, settings_title
from ._frame import Answer
from ._library import Library
from ._messages import pack
from ._presets import hello, presets
from ._runs import LiveRun, ShownRun
from ._session import Session
from ._settings import Settings
from ._tracks import encode

MOMENTS = 80  # of a run, at most
LEAST, MOST = 400, 2000  # steps of a training that is recorded
STAGE = 0.7  # share of the first loss at which the initial stage ends
LENGTH = 2  # initial stages that are recorded
SEARCH = 50  # moments at which the end of the initial stage is looked for
MOST_SEEDS = 3  # of a saved run
DIGITS = 9  # of a number in a header
STEPS = 918273645  # stands for the number of steps in the text of an experiment
SWEEP = "A recording has no sweeps: their cells are trained when they are opened. Run condensation play FOLDER."

Report = Callable[[str, int, int], None]  # what is recorded now, how much is done, of how much


@dataclass
class Recorder:
    """Collects what is recorded."""

    parts: list[bytes] = field(default_factory=list)
    entries: list[dict[str, Any]] = field(default_factory=list)  # what can be opened, and the parts that it needs
    listed: list[dict[str, Any]] = field(default_factory=list)  # what the page lists

    def training(self, title: str, settings: Settings) -> None:
        """Record a training; once, however many presets have its settings."""
        texts = settings.to_text()
        if any(entry["source"].get("settings") == texts for entry in self.entries):
            return
        run = LiveRun(settings.experiment(), settings.seeds)
        end = length_of(settings)
        train_to(run, evenly(end, MOMENTS) if settings.of_tokens else spread(end, MOMENTS))
        run.trains = False  # any further
        session = Session()
        opened = session.show(run, settings_title(settings), settings)
        self._add({"do": "open", "settings": texts}, session, opened)
        self.listed.append({"name": title, "kind": "training", "title": title, "problem": "", "settings": texts})

    def saved(self, library: Library, name: str) -> None:
        """Record the first seeds of a saved run."""
        seeds, number = [], 0
        while number < min(MOST_SEEDS, len(seeds) or 1):
            session = Session(library)
            header, _ = session.open_run(name, number)
            seeds = header["seeds"]
            assert session.run is not None
            moments = session.run.recording.moments
            session.run.recording.moments = [moments[k] for k in spread(len(moments) - 1, MOMENTS)]
            opened = session.show(session.run, header["title"], None)
            opened[0].update(seeds=seeds[:MOST_SEEDS], seed=number)
            self._add({"do": "run", "name": name, "seed": number}, session, opened)
            number += 1

    def _add(self, source: dict[str, Any], session: Session, opened: Answer) -> None:
        """Keep all that a page can ask for of an opened run."""
        run = session.run
        assert run is not None
        header, arrays = opened
        arrays.pop("curve")  # that of each layer is kept
        entry = {"source": source, "opened": self._keep(header, arrays), "layers": []}
        for layer in header["layers"]:
            for view in layer["views"] or [None]:
                predicted, known = session.choose_layer(layer["name"], view)
                with np.errstate(over="ignore", invalid="ignore"):  # beyond float32, where a training diverges
                    frames = [session.frame({"at": m.step, "settled": True}, 0.0) for m in run.recording.moments]
                headers = [_short(frame_header) for frame_header, _ in frames]
                own, shared = _parted([frame_arrays for _, frame_arrays in frames], layer["name"])
                tracks, numbers = encode(own)
                parts = {
                    "frames": self._keep({"frames": headers, "tracks": tracks, **_texts(run, layer["name"])}, numbers)
                }
                if "spectra" in known:
                    tracks, numbers = encode(shared)
                    curves, rows = encode([{"spectra": row} for row in known.pop("spectra")])
                    parts["heads"] = self._keep({"tracks": [*tracks, *curves]}, numbers | rows)
                parts["layer"] = self._keep(predicted, known)
                entry["layers"].append({"name": layer["name"], "view": view, **parts})
        self.entries.append(entry)

    def _keep(self, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> int:
        """Keep a message, the same one once; its number. What tells sessions apart is left to the page."""
        part = pack({name: value for name, value in header.items() if name not in ("key", "prediction")}, arrays)
        if part not in self.parts:
            self.parts.append(part)
        return self.parts.index(part) + 1

    def text(self, tour: bool) -> str:
        """The recording as text; with the scenes of the ``tour``, if they were recorded."""
        first = hello() | {"library": self.listed, "recorded": self.entries}
        first |= {"start": f"scene={first['scenes'][0]['name']}"} if tour else {"start": self._start(), "scenes": []}
        lines = (base64.b64encode(zlib.compress(part, 9)).decode() for part in (pack(first), *self.parts))
        return "\n".join(lines)

    def _start(self) -> str:
        """The address of what was recorded first."""
        source, usual = self.entries[0]["source"], Settings().to_text()
        if source["do"] == "run":
            return urlencode({"run": source["name"]})
        return urlencode({name: text for name, text in source["settings"].items() if text != usual[name]})


def record(library: Library, names: Sequence[str], tour: bool, report: Report = lambda name, done, total: None) -> str:
    """Record the tour, examples of the papers by their names, and the runs of a library, as a text.

    A run that cannot be read is listed with the reason.
    """
    recorder = Recorder()
    figures = {figure["name"]: figure for figure in presets()["figures"]}
    for name in names:
        if name not in figures:
            raise unknown_name("preset", name, figures)
    wanted = [*(scene_settings() if tour else ()), *((figures[n]["title"], figures[n]["settings"]) for n in names)]
    runs = [entry for entry in library.entries.values() if entry.kind == "run" and not entry.problem]
    total = len(wanted) + len(runs)
    for number, (title, settings) in enumerate(wanted):
        report(title, number, total)
        recorder.training(title, Settings.from_text(settings))
    for number, entry in enumerate(runs, len(wanted)):
        report(entry.title, number, total)
        try:
            recorder.saved(library, entry.name)
        except InputError as error:
            entry.problem = str(error)
    report("", total, total)
    for listed in library.listed():
        problem = SWEEP if listed["kind"] == "sweep" else listed["problem"]
        recorder.listed.append(listed | {"problem": problem, "shut": bool(problem)})
    if not recorder.entries:
        problems = " ".join(f"{one['title']}: {one['problem']}" for one in recorder.listed)
        raise InputError(f"there is nothing to record. {problems}")
    return recorder.text(tour)


def scene_settings() -> Iterator[tuple[str, dict[str, str]]]:
    """A title and the settings of everything that the tour shows."""
    for scene in presets()["scenes"]:
        shown = {one["label"]: one["settings"] for one in scene["compare"]}
        if scene["settings"] not in shown.values():
            yield scene["title"], scene["settings"]
        for label, settings in shown.items():
            yield f"{scene['title']}: {label}", settings


def length_of(settings: Settings) -> int:
    """How many steps of a training are recorded: its initial stage, and as long again."""
    run = LiveRun(settings.experiment(), settings.seeds)
    longest = MOST // LENGTH
    for step in spread(longest, SEARCH)[1:]:
        train_to(run, [step])
        if run.diverged is not None or run.recording.last.loss <= STAGE * run.first.loss:
            break
    return max(LEAST, LENGTH * run.end)


def train_to(run: LiveRun, steps: Sequence[int]) -> None:
    """Train to the last of some steps, and record a moment at each; a training that diverges ends before."""
    for step in steps:
        while run.end < step and run.diverged is None:
            run.later(run.end, step - run.end, np.inf)


def spread(last: int, count: int) -> list[int]:
    """Numbers from 0 to the last one, dense at first, as the slider of the page has its steps.

    >>> spread(8, 4), spread(2, 80)
    ([0, 1, 4, 8], [0, 1, 2])
    """
    return np.unique((last * np.linspace(0, 1, max(count, 2)) ** 2).round().astype(int)).tolist()


def evenly(last: int, count: int) -> list[int]:
    """Numbers from 0 to the last one: for attention, whose second stage comes late and is short.

    >>> evenly(8, 3)
    [0, 4, 8]
    """
    return np.unique(np.linspace(0, last, max(count, 2)).round().astype(int)).tolist()


def _texts(run: ShownRun, layer: str) -> dict[str, Any]:
    """The experiment as texts, cut where the number of steps stands: of a training that is the step shown."""
    experiment = run.experiment
    if experiment is None:
        return {"texts": None}
    trained = isinstance(run, LiveRun)
    texts = describe_experiment(experiment.replace(steps=STEPS) if trained else experiment, run.seed, layer)
    return {"texts": {kind: text.split(str(STEPS)) for kind, text in texts.items()}}


Arrays = dict[str, np.ndarray]


def _parted(frames: list[Arrays], layer: str) -> tuple[list[Arrays], list[Arrays]]:
    """The arrays of a layer alone, and those that all layers of a block of attention have, which are kept once.

    The weights of a layer whose matrix is among the latter are left out.
    """
    matrices = {name for name in frames[-1] if name.startswith("head_")}
    if not matrices:
        return frames, []
    shared, first = matrices | {"fit"}, frames[0]
    matrix = first.get(f"head_{layer.rstrip('0123456789')}")
    left = shared | {"spectra"} | ({"w"} if matrix is not None and matrix.size == first["w"].size else set())
    own = [{name: value for name, value in frame.items() if name not in left} for frame in frames]
    return own, [{name: value for name, value in frame.items() if name in shared} for frame in frames]


def _short(value: Any) -> Any:
    """A header with numbers of a few digits, without what the page knows itself."""
    if isinstance(value, dict):
        return {name: _short(part) for name, part in value.items() if name not in ("key", "prediction", "kind")}
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
