"""Writes a watched training: its rows, the weights that are kept, the initial weights, into a run folder.

No file has its final name before ``begin``: until then another process may turn out to be the one that writes.
"""

import gc
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np

from .._writing import make_folder
from ..errors import InputError
from ._run import Checkpoint, Record
from ._store import WatchedFolder, open_run
from ._watched import InitialWeights, Watched, WatchedRow, compact, pack_reasons, to_curves
from ._watched_run import SEED, WatchedRun, collect_watched

WRITING = 0.01  # share of the time that writing files may take
_WRITTEN: WeakValueDictionary[Path, "WatchWriter"] = WeakValueDictionary()  # the folders that this process writes


class WatchWriter:
    """What a watched training leaves.

    Attributes:
        watched: what is watched and when; the folder's where a run is gone on with.
        rows: one for each layer and measured step.
        resumed: whether there were rows before.
    """

    def __init__(
        self,
        watched: Watched,
        path: Path | None,
        *,
        resume: bool = False,
        overwrite: bool = False,
        rows: Sequence[WatchedRow] = (),
    ) -> None:
        self.watched = watched
        self.rows: list[WatchedRow] = list(rows)
        self._kept: dict[int, Mapping[str, np.ndarray]] = {}  # weights by step and layer
        self._diverged: int | None = None
        self._began, self._earlier = time.perf_counter(), 0.0
        self.seconds_written, self._last_write, self._warned = 0.0, 0.0, False
        self._start: InitialWeights | dict[str, np.ndarray] = {}
        self._folder = None if path is None else self._opened(path, resume, overwrite)
        self.resumed = bool(self.rows)

    def _opened(self, path: Path, resume: bool, overwrite: bool) -> WatchedFolder:
        """The folder; a run that is in it is gone on with, or gives way at the first step."""
        if overwrite and (other := _WRITTEN.get(path.resolve())) is not None:
            other.release()  # of a cell that was interrupted
        if path.resolve() in _WRITTEN:
            gc.collect()  # of a writer that nobody has any more
        if path.resolve() in _WRITTEN:
            raise InputError(f"another watcher of this process writes to {path}: close() it, or choose another folder")
        make_folder(path)
        self._start = InitialWeights(path)
        if (path / "run.json").exists():
            self._resume(path, resume, overwrite)
        _WRITTEN[path.resolve()] = self
        return WatchedFolder(path, self.watched)

    def _resume(self, path: Path, resume: bool, overwrite: bool) -> None:
        """Take over what the folder's run has, if it may be gone on with; nothing where it is to be overwritten."""
        folder = open_run(path)
        if folder.kind == "experiment":
            raise InputError(f"the folder {path} holds the run of an experiment; a watched run needs one of its own")
        watched = folder.source
        if overwrite:
            return
        if not resume:
            raise InputError(
                f"the folder {path} already holds a watched run of {watched.model}: "
                "resume=True goes on with it, overwrite=True begins another one"
            )
        differs = watched.differs(self.watched)
        if differs:
            raise InputError(f"the run in {path} cannot be gone on with: {differs}")
        run = folder.load()
        self.watched, self.rows = watched, run.rows
        for k, step in enumerate(run.saved.tolist()):
            self._kept[step] = {name: run.parameters[name][0, k] for name in watched.keep}
        self._earlier, self._diverged = run.seconds, run.diverged.get(SEED)

    @property
    def steps(self) -> list[int]:
        """The measured steps."""
        return list(dict.fromkeys(row.step for row in self.rows))

    @property
    def seconds(self) -> float:
        """Since it was opened."""
        return time.perf_counter() - self._began

    @property
    def trajectory(self) -> WatchedRun:
        """What there is until now, as ``load_run`` gives it."""
        return collect_watched(self.watched, self._checkpoint(0))

    def keep_start(self, weights: Iterator[np.ndarray]) -> None:
        """Keep the weights of all layers as they are now: on disk where there is a folder, else in memory."""
        if isinstance(self._start, InitialWeights):
            self._start.write(self.watched.layers, weights)
        else:
            names = (layer.name for layer in self.watched.layers)
            self._start = {name: np.array(compact(array)) for name, array in zip(names, weights, strict=True)}

    def start_of(self, layer: str) -> np.ndarray | None:
        """The initial weights of a layer; None where no change can be told from them."""
        try:
            weights = self._start.read(layer) if isinstance(self._start, InitialWeights) else self._start.get(layer)
        except InputError as error:
            weights = self._lose_start(error)
        if weights is None:
            return None
        weights = weights.astype(np.float32) if weights.dtype.itemsize < 4 else weights
        return weights if np.isfinite(weights).all() and weights.any() else None

    def _lose_start(self, error: InputError) -> None:
        warnings.warn(f"{error}; the training goes on, the change of its layers is NaN from here on", stacklevel=2)
        self._start = {}

    def add(self, rows: Sequence[WatchedRow], kept: Mapping[str, np.ndarray], *, finite: bool = True) -> None:
        """Enter the rows of a step, of all layers at once: an interrupt leaves a step whole or out.

        Args:
            rows: one for each layer.
            kept: weights of those layers that are to be kept and can be read.
            finite: whether all weights are finite numbers.
        """
        step = rows[0].step
        self._kept[step] = kept
        if self._diverged is None and not finite:
            self._diverged = step
        self.rows.extend(rows)

    def begin(self, stays: Callable[[int], bool]) -> None:
        """Begin to write; of a run that is gone on with, only steps that stay remain, and the first."""
        if isinstance(self._start, InitialWeights):
            try:
                self._start.publish()
            except InputError as error:
                self._lose_start(error)
        left = [step for k, step in enumerate(self.steps) if k == 0 or stays(step)]
        self.rows[:] = [row for row in self.rows if row.step in left]
        if self._diverged not in left:
            self._diverged = None

    def abandon(self) -> None:
        """Leave the run to another process."""
        if isinstance(self._start, InitialWeights):
            self._start.drop()
        self.release()
        self._start = {}
        self.rows.clear()

    def release(self) -> None:
        """Write no more: the folder is free for another watcher."""
        if self._folder is not None:
            _WRITTEN.pop(self._folder.path.resolve(), None)
            self._folder = None

    def write(self, step: int, *, finished: bool = False, now: bool = False) -> None:
        """Write the files, if there is a folder and it has not taken too much of the time.

        A folder that was taken away is made again. One that cannot be written is told as a warning, and at the end as
        an error.

        Args:
            step: the present one.
            finished: whether it is the last.
            now: in any case, run.json too.
        """
        if self._folder is None:
            return
        now = now or finished
        if not now and self.seconds_written + self._last_write > WRITING * self.seconds:
            return
        began = time.perf_counter()
        try:
            make_folder(self._folder.path)
            self._folder.write({SEED: self._checkpoint(step, finished)})
            if now or not (self._folder.path / "run.json").exists():
                self._folder.describe()
        except InputError as error:
            if finished:
                raise
            if not self._warned:
                warnings.warn(f"{error}; the training goes on", stacklevel=4)
            self._warned = True
        self._last_write = time.perf_counter() - began
        self.seconds_written += self._last_write

    def _checkpoint(self, step: int, finished: bool = False) -> Checkpoint:
        weights = {}
        for layer in self.watched.layers:
            if layer.name in self.watched.keep:
                shape = layer.units, layer.inputs
                unknown = np.full(shape, np.nan, np.float32)  # a layer that could not be read, or of a checkpoint's row
                arrays = [self._kept.get(step, {}).get(layer.name, unknown) for step in self.steps]
                weights[layer.name] = np.array(arrays).reshape(-1, *shape)
        record = Record(weights, to_curves(self.rows), self._diverged, self._earlier + self.seconds)
        return Checkpoint(record, len(self.steps), step, [pack_reasons(self.rows)], finished)
