"""A frame: the numbers and arrays that the page draws of one layer at one moment."""

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
from ._heads import Heads
from ._runs import ShownRun

MOST_UNITS = 400  # in a picture
MOST_FITS = 200  # samples whose output is drawn against their target
GRID, SIDE = 201, 41  # points of an output over one input, and on each side over two
SELDOM = 4.0  # the slow part is computed so seldom that it takes a fifth of a page's time,
SLOWEST = 0.04  # counted as this many seconds at most: the first time is for compiling
QUICK_ORDER = 2  # inputs up to which lines are recomputed for the validity clock, whatever p is
LINE_FIELDS = ("count", "orientations", "k_eff", "cover", "condensed", "threshold")

_numbers = itertools.count(1)
Answer = tuple[dict[str, Any], dict[str, np.ndarray]]  # header and arrays of a message


@dataclass
class SlowPart:
    """The part of a frame that is not computed each time: the units' order, the reduced network, the lines' drift."""

    step: int = -1
    seconds: float = 0.0  # that it took
    header: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    drift: float | None = None


class FrameBuilder:
    """Builds the frames of one layer of a run."""

    def __init__(self, run: ShownRun, layer: str, view: str | None, forecast: Forecast) -> None:
        self.run, self.layer, self.view, self.forecast = run, layer, view, forecast
        self.number = next(_numbers)  # tells the page which prediction a frame belongs to
        self.activation = run.activation(layer)
        self.heads = Heads.of(run, layer, forecast.marks)
        self.slow, self.since = SlowPart(), 0.0  # and the seconds that frames took since then
        units = len(self._weights(run.first))
        self.chosen = np.unique(np.linspace(0, units - 1, min(units, MOST_UNITS)).round().astype(int))
        self.points, self.dim, self.grid = output_grid(run)
        self.turned_at: int | None = None
        self.measured: tuple[Moment, tuple[Any, float]] | None = None

    def _weights(self, moment: Moment) -> np.ndarray:
        return self.run.weights(moment, self.layer, self.view)

    def _measure(self, moment: Moment) -> tuple[Any, float]:
        """The lines and the error of the leading order; computed once for the latest moment."""
        if self.measured is None or self.measured[0] is not moment:
            weights = self._weights(moment)
            self.measured = moment, (_lines(weights), self._leading_error(moment, weights))
        return self.measured[1]

    def curve_row(self, moment: Moment) -> list[float]:
        """Step, loss, number of lines, k_eff, error of the leading order, and loss over the first loss."""
        lines, error = self._measure(moment)
        count = lines.count if lines and lines.condensed else np.nan  # a layer that is not condensed has no lines
        k_eff = lines.k_eff if lines else np.nan
        return [moment.step, moment.loss, count, k_eff, error, moment.loss / self.run.first.loss]

    def build(self, moment: Moment, reduce_to: int | None, settled: bool) -> Answer:
        """The frame of a moment; ``settled`` recomputes the slow part, too."""
        began = time.perf_counter()
        weights, model = self._weights(moment), self.run.model(moment)
        if settled or self.since >= SELDOM * self.slow.seconds:
            self._compute_slow_part(moment, weights, model, reduce_to, settled)
            began = time.perf_counter()
        lines, error = self._measure(moment)
        shown = weights[self.chosen]
        xy = shown @ self.forecast.basis.T
        header: dict[str, Any] = {
            "prediction": self.number,
            "step": moment.step,
            "time": moment.curves.get("time"),
            "loss": moment.loss,
            "ratio": moment.loss / self.run.first.loss,
            "accuracy": moment.curves.get("accuracy"),
            "lines": None if lines is None else {name: getattr(lines, name) for name in LINE_FIELDS},
            "valid": self._valid(error),
            "agree": self.forecast.agreement(weights),
            **self.slow.header,
        }
        arrays = {
            "w": shown.astype(np.float32),
            "a": self._output_weights(moment),
            "xy": xy.astype(np.float32),
            "angle": np.arctan2(xy[:, 1], xy[:, 0]).astype(np.float32),
            "amplitude": norms(shown).astype(np.float32),
            "label": (np.full(len(weights), -1) if lines is None else lines.labels)[self.chosen].astype(np.int16),
            "nearest": self.forecast.nearest(shown).astype(np.int16),
            "chosen": self.chosen.astype(np.uint16),
            "cos": _cosines(shown),
            **self.slow.arrays,
        }
        if weights.shape[1] == 2:
            arrays["order"] = _by_angle(xy)
        if self.heads is not None:
            arrays |= self.heads.drawn(moment)
        if model is not None:
            self._add_outputs(model, header, arrays)
        self.since += time.perf_counter() - began
        return header, arrays

    def _leading_error(self, moment: Moment, weights: np.ndarray) -> float:
        """The error of the leading order; NaN if there is no leading order."""
        model, data = self.run.model(moment), self.run.data
        if model is None or data is None or not isinstance(model.network, Dense):
            return np.nan
        if multiplicity(self.activation) is None:
            return np.nan
        return leading_size(layer_inputs(model, data[0])[self.layer], weights, self.activation)[1]

    def _valid(self, error: float) -> dict[str, Any] | None:
        """The validity clock: whether the leading order and the predicted lines still hold."""
        if np.isnan(error):
            return None
        drift = self.slow.drift
        if drift is not None and drift > DRIFT:
            self.turned_at = min(self.turned_at or self.slow.step, self.slow.step)
        return {
            "leading_error": error,
            "drift": drift,
            "turned_at": self.turned_at,  # the first step at which the predicted lines were seen to have turned
            "holds": error <= LEADING_ERROR and (drift is None or drift <= DRIFT),
        }

    def _output_weights(self, moment: Moment) -> np.ndarray:
        """Output weights of the last hidden dense layer: signed for one output, their norm for several."""
        network = None if self.run.experiment is None else self.run.experiment.network
        if not isinstance(network, Dense) or self.layer != network.layers[-2].name or network.concatenated:
            return np.zeros(0, np.float32)
        a = moment.parameters["output.weight"]
        return (a[0] if len(a) == 1 else np.linalg.norm(a, axis=0))[self.chosen].astype(np.float32)

    def _add_outputs(self, model: Model, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """The network's output on the grid and its best polynomial, or its output on the samples."""
        if self.points is None:
            data = self.run.data
            if data is not None and data[1].shape[1] == 1:
                arrays["fit"] = model(data[0][:MOST_FITS])[:, 0].astype(np.float32)
            return
        outputs = model(self.points)[:, 0]
        arrays["f"] = self._on_grid(outputs)
        p = multiplicity(self.activation) if isinstance(model.network, Dense) else None
        if self.dim == 1 and p is not None and len(model.network.layers) == 2:
            fit, distance = fit_polynomial(self.points[:, 0], outputs, p)
            header["poly"] = {"order": p, "error": distance}
            arrays["poly"] = fit.astype(np.float32)

    def _on_grid(self, outputs: np.ndarray) -> np.ndarray:
        return (outputs.reshape(SIDE, SIDE) if self.dim == 2 else outputs).astype(np.float32)

    def _compute_slow_part(
        self, moment: Moment, weights: np.ndarray, model: Model | None, reduce_to: int | None, settled: bool
    ) -> None:
        began = time.perf_counter()
        slow = SlowPart(moment.step)
        if weights.shape[1] > 2:
            shown = weights[self.chosen]
            slow.arrays["order"] = block_order(np.where(norms(shown)[:, None] > 0, shown, 1.0)).astype(np.uint16)
        data = self.run.data
        hurried = self.slow.step < 0 and not settled  # the first picture comes at once
        if self.heads is not None:
            slow.arrays |= self.heads.measured(moment, None if hurried else model)
        if not hurried and model is not None and data is not None and isinstance(model.network, Dense):
            self._reduce(model, data[0], reduce_to, slow)
            slow.drift = self._drift(model, data)
        slow.seconds = min(time.perf_counter() - began, SLOWEST)
        self.slow, self.since = slow, 0.0

    def _reduce(self, model: Model, x: np.ndarray, reduce_to: int | None, slow: SlowPart) -> None:
        """The reduced network, of the given size or else with as many units as lines are predicted."""
        hidden = model.network.layers[:-1]
        wanted = reduce_to or (self.forecast.count if len(hidden) == 1 else None)
        sizes = {layer.name: max(1, min(wanted, layer.weight[0])) for layer in hidden} if wanted is not None else None
        try:
            small = reduce(model, x, units=sizes)
        except InputError:  # weights without any direction
            return
        before, after = (sum(size[k] for size in small.sizes.values()) for k in (0, 1))
        slow.header["reduced"] = {"step": slow.step, "before": before, "after": after, "error": small.centred_error}
        if self.points is not None:
            slow.arrays["reduced"] = self._on_grid(small.model(self.points)[:, 0])

    def _drift(self, model: Model, data: tuple[np.ndarray, np.ndarray]) -> float | None:
        """The largest angle by which a predicted line has turned; None if that would take long."""
        p, kind = multiplicity(self.activation), self.forecast.kind
        if kind not in ("sphere", "cube") or p is None or not (p <= 2 or self.forecast.lines.shape[1] <= QUICK_ORDER):
            return None
        assert self.run.experiment is not None
        layer_field = layer_fields(model, *data, self.run.experiment.loss)[self.layer]
        if kind == "sphere":
            directions = layer_field.directions()
            now = directions.directions[directions.attracts]
        else:
            now = unit_vectors(cube_directions(layer_field.inputs, layer_field.residual, p).directions)
        return turned(self.forecast.lines[self.forecast.attracting], now)


def output_grid(run: ShownRun) -> tuple[np.ndarray | None, int | None, np.ndarray | None]:
    """The points at which the output is drawn, the number of inputs (1 or 2), and the page's grid or its ranges."""
    dense = run.experiment is not None and isinstance(run.experiment.network, Dense)
    if run.data is None or not dense or run.data[1].shape[1] != 1 or run.data[0].shape[1] > 2:
        return None, None, None
    x = run.data[0]
    low, high = x.min(axis=0), x.max(axis=0)
    margin = 0.08 * np.where(high > low, high - low, 1)
    ranges = np.stack([low - margin, high + margin], axis=1)
    if x.shape[1] == 1:
        points = np.linspace(ranges[0, 0], ranges[0, 1], GRID)
        return points[:, None], 1, points
    first, second = np.meshgrid(*[np.linspace(low, high, SIDE) for low, high in ranges])
    return np.stack([first.ravel(), second.ravel()], axis=1), 2, ranges


def _lines(weights: np.ndarray) -> Any:
    """The lines, or None if the units have no directions."""
    try:
        with warnings.catch_warnings(action="ignore"):
            lines = find_lines(weights)
    except InputError:
        return None
    return None if lines.reason else lines


def _cosines(weights: np.ndarray) -> np.ndarray:
    """Cosines of all pairs times 127; 0 if a unit is zero."""
    zero = norms(weights) == 0
    cosine = cosine_similarity(np.where(zero[:, None], 1.0, weights))
    cosine[zero], cosine[:, zero] = 0, 0
    return np.rint(127 * cosine).astype(np.int8)


def _by_angle(xy: np.ndarray) -> np.ndarray:
    """The block order of units with two inputs: by angle, beginning after the widest gap."""
    angle = np.arctan2(xy[:, 1], xy[:, 0])
    order = np.argsort(angle, kind="stable")
    gaps = np.diff(angle[order], append=angle[order[0]] + 2 * np.pi)
    return np.roll(order, -1 - int(gaps.argmax())).astype(np.uint16)
