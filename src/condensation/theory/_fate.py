r"""The fate of each neuron: on which line, and on which side of it, it ends, and how soon.

The paths of ``_paths`` are followed until they are near an attracting direction. For p = 1 they are known: with
$g = \frac1n \sum_i r_i x_i$, $v = w \cdot g/|g|$, $s = \mathrm{sign}(c)$ and $\kappa = |c| |g|$, the equations
$\dot v = s \kappa a$, $\dot a = s \kappa v$ give

$$v \pm s a = (v_0 \pm s a_0)\, e^{\pm \kappa t}, \qquad w - v\,g/|g| = \text{const},$$

so every neuron comes to the line of g, along it if $v_0 + s a_0 > 0$ and against it if not.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike
from scipy.special import ndtr

from ..activations import Activation, derivatives_at_zero, label, multiplicity
from ..errors import InputError, check_positive, check_whole
from ..measure._lines import LEAST_COSINE
from ..measure._similarity import as_weights, norms
from ._destinations import Destinations
from ._directions import Directions, stationary_directions
from ._homogeneous import extremal_directions
from ._leading import as_neurons, as_single_output, coefficient, evaluate
from ._paths import NOWHERE, ON_ITS_WAY, NeuronDynamics, NeuronStates, follow_neurons, time_left
from ._tensor import Samples, Tensor, unit

ANGLE = 0.01
NOISE = 0.1
ENOUGH = 40.0  # log growth at which a neuron has arrived at what is nearest; for p = 2 that is exact
ROUGHLY = 0.1  # angle at which neurons from changed initial weights have arrived
KINK = 0.01  # width, in radians, over which the kink of relu is smoothed: neurons can then stay at it
STAYS = 1e-6  # a direction whose velocity turns it by less, relative to the velocity, stays


@dataclass(frozen=True, eq=False)
class Fates:
    r"""Where neurons under $\dot w = a c\, T w^{p-1}$, $\dot a = \frac cp T w^p$ end, one entry for each.

    Attributes:
        directions: the stationary directions that ``lines`` counts.
        lines: the number of the neuron's line, or -1 for one that comes to none: its amplitude shrinks, or its field
            is zero.
        signs: +1 where it ends along the line's direction, -1 where against it, 0 where it comes to none.
        flips: whether its output weight changes sign on the way.
        times: time of gradient flow until its direction is within the angle of its end, or it has grown e^40-fold.
        blow_up: time at which its leading-order amplitude is infinite; infinity for p = 1.
        confidence: share of slightly changed initial weights with the same fate: low near the boundary of two fates.
        drift: change of the conserved $|w|^2 - p a^2$ on the way, relative to the last $|w|^2 + a^2$.
    """

    directions: Directions
    lines: Int[np.ndarray, " units"]
    signs: Int[np.ndarray, " units"]
    flips: Bool[np.ndarray, " units"]
    times: Float[np.ndarray, " units"]
    blow_up: Float[np.ndarray, " units"]
    confidence: Float[np.ndarray, " units"]
    drift: Float[np.ndarray, " units"]

    @property
    def orientations(self) -> Float[np.ndarray, "units inputs"]:
        """The unit vector in which each neuron ends; zero where there is none."""
        return self.signs[:, None] * self.directions.directions[self.lines]


def fates(
    weights: ArrayLike,
    outputs: ArrayLike,
    x: ArrayLike,
    residual: ArrayLike,
    activation: Activation,
    *,
    directions: Directions | None = None,
    angle: float | None = None,
    perturbations: int = 8,
    noise: float = NOISE,
) -> Fates:
    r"""The fate of each neuron of a two-layer network under gradient flow from small weights.

    The confidence is the share of ``perturbations`` copies with the same fate, $w + \nu |w| \xi/\sqrt D$ and
    $a (1 + \nu \eta)$ with normal $\xi$, $\eta$ and $\nu$ = ``noise``; for p = 1 it is that probability itself. Neurons
    with relu or leaky relu are followed, too, the kink smoothed over 0.01 radians.

    Args:
        weights: input weights, units x inputs, the bias last.
        outputs: output weights, one for each unit.
        x: inputs, samples x inputs; with a bias the last input is 1.
        residual: $r_i = y_i - f(x_i)$, one for each sample; see ``effective_residual`` where $\sigma(0) \ne 0$.
        activation: of the hidden layer.
        directions: the stationary directions of x and residual, where they are known already.
        angle: how near to a direction, in radians, a neuron has arrived; 0.01, or 0.03 for relu.
        perturbations: number of changed initial weights for the confidence; with 0 it is NaN (but for p = 1).
        noise: their relative size.

    >>> x, r = np.eye(2), np.array([6.0, 8.0])  # g = (3, 4)
    >>> ends = fates([[0.1, 0.0], [0.0, 0.1]], [0.01, -0.2], x, r, "tanh")
    >>> ends.orientations, ends.flips
    (array([[ 0.6,  0.8],
           [-0.6, -0.8]]), array([False, False]))
    """
    points, r = as_single_output(x, residual)
    w, a = as_neurons(weights, outputs, points.shape[1])
    check_whole("perturbations", perturbations, least=0)
    check_positive("noise", noise)
    slopes = _slopes(activation)
    if angle is None:
        angle = ANGLE if slopes is None else 3 * KINK
    if not 1e-6 <= angle <= 0.3:
        raise InputError(f"the angle of arrival must be between 1e-6 and 0.3 radians, not {angle!r}")
    p, c = (1, 1.0) if slopes else coefficient(activation)
    if directions is None and slopes:
        directions = extremal_directions(points, slopes[0] * r, slopes[1] / slopes[0], starts=1000)
    elif directions is None:
        directions = stationary_directions(points, r, p)
    directions.check_network(p, w.shape[1])
    if directions.oriented != (slopes is not None):
        kind = "with a kink at 0" if directions.oriented else "with a multiplicity"
        raise InputError(f"the directions are those of an activation {kind}, and {label(activation)} is none")
    if p == 1 and not slopes:
        constant = derivatives_at_zero(activation, 0)[0] * r.mean()
        return _linear(w, a, directions, c, constant, angle, noise)
    return _followed(dynamics_of(points, r, activation), w, a, directions, angle, perturbations, noise)


def dynamics_of(x: Samples, residual: Float[np.ndarray, " samples"], activation: Activation) -> NeuronDynamics:
    """What moves small neurons with an activation: its leading order, or the exact field of relu and its like."""
    slopes = _slopes(activation)
    if slopes:
        return _relu_dynamics(x, residual, slopes)
    constant = derivatives_at_zero(activation, 0)[0] * residual.mean()
    if abs(constant) > 1e-9 * np.abs(residual).max():
        raise InputError(
            f"the activation is not zero at 0 and the mean residual is {residual.mean():.3g}, so a constant is learned "
            "first; pass the residual and the output weights that effective_residual gives"
        )
    p, c = coefficient(activation)
    return NeuronDynamics(Tensor(x, residual[:, None] / len(x), p).field, p, c)


@lru_cache(maxsize=64)
def _slopes(activation: Activation) -> tuple[float, float] | None:
    """Slopes on the two sides of 0 of an activation that is straight but for a kink there, which points down."""
    if multiplicity(activation) is not None:
        return None
    z = np.array([1.0, -1.0, 1e-3, -1e-3, 1e3, -1e3])
    up, down, *others = (evaluate(activation, z) / z).tolist()
    straight = np.allclose(others, [up, down] * 2, rtol=1e-6, atol=0)
    return (up, down) if straight and up > max(down, 0) else None


def _relu_dynamics(x: np.ndarray, r: np.ndarray, slopes: tuple[float, float]) -> NeuronDynamics:
    """The exact field of relu, whose jumps are spread over small angles."""
    lengths, (up, down) = np.maximum(np.linalg.norm(x, axis=1), 1e-300), slopes
    terms = r[:, None] / len(r) * x

    def field(w: np.ndarray) -> np.ndarray:
        angle = w @ x.T / (np.maximum(np.linalg.norm(w, axis=1), 1e-300)[:, None] * lengths)
        return (down + (up - down) * np.clip((angle / KINK + 1) / 2, 0, 1)) @ terms

    return NeuronDynamics(field, 1, 1.0)


def _linear(
    w: np.ndarray, a: np.ndarray, directions: Directions, c: float, constant: float, angle: float, noise: float
) -> Fates:
    r"""The closed form for p = 1; a constant drift of a, $\dot a = s\kappa v + d$, only shifts v by $d/(s\kappa)$."""
    g, s, rate = directions.directions[0], np.sign(c), abs(c) * directions.values[0]
    shift = constant / (s * rate)
    v = w @ g
    rises, falls = (v + shift + s * a) / 2, (v + shift - s * a) / 2
    side = np.where(rises < 0, -1, 1)
    across = np.linalg.norm(w - v[:, None] * g, axis=1)
    # the later of the two times at which |v| = across / tan(angle); before the first one v is not growing
    need, grow, fall = across / np.tan(angle) + side * shift, np.abs(rises), side * falls
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = (need + np.sqrt(np.maximum(need**2 - 4 * grow * fall, 0))) / (2 * grow)
    factor = np.where(need**2 < 4 * grow * fall, 1, factor)
    lost = rises == 0
    spread = noise * np.sqrt((w**2).mean(axis=1) + a**2)
    return Fates(
        directions=directions,
        lines=np.where(lost, NOWHERE, 0),
        signs=np.where(lost, 0, side),
        flips=~lost & (a * s * side < 0),
        times=np.where(lost, np.inf, np.log(np.maximum(factor, 1)) / rate),
        blow_up=np.full(len(w), np.inf),
        confidence=ndtr(2 * grow / np.maximum(spread, 1e-300)),
        drift=np.zeros(len(w)),
    )


def _arrive(
    dynamics: NeuronDynamics, start: NeuronStates, ends: Destinations, angle: float, rtol: float
) -> tuple[NeuronStates, np.ndarray, np.ndarray]:
    """Follow neurons to their ends: the last states, the number of each one's end, and the time of arrival."""
    times = np.full(len(start.z), np.inf)

    def stop(active: np.ndarray, before: NeuronStates, now: NeuronStates) -> np.ndarray:
        a, grows = now.z[:, -1], now.z[:, -1] * now.velocity[:, -1]
        cosine = np.where(np.sign(dynamics.c * a)[:, None] == ends.serves, now.orientation @ ends.points.T, -1)
        near = (cosine.max(axis=1) > np.cos(angle)) | (now.log_size > start.log_size[active] + ENOUGH)
        place = np.where((grows > 0) & near, cosine.argmax(axis=1), ON_ITS_WAY)
        here = np.flatnonzero(place >= 0)
        first, last = (_angles(states[here].orientation, ends.points[place[here]]) for states in (before, now))
        share = np.log(first / angle) / np.log(np.maximum(first / last, 1 + 1e-12))  # the angle shrinks exponentially
        times[active[here]] = before.time[here] + np.clip(share, 0, 1) * (now.time - before.time)[here]
        doomed = np.flatnonzero((grows < 0) & (dynamics.balance(now.z) <= 0))
        place[doomed[_stays(now[doomed])]] = NOWHERE
        return place

    return (*follow_neurons(dynamics, start, stop, rtol=rtol), times)


