"""A watched run: the curves and the kept weights of a training that another program did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from .._display import short_number
from .._phrases import plural
from .._sketch import curves
from ..errors import InputError, unknown_name
from ..seeds import Seed
from ._run import Checkpoint, Run, listed, stack_records
from ._watched import Watched, WatchedRow, to_rows, unpack_reasons

MOST_SHOWN = 4  # layers that a printed run tells of
SEED = Seed(0, 0)  # under which a watched run is kept


@dataclass(frozen=True, eq=False, kw_only=True)
class WatchedRun(Run):
    """Weights of the layers that were to be kept, as units x inputs, and curves, at the measured steps.

    ``curves`` has the loss and ``QUANTITY/LAYER`` (``k_eff/0.weight``); ``reasons`` tells, by step and layer, why a
    layer could not be measured.
    """

    first_loss: ClassVar[int] = 1  # step 1 tells the loss before training

    watched: Watched
    reasons: dict[tuple[int, str], str]

    def _title(self) -> str:
        return f"WatchedRun of {self.watched.model}: {plural(len(self.watched.layers), 'layer')}"

    def _facts(self) -> dict[str, str]:
        facts = self._curve_facts()
        for layer in self.watched.layers[:MOST_SHOWN]:
            curve = self.curves[f"k_eff/{layer.name}"][0]
            first, last = map(short_number, curve[[0, -1]]) if len(curve) else ("-", "-")
            facts[layer.name] = f"{layer.units} x {layer.inputs}, k_eff {first} at first, {last} at last"
        others = len(self.watched.layers) - MOST_SHOWN
        return facts | {"others": plural(others, "layer") if others > 0 else "", "kept": listed(self.layers)}

    def _picture(self) -> str:
        rows = [self.curves[f"k_eff/{layer.name}"][0] for layer in self.watched.layers]
        return curves(self.recorded, rows, label="k_eff of the layers", log=True)

    @property
    def experiment(self) -> NoReturn:
        """Refused, as ``model``, ``output`` and ``data`` are: only the run of an experiment has them."""
        raise InputError(
            f"this run of {self.watched.model} was watched, not trained here: it has curves and kept weights, "
            "but no network, data and optimizer of ours"
        )

    model = output = data = experiment

    @property
    def rows(self) -> list[WatchedRow]:
        """The measures of all layers, step after step."""
        curves = {name: curve[0] for name, curve in self.curves.items()}
        return to_rows(self.watched.layers, curves | {"step": self.recorded}, self.reasons)

    def _units(self, layer: str | int, view: str | None, get: Callable[[str], np.ndarray]) -> np.ndarray:
        if view is not None:
            raise InputError(f"the units of a watched run are those that were watched, not {view!r} ones")
        kept = self.layers
        if not kept:
            raise InputError("no weights were kept of this watched run; watch(..., keep=...) names layers to keep")
        if isinstance(layer, int) and 1 <= layer <= len(kept):
            return get(kept[layer - 1])
        if layer not in kept:
            if layer in [measured.name for measured in self.watched.layers]:
                raise InputError(f"the layer {layer} was measured but not kept; kept are {listed(kept)}")
            raise unknown_name("kept layer", layer, kept)
        return get(str(layer))


def collect_watched(watched: Watched, checkpoint: Checkpoint) -> WatchedRun:
    """The watched run that a checkpoint holds; its steps stand among its curves."""
    fields: dict[str, Any] = stack_records((SEED,), [checkpoint.record])
    steps = fields["curves"].pop("step")[0].astype(int)
    reasons = unpack_reasons(checkpoint.leaves[0])
    run = WatchedRun(watched=watched, saved=steps, recorded=steps, reasons=reasons, **fields)
    run.rows  # noqa: B018  curves that are no rows are refused now
    return run
