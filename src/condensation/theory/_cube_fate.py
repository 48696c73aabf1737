r"""The fate of each neuron under sign descent, and so under early Adam: on which line of the cube, on which side.

At leading order and with the residuals fixed all weights of a neuron move at the same speed,

$$\dot w = \mathrm{sign}(a c\, T w^{p-1}), \qquad \dot a = \mathrm{sign}(c F(w)), \qquad F(w) = T w^p.$$

With s = sign(a c) the function s F only grows. Where s F < 0 the output weight heads for zero; if it gets there before
F does, the neuron turns back on its path, and from then on, as where s F > 0, a grows and w goes to a strict local
maximum of s F on the cube (``cube_directions``). For p = 1 both times are known: F = g . w moves at the speed $|g|_1$,
the sum of all $|g_i|$, so the neuron ends along sign(g) if $F(w_0) / |g|_1 + \mathrm{sign}(c)\, a_0 > 0$ and against it
if not. If w comes to zero before a does, as where F has one sign and a c the other, it stays there.

Beyond, neurons are followed in steps of a share of their own size, which is all that counts: the law has no scale. A
coordinate inside a face goes to and fro by that step. Of a and w, w moves second, by the new a: moved at once the two
could change signs in turn for ever, which is what a large learning rate does to neurons near zero (see ``SignGD``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike

from .._display import Shown
from .._phrases import plural
from .._threads import narrow_products
from ..activations import Activation, derivatives_at_zero
from ._cube import CubeDirections, cube_directions
from ._destinations import Destinations, count_fates, fates_picture
from ._leading import as_neurons, as_single_output, coefficient
from ._paths import NOWHERE, ON_ITS_WAY
from ._subdivision import field_sizes
from ._tensor import ROUNDING, Tensor, unit

STEPS = (0.01, 0.0118, 0.0141)  # shares of a neuron's largest weight; what the first tells is decided if all agree
NEAR = 0.05  # distance to a point of the cube, in every coordinate, at which a neuron has arrived
LEAST = 0.01  # of its largest weight at the start: below, steps of a neuron shrink no more
LOOKED = 8  # steps from one look for neurons that have arrived to the next
LONGEST = 1000  # steps: a neuron that grows is then 1000 times as large or more, or has arrived long ago


@dataclass(frozen=True, eq=False)
class CubeFates(Shown):
    """Where neurons end under sign descent, one entry for each.

    Attributes:
        directions, lines, signs, flips: as in ``Fates``. A neuron comes to no line where w reaches zero before a does,
            its field is zero, or its line is missing in directions that are not certified.
        decided: whether its end is the same for steps of other lengths. It is not near the boundary of two fates, nor
            where a changes sign while coordinates of w go to and fro: there the learning rate decides.
    """

    directions: CubeDirections
    lines: Int[np.ndarray, " units"]
    signs: Int[np.ndarray, " units"]
    flips: Bool[np.ndarray, " units"]
    decided: Bool[np.ndarray, " units"]

    def _title(self) -> str:
        return f"Fates of {plural(len(self.lines), 'neuron')} under sign descent"

    def _facts(self) -> dict[str, str]:
        undecided = {"undecided": f"{int((~self.decided).sum())}, by the learning rate"}
        return count_fates(self.lines, self.signs, self.flips) | undecided

    def _picture(self) -> str:
        return fates_picture(self.lines, self.directions)

    @property
    def orientations(self) -> Float[np.ndarray, "units inputs"]:
        """The unit vector in which each neuron ends; zero where there is none."""
        return self.signs[:, None] * unit(self.directions.directions)[self.lines]


@narrow_products
def cube_fates(
    weights: ArrayLike,
    outputs: ArrayLike,
    x: ArrayLike,
    residual: ArrayLike,
    activation: Activation,
    *,
    directions: CubeDirections | None = None,
) -> CubeFates:
    r"""The fate of each neuron of a two-layer network under sign descent from small weights.

    Where $\sigma(0) \ne 0$ the mean residual, if it is not zero, moves small output weights all to one side,
    $\dot a = \mathrm{sign}(\sigma(0) \bar r)$. Unlike under gradient flow no constant is learned first, as all weights
    have the same speed: pass the whole residual, not that of ``effective_residual``. The result then holds until the
    output weights have come to $\bar r / (m \sigma(0))$.

    The arguments are those of ``fates``; the activation must have a multiplicity.

    >>> x, r = np.eye(2), np.array([6.0, 8.0])  # g = (3, 4): F(w) / 7 + a decides
    >>> ends = cube_fates([[0.1, 0.0], [0.0, 0.1]], [0.01, -0.02], x, r, "tanh")
    >>> ends.directions.directions, ends.signs, ends.flips
    (array([[1., 1.]]), array([1, 1]), array([False,  True]))
    """
    points, r = as_single_output(x, residual)
    w, a = as_neurons(weights, outputs, points.shape[1])
    p, c = coefficient(activation)
    if directions is None:
        directions = cube_directions(points, r, p)
    directions.check_network(p, w.shape[1])
    a = a * np.sign(c)  # (a, c) and (-a, -c) are the same neuron
    constant = derivatives_at_zero(activation, 0)[0] * r.mean()
    push = np.sign(c * constant) if abs(constant) > 1e-9 * np.abs(r).max() else 0.0
    tensor = Tensor(points / np.abs(points).max(), r[:, None] / np.abs(r).max() / len(r), p)
    if p == 1:
        g = tensor.field(np.zeros((1, w.shape[1])))[0]
        side = np.full(len(w), push) if push else np.sign(w @ g / np.abs(g).sum() + a)
        line, decided = np.where(side, 0, NOWHERE), np.ones(len(w), bool)
        return CubeFates(directions, line, side.astype(int), a * side < 0, decided)
    ends = Destinations.of(directions)
    places = _arrive(tensor, w, a, ends, push)
    place, came = places[0], places[0] >= 0
    line, side, serves = (np.append(part, 0)[place] for part in (ends.line, ends.side, ends.serves))
    return CubeFates(directions, np.where(came, line, NOWHERE), side, a * serves < 0, (places == place).all(axis=0))


def _arrive(tensor: Tensor, w: np.ndarray, a: np.ndarray, ends: Destinations, push: float) -> np.ndarray:
    """The number of each neuron's end for each of STEPS, else NOWHERE; for c > 0, a moved by ``push`` if any."""
    place = np.full(len(STEPS) * len(w), NOWHERE)
    share, size = np.repeat(STEPS, len(w)), np.tile(np.abs(w).max(axis=1), len(STEPS))
    active = np.flatnonzero(size)
    share, size = share[active], size[active]
    with np.errstate(over="ignore"):  # an output weight so much larger than the others never changes its sign
        w, a = w[active % len(w)] / size[:, None], np.clip(a[active % len(w)] / size, -1e9, 1e9)
    rounding, before = 10 * ROUNDING * field_sizes(tensor), w
    for step in range(LONGEST):
        force = tensor.field(w)
        value = np.einsum("jd,jd->j", force, w)
        largest = np.maximum(np.abs(w).max(axis=1), LEAST)
        if step % LOOKED == 0:
            where = _look(w / largest[:, None], a * (a * value > 0), ends)
            if step:  # all coordinates go to and fro at zero, and a is not about to change its sign
                stays = np.abs(w - before).max(axis=1) < LOOKED / 2 * share * LEAST
                where[stays & (a * value <= 0) & (np.abs(a) > 10 * LEAST)] = NOWHERE
            going = where == ON_ITS_WAY
            place[active] = where
            if not going.any():
                break
            parts = (share, active, w, a, force, value, largest)
            share, active, w, a, force, value, largest = (part[going] for part in parts)
            before = w
        force[np.abs(force) <= rounding * (largest ** (tensor.p - 1))[:, None]] = 0
        h = share * largest
        a = a + h * (push or np.sign(value))
        w = w + (h * np.sign(a))[:, None] * np.sign(force)
    return np.maximum(place, NOWHERE).reshape(len(STEPS), -1)


def _look(v: np.ndarray, a: np.ndarray, ends: Destinations) -> np.ndarray:
    """The number of the end that each neuron has come to, else ON_ITS_WAY; a is zero where it does not grow."""
    place = np.full(len(v), ON_ITS_WAY)
    for number, (point, serves) in enumerate(zip(ends.points, ends.serves, strict=True)):
        place[(a * serves > 0) & (np.abs(v - point).max(axis=1) < NEAR)] = number
    return place
