r"""The fate of each neuron: on which line, and on which side of it, it ends, and how soon.

The paths of ``_paths`` are followed until they are near an attracting direction. For p = 1 they are known
(``_linear_fate``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from .._threads import narrow_products
from ..activations import Activation, derivatives_at_zero, label, multiplicity
from ..errors import InputError, check_positive, check_whole
from ..measure._similarity import norms
from ._destinations import AttractingSpace, Destinations
from ._directions import Directions, stationary_directions
from ._ends import Fates
from ._homogeneous import extremal_directions
from ._leading import as_neurons, as_single_output, coefficient, evaluate
from ._linear_fate import linear_fates, output_fates
from ._paths import NOWHERE, ON_ITS_WAY, NeuronDynamics, NeuronStates, follow_neurons, time_left
from ._tensor import Samples, Tensor, unit

ANGLE = 0.01
NOISE = 0.1
ENOUGH = 40.0  # log growth at which a neuron has arrived at what is nearest; for p = 2 that is exact
ROUGHLY = 0.1  # angle at which neurons from changed initial weights have arrived, and those whose time is up
KINK = 0.01  # width, in radians, over which the kink of relu is smoothed: neurons can then stay at it
BLOCK = 256  # neurons whose products with all samples are held at once, near the processor
STAYS = 1e-6  # a direction whose velocity turns it by less, relative to the velocity, stays


@narrow_products
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
        outputs: output weights, one for each unit; units x outputs where there are several outputs.
        x: inputs, samples x inputs; with a bias the last input is 1.
        residual: $r_i = y_i - f(x_i)$, one for each sample; see ``effective_residual`` where $\sigma(0) \ne 0$. Several
            outputs (samples x outputs): for activations of multiplicity 1 that are zero at 0.
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
    check_whole("perturbations", perturbations, least=0)
    check_positive("noise", noise)
    slopes = kink_slopes(activation)
    if angle is None:
        angle = ANGLE if slopes is None else 3 * KINK
    if not 1e-6 <= angle <= 0.3:
        raise InputError(f"the angle of arrival must be between 1e-6 and 0.3 radians, not {angle!r}")
    if np.ndim(residual) == 2 and np.shape(residual)[1] > 1:
        return output_fates(weights, outputs, x, residual, activation, directions, angle, noise)
    points, r = as_single_output(x, residual)
    w, a = as_neurons(weights, outputs, points.shape[1])
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
        return linear_fates(w, a, directions, c, constant, angle, noise)
    return _followed(dynamics_of(points, r, activation), w, a, directions, angle, perturbations, noise)


def dynamics_of(x: Samples, residual: Float[np.ndarray, " samples"], activation: Activation) -> NeuronDynamics:
    """What moves small neurons with an activation: its leading order, or the exact field of relu and its like."""
    slopes = kink_slopes(activation)
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
def kink_slopes(activation: Activation) -> tuple[float, float] | None:
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
    terms, steep = r[:, None] / len(r) * x, (x / lengths[:, None]).T / (2 * KINK)
    above, below = (up - down) * terms, down * terms.sum(axis=0)

    def field(w: np.ndarray) -> np.ndarray:
        g = np.empty_like(w)
        for rows in range(0, len(w), BLOCK):
            block = w[rows : rows + BLOCK]
            share = block / np.maximum(np.linalg.norm(block, axis=1), 1e-300)[:, None] @ steep
            share += 0.5
            g[rows : rows + BLOCK] = np.clip(share, 0, 1, out=share) @ above + below
        return g

    return NeuronDynamics(field, 1, 1.0)


def _arrive(
    dynamics: NeuronDynamics,
    start: NeuronStates,
    ends: Destinations,
    spaces: Sequence[AttractingSpace],
    fastest: float,
    angle: float,
    rtol: float,
) -> tuple[NeuronStates, np.ndarray, np.ndarray]:
    """Follow neurons to their ends: the last states, the number of each one's end, and the time of arrival.

    Spaces are numbered behind the ends. A neuron that grows although nothing attracts its sign goes nowhere. For p = 1
    all is over when the fastest neurons have grown by ENOUGH: one that is then on no line comes to none.
    """
    times = np.full(len(start.z), np.inf)
    until = ENOUGH / (np.abs(dynamics.c) * fastest) if dynamics.p == 1 else np.inf

    def stop(active: np.ndarray, before: NeuronStates, now: NeuronStates) -> np.ndarray:
        a, grows = now.z[:, -1], now.z[:, -1] * now.velocity[:, -1]
        sign, u = np.sign(dynamics.c * a)[:, None], now.orientation
        cosine = np.where(sign == ends.serves, u @ ends.points.T, -1)
        for space in spaces:
            inside = np.linalg.norm(u @ space.basis, axis=1, keepdims=True)
            cosine = np.concatenate([cosine, np.where(np.isin(sign, space.serves), inside, -1)], axis=1)
        nearest, best = cosine.argmax(axis=1), cosine.max(axis=1)
        near = (best > np.cos(angle)) | (now.log_size > start.log_size[active] + ENOUGH)
        near |= (now.time >= until * (1 - 1e-12)) & (best > np.cos(ROUGHLY))
        place = np.where((grows > 0) & near, np.where(best > -1, nearest, NOWHERE), ON_ITS_WAY)
        here = np.flatnonzero(place >= 0)
        first, last = (_angles(states[here].orientation, place[here], ends, spaces) for states in (before, now))
        share = np.log(first / angle) / np.log(np.maximum(first / last, 1 + 1e-12))  # the angle shrinks exponentially
        times[active[here]] = before.time[here] + np.clip(share, 0, 1) * (now.time - before.time)[here]
        doomed = np.flatnonzero((grows < 0) & (dynamics.balance(now.z) <= 0))
        place[doomed[_stays(now[doomed])]] = NOWHERE
        return place

    return (*follow_neurons(dynamics, start, stop, until=until, rtol=rtol), times)


def _stays(states: NeuronStates) -> np.ndarray:
    """Whether the direction of each neuron stays as it is, but for STAYS."""
    moving, u = states.velocity[:, :-1], states.orientation
    turning = moving - np.einsum("jd,jd->j", moving, u)[:, None] * u
    return np.linalg.norm(turning, axis=1) < STAYS * np.linalg.norm(moving, axis=1)


def _angles(
    u: np.ndarray, place: np.ndarray, ends: Destinations, spaces: Sequence[AttractingSpace]
) -> Float[np.ndarray, " units"]:
    """The angle of each orientation to its end, or to the nearest direction of its space."""
    target = ends.points[np.minimum(place, len(ends.points) - 1)] if len(ends.points) else np.zeros_like(u)
    for number, space in enumerate(spaces, len(ends.points)):
        target = np.where((place == number)[:, None], unit(u @ space.basis @ space.basis.T), target)
    return 2 * np.arcsin(np.clip(np.linalg.norm(u - target, axis=1) / 2, 1e-12, 1))


def _followed(
    dynamics: NeuronDynamics, w: np.ndarray, a: np.ndarray, lines: Directions, angle: float, copies: int, noise: float
) -> Fates:
    """Fates of neurons that are followed on their paths, and their confidence from changed initial weights."""
    ends, spaces = Destinations.of(lines), lines.spaces
    if not len(ends.points) + len(spaces):
        raise InputError("nothing attracts neurons of either sign: there is no line to come to")
    start, fastest = NeuronStates.begin(dynamics, w, a), max(np.abs([*lines.values, *(s.value for s in spaces)]))
    last, place, times = _arrive(dynamics, start, ends, spaces, fastest, angle, rtol=1e-5)
    came = (place >= 0) & (place < len(ends.points))
    space = np.where(place >= len(ends.points), place - len(ends.points), NOWHERE)
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
        ended = _arrive(dynamics, near, ends, spaces, fastest, max(angle, ROUGHLY), rtol=1e-2)[1]
        same = (ended.reshape(copies, -1) == place).mean(axis=0)
    line, sign, serves = (np.zeros(len(w), int) for _ in range(3))
    line[came], sign[came], serves[came] = (part[place[came]] for part in (ends.line, ends.side, ends.serves))
    orientations = sign[:, None] * lines.directions[line] if lines.count else np.zeros_like(w)
    for number, own in enumerate(spaces):
        inside = space == number
        orientations[inside] = unit(last[inside].orientation @ own.basis @ own.basis.T)
        serves[inside] = np.sign(dynamics.c * last[inside].z[:, -1])
    return Fates(
        directions=lines,
        lines=np.where(came, line, NOWHERE),
        signs=sign,
        orientations=orientations,
        flips=a * dynamics.c * serves < 0,
        times=times,
        blow_up=blow_up,
        confidence=same,
        drift=np.abs(change),
        spaces=space,
    )
