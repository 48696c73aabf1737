r"""Gradient flow $\dot\theta = -\nabla L(\theta)$, integrated with adaptive steps between the recorded times."""

from typing import Any

import diffrax
import jax
import jax.numpy as jnp
import optimistix as optx
from jax import Array, lax

from ..optimizers import GradientFlow
from ._program import Curves, Program, TrainState, gradient_sizes

MOST_STEPS = 100_000  # of the integrator between two records


def flow_row(
    program: Program, state: TrainState, fixed: dict[str, Any], length: Array, evaluate: bool = True
) -> tuple[TrainState, Curves]:
    """The curves at a state, and the state after ``length`` steps' worth of time, or where the flow is told to stop.

    The integrator's step size is taken over from the row before; a flow that has stopped stands still.
    """
    flow = program.optimizer
    assert isinstance(flow, GradientFlow)
    parameters, memory = state.parameters, state.memory
    measure = jax.value_and_grad(program.objective, has_aux=True)
    (loss, outputs), gradient = measure(parameters, fixed["x"], fixed["y"])
    seen = program.scores(loss, outputs, fixed["y"]) | {"time": memory["time"]} | gradient_sizes(gradient)
    seen |= program.evaluated(state, fixed) if evaluate else {}
    span = length * fixed["hyperparameters"]["time_step"]
    # a first step that moves no parameter by more than 1%: from one that is far too long relu does not come back
    sizes = [(jnp.linalg.norm(parameters[n]), jnp.linalg.norm(gradient[n])) for n in parameters]
    cautious = jnp.min(jnp.stack([jnp.where((w > 0) & (g > 0), 0.01 * w / g, jnp.inf) for w, g in sizes]))
    cautious = jnp.where(jnp.isinf(memory["pace"]), cautious, jnp.inf)

    def descend(t: Any, y: Any, args: Any) -> Any:
        return jax.tree.map(jnp.negative, measure(y, fixed["x"], fixed["y"])[1])

    def above(t: Any, y: Any, args: Any, **_: Any) -> Array:
        return program.objective(y, fixed["x"], fixed["y"])[0] / memory["first_loss"] - flow.stop_ratio

    event = None
    if flow.stop_ratio is not None:  # the nearer to the first loss, the more its rounding blurs the moment
        sharp = 200 * float(jnp.finfo(loss.dtype).eps) / (1 - flow.stop_ratio)
        event = diffrax.Event(above, optx.Newton(rtol=sharp, atol=sharp))

    def move() -> TrainState:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(descend),
            diffrax.Tsit5(),
            t0=jnp.zeros_like(span),
            t1=span,
            dt0=jnp.minimum(jnp.minimum(memory["pace"], cautious), span),
            y0=parameters,
            stepsize_controller=diffrax.PIDController(rtol=flow.rtol, atol=flow.atol),
            saveat=diffrax.SaveAt(t1=True),
            adjoint=diffrax.ForwardMode(),
            event=event,
            max_steps=flow.most_steps or MOST_STEPS,
            throw=False,
        )
        assert solution.ys is not None
        assert solution.ts is not None
        stopped = solution.result == diffrax.RESULTS.event_occurred
        failed = (solution.result != diffrax.RESULTS.successful) & ~stopped
        end = jax.tree.map(lambda value: jnp.where(failed, jnp.nan, value[-1]), solution.ys)
        passed = solution.ts[-1]
        accepted = jnp.maximum(solution.stats["num_accepted_steps"], 1)
        then = {"time": memory["time"] + passed, "pace": passed / accepted, "stopped": stopped}
        return state._replace(parameters=end, memory=memory | then)

    return lax.cond((length > 0) & ~memory["stopped"], move, lambda: state), seen
