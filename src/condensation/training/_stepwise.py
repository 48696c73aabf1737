"""Networks with convolutions: one compiled step after the other, called from Python, and evaluations in parts.

Inside a compiled loop a CPU's convolutions are several times slower, and samples beyond memory could not be evaluated.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._device import convolution_options, on_cpu
from ..optimizers import GradientFlow
from ._chunks import Chunk
from ._program import Program, TrainState
from ._work import COMPILED, Work

EVALUATED = 1000  # images that are evaluated at once


class Stepwise(Work):
    """One network, one compiled step after the other."""

    most_rows = 16

    def advance(self, chunk: Chunk, state: Any, fixed: Any) -> tuple[Any, dict[str, Any], dict[str, np.ndarray]]:
        """What the compiled loop gives; a chunk without rows only compiles."""
        step, saved = _compile_step(self.program, not on_cpu()), []
        recorded = dict(zip(chunk.recorded.tolist(), chunk.slots.tolist(), strict=True))
        flow = isinstance(self.program.optimizer, GradientFlow)
        count, curves = chunk.begin, {name: [] for name in self.program.curve_names()}
        if not chunk.lengths:
            return step(np.int32(count), state, fixed, np.bool(True))[0], {}, {}
        for row, length in enumerate(chunk.lengths):
            exact: dict[str, Any] = {}
            if row in recorded:
                exact = self._evaluate(state, fixed)
                if recorded[row] >= 0:
                    saved.append({name: np.array(value) for name, value in self.program.saved(state).items()})
            for index in range(1 if flow else length):
                state, seen = step(np.int32(length if flow else count), state, fixed, np.bool(index == 0))
                if row in recorded and index == 0:
                    for name, value in (seen | exact).items():
                        curves[name].append(value)
                count += 1
        jax.block_until_ready(state)  # so that what is timed has been done
        weights = {name: np.stack([values[name] for values in saved])[None] for name in saved[0]} if saved else {}
        return state, weights, {name: np.array(values, float)[None] for name, values in curves.items()}

    def _evaluate(self, state: Any, fixed: Any) -> dict[str, float]:
        """All evaluations, their samples in parts."""
        values = {}
        for prefix, x, y in self.program.evaluations(fixed):
            cuts = range(0, len(x), EVALUATED)
            parts = [_compile_evaluate(self.program)(state, x[k : k + EVALUATED], y[k : k + EVALUATED]) for k in cuts]
            shares = np.array([min(EVALUATED, len(x) - k) for k in cuts]) / len(x)
            for name in parts[0]:
                weights = np.ones(len(parts)) if name == "loss" and self.program.loss.reduction == "sum" else shares
                values[prefix + name] = float(weights @ np.array([part[name] for part in parts], float))
        return values


@lru_cache(maxsize=COMPILED)
def _compile_step(program: Program, on_gpu: bool) -> Callable[..., Any]:
    """One compiled step ``(count, state, fixed, record) -> (state, curves)``, all but the evaluations.

    A GPU would wait for the host at a condition: there the curves are a program of their own, called where they are
    recorded.
    """

    def step(count: Array, state: TrainState, fixed: dict[str, Any], record: Array) -> Any:
        if isinstance(program.optimizer, GradientFlow):
            from ._flow import flow_row

            return flow_row(program, state, fixed, count, evaluate=False)
        after, curves = program.step(count, state, fixed, evaluate=False)
        nothing = jax.tree.map(lambda curve: jnp.zeros(curve.shape, curve.dtype), jax.eval_shape(curves))
        return after, lax.cond(record, curves, lambda: nothing)

    if not on_gpu or isinstance(program.optimizer, GradientFlow):
        return jax.jit(step, donate_argnums=1, compiler_options=convolution_options())
    move = jax.jit(lambda *given: program.step(*given, evaluate=False)[0], donate_argnums=1)
    look = jax.jit(lambda *given: program.step(*given, evaluate=False)[1]())

    def step_apart(count: Array, state: TrainState, fixed: dict[str, Any], record: np.bool) -> Any:
        seen = look(count, state, fixed) if record else {}
        return move(count, state, fixed), seen

    return step_apart


@lru_cache(maxsize=COMPILED)
def _compile_evaluate(program: Program) -> Callable[..., Any]:
    return jax.jit(program.evaluate, compiler_options=convolution_options())
