"""A training that goes as far as it is asked to, moment by moment: what a page shows while it goes on.

The numbers are those of ``train`` at the same steps, bit for bit on a CPU (gradient flow: within its tolerance, as its
integrator starts anew at each moment).
"""

import time
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._device import device
from .._precision import precision
from ..experiment import Experiment
from ..networks import Model
from ..optimizers import GradientFlow
from ..seeds import Seed, as_seed
from ._chunks import Chunk
from ._engine import alone
from ._need import require_room
from ._train import member_of, program_of

NOT_BELOW = 1e-9  # seconds


@dataclass(frozen=True, eq=False)
class Moment:
    """A network at one step: its parameters, and the curves' values there (``loss``, ``accuracy``, ``time``)."""

    step: int
    parameters: dict[str, np.ndarray]
    curves: dict[str, float] = field(default_factory=dict)

    @property
    def loss(self) -> float:
        """The loss."""
        return self.curves["loss"]

    @property
    def finite(self) -> bool:
        """Whether loss and parameters are numbers."""
        return bool(np.isfinite(self.loss)) and all(bool(np.isfinite(p).all()) for p in self.parameters.values())


class Live:
    """One network on its way.

    >>> from condensation import GD, Dense, Init, Normal, two_waves
    >>> live = Live(Experiment(Dense((1, 4, 1)), Init(Normal(0.1)), two_waves(), GD(0.1), steps=9))
    >>> live.advance(5).step, live.advance(2).step
    (5, 7)
    """

    def __init__(self, experiment: Experiment, seed: int | Seed = 0) -> None:
        self.experiment, self.seed = experiment, as_seed(seed)
        experiment.check_data()
        require_room([(experiment, 1)])
        member = member_of(experiment, self.seed)
        self.x, self.y, self.init = member.x, member.y, member.init
        self.program = program_of([experiment], [member])
        self.step = 0  # of the last moment
        self._work = alone(self.program, member)
        # a step's values are seen when it is taken, so that the state is one step beyond the moment that is shown
        self._ahead = 0 if isinstance(experiment.optimizer, GradientFlow) else 1
        self._count = 0  # steps that the state has taken
        self._fixed = self._state = None
        self._most = 1  # steps in a call of bounded time

    def first(self) -> Moment:
        """The moment before training; nothing of the training is compiled for it."""
        outputs = Model(self.experiment.network, self.init)(self.x)
        with precision("float64"):
            loss = float(self.experiment.loss(jnp.asarray(outputs), jnp.asarray(self.y)))
        curves = {"loss": loss} | ({"time": 0.0} if self._ahead == 0 else {})
        if self.program.classes:
            curves["accuracy"] = float((outputs.argmax(axis=1) == self.y.argmax(axis=1)).mean())
        return Moment(0, self.init, curves)

    def prepare(self) -> None:
        """Compile; without it the first ``advance`` does."""
        if self._state is None:
            with jax.default_device(device()), precision(self.program.dtype):
                self._fixed = self._work.gather_fixed()
                self._work.compile(self._fixed)
                self._state = self._work.begin(self._fixed)

    def advance(self, steps: int, seconds: float = np.inf) -> Moment:
        """The moment so many steps later, or before that, where they would take longer than ``seconds``.

        How many steps fit is learned: the first call then takes one. A flow that needs too many integration steps for
        all of them goes less far.
        """
        self.prepare()
        steps = max(1, steps if seconds == np.inf else min(steps, self._most))
        while True:
            began = time.perf_counter()
            state, moment = self._try(self.step + steps)
            took = max(time.perf_counter() - began, NOT_BELOW)
            if moment.finite or steps == 1 or self._ahead or self.program.stepwise:  # whose states are used up
                break
            steps = max(1, steps // 8)
        if seconds < np.inf:
            self._most = max(1, int(min(4 * steps, seconds / took * steps)))
        self._state, self.step, self._count = state, moment.step, moment.step + self._ahead
        return moment

    def _try(self, goal: int) -> tuple[Any, Moment]:
        """The state and the moment at a step."""
        taken = goal - self._count
        lengths = [taken, self._ahead] if taken else [self._ahead]
        last = np.array([len(lengths) - 1])
        chunk = Chunk(self._count, lengths, last, np.zeros(1, int), np.zeros(1, int))
        with jax.default_device(device()), precision(self.program.dtype):
            state, weights, curves = self._work.advance(chunk, self._state, self._fixed)
        return state, Moment(
            goal,
            {name: value[0, 0] for name, value in weights.items()},
            {name: float(curve[0, 0]) for name, curve in curves.items()},
        )
