"""What the theory of kernels predicts from a run's own images, beside what its kernels did."""

from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float, Int

from ..losses import Loss
from ..measure._similarity import norms
from ..networks import Conv, Model, Network
from ..networks._geometry import as_image
from ..optimizers import GD
from ..runs import Trajectory
from ..theory import KernelDynamics, residual_at_zero
from ..theory._kernels import FilterOutputs, Filters, matrix_of

_DYNAMICS: WeakKeyDictionary[Trajectory, dict[int, KernelDynamics]] = WeakKeyDictionary()  # kept as long as their run


def dynamics(run: Trajectory, k: int) -> KernelDynamics:
    """The linear dynamics that the images of a run's k-th seed give, for the mean loss."""
    of_run = _DYNAMICS.setdefault(run, {})
    if k not in of_run:
        x, y = run.data(run.seeds[k])
        of_run[k] = dynamics_at_zero(run.experiment.network, x, y, Loss(run.experiment.loss.name))
    return of_run[k]


def dynamics_at_zero(network: Network, x: np.ndarray, y: np.ndarray, loss: Loss) -> KernelDynamics:
    """The linear dynamics of a network's filters at output zero, for one convolution layer of slope 1 at 0."""
    assert isinstance(network, Conv)
    z = matrix_of(x.astype(float), residual_at_zero(y, loss), network.geometry[0])
    return KernelDynamics(z, as_image(network.image)[0])


def initial_filters(run: Trajectory, k: int) -> tuple[Filters, FilterOutputs]:
    """The initial filters of a run's k-th seed, and the output weights of each in the order of the rows of Z."""
    network = run.experiment.network
    initial = run.experiment.init.draw(network, run.seeds[k].init_stream(), run.seeds[k])
    filters = network.layers[0].units(initial, "filter")
    by_filter = initial["output.weight"].reshape(len(initial["output.weight"]), len(filters), -1)
    return filters, np.moveaxis(by_filter, 1, 0).reshape(len(filters), -1)


def predicted_sides(run: Trajectory, k: int) -> Int[np.ndarray, " filters"]:
    """The side of v1 that each filter of a seed goes to, from its initial weights alone."""
    return dynamics(run, k).orientations(*initial_filters(run, k))


def times(run: Trajectory) -> Float[np.ndarray, " saved"]:
    """The time of gradient flow on the mean loss that corresponds to each saved step of gradient descent."""
    experiment = run.experiment
    assert isinstance(experiment.optimizer, GD)
    summed = len(run.data(run.seeds[0])[0]) if experiment.loss.reduction == "sum" else 1
    return experiment.optimizer.learning_rate * summed * run.saved


def predicted_model(run: Trajectory, k: int, time: float) -> Model:
    """The network of a run's k-th seed as the linear dynamics have it at a time."""
    network = run.experiment.network
    filters, outputs = dynamics(run, k).evolve(*initial_filters(run, k), time)
    conv, output = network.layers
    weight = np.moveaxis(outputs.reshape(len(filters), output.weight[0], -1), 0, 1).reshape(output.weight)
    return Model(
        network,
        {
            "conv1.weight": filters[:, :-1].reshape(conv.weight),
            "conv1.bias": filters[:, -1],
            "output.weight": weight,
        },
    )


def predicted_turning(run: Trajectory) -> Float[np.ndarray, "seeds saved"]:
    """The median |cos| of filters with v1 at the saved steps by the linear dynamics, from the initial weights."""
    rows = []
    for k in range(len(run.seeds)):
        theory, initial = dynamics(run, k), initial_filters(run, k)
        filters = [theory.evolve(*initial, time)[0] for time in times(run)]
        rows.append([np.median(np.abs(cosines_to(each, theory.v1))) for each in filters])
    return np.array(rows)


def cosines_to_ones(kernels: Float[np.ndarray, "... kernels entries"]) -> Float[np.ndarray, "... kernels"]:
    """The cosine of each kernel with the kernel of ones."""
    return kernels.sum(axis=-1) / np.linalg.norm(kernels, axis=-1) / kernels.shape[-1] ** 0.5


def cosines_to(
    filters: Float[np.ndarray, "... filters columns"], direction: Float[np.ndarray, " columns"]
) -> Float[np.ndarray, "... filters"]:
    """The cosine of each filter with a direction."""
    size = np.linalg.norm(filters, axis=-1)
    return filters @ direction / np.where(size > 0, size, 1) / norms(direction[None])[0]


def cosine_to_v1(run: Trajectory) -> Float[np.ndarray, "seeds saved"]:
    """The median |cos| of the filters with the v1 of their seed, at all saved steps."""
    history = run.history("conv1", view="filter").astype(float)
    cosines = (cosines_to(history[k], dynamics(run, k).v1) for k in range(len(run.seeds)))
    return np.stack([np.median(np.abs(each), axis=-1) for each in cosines])
