"""The settings of the page: checked values, and the same as texts in the address, in requests and in answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ..activations import ACTIVATIONS
from ..data import Expression, Images, Points
from ..data._sampling import SPACINGS
from ..errors import InputError, unknown_name
from ..experiment import Experiment
from ..initialization import Init, Normal
from ..losses import Loss
from ..networks import Conv, Dense
from ..optimizers import GD, Adam, GradientFlow, NormalisedGD, Optimizer, SignGD
from ..seeds import Seed

OPTIMIZERS = {
    "flow": "gradient flow",
    "gd": "gradient descent",
    "normalised_gd": "normalised descent",
    "adam": "Adam",
    "sign_gd": "sign descent",
}
DATA = ("formula", "points", "digits")
MOST_LAYERS, MOST_POINTS, POINT_RANGE = 5, 400, 2.0
DEEP_WIDTH, MOST_CHANNELS, KERNEL = 128, 32, 3
CLASSES = 10
MOST_WORK = 40_000  # samples times neurons, so that a step takes milliseconds
MOST_TARGET = 1e9  # size of a target
FLOW_STEPS = 500  # of the integrator between two frames
FLOW_RTOL = 1e-5  # 1e-8 is very slow at the kinks of relu


def _within(least: float, most: float, default: Any) -> Any:
    """A field with a default and bounds."""
    return field(default=default, metadata={"limits": (least, most)})


@dataclass(frozen=True)
class Settings:
    """One field for each control. ``reduce`` is the size of the reduced network, None for as many units as lines."""

    data: str = "formula"
    formula: str = "sin(3*x) + sin(6*x)/2"
    inputs: int = _within(1, 6, default=1)
    n: int = _within(2, 400, default=40)
    low: float = _within(-1e3, 1e3, default=-1.0)
    high: float = _within(-1e3, 1e3, default=1.5)
    spacing: str = "even"
    turn: float = _within(-360, 360, default=0.0)
    points: tuple[tuple[float, ...], ...] = ()
    layers: tuple[str, ...] = ("x_tanh",)
    width: int = _within(1, 400, default=100)
    residual: bool = False
    bias: bool = True
    std_w: float = _within(1e-12, 10, default=0.005)
    std_a: float = _within(1e-12, 10, default=0.005)
    optimizer: str = "normalised_gd"
    rate: float = _within(1e-9, 100, default=1e-4)
    eps: float = _within(1e-40, 1, default=1e-8)
    seed: int = _within(0, 2**31 - 1, default=0)
    reduce: int | None = _within(1, 400, default=None)

    def __post_init__(self) -> None:
        for name, (least, most) in LIMITS.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise InputError(f"{name} must be from {least:g} to {most:g}, not {value:g}")
        for name, known in (("data", DATA), ("spacing", SPACINGS), ("optimizer", OPTIMIZERS)):
            if getattr(self, name) not in known:
                raise unknown_name(name, getattr(self, name), known)
        if not 1 <= len(self.layers) <= MOST_LAYERS:
            raise InputError(f"a network has 1 to {MOST_LAYERS} hidden layers here, not {len(self.layers)}")
        for name in self.layers:
            if name not in ACTIVATIONS:
                raise unknown_name("activation", name, ACTIVATIONS)
        most = MOST_CHANNELS if self.data == "digits" else DEEP_WIDTH if len(self.layers) > 1 else LIMITS["width"][1]
        if self.width > most:
            raise InputError(f"this network can be {most:g} wide at most, not {self.width}")
        if self.data == "points":
            self._check_points()
        elif self.data == "formula" and self.spacing == "even":
            widest = int(LIMITS["n"][1] ** (1 / self.inputs) + 1e-9)
            side = min(max(round(self.n ** (1 / self.inputs)), 2), widest)
            object.__setattr__(self, "n", side**self.inputs)
        self._check_work()
        if self.data != "digits" and self.dimension == 1 and not self.bias:
            raise InputError("a neuron with one input and no bias has no direction: keep the bias")

    def _check_work(self) -> None:
        samples = len(self.points) if self.data == "points" else self.n
        size = f"{len(self.layers)} layers of {self.width}"
        each = self.width * len(self.layers) * (2 if self.data == "digits" else 1)
        if samples * each > MOST_WORK:
            raise InputError(f"{samples} samples are too many for {size}: {MOST_WORK // each} can be used here")

    def _check_points(self) -> None:
        if not 2 <= len(self.points) <= MOST_POINTS:
            raise InputError(f"2 to {MOST_POINTS} points are needed, not {len(self.points)}: click to draw some")
        for row in self.points:
            if len(row) != 3 or any(not -POINT_RANGE <= value <= POINT_RANGE for value in row):
                raise InputError(f"a point is x1,x2,y, each from -{POINT_RANGE:g} to {POINT_RANGE:g}, not {row}")

    @property
    def dimension(self) -> int:
        """Number of inputs of the dense network."""
        return 2 if self.data == "points" else self.inputs

    @classmethod
    def from_text(cls, texts: Mapping[str, Any]) -> "Settings":
        """The settings that a table of texts gives; the others have their defaults.

        >>> Settings.from_text({"layers": "tanh,relu", "width": "20"}).layers
        ('tanh', 'relu')
        """
        known = {field.name: field.default for field in fields(cls)}
        values = {}
        for name, text in texts.items():
            if name not in known:
                raise unknown_name("setting", name, known)
            if not isinstance(text, str):
                raise InputError(f"the setting {name} must be a text, not {text!r}")
            values[name] = _read(name, text, known[name])
        return cls(**values)

    def to_text(self) -> dict[str, str]:
        """The settings as texts.

        >>> Settings(std_w=1e-7).to_text()["std_w"]
        '1e-07'
        """
        return {field.name: _write(getattr(self, field.name)) for field in fields(self)}

    @property
    def seeds(self) -> Seed:
        """The seed of data and initialization."""
        return Seed(self.seed, self.seed)

    def experiment(self, steps: int = 1000) -> Experiment:
        """The experiment with these settings."""
        init = Init(Normal(self.std_w), output=Normal(self.std_a))
        activation: Any = self.layers[0] if len(set(self.layers)) == 1 else self.layers
        depth = len(self.layers)
        if self.data == "digits":
            images = Images("digits", n=self.n, scale="unit")
            network = Conv(images.shape, (self.width,) * depth, KERNEL, CLASSES, activation=activation)
            init = Init(Normal(self.std_a), convolution=Normal(self.std_w))
            return Experiment(network, init, images, self._optimizer(), steps, loss=Loss("cross_entropy"))
        network = Dense((self.dimension, *[self.width] * depth, 1), activation, residual=self.residual, bias=self.bias)
        return Experiment(network, init, self._data(), self._optimizer(), steps)

    def _data(self) -> Expression | Points:
        turned = self.turn if self.dimension == 2 else 0.0
        if self.data == "points":
            return Points(self.points, turned)
        return Expression(self.formula, self.inputs, self.n, self.low, self.high, self.spacing, turned)

    def _optimizer(self) -> Optimizer:
        if self.optimizer == "flow":
            return GradientFlow(self.rate, rtol=FLOW_RTOL, most_steps=FLOW_STEPS)
        if self.optimizer == "adam":
            return Adam(self.rate, eps=self.eps)
        return {"gd": GD, "normalised_gd": NormalisedGD, "sign_gd": SignGD}[self.optimizer](self.rate)


LIMITS: dict[str, tuple[float, float]] = {
    field.name: field.metadata["limits"] for field in fields(Settings) if "limits" in field.metadata
}


def _read(name: str, text: str, default: Any) -> Any:
    """The value of a setting, of the type of its default."""
    if name == "points":
        return tuple(tuple(_number(name, part) for part in row.split(",")) for row in text.split(";") if row.strip())
    if name == "reduce" and text == "auto":
        return None
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if isinstance(default, bool):
        if text not in ("0", "1"):
            raise InputError(f"{name} is 0 or 1, not {text!r}")
        return text == "1"
    if isinstance(default, str):
        return text
    number = _number(name, text)
    if isinstance(default, float):
        return number
    if number != int(number):
        raise InputError(f"{name} must be a whole number, not {text!r}")
    return int(number)


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not abs(number) < float("inf"):
        raise InputError(f"{name} must be a number, not {text[:40]!r}")
    return number


def _write(value: Any) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, tuple):
        rows = [_write(part) for part in value]
        return (";" if value and isinstance(value[0], tuple) else ",").join(rows)
    if isinstance(value, float):
        return f"{value:.12g}"
    return "auto" if value is None else str(value)
