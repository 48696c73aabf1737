"""What is seen of a run at a moment: numbers for the header of a frame, and arrays that the page draws."""

import itertools
import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..activations import multiplicity
from ..errors import InputError
from ..measure import block_order, cosine_similarity, find_lines, fit_polynomial
from ..measure import directions as unit_vectors
from ..measure._similarity import norms
from ..networks import Dense, Model
from ..prediction import layer_fields
from ..prediction._deep import layer_inputs
from ..prediction._validity import DRIFT, LEADING_ERROR, leading_size, turned
from ..reduction import reduce
from ..theory import cube_directions
from ..training import Moment
from ._forecast import Forecast
from ._runs import ShownRun, model_of, weights_of

MOST_UNITS = 400  # in a picture
GRID, SIDE = 201, 41  # points of an output over one input, and on each side over two
SELDOM = 4.0  # what takes long is done so seldom that it takes a fifth of a page's time,
SLOWEST = 0.04  # counted as this many seconds at most: the first time is for compiling
QUICK_ORDER = 2  # inputs up to which lines are recomputed for the clock, whatever p is

_numbers = itertools.count(1)
Found = tuple[dict[str, Any], dict[str, np.ndarray]]


@dataclass
class Slow:
    """What is computed now and then only: the order of the units, the reduced network, how far the lines turned."""

    step: int = -1
    seconds: float = 0.0  # that it took
    header: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    drift: float | None = None


