"""The settings of the page: checked values, and the same as texts in the address, in requests and in answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from ..activations import ACTIVATIONS
from ..data import Expression, Images, InContextRegression, Points, RandomSequences
from ..data._sampling import SPACINGS
from ..errors import InputError, unknown_name
from ..experiment import Experiment
from ..initialization import Init, Normal
from ..losses import Loss
from ..networks import Attention, Conv, Dense
from ..optimizers import GD, Adam, GradientFlow, NormalisedGD, Optimizer, SignGD
from ..seeds import Seed

OPTIMIZERS = {
    "flow": "gradient flow",
    "gd": "gradient descent",
    "normalised_gd": "normalised descent",
    "adam": "Adam",
    "sign_gd": "sign descent",
}
DATA = ("formula", "points", "digits", "sequences", "context")
OF_TOKENS = ("sequences", "context")  # data for networks of attention
MOST_LAYERS, MOST_POINTS, POINT_RANGE = 5, 400, 2.0
MOST_SAMPLES = 400  # but of regression in context, whose levels need more
DEEP_WIDTH, MOST_CHANNELS, KERNEL = 128, 32, 3
TOKEN_WIDTH, MOST_EIGENVALUES, LARGEST = 32, 8, 10.0
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
    """One field for each control. ``reduce`` is the size of the reduced network, None for as many units as lines.

    The data decide on the kind of network: dense, of convolutions for ``"digits"``, of attention for ``"sequences"``
    (softmax) and ``"context"`` (linear, with heads of a rank or with key and query merged).
    """

    data: str = "formula"
    formula: str = "sin(3*x) + sin(6*x)/2"
    inputs: int = _within(1, 6, default=1)
    n: int = _within(2, 2000, default=40)
    low: float = _within(-1e3, 1e3, default=-1.0)
    high: float = _within(-1e3, 1e3, default=1.5)
    spacing: str = "even"
    turn: float = _within(-360, 360, default=0.0)
    points: tuple[tuple[float, ...], ...] = ()
    tokens: int = _within(2, 64, default=5)
    eigenvalues: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)
    layers: tuple[str, ...] = ("x_tanh",)
    width: int = _within(1, 400, default=100)
    residual: bool = False
    bias: bool = True
    heads: int = _within(1, 8, default=1)
    rank: int = _within(1, 8, default=1)
    merged: bool = False
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
        most = LIMITS["width"][1] if len(self.layers) == 1 or self.data == "context" else DEEP_WIDTH
        most = {"digits": MOST_CHANNELS, "sequences": TOKEN_WIDTH}.get(self.data, most)
        if self.width > most:
            raise InputError(f"this network can be {most:g} wide at most, not {self.width}")
        if self.n > MOST_SAMPLES and self.data != "context":
            raise InputError(f"n must be from 2 to {MOST_SAMPLES} for these data, not {self.n}")
        if self.data == "points":
            self._check_points()
        elif self.of_tokens:
            self._check_tokens()
        elif self.data == "formula" and self.spacing == "even":
            widest = int(MOST_SAMPLES ** (1 / self.inputs) + 1e-9)
            side = min(max(round(self.n ** (1 / self.inputs)), 2), widest)
            object.__setattr__(self, "n", side**self.inputs)
        self._check_work()
        if not (self.data == "digits" or self.of_tokens) and self.dimension == 1 and not self.bias:
            raise InputError("a neuron with one input and no bias has no direction: keep the bias")

    def _check_work(self) -> None:
        samples = len(self.points) if self.data == "points" else self.n
        size = f"{len(self.layers)} layers of {self.width}"
        each = self.width * len(self.layers) * (2 if self.data == "digits" else 1)
        if self.data == "sequences":
            size, each = f"{self.tokens} tokens of width {self.width}", self.tokens * self.width
        elif self.data == "context":
            size, each = f"{self.heads} heads on {len(self.eigenvalues)} inputs", self.heads * len(self.eigenvalues)
        if samples * each > MOST_WORK:
            raise InputError(f"{samples} samples are too many for {size}: {MOST_WORK // each} can be used here")

    def _check_points(self) -> None:
        if not 2 <= len(self.points) <= MOST_POINTS:
            raise InputError(f"2 to {MOST_POINTS} points are needed, not {len(self.points)}: click to draw some")
        for row in self.points:
            if len(row) != 3 or any(not -POINT_RANGE <= value <= POINT_RANGE for value in row):
                raise InputError(f"a point is x1,x2,y, each from -{POINT_RANGE:g} to {POINT_RANGE:g}, not {row}")

    def _check_tokens(self) -> None:
        if self.data == "sequences" and len(self.layers) > 1:
            raise InputError(f"a network of attention has 1 dense hidden layer here, not {len(self.layers)}")
        if self.data == "sequences" and self.heads > self.width:
            raise InputError(f"tokens of width {self.width} can have {self.width} heads at most, not {self.heads}")
        values = self.eigenvalues
        if not 1 <= len(values) <= MOST_EIGENVALUES or not all(1e-6 <= value <= LARGEST for value in values):
            told = ", ".join(f"{value:g}" for value in values[: MOST_EIGENVALUES + 1])
            raise InputError(
                f"1 to {MOST_EIGENVALUES} eigenvalues from 1e-06 to {LARGEST:g} are needed, not {told or 'none'}"
            )

    @property
    def of_tokens(self) -> bool:
        """Whether the data are sequences of tokens, and the network one of attention."""
        return self.data in OF_TOKENS

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
        if self.of_tokens:
            loss = Loss("exponential" if self.data == "sequences" else "squared_error")
            return Experiment(self._attention(), init, self._tokens(), self._optimizer(), steps, loss)
        network = Dense((self.dimension, *[self.width] * depth, 1), activation, residual=self.residual, bias=self.bias)
        return Experiment(network, init, self._data(), self._optimizer(), steps)

    def _attention(self) -> Attention:
        """Softmax attention with a dense hidden layer, or linear attention whose keys read x and values read y."""
        if self.data == "sequences":
            width, activation = self.width, self.layers[0]
            return Attention(
                self.tokens, width, 1, heads=self.heads, projection=False, hidden=(width,), activation=activation
            )
        inputs = len(self.eigenvalues)
        heads: dict[str, Any] = {"merged": True} if self.merged else {"head_width": self.rank}
        return Attention(
            self.tokens + 1,
            inputs + 1,
            1,
            heads=self.heads,
            attention="linear",
            values=False,
            projection=False,
            key_inputs=inputs,
            scale=1 / self.tokens,
            **heads,
        )

    def _tokens(self) -> RandomSequences | InContextRegression:
        if self.data == "sequences":
            return RandomSequences(self.n, self.tokens, self.width)
        return InContextRegression(self.n, self.eigenvalues, self.tokens, rotated=True, whitened=True)

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
    if name == "eigenvalues":
        return tuple(_number(name, part) for part in text.split(",") if part.strip())
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