def _stays(states: NeuronStates) -> np.ndarray:
    """Whether the direction of each neuron stays as it is, but for STAYS."""
    moving, u = states.velocity[:, :-1], states.orientation
    turning = moving - np.einsum("jd,jd->j", moving, u)[:, None] * u
    return np.linalg.norm(turning, axis=1) < STAYS * np.linalg.norm(moving, axis=1)


def _angles(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    return 2 * np.arcsin(np.clip(np.linalg.norm(u - v, axis=1) / 2, 1e-12, 1))


def _followed(
    dynamics: NeuronDynamics, w: np.ndarray, a: np.ndarray, lines: Directions, angle: float, copies: int, noise: float
) -> Fates:
    """Fates of neurons that are followed on their paths, and their confidence from changed initial weights."""
    ends = Destinations.of(lines)
    if not len(ends.points):
        raise InputError("no direction attracts neurons of either sign: there is no line to come to")
    start = NeuronStates.begin(dynamics, w, a)
    last, place, times = _arrive(dynamics, start, ends, angle, rtol=1e-5)
    came = place >= 0
    change = dynamics.balance(last.z) - dynamics.balance(start.z) * np.exp(2 * (start.log_size - last.log_size))
    blow_up = np.full(len(w), np.inf)
    blow_up[came] = last.time[came] + time_left(dynamics, last[came], lines.values[ends.line[place[came]]])
    same = np.full(len(w), np.nan)
    if copies:
        stream = np.random.default_rng(0)
        size = norms(w)[:, None] / np.sqrt(w.shape[1])
        near_w = w + noise * size * stream.standard_normal((copies, *w.shape))
        near_a = a * (1 + noise * stream.standard_normal((copies, len(a))))
        near = NeuronStates.begin(dynamics, near_w.reshape(-1, w.shape[1]), near_a.ravel())
        ended = _arrive(dynamics, near, ends, max(angle, ROUGHLY), rtol=1e-2)[1]
        same = (ended.reshape(copies, -1) == place).mean(axis=0)
    return Fates(
        directions=lines,
        lines=np.where(came, ends.line[place], NOWHERE),
        signs=np.where(came, ends.side[place], 0),
        flips=came & (a * dynamics.c * ends.serves[place] < 0),
        times=times,
        blow_up=blow_up,
        confidence=same,
        drift=np.abs(change),
    )


@dataclass(frozen=True)
class FateAgreement:
    """How many neurons ended as predicted; those predicted to come to no line are left out.

    Attributes:
        lines: share of neurons within the threshold of the predicted line, |cos| >= threshold.
        orientations: share of neurons within the threshold of the predicted orientation, cos >= threshold.
        nearest: share of neurons to which, of all orientations that attract, the predicted one is nearest, however
            near: for p = 1 the share on the predicted side.
        cosine: median |cos| to the predicted line.
        units: number of neurons with a prediction.
    """

    lines: float
    orientations: float
    nearest: float
    cosine: float
    units: int


def compare_fates(predicted: Fates, weights: ArrayLike, *, threshold: float = LEAST_COSINE) -> FateAgreement:
    """Compare predicted fates with trained input weights, units x inputs.

    >>> two = fates([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], np.eye(2), [2.0, 0.0], "tanh")
    >>> compare_fates(two, [[5.0, 0.0], [-3.0, 0.0]])
    FateAgreement(lines=1.0, orientations=0.5, nearest=0.5, cosine=1.0, units=2)
    """
    w = as_weights(weights)
    if w.shape != predicted.orientations.shape:
        raise InputError(f"weights of shape {predicted.orientations.shape} are needed, not of {w.shape}")
    counted = predicted.lines >= 0
    if not counted.any():
        raise InputError("no neuron was predicted to come to a line: there is nothing to compare")
    u, predicted_u = unit(w.astype(float))[counted], predicted.orientations[counted]
    cosine = np.einsum("jd,jd->j", u, predicted_u)
    lines = predicted.directions.directions[predicted.directions.attracts]
    best = u @ lines.T if predicted.directions.oriented else np.abs(u @ lines.T)
    return FateAgreement(
        lines=float((np.abs(cosine) >= threshold).mean()),
        orientations=float((cosine >= threshold).mean()),
        nearest=float((cosine >= best.max(axis=1) - 1e-12).mean()),
        cosine=float(np.median(np.abs(cosine))),
        units=int(counted.sum()),
    )
