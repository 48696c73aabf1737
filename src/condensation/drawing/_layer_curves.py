"""Lines and k_eff of a run's layers over its steps, as far as that takes no long time: what a look at a run shows."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError
from ..measure import count_lines
from ..runs import Run, Trajectory, WatchedRun

STEPS, SEEDS = 24, 10  # that are looked at, at most
PAIRS = 3 * 10**7  # of units, in all networks of a layer


@dataclass(frozen=True, eq=False)
class LayerCurve:
    """A layer over the steps: seeds x steps; ``reason`` says why nothing was counted."""

    units: int
    steps: Int[np.ndarray, " steps"]
    lines: Float[np.ndarray, "seeds steps"]
    k_eff: Float[np.ndarray, "seeds steps"]
    reason: str = ""

    @property
    def middle(self) -> Float[np.ndarray, " steps"]:
        """The median of k_eff over the seeds that have one; NaN where none has."""
        return medians(self.k_eff)


def medians(values: Float[np.ndarray, "seeds places"]) -> Float[np.ndarray, " places"]:
    """The median of each column's finite numbers; NaN where there are none.

    >>> medians(np.array([[1.0, np.nan], [3.0, np.nan]]))
    array([ 2., nan])
    """
    found = np.full(values.shape[1], np.nan)
    known = np.isfinite(values).any(axis=0)
    found[known] = np.nanmedian(np.where(np.isfinite(values), values, np.nan)[:, known], axis=0)
    return found


def layer_curves(run: Run) -> dict[str, LayerCurve]:
    """The layers of a run by name: those that were watched, or the hidden ones whose weights were kept."""
    if isinstance(run, WatchedRun):
        return {
            layer.name: LayerCurve(
                layer.units, run.recorded, run.curves[f"lines/{layer.name}"], run.curves[f"k_eff/{layer.name}"]
            )
            for layer in run.watched.layers
        }
    assert isinstance(run, Trajectory)
    return {name: _counted(run, name) for name in run.layers if name != "output"}


def _counted(run: Trajectory, layer: str) -> LayerCurve:
    first = run._units(layer, None, lambda name: run.parameters[name][:1, :1])
    units, seeds, count = first.shape[2], min(SEEDS, len(run.seeds)), min(STEPS, len(run.saved))
    while seeds * count * units**2 > PAIRS and (seeds > 1 or count > 4):
        seeds, count = max(1, seeds // 2), max(min(4, count), count // 2)
    places = np.unique(np.linspace(0, len(run.saved) - 1, count).round().astype(int))
    try:
        history = count_lines(run._units(layer, None, lambda name: run.parameters[name][:seeds, places]))
    except InputError as error:
        nothing = np.full((seeds, len(places)), np.nan)
        return LayerCurve(units, run.saved[places], nothing, nothing, str(error))
    return LayerCurve(units, run.saved[places], history.lines, history.k_eff, history.reason)
