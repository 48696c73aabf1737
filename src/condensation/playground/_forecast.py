"""The prediction for a layer before training, in the form that the page draws."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from ..activations import multiplicity
from ..errors import InputError
from ..measure import directions as unit_vectors
from ..measure._lines import LEAST_COSINE
from ..measure._similarity import norms
from ..networks import Attention, Conv, Dense, Model
from ..prediction import Prediction, predict_model
from ..prediction._lines import by_signs
from ..theory import CubeFates
from ..theory import field as direction_field
from ._runs import ShownRun

ARROWS = 19  # on each side of the field
MOST_LINES, PLANES = 8, 2000  # lines that the plane of the picture should keep apart, and planes that are tried
SMALL = 1e-3  # weights at which the field of an activation without a leading order is drawn


@dataclass(frozen=True, eq=False)
class Forecast:
    """The predicted lines of a layer, and where each of its units goes.

    Attributes:
        kind: ``"sphere"`` (flow and descent), ``"cube"`` (Adam and sign descent), ``"orientations"`` (relu),
            ``"kernels"`` (convolution), or None where nothing is predicted: ``why`` says why.
        lines: unit vectors of all stationary lines.
        attracts: which of them attract units with a c > 0, and with a c < 0.
        basis: two orthonormal vectors, the plane of the picture.
        fate: the line predicted for each unit, -1 for none; empty if only the lines are known.
        sign: the side of the line on which the unit ends, +1 or -1.
        arrows: unit vectors of the direction field at output weight +1 on a square grid of that plane.
        marks: of attention the lines of each matrix, by its name.
    """

    kind: str | None
    lines: Float[np.ndarray, "lines inputs"]
    attracts: np.ndarray
    basis: Float[np.ndarray, "2 inputs"]
    fate: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    sign: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    confidence: np.ndarray = field(default_factory=lambda: np.zeros(0))
    arrows: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 2)))
    orientations: int = 0
    why: str = ""
    marks: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def attracting(self) -> np.ndarray:
        """Which lines attract units of either sign."""
        return np.logical_or(self.attracts[:, 0], self.attracts[:, 1])

    @property
    def count(self) -> int | None:
        """Number of predicted lines."""
        return int(self.attracting.sum()) if self.kind else None

    def nearest(self, units: Float[np.ndarray, "units inputs"]) -> np.ndarray:
        """The attracting line nearest to each unit now, -1 if there is none."""
        candidates = np.flatnonzero(self.attracting)
        if not len(candidates):
            return np.full(len(units), -1)
        cosine = self._cosines(units)[:, candidates]
        return np.where(norms(units) > 0, candidates[cosine.argmax(axis=1)], -1)

    def agreement(self, units: Float[np.ndarray, "units inputs"]) -> float | None:
        """Share of units on the line predicted for them (on any predicted line, if no fates are known)."""
        if not self.count:
            return None
        cosine = self._cosines(units)
        if not len(self.fate):
            return float((cosine[:, self.attracting].max(axis=1) >= LEAST_COSINE).mean())
        own = cosine[np.arange(len(units)), np.maximum(self.fate, 0)]
        return float(((own >= LEAST_COSINE) & (self.fate >= 0)).mean())

    def _cosines(self, units: np.ndarray) -> np.ndarray:
        """Cosines of units and lines; their absolute values, except for orientations, where -u differs from u."""
        r = norms(units)
        cosine = units @ self.lines.T / np.where(r > 0, r, 1)[:, None]
        return cosine if self.kind == "orientations" else np.abs(cosine)


def no_forecast(weights: Float[np.ndarray, "units inputs"], why: str = "") -> Forecast:
    """A picture without a prediction, in the plane in which the units spread most; ``why`` is the reason."""
    no_lines = np.zeros((0, weights.shape[1]))
    return Forecast(None, no_lines, np.zeros((0, 2), bool), plane(no_lines, weights), why=why)


def forecast(run: ShownRun, layer: str, view: str | None) -> Forecast:
    """The prediction for a layer from the first moment of a run."""
    weights, data, model = run.weights(run.first, layer, view), run.data, run.model(run.first)
    if run.experiment is None or data is None:
        return no_forecast(weights, "this run was watched, not trained here, so its data are unknown")
    if model is None:
        return no_forecast(weights, "only some layers of this run were kept, and a prediction needs all of them")
    network, optimizer = run.experiment.network, run.experiment.optimizer
    try:
        if isinstance(network, Attention):
            return _of_attention(run, model, data, layer)
        if not isinstance(network, Dense | Conv):
            raise InputError("lines are predicted for dense networks and for networks of one convolution layer")
        if isinstance(network, Dense) and len(network.hidden) > 1 and multiplicity(run.activation(layer)) is None:
            raise InputError("activations such as relu have no multiplicity: predicted for one hidden layer only")
        predictions = predict_model(model, *data, run.experiment.loss, optimizer=optimizer, layers=[layer])
        if isinstance(network, Conv):
            return _of_filters(model, predictions["conv1"], view)
        if predictions[layer].directions.oriented and by_signs(optimizer):
            raise InputError("what relu and its like do under steps by sign is not known")
        return _of_units(model, predictions[layer])
    except InputError as error:
        return no_forecast(weights, str(error))


def _of_attention(run: ShownRun, model: Model, data: tuple[np.ndarray, np.ndarray], layer: str) -> Forecast:
    """The lines of values, queries and keys."""
    assert run.experiment is not None
    if not run.experiment.network.softmax:  # type: ignore[union-attr]
        raise InputError("lines are predicted for softmax attention")
    predictions = predict_model(model, *data, run.experiment.loss, optimizer=run.experiment.optimizer)
    marks = {name.rstrip("1"): unit_vectors(own.directions.directions[own.directions.attracts])
             for name, own in predictions.items() if own.directions.attracts.any()}  # fmt: skip
    try:
        known = predict_model(model, *data, run.experiment.loss, optimizer=run.experiment.optimizer, layers=[layer])
        shown = _of_units(model, known[layer])
    except InputError as error:
        shown = no_forecast(run.weights(run.first, layer, None), str(error))
    return replace(shown, marks=marks)


def _of_units(model: Model, prediction: Prediction) -> Forecast:
    """The lines of a layer of units: on the sphere, or on the cube for optimizers that step by signs."""
    weights, fates, directions = model.weights(prediction.layer), prediction.fates, prediction.directions
    kind, lines = "orientations" if directions.oriented else prediction.surface, unit_vectors(directions.directions)
    known: dict[str, Any] = {}  # of each unit
    if fates is not None:
        confidence = fates.decided.astype(float) if isinstance(fates, CubeFates) else fates.confidence
        known = {"fate": fates.lines, "sign": fates.signs, "confidence": confidence}
    attracts = np.stack([directions.attracts_positive, directions.attracts_negative], axis=1)
    basis = plane(lines[attracts.any(axis=1)], weights)
    both_signs = np.concatenate([directions.orientations(1), directions.orientations(-1)])
    return Forecast(
        kind=kind,
        lines=lines,
        attracts=attracts,
        basis=basis,
        arrows=np.zeros((0, 0, 2)) if prediction.field is None else _arrows(prediction, basis),
        orientations=len(np.unique(both_signs.round(6), axis=0)),
        **known,
    )


def _of_filters(model: Model, prediction: Prediction, view: str | None) -> Forecast:
    """The lines of filters; a kernel, one for each pair of channels, has the part of its input channel."""
    directions, fates = prediction.directions, prediction.fates
    weights, lines = model.weights(prediction.layer, view=view), directions.directions[directions.attracts]
    known: dict[str, Any] = {}  # of each unit
    fate, sign = (np.zeros(0, int),) * 2 if fates is None else (np.zeros(len(fates.lines), int), fates.signs)
    if view != "filter":
        channels = model.layer(prediction.layer).weight[1]
        lines = lines[:, :-1].reshape(len(lines) * channels, -1)
        fate = np.tile(np.arange(channels), len(fate))
        sign = np.repeat(sign, channels)
    if fates is not None:
        known = {"fate": np.where(sign == 0, -1, fate), "sign": sign}
    lines = unit_vectors(lines)
    return Forecast(
        kind="kernels",
        lines=lines,
        attracts=np.ones((len(lines), 2), bool),
        basis=plane(lines, weights),
        orientations=2 * len(lines),
        **known,
    )


def plane(lines: Float[np.ndarray, "lines inputs"], weights: Float[np.ndarray, "units inputs"]) -> np.ndarray:
    """Two orthonormal vectors that span the picture: the axes themselves if units have two inputs.

    Otherwise the plane, of many random ones, in which the first lines are best apart, with the first of them to the
    right. A single line spans the plane with the direction in which the units spread most.
    """
    inputs = weights.shape[1]
    if inputs <= 2:
        return np.eye(2)[:, :inputs]
    spread = np.linalg.svd(weights / max(np.abs(weights).max(), 1e-300), full_matrices=False)[2]
    span = _independent([*lines[:MOST_LINES], *spread, *np.eye(inputs)], max(2, min(len(lines), MOST_LINES)))
    if len(lines) < 3:
        return span[:2]
    stream = np.random.default_rng(0)
    drawn = np.linalg.qr(stream.standard_normal((PLANES, len(span), 2)))[0]
    flat = np.einsum("ld,pdk->plk", lines[:MOST_LINES] @ span.T, drawn)
    areas = np.abs(flat[:, :, None, 0] * flat[:, None, :, 1] - flat[:, :, None, 1] * flat[:, None, :, 0])
    areas[:, np.eye(areas.shape[1], dtype=bool)] = np.inf
    best = areas.min(axis=(1, 2)).argmax()
    (x, y), basis = flat[best, 0] / np.linalg.norm(flat[best, 0]), drawn[best].T @ span
    return np.array([[x, y], [-y, x]]) @ basis


def _independent(vectors: list[np.ndarray], count: int) -> np.ndarray:
    """An orthonormal basis from the first ``count`` vectors that are not nearly in the span of those before them."""
    chosen: list[np.ndarray] = []
    for vector in vectors:
        rest = vector - sum(((vector @ unit) * unit for unit in chosen), np.zeros(len(vector)))
        if len(chosen) < min(count, len(vector)) and np.linalg.norm(rest) > 0.3 * np.linalg.norm(vector):
            chosen.append(rest / np.linalg.norm(rest))
    return np.array(chosen)


def _arrows(prediction: Prediction, basis: np.ndarray) -> np.ndarray:
    """The direction field on a grid of the plane, its arrows of length one."""
    ticks = np.linspace(-1, 1, ARROWS)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    assert prediction.field is not None
    inputs, activation = prediction.field.inputs, prediction.field.activation
    leading = multiplicity(activation) is not None
    points = grid @ basis * (1 if leading else SMALL)
    residual = prediction.residual if prediction.residual.ndim == 1 else prediction.field.residual
    moving = direction_field(points, inputs, residual, activation, order="leading" if leading else "exact")
    flat = (np.sign(moving) if prediction.surface == "cube" else moving) @ basis.T
    length = np.linalg.norm(flat, axis=1, keepdims=True)
    return (flat / np.where(length > 0, length, 1)).reshape(ARROWS, ARROWS, 2)
