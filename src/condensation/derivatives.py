r"""Derivatives of a model: gradient, Jacobian, neural tangent kernel, Hessian and its spectrum, in double precision.

All are taken by the *trained* parameters $\theta$, those that descent moves; statistics of batch norms are constants,
and dropout is off. Where they stand in one vector, their order is that of ``model.parameters``, each one flattened.

The Hessian of a large network is never formed: ``hessian_product`` multiplies by it, and ``hessian_spectrum`` finds its
largest and smallest eigenvalues by Lanczos' method (ARPACK).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from ._display import Shown, short_number, short_numbers
from ._memory import in_digits, require
from ._precision import precision
from ._sketch import bars
from .data._labels import as_targets
from .errors import InputError, check_whole
from .losses import Loss
from .networks import Model, Network
from .networks._model import check_samples, fixed_parameters

DENSE = 1500  # parameters up to which the whole Hessian is decomposed
TOGETHER = 64  # of its rows that are computed at once
SMALL = 2**27  # bytes of Jacobians that are computed at once
Vector = Float[np.ndarray, " parameters"]
Outputs = Float[np.ndarray, "samples outputs"]


def trained_parameters(model: Model) -> dict[str, np.ndarray]:
    """The parameters that descent moves, by name, in float64: all but fixed layers and the statistics of batch norms.

    >>> from condensation import Dense
    >>> model = Model(Dense((2, 1, 1), bias=False), {"dense1.weight": np.ones((1, 2)), "output.weight": np.eye(1)})
    >>> list(trained_parameters(model))
    ['dense1.weight', 'output.weight']
    """
    constant = fixed_parameters(model.network)
    return {name: np.asarray(value, float) for name, value in model.parameters.items() if name not in constant}


def as_vector(parameters: Mapping[str, ArrayLike]) -> Vector:
    """Parameters by name, such as a gradient, as one vector."""
    return np.concatenate([np.ravel(np.asarray(value, float)) for value in parameters.values()])


def as_parameters(model: Model, vector: ArrayLike) -> dict[str, np.ndarray]:
    """A vector over the trained parameters of a model as arrays by name."""
    own = trained_parameters(model)
    flat = np.asarray(vector, float)
    size = sum(value.size for value in own.values())
    if flat.shape != (size,):
        raise InputError(f"the model has {size} trained parameters; the vector has the shape {flat.shape}")
    ends = np.cumsum([value.size for value in own.values()])[:-1]
    return {name: part.reshape(own[name].shape) for name, part in zip(own, np.split(flat, ends), strict=True)}


def loss_of(model: Model, x: ArrayLike, y: ArrayLike, loss: Loss = Loss()) -> float:
    """The loss on some samples: the mean over them, or the sum, as the loss says.

    >>> from condensation import Dense
    >>> model = Model(Dense((1, 1, 1), bias=False), {"dense1.weight": np.zeros((1, 1)), "output.weight": np.eye(1)})
    >>> loss_of(model, [[1.0], [2.0]], [[1.0], [3.0]])
    2.5
    """
    with precision("float64"):
        return float(_loss(model.network, loss)(*_arguments(model, x, y, loss)))


def gradient(model: Model, x: ArrayLike, y: ArrayLike, loss: Loss = Loss()) -> dict[str, np.ndarray]:
    r"""The gradient $\nabla_\theta L$ of the loss, by the name of each parameter."""
    with precision("float64"):
        found = _gradient(model.network, loss)(*_arguments(model, x, y, loss))
        return {name: np.asarray(found[name]) for name in trained_parameters(model)}


def residuals(model: Model, x: ArrayLike, y: ArrayLike, loss: Loss = Loss()) -> Outputs:
    r"""What drives the training: $-\partial \ell_i/\partial f_{ik}$ of each sample's own loss $\ell_i$ and each output.

    For the squared error that is $y_i - f(x_i)$, for cross-entropy $y_i - \mathrm{softmax}(f(x_i))$. The gradient is
    minus the mean over the samples (the sum, if the loss is one) of these times the Jacobian.
    """
    with precision("float64"):
        own, constant, samples, targets = _arguments(model, x, y, loss)
        outputs = model.network.assemble(own | constant)(samples)
        return -np.asarray(jax.grad(Loss(loss.name, "sum"))(outputs, jnp.asarray(targets)))


def jacobian(model: Model, x: ArrayLike) -> dict[str, np.ndarray]:
    r"""$\partial f_k(x_i)/\partial\theta$, by the name of each parameter: samples x outputs x its shape."""
    own, samples = trained_parameters(model), _samples(model, x)
    count = sum(value.size for value in own.values())
    entries = len(samples) * model.network.outputs * count
    require(
        2 * 8 * entries,
        f"a Jacobian of {in_digits(entries)} entries",
        "fewer samples would fit, and ntk needs the Jacobian of one array of parameters at a time",
    )
    return dict(_jacobians(model, samples))


def ntk(model: Model, x: ArrayLike, other: ArrayLike | None = None) -> Float[np.ndarray, "samples outputs others outs"]:
    r"""The empirical neural tangent kernel $\Theta_{ik,jl} = \nabla_\theta f_k(x_i) \cdot \nabla_\theta f_l(x'_j)$.

    Args:
        model: the network with its parameters.
        x: samples.
        other: samples x'; x itself if not given.

    Returns:
        An array of samples x outputs x other samples x outputs. How far it moved in training, as
        ``np.linalg.norm(after - before) / np.linalg.norm(before)``, tells lazy training from feature learning.

    >>> from condensation import Dense
    >>> model = Model(Dense((1, 1, 1), bias=False), {"dense1.weight": np.zeros((1, 1)), "output.weight": 2 * np.eye(1)})
    >>> ntk(model, [[1.0], [3.0]])[:, 0, :, 0].tolist()  # 2x times 2x', from the input weight alone
    [[4.0, 12.0], [12.0, 36.0]]
    """
    first = _samples(model, x)
    second = first if other is None else _samples(model, other)
    outputs = model.network.outputs
    sizes = [8 * outputs * (len(first) + len(second)) * value.size for value in trained_parameters(model).values()]
    needed = 2 * min(sum(sizes), 2 * SMALL + max(sizes)) + 2 * 8 * outputs**2 * len(first) * len(second)
    require(needed, f"the kernel of {len(first)} by {len(second)} samples", "fewer samples would fit")
    kernel = np.zeros((len(first) * outputs, len(second) * outputs))
    if other is None:
        pairs = ((part, part) for _, part in _jacobians(model, first))
    else:
        pairs = ((a, b) for (_, a), (_, b) in zip(_jacobians(model, first), _jacobians(model, second), strict=True))
    for left, right in pairs:
        kernel += left.reshape(len(kernel), -1) @ right.reshape(kernel.shape[1], -1).T
    return kernel.reshape(len(first), outputs, len(second), outputs)


def hessian(model: Model, x: ArrayLike, y: ArrayLike, loss: Loss = Loss()) -> Float[np.ndarray, "parameters others"]:
    r"""The matrix $\nabla^2_\theta L$ of all second derivatives of the loss, for small networks.

    It is symmetric but for rounding. ``as_parameters`` gives a row, or an eigenvector, as arrays by name.
    """
    size = as_vector(trained_parameters(model)).size
    require(
        3 * 8 * size**2,
        f"the Hessian of {in_digits(size)} parameters",
        "hessian_product and hessian_spectrum do without it",
    )
    multiply = _product(model, x, y, loss)
    return np.concatenate([multiply(np.eye(min(TOGETHER, size - k), size, k)) for k in range(0, size, TOGETHER)])


def hessian_product(model: Model, vector: ArrayLike, x: ArrayLike, y: ArrayLike, loss: Loss = Loss()) -> Vector:
    r"""The product $\nabla^2_\theta L \cdot v$ with a vector over the trained parameters (see ``as_vector``)."""
    flat = as_vector(as_parameters(model, vector))
    return _product(model, x, y, loss)(flat[None])[0]


@dataclass(frozen=True, eq=False)
class HessianSpectrum(Shown):
    """Eigenvalues of a Hessian, the smallest first, and their eigenvectors.

    Attributes:
        values: eigenvalues, ascending: all of them, or the smallest and the largest.
        vectors: unit vectors over the trained parameters, a row for each; ``as_parameters`` gives arrays by name.
        size: how many eigenvalues the Hessian has.
        error: by how much an eigenvalue is off at most: the largest $|H v - \\lambda v|$.
    """

    values: Float[np.ndarray, " found"]
    vectors: Float[np.ndarray, "found parameters"]
    size: int
    error: float

    def _title(self) -> str:
        return f"HessianSpectrum: {len(self.values)} of {self.size} eigenvalues"

    def _facts(self) -> dict[str, str]:
        ends = {"smallest": short_numbers(self.values[:5]), "largest": short_numbers(self.values[-5:])}
        return ends | {"negative": f"{self.escapes} of these", "error": short_number(self.error)}

    def _picture(self) -> str:
        return bars(self.values, label="eigenvalues", strong=(self.values < 0).tolist())

    @property
    def escapes(self) -> int:
        """How many of the eigenvalues are negative beyond their error: directions in which the loss falls."""
        return int((self.values < -max(self.error, 1e-12 * np.abs(self.values).max(initial=0))).sum())


def hessian_spectrum(
    model: Model, x: ArrayLike, y: ArrayLike, loss: Loss = Loss(), *, smallest: int = 5, largest: int = 5
) -> HessianSpectrum:
    """The smallest and the largest eigenvalues of the Hessian of the loss.

    The whole Hessian is decomposed for up to 1500 parameters, else Lanczos' method is used.

    Args:
        model: the network with its parameters.
        x: samples.
        y: targets.
        loss: whose second derivatives they are.
        smallest: how many of the smallest (the most negative) ones.
        largest: how many of the largest ones.
    """
    for name, number in (("smallest", smallest), ("largest", largest)):
        check_whole(name, number, least=0)
    if not smallest + largest:
        raise InputError("at least one eigenvalue must be asked for: smallest and largest are both 0")
    size = as_vector(trained_parameters(model)).size
    multiply = _product(model, x, y, loss)

    def times(vector: np.ndarray) -> np.ndarray:
        return multiply(np.asarray(vector, float).reshape(1, -1))[0]

    if size <= max(DENSE, 2 * (smallest + largest)):
        matrix = hessian(model, x, y, loss)
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        chosen = np.arange(size) if smallest + largest >= size else np.r_[:smallest, size - largest : size]
        found, rows = values[chosen], vectors.T[chosen]
    else:
        operator = _Operator(size, times)
        ends = [_lanczos(operator, number, which) for which, number in (("SA", smallest), ("LA", largest)) if number]
        found, rows = (np.concatenate(parts) for parts in zip(*ends, strict=True))
    off = [np.linalg.norm(times(row) - value * row) for value, row in zip(found, rows, strict=True)]
    return HessianSpectrum(found, rows, size, float(max(off)))


class _Operator(LinearOperator):
    """A Hessian as SciPy multiplies by it."""

    def __init__(self, size: int, times: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__(np.dtype(float), (size, size))
        self._times = times

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        return self._times(x)


def _lanczos(operator: _Operator, number: int, which: str) -> tuple[np.ndarray, np.ndarray]:
    start = np.random.default_rng(0).standard_normal(operator.shape[0])
    try:
        values, vectors = eigsh(operator, number, which=which, v0=start)
    except ArpackNoConvergence as error:
        raise InputError(
            f"Lanczos' method found {len(error.eigenvalues)} of the {number} eigenvalues that were asked for; the "
            "others lie too near to each other: ask for fewer"
        ) from error
    order = np.argsort(values)
    return values[order], vectors.T[order]


def _samples(model: Model, x: ArrayLike) -> np.ndarray:
    samples = np.asarray(x, float)
    if samples.shape[1:] != model.network.input_shape or not len(samples):
        raise InputError(
            f"samples of shape {model.network.input_shape} are needed, at least one, not an array of {samples.shape}"
        )
    check_samples(model.network, samples)
    return samples


def _arguments(
    model: Model, x: ArrayLike, y: ArrayLike, loss: Loss
) -> tuple[dict[str, Any], dict[str, Any], np.ndarray, np.ndarray]:
    """What the loss is a function of: the trained parameters, the constants, the samples and the targets."""
    samples, targets = _samples(model, x), np.asarray(as_targets(np.asarray(y), model.network.outputs, loss), float)
    if targets.shape != (len(samples), model.network.outputs):
        needed = f"{len(samples)} x {model.network.outputs} (samples x outputs)"
        raise InputError(f"targets of shape {needed} are needed, not {targets.shape}")
    return *_split(model), samples, targets


def _split(model: Model) -> tuple[dict[str, Any], dict[str, Any]]:
    own = trained_parameters(model)
    return own, {name: np.asarray(v, float) for name, v in model.parameters.items() if name not in own}


def _plain(network: Network, loss: Loss) -> Callable[..., Any]:
    """The loss as a function of the trained parameters, the constants, the samples and the targets."""
    return lambda own, constant, x, y: loss(network.assemble(own | constant)(x), y)


@lru_cache(maxsize=64)
def _loss(network: Network, loss: Loss) -> Callable[..., Any]:
    return jax.jit(_plain(network, loss))


@lru_cache(maxsize=64)
def _gradient(network: Network, loss: Loss) -> Callable[..., Any]:
    return jax.jit(jax.grad(_plain(network, loss)))


@lru_cache(maxsize=64)
def _products(network: Network, loss: Loss) -> Callable[..., Any]:
    """Multiplies directions by the Hessian: forward over reverse mode."""
    slope = jax.grad(_plain(network, loss))

    def product(direction: Any, own: Any, *rest: Any) -> Any:
        return jax.jvp(lambda at: slope(at, *rest), (own,), (direction,))[1]

    return jax.jit(jax.vmap(product, (0, None, None, None, None)))


@lru_cache(maxsize=256)
def _jacobian(network: Network) -> Callable[..., Any]:
    """The Jacobian by some of the parameters; the others are constant."""

    def outputs(own: Any, others: Any, sample: Any) -> Any:
        return network.assemble(own | others)(sample[None])[0]

    return jax.jit(jax.vmap(jax.jacrev(outputs), (None, None, 0)))


def _product(model: Model, x: ArrayLike, y: ArrayLike, loss: Loss) -> Callable[[np.ndarray], np.ndarray]:
    """Multiplies rows of vectors over the trained parameters by the Hessian."""
    arguments = _arguments(model, x, y, loss)
    own = arguments[0]
    ends = np.cumsum([value.size for value in own.values()])[:-1]

    def multiply(rows: np.ndarray) -> np.ndarray:
        parts = zip(own.items(), np.split(rows, ends, axis=1), strict=True)
        directions = {name: part.reshape(len(rows), *value.shape) for (name, value), part in parts}
        with precision("float64"):
            found = _products(model.network, loss)(directions, *arguments)
            return np.concatenate([np.asarray(found[name]).reshape(len(rows), -1) for name in own], axis=1)

    return multiply


def _jacobians(model: Model, samples: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The Jacobian by each parameter: samples x outputs x its shape; as many at a time as are small together."""
    own, constant = _split(model)
    groups: list[dict[str, np.ndarray]] = [{}]
    for name, value in own.items():
        size = sum(other.size for other in groups[-1].values()) + value.size
        if groups[-1] and 8 * size * len(samples) * model.network.outputs > SMALL:
            groups.append({})
        groups[-1][name] = value
    for group in groups:
        others = constant | {name: value for name, value in own.items() if name not in group}
        with precision("float64"):
            found = {name: np.asarray(part) for name, part in _jacobian(model.network)(group, others, samples).items()}
        yield from ((name, found[name]) for name in group)
