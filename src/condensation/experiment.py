"""The experiment: a frozen value that fixes a training run except the seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tomli_w
from jaxtyping import Float

from ._functions import importable_path
from ._plain import parse_toml, read_text
from ._precision import DTYPES, describe_precision
from ._serialization import (
    FORMAT,
    Count,
    Part,
    check_format,
    fingerprint,
    from_plain,
    replace_at,
    to_plain,
    without_none,
)
from ._stored import StoredArrays, stored_parts
from .activations import check_activation
from .data import Data, Images, Text
from .data._labels import as_targets, takes_labels
from .errors import InputError, check_not_negative, check_whole, one_of, unknown_name
from .initialization import Given, Init
from .losses import Loss
from .networks import Attention, Dense, Model, Network, ResNet
from .networks._model import check_samples, without_pairs
from .optimizers import GradientFlow, NormalisedGD, Optimizer
from .saving import At, Continued, Evenly, SaveSchedule, list_steps
from .seeds import Seed, as_seed


def _check_share(name: str, value: float) -> None:
    """Refuse what is no share of neurons that can be left out."""
    if not 0 < value < 1:
        raise InputError(f"{name} is a share above 0 and below 1, not {value!r}")


@dataclass(frozen=True)
class Experiment(Part):
    r"""Everything that fixes a training run except the seeds.

    Args:
        network: what is trained.
        init: how its weights are initialized: drawn (``Init``), or given (``Given``) to continue, perturb or fine-tune.
        data: what it is trained on.
        optimizer: how it is trained.
        steps: how long.
        loss: what is minimised.
        save: at which steps the weights are kept.
        record: at which steps the loss and the gradient sizes are kept (the saved ones are added).
        dtype: ``"float64"``, ``"float32"``, or ``"tf32"`` (float32 whose products a GPU may round to 10 bits); the
            user's JAX configuration is not touched.
        batch_size: samples in a step; all of them if not given. Each epoch goes through the samples in a new order
            (by the init seed) and leaves out a last incomplete batch; loss and accuracy are recorded on all samples.
        test: held-out data, on which loss and accuracy are recorded too.
        kept_layers: the layers whose weights are kept; all of them if not given.
        label_noise: standard deviation of the Gaussian noise that each step adds to the targets it sees, fresh at each
            step (by the init seed). Its mean gradient is that of the true targets, on which losses are recorded, but
            with the loss exponential and functions of yours: their gradients need not be linear in the targets.
        dropout_penalty: in the place of dropout, its mean effect: a share q of the neurons of the last hidden layer,
            left out, adds $\frac{q}{2(1-q)n} \sum_i \sum_j (a_j \sigma_j(x_i))^2$ to half the squared
            error, without noise. Losses are recorded without it.
    """

    network: Network
    init: Init | Given
    data: Data
    optimizer: Optimizer
    steps: Count
    loss: Loss = Loss()
    save: SaveSchedule = Evenly(101)
    record: SaveSchedule = Evenly(1001)
    dtype: Annotated[str, one_of("dtype", DTYPES)] = "float64"
    batch_size: Count | None = None
    test: Data | None = None
    kept_layers: tuple[str, ...] | None = None
    label_noise: Annotated[float, check_not_negative] | None = None
    dropout_penalty: Annotated[float, _check_share] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check()

    def _check(self) -> None:
        """Refuse parts that do not go together."""
        for schedule in (self.save, self.record):
            if isinstance(schedule, At):  # the only one that can ask for a step after the last
                schedule.steps(self.steps)
        self.init.check(self.network)
        if isinstance(self.optimizer, GradientFlow) and (self.batch_size is not None or self.network.dropout):
            raise InputError("gradient flow sees all samples and the whole network: no batch_size, no dropout")
        if isinstance(self.optimizer, GradientFlow) and self.label_noise is not None:
            raise InputError("gradient flow has no steps at which labels could be noisy: no label_noise")
        self._check_penalty()
        if isinstance(self.optimizer, GradientFlow) and self.network.norms:
            raise InputError("gradient flow has no batch norm: its running statistics depend on the steps")
        if isinstance(self.optimizer, NormalisedGD) and (name := without_pairs(self.network)):
            raise InputError(f"{name} has no neuron-normalised descent")
        drawn = [(data.name, data.split) for data in (self.data, self.test) if isinstance(data, Images | Text)]
        if len(drawn) > len(set(drawn)):
            what = "windows" if isinstance(self.test, Text) else "images"
            raise InputError(f"test {what} must come from the other split, not from {drawn[0][1]!r} too")
        if self.kept_layers == ():
            raise InputError("kept_layers names no layer: leave it out to keep all of them")
        for name in self.kept_layers or ():
            known = [layer.name for layer in self.network.layers]
            if name not in known:
                raise unknown_name("kept layer", name, known)

    def _check_penalty(self) -> None:
        """Refuse a dropout penalty where it is not the mean effect of dropout."""
        if self.dropout_penalty is None:
            return
        if not isinstance(self.network, Dense) or self.network.dropout:
            raise InputError("a dropout_penalty is for dense networks, in the place of their dropout")
        if self.loss.name != "mse":
            raise InputError(
                f"a dropout_penalty is the mean effect of dropout on the loss mse, not on {self.loss.describe()}"
            )
        if isinstance(self.optimizer, GradientFlow):
            raise InputError("gradient flow follows the loss alone: no dropout_penalty")

    def keeps(self, name: str) -> bool:
        """Whether a parameter, by its full name, is kept at the saved steps."""
        return self.kept_layers is None or any(name.startswith(f"{layer}.") for layer in self.kept_layers)

    def replace(self, **changes: Any) -> Experiment:
        """A copy with some fields changed; a dotted path reaches inside: ``**{"optimizer.learning_rate": 1e-4}``."""
        return replace_at(self, changes)

    def with_parts(self, parts: dict[str, Any]) -> Experiment:
        """A copy with whole fields changed to values of their types; whether they go together is checked again.

        Faster than ``replace``, which makes sure of the types: for the many cells of a sweep.
        """
        changed = copy(self)
        for name, part in parts.items():
            object.__setattr__(changed, name, part)
        changed._check()
        return changed

    def vary(self, path: str, values: Iterable[Any]) -> list[Experiment]:
        """One experiment for each value of the field at a dotted path, to be trained as one ensemble.

        ``train(experiment.vary("init.hidden.std", [1e-3, 1e-4]), seeds=10)``
        """
        return [self.replace(**{path: value}) for value in values]

    def extended(self, steps: int) -> Experiment:
        """The same training for so many more steps. What is saved and recorded up to today's end stays the same.

        ``train(experiment.extended(1000), out=...)`` goes on from the end of the run in that folder, if it is there.
        """
        check_whole("steps", steps)
        longer = {name: _continued(getattr(self, name), self.steps, steps) for name in ("save", "record")}
        return self.replace(steps=self.steps + steps, **longer)

    def check_data(self) -> None:
        """Refuse data whose shapes do not fit network, loss and batch; nothing is drawn for it but by own functions."""
        network = self.network
        for data in (self.data, self.test):
            if data is None:
                continue
            labels = data.outputs == 1 and takes_labels(self.loss, network.outputs)
            if data.input_shape != network.input_shape or not (labels or data.outputs == network.outputs):
                raise InputError(
                    f"the {'data' if data is self.data else 'test data'} has samples of shape {data.input_shape} and "
                    f"{data.outputs} outputs, the network {network.input_shape} and {network.outputs}"
                )
            if self.loss.of_classes and isinstance(data, Images) and data.target == "sign":
                raise InputError(
                    f"the loss {self.loss.name} needs targets that are shares of classes, and these images have "
                    f"target = {data.target!r}: one_hot would do"
                )
        self.loss.check(network.outputs)
        single = [network.activation] if isinstance(network, Attention | ResNet) else []  # not of dense layers alone
        for activation in {*network.activations, *single}:
            check_activation(activation)
        if self.loss.of_classes and network.outputs == 1:
            raise InputError(
                f"the loss {self.loss.name} needs a network with an output for each of at least two classes, and there "
                "is one output: with K of them labels 0 to K-1 can be the targets"
            )
        if self.batch_size is not None and self.batch_size > self.data.most_samples:
            raise InputError(
                f"a batch of {self.batch_size} samples is asked for, but there are only {self.data.most_samples}"
            )

    def samples(
        self, seed: Seed, held_out: bool = False
    ) -> tuple[Float[np.ndarray, "samples ..."], Float[np.ndarray, "samples outputs"]]:
        """The samples of a seed, or the held-out ones, and their targets as the loss reads them.

        Labels 0 to K-1, where the loss compares classes, become rows of one 1 and zeros.
        """
        data = self.test if held_out else self.data
        if data is None:
            raise InputError("this experiment has no held-out data (test)")
        x, y = data.draw(seed.held_out() if held_out else seed)
        if x.shape[1:] == self.network.input_shape:
            check_samples(self.network, x)
        return x, as_targets(y, self.network.outputs, self.loss, every=not held_out)

    def saved_steps(self) -> list[int]:
        """The steps at which the weights are kept."""
        return list(list_steps(self.steps, self.save))

    def recorded_steps(self) -> list[int]:
        """The steps at which the curves are kept, the saved ones among them."""
        return list(list_steps(self.steps, self.record, self.save))

    def describe(self) -> dict[str, str]:
        """The settings in words, by what they are settings of; what is not there (test data) is left out.

        >>> from condensation import GD, Dense, Normal, two_waves
        >>> experiment = Experiment(Dense((1, 9, 1)), Init(Normal(0.1)), two_waves(), GD(0.1), 50)
        >>> for name, phrase in experiment.describe().items():
        ...     print(f"{name}: {phrase}")
        network: 1-9-1, tanh, no output bias
        initialization: N(0, 0.1²)
        data: 40 points of sin(3x) + 0.5 sin(6x), x uniform on [-1, 1.5]
        optimizer: gradient descent, learning rate 0.1
        batch: full batch
        steps: 50
        loss: 1/(2n) sum of squares
        precision: float64
        """
        return {
            "network": self.network.describe(),
            "initialization": self.init.describe(self.network),
            "data": self.data.describe(),
            **({} if self.test is None else {"test data": self.test.describe()}),
            "optimizer": self.optimizer.describe(),
            "batch": "full batch" if self.batch_size is None else f"batches of {self.batch_size}",
            **({} if self.label_noise is None else {"label noise": f"N(0, {self.label_noise:g}²), anew at each step"}),
            **(
                {}
                if self.dropout_penalty is None
                else {"penalty": f"the mean effect of dropout {self.dropout_penalty:g} on the last hidden layer"}
            ),
            "steps": str(self.steps),
            "loss": self.loss.describe(),
            "precision": describe_precision(self.dtype),
        }

    def to_plain(self) -> dict[str, Any]:
        """The experiment as dictionaries, lists, strings and numbers."""
        return self.to_plain_at(lambda arrays: arrays.origin)

    def to_plain_at(self, place_of: Callable[[StoredArrays], dict[str, Any]]) -> dict[str, Any]:
        """The same, with the files of arrays where ``place_of`` says that they are kept."""
        return {"format": FORMAT} | to_plain(self, place_of=place_of)

    def arrays(self) -> dict[str, StoredArrays]:
        """The user's own arrays, data or weights, by the dotted path of the field they stand in."""
        return stored_parts(self)

    def initial_model(self, seed: int | Seed = 0) -> Model:
        """The network at step 0 of a seed."""
        chosen = as_seed(seed)
        return Model(self.network, self.init.draw(self.network, chosen.init_stream(), chosen))

    @classmethod
    def from_plain(cls, plain: dict[str, Any], folder: str | Path = ".") -> Experiment:
        """The experiment that plain data stands for; file names in it are relative to ``folder``."""
        if not isinstance(plain, dict):
            raise InputError(f"an experiment is a table of fields, not {type(plain).__name__}")
        check_format("experiment", plain.get("format"))
        fields = {name: value for name, value in plain.items() if name != "format" and value is not None}
        return from_plain(cls, without_none(fields), folder=Path(folder))

    def to_toml(self) -> str:
        """The experiment as TOML."""
        for path, arrays in self.arrays().items():
            if not arrays.origin:
                raise InputError(
                    f"arrays cannot stand in TOML, and those of {path} are in no file: write them to an .npz or "
                    f".safetensors file and use {type(arrays).__name__}.load(file)"
                )
        to_plain(self, importable_path)  # refused for functions that no other program could find
        return tomli_w.dumps(without_none(self.to_plain()))

    @classmethod
    def from_toml(cls, text: str, folder: str | Path = ".") -> Experiment:
        """The experiment that a TOML text stands for."""
        return cls.from_plain(parse_toml(text), folder)

    @classmethod
    def load(cls, path: str | Path) -> Experiment:
        """The experiment in a TOML file."""
        path = Path(path)
        text = read_text(path, "experiment")
        try:
            return cls.from_toml(text, path.parent)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def fingerprint(self) -> str:
        """SHA-256 of the experiment's canonical JSON: the one key under which its results are known."""
        return fingerprint(self)


def _continued(schedule: SaveSchedule, last: int, more: int) -> SaveSchedule:
    """The schedule of a training that goes on: itself where it names the same steps so far."""
    if not isinstance(schedule, At) and [s for s in schedule.steps(last + more) if s <= last] == schedule.steps(last):
        return schedule
    later = schedule.then if isinstance(schedule, Continued) else schedule
    if isinstance(later, At):
        later = Evenly(max(2, len(later.steps(last))))
    return Continued(schedule, last, later)
