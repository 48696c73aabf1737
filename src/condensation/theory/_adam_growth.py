r"""How Adam grows small neurons, from the data alone.

Adam moves each weight by about its learning rate $\eta$ a step. A small neuron of an activation of multiplicity 1
turns to the signs s of $\pm z$, $z = \frac1n \sum_i y_i x_i$, as soon as what it has gained, $\eta t$ in each of D
coordinates, outweighs its initial weights: two neurons' cosine is then $1/(1 + \tan^2)$ with
$\tan^2 = \frac{D-1}{D} (std/\eta t)^2$, and reaches c at $\eta t = std \sqrt{(1 - \frac1D)\, c/(1-c)}$. Nothing pulls
them there any more when the targets have no part along s left: when m neurons of output and input weights $\eta t$
have learnt it, $m (\eta t)^2 = |z|_1/(s^T C s)$ with $C = \frac1n \sum_i x_i x_i^T$. So there is a largest
initialization.

With a gradient $g = \Lambda w^p$, w a neuron's size and p the multiplicity, and with Adam's $\epsilon$, a step is
$\eta\, g/(g + \epsilon)$. To grow from the initial std to a size W then takes

$$ T = \frac1\eta \int_{std}^W \Bigl(1 + \frac{\epsilon}{\Lambda w^p}\Bigr) dw = \frac{W - std}\eta +
\frac{\epsilon}{\eta \Lambda} I_p, \qquad I_1 = \log\frac{W}{std}, \quad I_p = \frac{std^{1-p} - W^{1-p}}{p - 1}. $$

$\Lambda = |c|\, p^{p/2 - 1} |F|$ with F the largest value of $T u^p$ on the sphere: the growth of a neuron on the
fastest line with $|w|^2 = p a^2$.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from ..measure._lines import LEAST_COSINE
from ._directions import stationary_directions
from ._leading import coefficient

DRAWS = 2000
Inputs = Float[np.ndarray, "samples inputs"]
Targets = Float[np.ndarray, " samples"]
Sizes = Float[np.ndarray, "*shape"]


class Scales(NamedTuple):
    """What the data say of an activation: p, the mean |g| of hidden weights initialized with std 1, and Lambda."""

    p: int
    gradient: float
    rate: float


def with_bias(x: np.ndarray, y: np.ndarray) -> tuple[Inputs, Targets]:
    """Samples with the bias's input 1, and targets of one output, from what a data set draws."""
    return np.c_[x, np.ones(len(x))], y[:, 0]


def pull(inputs: Inputs, y: Targets) -> Float[np.ndarray, " inputs"]:
    """The direction z."""
    return inputs.T @ y / len(y)


def outweighed(inputs: int, cosine: float = LEAST_COSINE) -> float:
    """How many times the initial std each weight must have moved along one sign vector for pairs to reach a cosine.

    >>> round(outweighed(6), 2)
    3.98
    """
    return float(np.sqrt((1 - 1 / inputs) * cosine / (1 - cosine)))


def learnt(inputs: Inputs, y: Targets, units: int, rate: float) -> float:
    """The step at which Adam has learnt the part of the targets along the signs of z."""
    z = pull(inputs, y)
    return float(np.sqrt(np.abs(z).sum() / (units * np.mean((inputs @ np.sign(z)) ** 2))) / rate)


def scales(inputs: Inputs, y: Targets, activation: str) -> Scales:
    """The scales of samples, to leading order; the gradient is a mean over draws of initial weights."""
    p, c = coefficient(activation)
    stream = np.random.default_rng(0)
    w, a = stream.standard_normal((DRAWS, inputs.shape[1])), stream.standard_normal(DRAWS)
    gradients = c * a[:, None] * ((w @ inputs.T) ** (p - 1) * y @ inputs) / len(y)
    fastest = stationary_directions(inputs, y, p).growth.max()
    return Scales(p, float(np.abs(gradients).mean()), float(abs(c) * p ** (p / 2 - 1) * fastest))


def path(low: Sizes, high: Sizes, p: int) -> Sizes:
    """I_p, the integral of w^-p from one size to another.

    >>> path(np.array([0.1]), np.array([1.0]), 2)
    array([9.])
    """
    return np.log(high / low) if p == 1 else (low ** (1.0 - p) - high ** (1.0 - p)) / (p - 1)


def delaying(low: Sizes, high: Sizes, time: float, scale: Scales, rate: float) -> Sizes:
    """The eps with which weights take a time from one size to another; NaN where Adam without one takes longer."""
    eps = scale.rate * (rate * time - (high - low)) / path(low, high, scale.p)
    return np.where(eps > 0, eps, np.nan)


def doubling(stds: Sizes, own: float, scale: Scales, rate: float) -> Sizes:
    """The eps with which the growth that takes Adam its own time takes twice as long."""
    return delaying(stds, stds + rate * own, 2 * own, scale, rate)


def outgrowing(stds: Sizes, last: int, scale: Scales, inputs: int, rate: float) -> Sizes:
    """The eps with which weights outweigh their initial size just at the last step."""
    return delaying(stds, (1 + outweighed(inputs)) * stds, last, scale, rate)
