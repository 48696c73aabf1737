"""Predictions for a network: the lines of each hidden layer, and the fate of each neuron, before it is trained.

At a later plateau of the loss the theory is applied to the network as it is there: its residual predicts where the next
lines appear (saddle to saddle), and its small neurons go there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from ..activations import derivatives_at_zero, label, multiplicity
from ..errors import InputError
from ..experiment import Experiment
from ..losses import Loss
from ..networks import Dense, Model
from ..runs import Trajectory
from ..seeds import Seed, as_seed
from ..theory import CubeDirections, Directions, Fates, cube_directions, effective_residual, fates
from ._deep import LayerField, layer_fields

DEEPER = 3.0  # a plateau's relative slope is this much below that of the drops beside it


@dataclass(frozen=True, eq=False)
class Prediction:
    r"""The lines $T u^{p-1} = F(u) u$ of one hidden layer, T from its inputs and residual, and its neurons' fates.

    Attributes:
        layer: its name.
        field: what its neurons see; ``field.share`` says how far that is one field for all of them.
        residual: the residual that the flow's lines are computed from, a constant that is learned first taken away.
        whole_residual: the residual with that constant.
        directions: the stationary lines of gradient flow, and which of them attract.
        fates: where each neuron goes, for a network with one hidden layer and one output; else None.
        note: a sentence where a constant is learned beside the lines, else empty.

    >>> small = {"dense1.weight": np.array([[1e-6, 0.0]]), "output.weight": np.array([[1e-6]])}
    >>> model = Model(Dense((2, 1, 1), bias=False), small)
    >>> predict_model(model, np.eye(2), [[6.0], [8.0]])["dense1"].directions.directions.round(6)  # g = (3, 4)
    array([[0.6, 0.8]])
    """

    layer: str
    field: LayerField
    residual: Float[np.ndarray, " samples"]
    whole_residual: Float[np.ndarray, " samples"]
    directions: Directions
    fates: Fates | None
    note: str = ""

    def on_the_cube(self) -> CubeDirections:
        """The lines of the cube: Adam and sign descent move each coordinate by its sign. Needs a multiplicity.

        There no constant is learned first, as all weights move at one speed: it is the whole residual that counts.
        """
        if self.directions.oriented:
            raise InputError(f"{label(self.field.activation)} has no multiplicity, and no lines on the cube are known")
        return cube_directions(self.field.inputs, self.whole_residual, self.directions.p)


def predict_model(
    model: Model, x: ArrayLike, y: ArrayLike, loss: Loss | None = None, *, layers: Sequence[str] | None = None
) -> dict[str, Prediction]:
    """The lines of each hidden layer of a dense network as it is, from its data.

    Args:
        model: the network with its parameters: initial ones, or those of a plateau for the next lines.
        x: samples x inputs.
        y: targets, samples x outputs.
        loss: half the mean squared error if not given.
        layers: the hidden layers to predict; all of them if not given.
    """
    if not np.any(np.asarray(y)):
        raise InputError("the targets are all zero: there is nothing to learn, and no direction to go to")
    network, predictions = model.network, {}
    for name, field in layer_fields(model, x, y, loss).items():
        if layers is not None and name not in layers:
            continue
        if isinstance(network, Dense) and len(network.hidden) == network.outputs == 1:
            predictions[name] = _with_fates(model, name, field)
        else:
            predictions[name] = Prediction(name, field, field.residual, field.residual, field.directions(), None)
    return predictions


def _with_fates(model: Model, name: str, field: LayerField) -> Prediction:
    """One hidden layer and one output: the residual is the data's own, and each neuron's fate is known."""
    a = model.parameters["output.weight"][0].astype(float)
    whole = field.factors @ a / max(a @ a, 1e-300)
    residual, note = whole, ""
    if derivatives_at_zero(field.activation, 0)[0] and multiplicity(field.activation) is not None:
        effective = effective_residual(field.inputs, residual, field.activation, len(a))
        residual, a, note = effective.residual, effective.outputs(a), effective.note
    ends = fates(model.weights(name), a, field.inputs, residual, field.activation)
    return Prediction(name, field, residual, whole, ends.directions, ends, note)


def predict(experiment: Experiment, seed: int | Seed = 0) -> dict[str, Prediction]:
    """The lines of each hidden layer of an experiment's dense network, before it is trained, for one seed.

    >>> from condensation import Adam, Dense, Init, Normal, two_waves
    >>> network, data = Dense((1, 50, 1), "x_tanh"), two_waves(spacing="even")
    >>> predict(Experiment(network, Init(Normal(1e-3)), data, Adam(1e-3), 9))["dense1"].directions.attracts.sum()
    np.int64(2)
    """
    chosen = as_seed(seed)
    x, y = experiment.data.draw(chosen)
    model = Model(experiment.network, experiment.init.draw(experiment.network, chosen.init_stream()))
    return predict_model(model, x, y, experiment.loss)


def predict_next(trajectory: Trajectory, step: int, seed: int | Seed = 0) -> dict[str, Prediction]:
    """The lines that the residual of a saved step predicts: at a plateau, where the next lines appear."""
    return predict_model(trajectory.model(step, seed), *trajectory.data(seed), trajectory.experiment.loss)


def plateaus(trajectory: Trajectory, seed: int | Seed = 0) -> list[int]:
    """The recorded steps in the middle of the loss's plateaus, after its first drop.

    A plateau is a minimum of the relative slope -d log L / dt that lies well below the slopes before and after it.
    """
    from scipy.signal import find_peaks  # takes long to load

    loss = trajectory.loss[trajectory.seeds.index(as_seed(seed))]
    alive = np.isfinite(loss) & (loss > 0)
    steps, height = trajectory.recorded[alive], np.log(loss[alive])
    if len(steps) < 5:
        raise InputError(f"plateaus need a loss recorded at five steps or more, not at {len(steps)}")
    slope = np.maximum(-np.gradient(height, steps), 1e-12 * np.ptp(height) / np.ptp(steps) + 1e-300)
    flat, _ = find_peaks(-np.log(slope), prominence=np.log(DEEPER))
    began = np.flatnonzero(height < height[0] - 0.05)
    return [int(steps[k]) for k in flat if len(began) and k > began[0]]
