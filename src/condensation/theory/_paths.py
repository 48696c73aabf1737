r"""Paths of small neurons under gradient flow at leading order, each followed at its own speed.

With the residuals fixed a neuron z = (w, a) climbs the homogeneous function $V(w, a) = \frac cp a\, T w^p$:

$$\dot w = a c\, T w^{p-1}, \qquad \dot a = \frac cp T w^p, \qquad |w|^2 - p a^2 = \text{const}.$$

V is of degree p + 1, so paths are the same at every scale: from $\rho z$ one is run through $\rho^{p-1}$ times as fast.
Each neuron is therefore followed on the sphere |z| = 1, while the logarithm of its norm and its time are counted: on
its line it then stands still, and that it grows to infinity in finite time (p >= 2) does no harm. The orientation
u = w/|w| stays on one gradient curve of $F(u) = T u^p$ on the sphere and climbs $s F$, s = sign(a c). Where s F < 0 the
output weight heads for zero; if it gets there, which takes $|w|^2 > p a^2$, the neuron turns back on its curve. Where
s F > 0 it never changes sign again.
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
        after, error = _step(dynamics, now, h)
        good = (error <= rtol) & (after.time <= until * (1 + 1e-14))
        before, now = now, now.put(np.flatnonzero(good), after[good])
        h = _next_step(dynamics, after, h, error / rtol, until)
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


def _next_step(dynamics: NeuronDynamics, after: NeuronStates, h: PerUnit, error: PerUnit, until: float) -> PerUnit:
    """The next step of each neuron: by its error, in units of what is allowed, and not beyond the last time."""
    longer = h * np.clip(0.9 * np.maximum(error, 1e-12) ** -0.2, 0.2, 5)
    with np.errstate(over="ignore", invalid="ignore"):
        to_the_end = (until - after.time) * np.exp((dynamics.p - 1) * after.log_size)  # Newton's step
    past = (error <= 1) & (to_the_end < 0)
    return np.where(
        past, np.maximum(h + to_the_end, 0.1 * h), np.fmin(longer, np.where(to_the_end > 0, to_the_end, np.inf))
    )


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


def _step(dynamics: NeuronDynamics, now: NeuronStates, h: PerUnit) -> tuple[NeuronStates, PerUnit]:
    """One step of each neuron: where it leads, and its error relative to the neuron's size and to the time so far."""
    start = np.concatenate([now.z, np.zeros((len(h), 2))], axis=1)  # the state, and its growth and time in this step
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # a step much too long is made again
        state, velocity = start, now.velocity
        slopes = [_on_sphere(dynamics, state, velocity)]
        for row in (*RK45.A[1:], RK45.B):
            state = start + h[:, None] * _mix(row, slopes)
            velocity = dynamics.velocity(state[:, :-2])
            slopes.append(_on_sphere(dynamics, state, velocity))
        off = np.abs(h)[:, None] * np.abs(_mix(RK45.E, slopes))
        z, size = state[:, :-2], np.linalg.norm(state[:, :-2], axis=1)
        clock = np.exp((1 - dynamics.p) * now.log_size)
        time = now.time + clock * state[:, -1]
        after = NeuronStates(
            z / size[:, None], velocity / size[:, None] ** dynamics.p, now.log_size + state[:, -2], time
        )
        r = np.maximum(np.linalg.norm(z[:, :-1], axis=1), 1e-300)
        error = np.max([np.linalg.norm(off[:, :-3], axis=1) / r, *off[:, -3:-1].T, clock * off[:, -1] / time], axis=0)
    return after, np.nan_to_num(error, nan=np.inf, posinf=np.inf)


def _on_sphere(dynamics: NeuronDynamics, state: np.ndarray, velocity: States) -> np.ndarray:
    """How fast states (z, growth, time) change where z is kept at its norm and time is scaled with the growth."""
    z = state[:, :-2]
    growth = np.einsum("jd,jd->j", velocity, z)[:, None] / np.einsum("jd,jd->j", z, z)[:, None]
    return np.concatenate([velocity - growth * z, growth, np.exp((1 - dynamics.p) * state[:, -2:-1])], axis=1)


def _mix(shares: np.ndarray, slopes: Sequence[np.ndarray]) -> np.ndarray:
    return sum(share * slope for share, slope in zip(shares, slopes, strict=False) if share)  # type: ignore[return-value]
