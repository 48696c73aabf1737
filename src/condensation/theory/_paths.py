r"""Paths of small neurons under gradient flow at leading order, each followed at its own speed.

With the residuals fixed a neuron z = (w, a) climbs the homogeneous function $V(w, a) = \frac cp a\, T w^p$:

$$\dot w = a c\, T w^{p-1}, \qquad \dot a = \frac cp T w^p, \qquad |w|^2 - p a^2 = \text{const}.$$

V is of degree p + 1, so paths are the same at every scale: from $\rho z$ one is run through $\rho^{p-1}$ times as fast.
Each neuron is therefore scaled back to norm 1 after each step while its time is counted, and that it grows to infinity
in finite time (p >= 2) does no harm. The orientation u = w/|w| stays on one gradient curve of $F(u) = T u^p$ on the
sphere and climbs $s F$, s = sign(a c). Where s F < 0 the output weight heads for zero; if it gets there, which takes
$|w|^2 > p a^2$, the neuron turns back on its curve. Where s F > 0 it never changes sign again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.integrate import RK45  # its tableau: Dormand and Prince, order 5 with an error of order 4
from scipy.special import hyp2f1

MOST_STEPS = 5000
ON_ITS_WAY, NOWHERE = -2, -1

States = Float[np.ndarray, "units state"]
PerUnit = Float[np.ndarray, " units"]


@dataclass(frozen=True, eq=False)
class NeuronDynamics:
    r"""Motion of a neuron: $\dot w = a c\, g(w)$ and $\dot a = \frac cp w \cdot g(w)$, g of degree p - 1."""

    field: Callable[[np.ndarray], np.ndarray]  # g of many weights at once
    p: int  # multiplicity, or degree of homogeneity
    c: float

    def velocity(self, z: States) -> States:
        """The velocity of the states z = (w, a)."""
        w, g = z[:, :-1], self.field(z[:, :-1])
        return self.c * np.concatenate([z[:, -1:] * g, np.einsum("jd,jd->j", g, w)[:, None] / self.p], axis=1)

    def balance(self, z: States) -> PerUnit:
        """The balance $|w|^2 - p a^2$ of each neuron, which its path conserves."""
        return np.einsum("jd,jd->j", z[:, :-1], z[:, :-1]) - self.p * z[:, -1] ** 2


@dataclass(frozen=True, eq=False)
class NeuronStates:
    """Neurons on their way, each at its own time."""

    z: States  # (w, a) divided by its norm
    velocity: States  # of z
    log_size: PerUnit  # logarithm of the norm
    time: PerUnit  # of gradient flow

    @staticmethod
    def begin(dynamics: NeuronDynamics, w: Float[np.ndarray, "units inputs"], a: PerUnit) -> "NeuronStates":
        """Neurons of input weights w and output weights a at time 0."""
        z = np.concatenate([w, a[:, None]], axis=1)
        largest = np.abs(z).max(axis=1)
        size = largest * np.linalg.norm(z / np.where(largest > 0, largest, 1)[:, None], axis=1)
        size = np.where(size > 0, size, 1)
        return NeuronStates(z / size[:, None], dynamics.velocity(z / size[:, None]), np.log(size), np.zeros(len(z)))

    @property
    def amplitude(self) -> PerUnit:
        """|w| of z, which has norm 1: the share of the norm that the input weight has."""
        return np.linalg.norm(self.z[:, :-1], axis=1)

    @property
    def orientation(self) -> Float[np.ndarray, "units inputs"]:
        """U = w/|w|, zero where w is."""
        r = self.amplitude
        return self.z[:, :-1] / np.where(r > 0, r, 1)[:, None]

    def __getitem__(self, chosen: np.ndarray) -> "NeuronStates":
        return NeuronStates(*(part[chosen] for part in vars(self).values()))

    def put(self, places: np.ndarray, others: "NeuronStates") -> "NeuronStates":
        """A copy with other states at the given places."""
        parts = [part.copy() for part in vars(self).values()]
        for part, new in zip(parts, vars(others).values(), strict=True):
            part[places] = new
        return NeuronStates(*parts)


Stop = Callable[[Int[np.ndarray, " active"], NeuronStates, NeuronStates], Int[np.ndarray, " active"]]


def follow_neurons(
    dynamics: NeuronDynamics, now: NeuronStates, stop: Stop | None = None, *, until: float = np.inf, rtol: float = 1e-6
) -> tuple[NeuronStates, Int[np.ndarray, " units"]]:
    """Follow each neuron until it has arrived, until a time, or until it moves no more.

    ``stop`` is told which neurons are still on their way and their states before and after the last step; it answers
    where each has arrived, ``ON_ITS_WAY``, or ``NOWHERE`` for one that need not be followed further. ``rtol`` is the
    error of a step, relative to |w| for w and to the norm for a. Returns the last states, and where each neuron has
    arrived, else ``NOWHERE``.
    """
    end, place, active = now, np.full(len(now.z), NOWHERE), np.arange(len(now.z))
    pace = np.linalg.norm(now.velocity, axis=1)
    h = 0.01 / np.where(pace > 0, pace, 1)  # in units of time in which the norm is 1
    for _ in range(MOST_STEPS):
        h = np.minimum(h, (until - now.time) * np.exp((dynamics.p - 1) * now.log_size))
        after, error = _step(dynamics, now, h)
        good = np.flatnonzero(error <= rtol)
        before, now = now, now.put(good, after[good])
        h = h * np.clip(0.9 * (np.maximum(error, 1e-12) / rtol) ** -0.2, 0.2, 5)
        h = h * np.exp((dynamics.p - 1) * (now.log_size - before.log_size))
        where = np.full(len(active), ON_ITS_WAY) if stop is None else stop(active, before, now)
        still = ~now.velocity.any(axis=1) | (now.time >= until * (1 - 1e-14))
        gone = (where != ON_ITS_WAY) | still
        if gone.any():
            place[active[gone]] = np.maximum(where[gone], NOWHERE)
            end = end.put(active[gone], now[gone])
            active, now, h = active[~gone], now[~gone], h[~gone]
        if not len(active):
            break
    return end.put(active, now), place


def time_left(dynamics: NeuronDynamics, states: NeuronStates, value: PerUnit) -> PerUnit:
    r"""Time until neurons on their lines, with a c F(u) > 0, have grown to infinity (p >= 2).

    On a line $\dot r = |a c F|\, r^{p-1}$ with $r^2 - p a^2 = B$, so the time is

    $$\frac{\sqrt p}{|c F|} \int_r^\infty \frac{ds}{s^{p-1} \sqrt{s^2 - B}} = \frac{\sqrt p\, r^{1-p}}{(p-1) |c F|}\;
    {}_2F_1\!\left(\tfrac12, \tfrac{p-1}2; \tfrac{p+1}2; \tfrac B{r^2}\right):$$

    $1/|a c F|$ for p = 2 and a balanced neuron, B = 0; ``value`` is F(u) of each neuron's line.
    """
    p, r = dynamics.p, states.amplitude
    if p == 1:
        return np.full(len(r), np.inf)
    b = 1 - p * (states.z[:, -1] / r) ** 2  # B / r^2
    if p == 2:
        root = np.sqrt(np.where(b == 0, 1e-30, b).astype(complex))
        shape = (np.arcsin(root) / root).real
    else:
        shape = hyp2f1(0.5, (p - 1) / 2, (p + 1) / 2, b)
    return np.sqrt(p) / (p - 1) * shape * np.exp((1 - p) * (np.log(r) + states.log_size)) / np.abs(dynamics.c * value)


def _step(dynamics: NeuronDynamics, now: NeuronStates, h: np.ndarray) -> tuple[NeuronStates, np.ndarray]:
    """One step of each neuron: where it leads, and its error relative to the neuron's size."""
    slopes = [now.velocity]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a step much too long is made again
        for row in RK45.A[1:]:
            slopes.append(dynamics.velocity(now.z + h[:, None] * _mix(row, slopes)))
        z = now.z + h[:, None] * _mix(RK45.B, slopes)
        slopes.append(dynamics.velocity(z))
        off = h[:, None] * _mix(RK45.E, slopes)
        size, r = np.linalg.norm(z, axis=1), np.maximum(np.linalg.norm(z[:, :-1], axis=1), 1e-300)
        error = np.maximum(np.linalg.norm(off[:, :-1], axis=1) / r, np.abs(off[:, -1]) / size)
        velocity = slopes[-1] / size[:, None] ** dynamics.p
        passed = h * np.exp((1 - dynamics.p) * now.log_size)
        after = NeuronStates(z / size[:, None], velocity, now.log_size + np.log(size), now.time + passed)
    return after, np.nan_to_num(error, nan=np.inf, posinf=np.inf)


def _mix(shares: np.ndarray, slopes: Sequence[np.ndarray]) -> np.ndarray:
    return sum(share * slope for share, slope in zip(shares, slopes, strict=False) if share)  # type: ignore[return-value]
