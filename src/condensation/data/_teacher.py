"""Targets that another network gives: a teacher, whose student is trained."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from .._memory import in_digits, require
from .._phrases import counted
from .._serialization import Count, Part, Positive
from ..errors import InputError
from ..initialization import Init
from ..networks import Model, Network, Weights
from ..networks._weights import GivenWeights, as_weights
from ..seeds import Seed
from ._arrays import Arrays
from ._images import Images
from ._inline import Expression, Points
from ._sampling import Vectors
from ._synthetic import Synthetic


@dataclass(frozen=True)
class Gaussian(Vectors, kind="gaussian"):
    """n samples of dim coordinates from N(0, std²), by the data seed, without targets: inputs for a ``Teacher``."""

    dim: Count
    n: Count
    std: Positive = 1.0

    @property
    def outputs(self) -> int:
        """No targets."""
        return 0

    def draw(self, seed: Seed) -> tuple[Float[np.ndarray, "samples dim"], Float[np.ndarray, "samples 0"]]:
        """The samples, and targets of no columns."""
        drawn = f"drawing {in_digits(self.n)} samples of {counted(self.dim, 'coordinate')}"
        require(2 * 8 * self.n * self.dim, drawn, "a smaller n would fit")
        return self.std * seed.data_stream().standard_normal((self.n, self.dim)), np.zeros((self.n, 0))

    def describe(self) -> str:
        """The samples in words.

        >>> Gaussian(5, 21).describe()
        '21 points of N(0, 1²) in 5 coordinates'
        """
        return f"{counted(self.n, 'point')} of N(0, {self.std:g}²) in {counted(self.dim, 'coordinate')}"


Inputs = Gaussian | Synthetic | Expression | Points | Images | Arrays


@dataclass(frozen=True, init=False)
class Teacher(Part, kind="teacher"):
    """Samples with the outputs of a network, the teacher, as targets.

    >>> from condensation import Dense, Normal
    >>> weights = {"dense1.weight": np.array([[1.0, 2.0]]), "output.weight": np.array([[3.0]])}
    >>> teacher = Teacher(Model(Dense((2, 1, 1), "linear", bias=False), weights), Points(((1.0, 1.0, 0.0),)))
    >>> teacher.draw(Seed(0, 0))[1]  # 3 (x1 + 2 x2)
    array([[9.]])

    Args:
        network: the teacher with its weights, as a ``Model``; or its network alone, with ``weights`` or ``init``.
        inputs: what gives the samples: ``Gaussian``, or any data, whose own targets are not used.
        weights: the teacher's weights, by name or in a file.
        init: how its weights are drawn, if they are not given.
        seed: by which they are drawn: one teacher for all data seeds; if left out, each data seed draws its own.
        noise: std of Gaussian noise on the targets, drawn once by the data seed.
    """

    network: Network
    inputs: Inputs
    weights: Weights | None = None
    init: Init | None = None
    seed: int | None = None
    noise: Positive | None = None

    def __init__(
        self,
        network: Network | Model,
        inputs: Inputs,
        weights: GivenWeights | None = None,
        init: Init | None = None,
        seed: int | None = None,
        noise: float | None = None,
    ) -> None:
        if isinstance(network, Model):
            if weights is not None or init is not None:
                raise InputError("a teacher that is a Model has its weights: weights and init are not needed")
            network, weights = network.network, network
        own = None if weights is None else as_weights(weights)
        fields = {"network": network, "inputs": inputs, "weights": own, "init": init, "seed": seed, "noise": noise}
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.weights is None) == (self.init is None):
            raise InputError("a teacher has weights that are given, or an init that draws them, and not both")
        if self.weights is not None:
            if self.weights.seeds is not None or self.seed is not None:
                raise InputError("a teacher with given weights is one network: seeds do not choose among them")
            Model(self.network, self.weights.of())
        else:
            assert self.init is not None
            self.init.check(self.network)
        if self.inputs.input_shape != self.network.input_shape:
            raise InputError(
                f"the inputs have samples of shape {self.inputs.input_shape}, the teacher {self.network.input_shape}"
            )

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of a sample."""
        return self.network.input_shape

    @property
    def outputs(self) -> int:
        """Number of targets of a sample: the teacher's outputs."""
        return self.network.outputs

    @property
    def most_samples(self) -> int:
        """Number of samples at most."""
        return self.inputs.most_samples

    @property
    def n(self) -> int | None:
        """Number of samples that are drawn."""
        return self.inputs.n

    def model(self, seed: Seed) -> Model:
        """The teacher of a data seed, the same for all of them unless each draws its own."""
        if self.weights is not None:
            return Model(self.network, self.weights.of())
        assert self.init is not None
        own = seed.task if self.seed is None else self.seed
        return _drawn(self.network, self.init, own)

    def draw(self, seed: Seed) -> tuple[Float[np.ndarray, "samples ..."], Float[np.ndarray, "samples outputs"]]:
        """The samples and the teacher's outputs on them."""
        x, _ = self.inputs.draw(seed)
        y = np.asarray(self.model(seed)(x), float)
        if not np.isfinite(y).all():
            raise InputError("the teacher's outputs are not all finite: smaller weights or inputs are needed")
        noise = 0.0 if self.noise is None else self.noise * _noise_stream(seed).standard_normal(y.shape)
        return x, y + noise

    def describe(self) -> str:
        """Teacher and samples in words.

        >>> from condensation import Dense, Normal
        >>> Teacher(Dense((5, 3, 1)), Gaussian(5, 21), init=Init(Normal(1.0)), seed=0).describe()
        '21 points of N(0, 1²) in 5 coordinates, targets of a teacher 5-3-1, tanh, no output bias (N(0, 1²), seed 0)'
        """
        if self.weights is not None:
            about = self.weights.describe()
        else:
            assert self.init is not None
            about = f"{self.init.describe(self.network)}, seed {'of the data' if self.seed is None else self.seed}"
        noise = "" if self.noise is None else f", noise N(0, {self.noise:g}²)"
        return f"{self.inputs.describe()}, targets of a teacher {self.network.describe()} ({about}){noise}"


def _noise_stream(seed: Seed) -> np.random.Generator:
    return np.random.default_rng([seed.data, 3])


@lru_cache(maxsize=64)
def _drawn(network: Network, init: Init, seed: int) -> Model:
    return Model(network, init.draw(network, np.random.default_rng([seed, 4])))