class Frame:
    """One layer of a run, looked at again and again."""

    def __init__(self, run: ShownRun, layer: str, view: str | None, forecast: Forecast) -> None:
        self.run, self.layer, self.view, self.forecast = run, layer, view, forecast
        self.number = next(_numbers)  # by which the page knows which prediction a frame belongs to
        self.slow, self.since = Slow(), 0.0  # and the seconds that frames took since then
        units = len(weights_of(run, run.known[0], layer, view))
        most = min(units, MOST_UNITS)
        self.chosen = np.unique(np.linspace(0, units - 1, most).round().astype(int))
        self.points, self.dim, self.grid = output_grid(run)
        self.first_loss = run.known[0].loss
        self.turned_at: int | None = None
        self.measured: tuple[Moment, tuple[Any, float, float]] | None = None

    @property
    def activation(self) -> Any:
        """The layer's activation; None where it is not known."""
        network = None if self.run.experiment is None else self.run.experiment.network
        names = [] if network is None else [one.name for one in network.layers]
        if self.layer not in names[:-1]:
            return None
        return network.activations[names.index(self.layer)] if network is not None else None

    def _measure(self, moment: Moment, weights: np.ndarray) -> tuple[Any, float, float]:
        """The lines, the largest |w.x| and the error of the leading order; of the last moment they are kept."""
        if self.measured is None or self.measured[0] is not moment:
            self.measured = moment, (_lines(weights), *self._leading(moment, weights))
        return self.measured[1]

    def curve_row(self, moment: Moment) -> list[float]:
        """Step, loss, lines found, k_eff, error of the leading order, loss ratio."""
        lines, _, error = self._measure(moment, weights_of(self.run, moment, self.layer, self.view))
        count = lines.count if lines and lines.condensed else np.nan  # groups of a layer that is not condensed are none
        k_eff = lines.k_eff if lines else np.nan
        return [moment.step, moment.loss, count, k_eff, error, moment.loss / self.first_loss]

    def frame(self, moment: Moment, reduce_to: int | None, settled: bool) -> Found:
        """Everything that is drawn of a moment."""
        began = time.perf_counter()
        weights = weights_of(self.run, moment, self.layer, self.view)
        model = model_of(self.run, moment)
        if settled or self.since >= SELDOM * self.slow.seconds:
            self._look_slowly(moment, weights, model, reduce_to, settled)
            began = time.perf_counter()
        lines, size, error = self._measure(moment, weights)
        shown = weights[self.chosen]
        flat = shown @ self.forecast.basis.T
        header: dict[str, Any] = {
            "look": self.number,
            "step": moment.step,
            "time": moment.curves.get("time"),
            "loss": moment.loss,
            "ratio": moment.loss / self.first_loss,
            "accuracy": moment.curves.get("accuracy"),
            "lines": None
            if lines is None
            else {
                "count": lines.count,
                "orientations": lines.orientations,
                "k_eff": lines.k_eff,
                "cover": lines.cover,
                "condensed": lines.condensed,
                "threshold": lines.threshold,
            },
            "valid": self._valid(size, error),
            "agree": self.forecast.agreement(weights),
            **self.slow.header,
        }
        arrays = {
            "w": shown.astype(np.float32),
            "a": self._outputs(moment),
            "xy": flat.astype(np.float32),
            "angle": np.arctan2(flat[:, 1], flat[:, 0]).astype(np.float32),
            "amplitude": norms(shown).astype(np.float32),
            "label": (np.full(len(weights), -1) if lines is None else lines.labels)[self.chosen].astype(np.int16),
            "nearest": self.forecast.nearest(shown).astype(np.int16),
            "chosen": self.chosen.astype(np.uint16),
            "cos": _cosines(shown),
            **self.slow.arrays,
        }
        if weights.shape[1] == 2:
            arrays["order"] = _by_angle(flat)
        if model is not None:
            self._add_outputs(model, header, arrays)
        self.since += time.perf_counter() - began
        return header, arrays

    def _leading(self, moment: Moment, weights: np.ndarray) -> tuple[float, float]:
        """Largest |w.x|, and the error of the leading order; NaN where there is none."""
        model, data = model_of(self.run, moment), self.run.data()
        if model is None or data is None or not isinstance(model.network, Dense):
            return np.nan, np.nan
        if multiplicity(self.activation) is None:
            return np.nan, np.nan
        return leading_size(layer_inputs(model, data[0])[self.layer], weights, self.activation)

    def _valid(self, size: float, error: float) -> dict[str, Any] | None:
        if np.isnan(error):
            return None
        drift = self.slow.drift
        if drift is not None and drift > DRIFT:
            self.turned_at = min(self.turned_at or self.slow.step, self.slow.step)
        holds = error <= LEADING_ERROR and (drift is None or drift <= DRIFT)
        return {
            "leading_error": error,
            "size": size,
            "drift": drift,
            "turned_at": self.turned_at,  # the first step at which the predicted lines were seen to have turned
            "share": self.forecast.share,
            "holds": holds,
        }

    def _outputs(self, moment: Moment) -> np.ndarray:
        """Output weights of the last hidden dense layer: signed for one output, their norm for several."""
        network = None if self.run.experiment is None else self.run.experiment.network
        if not isinstance(network, Dense) or self.layer != network.layers[-2].name or network.concatenated:
            return np.zeros(0, np.float32)
        a = moment.parameters["output.weight"]
        return (a[0] if len(a) == 1 else np.linalg.norm(a, axis=0))[self.chosen].astype(np.float32)

    def _add_outputs(self, model: Model, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        if self.points is None:
            data = self.run.data()
            if data is not None and data[1].shape[1] == 1:
                arrays["fit"] = model(data[0])[:, 0].astype(np.float32)
            return
        outputs = model(self.points)[:, 0]
        arrays["f"] = self._shaped(outputs)
        p = multiplicity(self.activation) if isinstance(model.network, Dense) else None
        if self.dim == 1 and p is not None and len(model.network.layers) == 2:
            fit, distance = fit_polynomial(self.points[:, 0], outputs, p)
            header["poly"] = {"order": p, "error": distance}
            arrays["poly"] = fit.astype(np.float32)

    def _shaped(self, outputs: np.ndarray) -> np.ndarray:
        return (outputs.reshape(SIDE, SIDE) if self.dim == 2 else outputs).astype(np.float32)

    def _look_slowly(
        self, moment: Moment, weights: np.ndarray, model: Model | None, reduce_to: int | None, settled: bool
    ) -> None:
        began = time.perf_counter()
        found = Slow(moment.step)
        if weights.shape[1] > 2:
            shown = weights[self.chosen]
            found.arrays["order"] = block_order(np.where(norms(shown)[:, None] > 0, shown, 1.0)).astype(np.uint16)
        data = self.run.data()
        hurried = self.slow.step < 0 and not settled  # the first picture comes at once
        if not hurried and model is not None and data is not None and isinstance(model.network, Dense):
            self._reduce(model, data[0], reduce_to, moment.step, found)
            found.drift = self._drift(model, data)
        found.seconds = min(time.perf_counter() - began, SLOWEST)
        self.slow, self.since = found, 0.0

    def _reduce(self, model: Model, x: np.ndarray, reduce_to: int | None, step: int, found: Slow) -> None:
        """The reduced network: to the given size, else to as many units as lines are predicted."""
        single = len(model.network.layers) == 2
        wanted = reduce_to or (self.forecast.count if single else None)
        sizes = (
            None
            if wanted is None
            else {layer.name: max(1, min(wanted, layer.weight[0])) for layer in model.network.layers[:-1]}
        )
        try:
            small = reduce(model, x, units=sizes)
        except InputError:  # weights without any direction
            return
        before, after = (sum(size[k] for size in small.sizes.values()) for k in (0, 1))
        found.header["reduced"] = {"step": step, "before": before, "after": after, "error": small.centred_error}
        if self.points is not None:
            found.arrays["reduced"] = self._shaped(small.model(self.points)[:, 0])

    def _drift(self, model: Model, data: tuple[np.ndarray, np.ndarray]) -> float | None:
        """The largest angle by which a predicted line has turned; None where that would take long."""
        p, kind = multiplicity(self.activation), self.forecast.kind
        if kind not in ("sphere", "cube") or p is None or not (p <= 2 or self.forecast.lines.shape[1] <= QUICK_ORDER):
            return None
        assert self.run.experiment is not None
        seen = layer_fields(model, *data, self.run.experiment.loss)[self.layer]
        if kind == "sphere":
            found = seen.directions()
            now = found.directions[found.attracts]
        else:
            now = unit_vectors(cube_directions(seen.inputs, seen.residual, p).directions)
        return turned(self.forecast.lines[self.forecast.attracting], now)


def output_grid(run: ShownRun) -> tuple[np.ndarray | None, int | None, np.ndarray | None]:
    """Where a network of one output is evaluated for its picture; one or two, the inputs; what the page is told."""
    data = run.data()
    if data is None or run.experiment is None or not isinstance(run.experiment.network, Dense):
        return None, None, None
    x, y = data
    if y.shape[1] != 1 or x.shape[1] > 2:
        return None, None, None
    low, high = x.min(axis=0), x.max(axis=0)
    margin = 0.08 * np.where(high > low, high - low, 1)
    ranges = np.stack([low - margin, high + margin], axis=1)
    if x.shape[1] == 1:
        points = np.linspace(ranges[0, 0], ranges[0, 1], GRID)
        return points[:, None], 1, points
    sides = [np.linspace(low, high, SIDE) for low, high in ranges]
    first, second = np.meshgrid(*sides)
    return np.stack([first.ravel(), second.ravel()], axis=1), 2, ranges


def _lines(weights: np.ndarray) -> Any:
    """The lines, or None where the units have no directions."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return find_lines(weights)
    except InputError:
        return None


def _cosines(weights: np.ndarray) -> np.ndarray:
    """Cosines of all pairs times 127; 0 where a unit is zero."""
    safe = np.where(norms(weights)[:, None] > 0, weights, 1.0)
    cosine = cosine_similarity(safe)
    zero = norms(weights) == 0
    cosine[zero], cosine[:, zero] = 0, 0
    return np.rint(127 * cosine).astype(np.int8)


def _by_angle(flat: np.ndarray) -> np.ndarray:
    """The block order of units with two inputs: that of their angles, from the widest gap on."""
    angle = np.arctan2(flat[:, 1], flat[:, 0])
    order = np.argsort(angle, kind="stable")
    gaps = np.diff(angle[order], append=angle[order[0]] + 2 * np.pi)
    return np.roll(order, -1 - int(gaps.argmax())).astype(np.uint16)
