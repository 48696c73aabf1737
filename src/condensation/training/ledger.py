"""The ledger of a watched training: its rows, the weights that are kept, the start, and their run folder.

Files are those of ``store``. Nothing has its final name before ``begin``: until then another process may turn out to be
the one that writes.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..files import make_folder
from ..seeds import Seed
from .record import Kept, Record
from .store import RunFolder, open_run
from .trajectory import Trajectory, collect
from .watched import StartFile, Watched, WatchedLayer, WatchedRow, pack_reasons, to_curves, to_rows, unpack_reasons

WRITING = 0.05  # share of the time that writing files may take
SEED = Seed(0, 0)


class Ledger:
    """What a watched training leaves.

    Attributes:
        watched: what is watched and when; the folder's where a run is gone on with.
        rows: one for each layer and measured step.
        resumed: whether there were rows before.
    """

    def __init__(self, watched: Watched, path: Path | None, *, resume: bool, rows: Sequence[WatchedRow] = ()) -> None:
        self.watched = watched
        self.rows: list[WatchedRow] = list(rows)
        kept = (layer for layer in watched.layers if layer.name in watched.keep)
        self._kept = {layer.name: _unknown(layer, len(self.steps)) for layer in kept}
        self._diverged: int | None = None
        self._began, self._earlier = time.perf_counter(), 0.0
        self.seconds_written, self._last_write, self._warned = 0.0, 0.0, False
        self._start: StartFile | dict[str, np.ndarray] = {}
        self._folder = None if path is None else self._opened(path, resume)
        self.resumed = bool(self.rows)

    def _opened(self, path: Path, resume: bool) -> RunFolder:
        """The folder; a run that is in it is gone on with."""
        make_folder(path)
        self._start = StartFile(path)
        if not (path / "run.json").exists():
            return RunFolder(path, self.watched)
        found = open_run(path)
        if not isinstance(found.source, Watched):
            raise InputError(f"the folder {path} holds the run of an experiment; a watched run needs one of its own")
        if not resume:
            raise InputError(
                f"the folder {path} already holds a watched run of {found.source.model}: resume=True goes on with it"
            )
        differs = found.source.differs(self.watched)
        if differs:
            raise InputError(f"the run in {path} cannot be gone on with: {differs}")
        kept = found.read(SEED)
        self.watched = found.source
        self.rows = to_rows(self.watched.layers, kept.record.curves, unpack_reasons(kept.leaves[0]))
        self._kept = {name: list(kept.record.weights[name]) for name in self.watched.keep}
        self._earlier, self._diverged = kept.record.seconds, kept.record.diverged
        return found

    @property
    def steps(self) -> list[int]:
        """The measured steps."""
        return list(dict.fromkeys(row.step for row in self.rows))

    @property
    def seconds(self) -> float:
        """Since it was opened."""
        return time.perf_counter() - self._began

    @property
    def trajectory(self) -> Trajectory:
        """What there is until now, as ``load_run`` gives it."""
        return collect(self.watched, (SEED,), [self._record()])

    def keep_start(self, weights: Iterator[np.ndarray]) -> None:
        """Keep the weights of all layers as they are now: on disk where there is a folder, else in memory."""
        if isinstance(self._start, StartFile):
            self._start.write(self.watched.layers, weights)
        else:
            names = (layer.name for layer in self.watched.layers)
            self._start = {name: np.array(array) for name, array in zip(names, weights, strict=True)}

    def start_of(self, layer: str) -> np.ndarray | None:
        """The weights at the start; None where no change can be told from them."""
        found = self._start.read(layer) if isinstance(self._start, StartFile) else self._start.get(layer)
        return found if found is not None and np.isfinite(found).all() and found.any() else None

    def add(self, row: WatchedRow, weights: np.ndarray) -> None:
        """Enter a row, and its weights if they are to be kept."""
        self.rows.append(row)
        if row.layer in self._kept:
            self._kept[row.layer].append(np.array(weights))
        if self._diverged is None and not np.isfinite(weights).all():
            self._diverged = row.step

    def begin(self, stays: Callable[[int], bool]) -> None:
        """Begin to write; of a run that is gone on with, only steps that stay remain, and the start."""
        if isinstance(self._start, StartFile):
            self._start.settle()
        left = [step for k, step in enumerate(self.steps) if k == 0 or stays(step)]
        for name, arrays in self._kept.items():
            self._kept[name] = [one for one, step in zip(arrays, self.steps, strict=True) if step in left]
        self.rows[:] = [row for row in self.rows if row.step in left]
        if self._diverged not in left:
            self._diverged = None

    def abandon(self) -> None:
        """Leave the run to another process."""
        if isinstance(self._start, StartFile):
            self._start.drop()
        self._start, self._folder = {}, None
        self.rows.clear()

    def write(self, step: int, *, finished: bool = False, now: bool = False) -> None:
        """Write the files, if there is a folder and it has not taken too much of the time.

        A folder that cannot be written any more is told as a warning, and at the end as an error.

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
        kept = Kept(self._record(), len(self.steps), step, [pack_reasons(self.rows)], finished)
        try:
            self._folder.write(SEED, kept)
            if now:
                self._folder.describe()
        except InputError as error:
            if finished:
                raise
            if not self._warned:
                warnings.warn(f"{error}; the training goes on", stacklevel=4)
            self._warned = True
        self._last_write = time.perf_counter() - began
        self.seconds_written += self._last_write

    def _record(self) -> Record:
        weights = {name: np.stack(arrays) for name, arrays in self._kept.items()}
        return Record(weights, to_curves(self.rows), self._diverged, self._earlier + self.seconds)


def _unknown(layer: WatchedLayer, steps: int) -> list[np.ndarray]:
    """The weights at steps of which only rows are known."""
    return [np.full((layer.units, layer.inputs), np.nan, np.float32) for _ in range(steps)]
