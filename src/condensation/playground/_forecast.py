"""What theory says of a layer before it is trained, in the form in which it is drawn."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from ..activations import Activation, derivatives_at_zero, label, multiplicity
from ..errors import InputError
from ..experiment import Experiment
from ..measure import directions as unit_vectors
from ..measure._lines import LEAST_COSINE
from ..measure._similarity import norms
from ..networks import Conv, Dense, Model
from ..optimizers import Adam, SignGD
from ..prediction import Prediction, predict_model
from ..theory import KernelDynamics, cube_fates
from ..theory import field as direction_field

ARROWS = 19  # on each side of the field
MOST_LINES, PLANES = 8, 2000  # that are told apart in a picture, and planes that are tried
SMALL = 1e-3  # at which the field of an activation without a leading order is drawn


@dataclass(frozen=True, eq=False)
class Forecast:
    """The predicted lines of a layer, and where each of its units goes.

    Attributes:
        kind: ``"sphere"`` (flow and descent), ``"cube"`` (Adam and sign descent), ``"orientations"`` (relu),
            ``"kernels"`` (convolution), or None where nothing is predicted: ``why`` says why.
        lines: unit vectors of all stationary lines.
        attracts: which of them attract units with a c > 0, and with a c < 0.
        fate: the line predicted for each unit, -1 for none; empty where only the lines are known.
        sign: on which side of it.
        basis: two orthonormal vectors, the plane of the picture.
        arrows: unit vectors of the direction field at output weight +1 on a square grid of that plane.
        share: how far all units of the layer see one field.
    """

    kind: str | None
    lines: Float[np.ndarray, "lines inputs"]
    attracts: np.ndarray
    values: np.ndarray
    basis: Float[np.ndarray, "2 inputs"]
    fate: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    sign: np.ndarray = field(default_factory=lambda: np.zeros(0, int))
    confidence: np.ndarray = field(default_factory=lambda: np.zeros(0))
    arrows: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 2)))
    orientations: int = 0
    method: str = ""
    certified: bool = False
    share: float = float("nan")
    note: str = ""
    why: str = ""

    @property
    def attracting(self) -> np.ndarray:
        """Which lines attract units of either sign."""
        return np.logical_or(self.attracts[:, 0], self.attracts[:, 1])

    @property
    def count(self) -> int | None:
        """Number of predicted lines."""
        return int(self.attracting.sum()) if self.kind else None

    def nearest(self, units: Float[np.ndarray, "units inputs"]) -> np.ndarray:
        """For each unit the attracting line nearest to it now, -1 where there is none."""
        candidates = np.flatnonzero(self.attracting)
        if not len(candidates):
            return np.full(len(units), -1)
        cosine = self._cosines(units)[:, candidates]
        return np.where(norms(units) > 0, candidates[cosine.argmax(axis=1)], -1)

    def agreement(self, units: Float[np.ndarray, "units inputs"]) -> float | None:
        """Share of units on the line predicted for them (on any predicted line, where no fates are known)."""
        if not self.count:
            return None
        cosine = self._cosines(units)
        if not len(self.fate):
            return float((cosine[:, self.attracting].max(axis=1) >= LEAST_COSINE).mean())
        own = cosine[np.arange(len(units)), np.maximum(self.fate, 0)]
        return float(((own >= LEAST_COSINE) & (self.fate >= 0)).mean())

    def _cosines(self, units: np.ndarray) -> np.ndarray:
        """Cosines of units and lines: without sign, but for orientations, of which -u is not u."""
        r = norms(units)
        cosine = units @ self.lines.T / np.where(r > 0, r, 1)[:, None]
        return cosine if self.kind == "orientations" else np.abs(cosine)


def no_forecast(weights: Float[np.ndarray, "units inputs"], why: str = "") -> Forecast:
    """A picture without a prediction, in the plane in which the units spread most."""
    inputs = weights.shape[1]
    nothing = np.zeros((0, inputs))
    return Forecast(None, nothing, np.zeros((0, 2), bool), np.zeros(0), plane(nothing, weights), why=why)


def forecast(experiment: Experiment, model: Model, x: Any, y: Any, layer: str, view: str | None) -> Forecast:
    """What is predicted for a layer of a network at its start; ``why`` says why, if nothing can be."""
    weights = model.weights(layer, view=view)
    try:
        if isinstance(experiment.network, Conv):
            return _of_kernels(experiment, model, x, y, layer, view)
        if not isinstance(experiment.network, Dense):
            raise InputError("lines are predicted for dense networks and for networks of one convolution layer")
        if len(experiment.network.hidden) > 1 and multiplicity(_activation(experiment.network, layer)) is None:
            raise InputError("relu and its like have no multiplicity: predicted for one hidden layer only")
        prediction = predict_model(model, x, y, experiment.loss, layers=[layer])[layer]
        by_signs = isinstance(experiment.optimizer, Adam | SignGD)
        return _on_the_cube(model, prediction) if by_signs else _on_the_sphere(model, prediction)
    except InputError as error:
        return no_forecast(weights, str(error))


def _activation(network: Dense, layer: str) -> Activation:
    return network.activations[[one.name for one in network.layers].index(layer)]


def _on_the_sphere(model: Model, prediction: Prediction) -> Forecast:
    found, ends = prediction.directions, prediction.fates
    lines = found.directions
    weights = model.weights(prediction.layer)
    made = Forecast(
        kind="orientations" if found.oriented else "sphere",
        lines=lines,
        attracts=np.stack([found.attracts_positive, found.attracts_negative], axis=1),
        values=found.values,
        basis=plane(lines[found.attracts], weights),
        orientations=_distinct(found),
        method=found.method,
        certified=found.certified,
        share=prediction.field.share,
        note=prediction.note or found.note,
    )
    if ends is not None:
        made = replace(made, fate=ends.lines, sign=ends.signs, confidence=ends.confidence)
    return replace(made, arrows=_arrows(prediction, made.basis, by_signs=False))


def _on_the_cube(model: Model, prediction: Prediction) -> Forecast:
    found = prediction.on_the_cube()
    weights = model.weights(prediction.layer)
    lines = unit_vectors(found.directions)
    attracts = np.stack([found.attracts_positive, found.attracts_negative], axis=1)
    made = Forecast(
        kind="cube",
        lines=lines,
        attracts=attracts,
        values=found.values,
        basis=plane(lines[attracts.any(axis=1)], weights),
        orientations=_distinct(found),
        method=found.method,
        certified=found.certified,
        share=prediction.field.share,
        note=found.note or _constant(prediction, len(weights)),
    )
    if prediction.fates is not None:
        a, seen = model.parameters["output.weight"][0].astype(float), prediction.field
        ends = cube_fates(weights, a, seen.inputs, prediction.whole_residual, seen.activation, directions=found)
        made = replace(made, fate=ends.lines, sign=ends.signs, confidence=ends.decided.astype(float))
    return replace(made, arrows=_arrows(prediction, made.basis, by_signs=True))


def _constant(prediction: Prediction, units: int) -> str:
    """What is to be said of an activation that is not zero at 0."""
    at_zero = derivatives_at_zero(prediction.field.activation, 0)[0]
    if not at_zero or prediction.fates is None:
        return ""
    size = abs(prediction.whole_residual.mean()) / (units * abs(at_zero))
    return f"the line holds until the constant is learned, at output weights of about {size:.1g}, and turns then"


def _of_kernels(experiment: Experiment, model: Model, x: Any, y: Any, layer: str, view: str | None) -> Forecast:
    """The leading singular vector of Z, for one convolution layer before the output."""
    network = experiment.network
    assert isinstance(network, Conv)
    if len(network.channels) > 1 or network.hidden:
        raise InputError("kernels' directions are predicted for one convolution layer followed by the output layer")
    activation = network.activations[0]
    if multiplicity(activation) != 1 or derivatives_at_zero(activation, 0)[0]:
        raise InputError(f"the matrix Z is for activations of multiplicity 1 that are 0 at 0, not {label(activation)}")
    slope = derivatives_at_zero(activation, 1)[1]
    dynamics = KernelDynamics.of(x, y, network.kernel, experiment.loss, padding=network.padding, slope=slope)
    filters, weights = model.weights(layer, view="filter"), model.weights(layer, view=view)
    outputs = model.parameters["output.weight"].astype(float)
    outputs = outputs.reshape(len(outputs), len(filters), -1).transpose(1, 0, 2).reshape(len(filters), -1)
    sides = dynamics.orientations(filters, outputs)
    if view == "filter":
        lines, fate = dynamics.v1[None], np.zeros(len(weights), int)
    else:  # one kernel for each pair of channels: the part of v1 of its input channel
        lines = unit_vectors(dynamics.v1[:-1].reshape(dynamics.channels, -1))
        fate, sides = np.tile(np.arange(len(lines)), len(filters)), np.repeat(sides, len(lines))
    return Forecast(
        kind="kernels",
        lines=lines,
        attracts=np.ones((len(lines), 2), bool),
        values=np.repeat(dynamics.values[0], len(lines)),
        basis=plane(lines, weights),
        fate=fate,
        sign=sides,
        orientations=2 * len(lines),
        method="eigendecomposition",
        certified=True,
        note=f"the line is the leading singular vector of Z, whose gap to the next is {dynamics.gap:.0%}",
    )


def _distinct(found: Any) -> int:
    """Number of different orientations that attract."""
    every = np.concatenate([found.orientations(1), found.orientations(-1)])
    return len(np.unique(every.round(6), axis=0))


def plane(lines: Float[np.ndarray, "lines inputs"], weights: Float[np.ndarray, "units inputs"]) -> np.ndarray:
    """Two orthonormal vectors that span the picture: the axes themselves where units have two inputs.

    Else, of many planes, the one in which the first lines are farthest from lying on each other, the first of them to
    the right; one line alone is shown with the direction in which the units spread most beside it.
    """
    inputs = weights.shape[1]
    if inputs <= 2:
        return np.eye(2)[:, :inputs]
    spread = np.linalg.svd(weights / max(np.abs(weights).max(), 1e-300), full_matrices=False)[2]
    given = _independent([*lines[:MOST_LINES], *spread, *np.eye(inputs)], max(2, min(len(lines), MOST_LINES)))
    if len(lines) < 3:
        return given[:2]
    stream = np.random.default_rng(0)
    drawn = np.linalg.qr(stream.standard_normal((PLANES, len(given), 2)))[0]
    flat = np.einsum("ld,pdk->plk", lines[:MOST_LINES] @ given.T, drawn)
    areas = np.abs(flat[:, :, None, 0] * flat[:, None, :, 1] - flat[:, :, None, 1] * flat[:, None, :, 0])
    areas[:, np.eye(areas.shape[1], dtype=bool)] = np.inf
    best = areas.min(axis=(1, 2)).argmax()
    (x, y), basis = flat[best, 0] / np.linalg.norm(flat[best, 0]), drawn[best].T @ given
    return np.array([[x, y], [-y, x]]) @ basis


def _independent(vectors: list[np.ndarray], count: int) -> np.ndarray:
    """The first ``count`` of some vectors that are not nearly in the span of those before, made orthonormal."""
    chosen: list[np.ndarray] = []
    for vector in vectors:
        rest = vector - sum(((vector @ one) * one for one in chosen), np.zeros(len(vector)))
        if len(chosen) < min(count, len(vector)) and np.linalg.norm(rest) > 0.3 * np.linalg.norm(vector):
            chosen.append(rest / np.linalg.norm(rest))
    return np.array(chosen)


def _arrows(prediction: Prediction, basis: np.ndarray, by_signs: bool) -> np.ndarray:
    """The direction field on a grid of the plane, its arrows of length one."""
    ticks = np.linspace(-1, 1, ARROWS)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    seen, activation = prediction.field, prediction.field.activation
    leading = multiplicity(activation) is not None
    points = grid @ basis * (1 if leading else SMALL)
    residual = prediction.whole_residual if by_signs else prediction.residual
    moving = direction_field(points, seen.inputs, residual, activation, order="leading" if leading else "exact")
    flat = (np.sign(moving) if by_signs else moving) @ basis.T
    length = np.linalg.norm(flat, axis=1, keepdims=True)
    return (flat / np.where(length > 0, length, 1)).reshape(ARROWS, ARROWS, 2)
