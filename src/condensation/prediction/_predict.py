"""Predictions for a network: the lines of each hidden layer, and the fate of each neuron, before it is trained.

At a later plateau of the loss the theory is applied to the network as it is there: its residual predicts where the next
lines appear (saddle to saddle), and its small neurons go there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._display import Shown, short_numbers
from .._phrases import plural
from ..activations import Activation, derivatives_at_zero, label, multiplicity
from ..data._labels import as_targets
from ..errors import InputError, unknown_name
from ..experiment import Experiment
from ..losses import Loss
from ..measure import find_plateaus
from ..networks import Attention, Conv, Model
from ..optimizers import Muon, Optimizer
from ..runs import Trajectory
from ..seeds import Seed, as_seed
from ..theory import (
    CubeDirections,
    CubeFates,
    Directions,
    Fates,
    cube_directions,
    cube_fates,
    fates,
    stationary_directions,
)
from ..theory._kernels import matrix_of
from ._attention import attention_lines
from ._deep import LayerField, layer_fields
from ._lines import LayerLines, by_signs, gap_note, layer_lines, output_residual


@dataclass(frozen=True, eq=False)
class Prediction(Shown):
    r"""The lines of one layer by the optimizer that trains it, and its neurons' fates.

    Attributes:
        layer: its name.
        field: what the neurons of a dense layer see; None for a convolution layer.
        residual: what the lines are computed from, a constant that is learned first taken away.
        directions: the lines, and which of them attract: ``Directions`` of the sphere (gradient flow and descent), or
            ``CubeDirections`` (sign descent and Adam). Their ``certified`` is about this layer: in a deeper one it is
            false where not all neurons see one field.
        fates: where each neuron goes, where that is known; else None.
        note: how far the prediction reaches, in a sentence; empty where there is nothing to say.

    >>> small = {"dense1.weight": np.array([[1e-6, 0.0]]), "output.weight": np.array([[1e-6]])}
    >>> from condensation import Dense
    >>> model = Model(Dense((2, 1, 1), bias=False), small)
    >>> predict_model(model, np.eye(2), [[6.0], [8.0]])["dense1"].directions.directions.round(6)  # g = (3, 4)
    array([[0.6, 0.8]])
    """

    layer: str
    field: LayerField | None
    residual: Float[np.ndarray, "samples *outputs"]
    directions: Directions | CubeDirections
    fates: Fates | CubeFates | None
    note: str = ""

    @property
    def surface(self) -> str:
        """``"cube"`` or ``"sphere"``."""
        return "cube" if isinstance(self.directions, CubeDirections) else "sphere"

    def _title(self) -> str:
        return f"Prediction for {self.layer}: {self._brief()}"

    def _brief(self) -> str:
        """What is predicted, in a line."""
        attract = int(self.directions.attracts.sum())
        certified = "" if self.directions.certified else ", not certified"
        placed = ""
        if self.fates is not None:
            ends = self.fates.lines
            placed = f"; {int((ends >= 0).sum())} of {plural(len(ends), 'neuron')} go there"
        return f"{plural(attract, 'line')} of the {self.surface} attract{'s' * (attract == 1)}{placed}{certified}"

    def _facts(self) -> dict[str, str]:
        lines = {name: fact for name, fact in self.directions._facts().items() if name != "note"}
        fates = self.fates
        counts = [] if fates is None else np.bincount(fates.lines[fates.lines >= 0], minlength=self.directions.count)
        neurons = {"neurons by line": short_numbers(counts)} if len(counts) else {}
        return lines | neurons | {"note": "; ".join(filter(None, (self.note, self.directions.note)))}

    def _picture(self) -> str:
        return self.directions._picture() if self.fates is None else self.fates._picture()


class Predictions(Shown, dict[str, Prediction]):
    """The predictions for the layers of a network, by their names: a dictionary that prints as a line a layer."""

    def _title(self) -> str:
        return f"Predictions for {plural(len(self), 'layer')}"

    def _facts(self) -> dict[str, str]:
        return {name: prediction._brief() for name, prediction in self.items()}

    def _picture(self) -> str:
        return next((prediction._picture() for prediction in self.values()), "")


def predict_model(
    model: Model,
    x: ArrayLike,
    y: ArrayLike,
    loss: Loss | None = None,
    *,
    optimizer: Optimizer | None = None,
    layers: Sequence[str] | None = None,
) -> Predictions:
    """The lines of each hidden layer of a network as it is, from its data.

    Args:
        model: the network with its parameters: initial ones, or those of a plateau for the next lines. A dense network,
            one convolution layer and the output layer, whose lines are those of filters, or one head of softmax
            attention with the exponential loss: its values' line v, the top singular vectors of F for query and key.
        x: samples x inputs, or images.
        y: targets, samples x outputs (or labels of classes, where the loss compares these).
        loss: half the mean squared error if not given.
        optimizer: what trains it; gradient flow if not given.
        layers: the layers to predict; all of them if not given.
    """
    loss, (*hidden, _) = loss or Loss(), model.network.layers
    y = as_targets(np.asarray(y), model.network.outputs, loss)
    if not np.any(y):
        raise InputError("the targets are all zero: there is nothing to learn, and no direction to go to")
    for name in layers or ():
        if name not in [layer.name for layer in hidden]:
            raise unknown_name("hidden layer", name, [layer.name for layer in hidden])
    if isinstance(model.network, Conv):
        return Predictions(conv1=_of_filters(model, x, y, loss, optimizer))
    if isinstance(model.network, Attention):
        every, why = attention_lines(model, x, y, loss, optimizer)
        for name in layers or ():
            if name not in every:
                known = f"lines of attention are predicted for values, queries and keys, not for {name}"
                raise InputError(why if why and name in ("query1", "key1") else known)
        return Predictions(
            {name: Prediction(name, None, *own) for name, own in every.items() if name in (layers or every)}
        )
    fields = layer_fields(model, x, y, loss).items()
    chosen = {name: field for name, field in fields if layers is None or name in layers}
    return Predictions({name: _of_units(model, field, x, y, loss, optimizer) for name, field in chosen.items()})


def _of_units(
    model: Model, field: LayerField, x: ArrayLike, y: ArrayLike, loss: Loss, optimizer: Optimizer | None
) -> Prediction:
    """The prediction for a dense layer."""
    lines = layer_lines(model, field, x, y, loss, optimizer)
    ends, note = _fates(model.weights(field.layer), lines, field.inputs, field.activation)
    return Prediction(field.layer, field, lines.residual, lines.directions, ends, note)


def _fates(
    weights: np.ndarray, lines: LayerLines, inputs: np.ndarray, activation: Activation
) -> tuple[Fates | CubeFates | None, str]:
    """Where each neuron goes, if that is known, and the note of the lines with what is to be said of it."""
    directions, a, residual = lines.directions, lines.outputs, lines.residual
    if a is None or (isinstance(directions, CubeDirections) and residual.ndim > 1):
        return None, lines.note
    try:
        if isinstance(directions, CubeDirections):
            return cube_fates(weights, a, inputs, residual, activation, directions=directions), lines.note
        return fates(weights, a, inputs, residual, activation, directions=directions), lines.note
    except InputError as reason:
        return None, "; ".join(filter(None, (lines.note, f"no fates: {reason}")))


def _of_filters(model: Model, x: ArrayLike, y: ArrayLike, loss: Loss, optimizer: Optimizer | None) -> Prediction:
    """The prediction for one convolution layer before the output layer: the singular vectors of Z."""
    network = model.network
    assert isinstance(network, Conv)
    if len(network.channels) > 1 or network.hidden:
        raise InputError("filters are predicted for one convolution layer followed by the output layer")
    activation = network.activations[0]
    if multiplicity(activation) != 1 or derivatives_at_zero(activation, 0)[0]:
        raise InputError(f"the matrix Z is for activations of multiplicity 1 that are 0 at 0, not {label(activation)}")
    z = matrix_of(np.asarray(x, float), output_residual(model, x, y, loss), network.geometry[0])
    inputs, rows = np.eye(z.shape[1]), z.shape[1] * z.T  # samples whose matrix of mean fields is Z
    directions = (cube_directions if by_signs(optimizer) else stationary_directions)(inputs, rows, 1)
    filters, outputs = model.weights("conv1", view="filter"), model.parameters["output.weight"].astype(float)
    outputs = np.moveaxis(outputs.reshape(len(outputs), len(filters), -1), 1, 0).reshape(len(filters), -1)
    muon = "what Muon does to filters is not known: these are gradient flow's lines" * isinstance(optimizer, Muon)
    note = "; ".join(filter(None, (muon, gap_note(directions))))
    ends, note = _fates(filters, LayerLines(directions, rows, outputs, note), inputs, activation)
    return Prediction("conv1", None, rows, directions, ends, note)


def predict(experiment: Experiment, seed: int | Seed = 0) -> Predictions:
    """The lines of each hidden layer of an experiment's network by its optimizer, before it is trained, for one seed.

    >>> from condensation import GD, Dense, Init, Normal, two_waves
    >>> network, data = Dense((1, 50, 1), "x_tanh"), two_waves(spacing="even")
    >>> predict(Experiment(network, Init(Normal(1e-3)), data, GD(1e-3), 9))["dense1"].directions.attracts.sum()
    np.int64(2)
    """
    chosen = as_seed(seed)
    experiment.check_data()
    x, y = experiment.samples(chosen)
    return predict_model(experiment.initial_model(chosen), x, y, experiment.loss, optimizer=experiment.optimizer)


def predict_next(trajectory: Trajectory, step: int, seed: int | Seed = 0) -> Predictions:
    """The lines that the residual of a saved step predicts: at a plateau, where the next lines appear."""
    model, (x, y), experiment = trajectory.model(step, seed), trajectory.data(seed), trajectory.experiment
    if isinstance(model.network, Attention):
        raise InputError("lines of attention are those before training (predict): at a later step they are not known")
    return predict_model(model, x, y, experiment.loss, optimizer=experiment.optimizer)


def plateaus(trajectory: Trajectory, seed: int | Seed = 0) -> list[int]:
    """The recorded steps in the middle of the loss's plateaus, after its first drop (see ``measure.find_plateaus``).

    The last of them may go on to the end of the training.
    """
    steps, loss = trajectory.recorded, trajectory.loss[trajectory.seeds.index(as_seed(seed))]
    known = np.isfinite(loss) & (loss > 0)
    if known.sum() < 5:
        raise InputError(f"plateaus need a loss recorded at five steps or more, not at {known.sum()}")
    later = [each for each in find_plateaus(steps, loss) if each[0] > steps[0]]
    return [int(steps[np.abs(steps - each.mean()).argmin()]) for each in later]
