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
LEAST_STEP = 1e-9  # over the first step since a record; a flow that needs less (its loss is not finite) has diverged
ATOL_SHARE = 0.1  # the absolute tolerance, if none is given, over rtol times the mean of the smallest parameters


def flow_row(
    program: Program, state: TrainState, fixed: dict[str, Any], length: Array, evaluate: bool = True
) -> tuple[TrainState, Curves]:
    """The curves at a state, and the state after ``length`` steps' worth of time, or where the flow is told to stop.

    The integrator's step size is taken over from the row before; a flow that has stopped stands still.
    """
    flow = program.optimizer
    assert isinstance(flow, GradientFlow)
    parameters, memory = state.parameters, state.memory

    def objective(values: Any) -> tuple[Array, Array]:
        return program.objective(values | state.statistics, fixed["x"], fixed["y"])

    measure = jax.value_and_grad(objective, has_aux=True)
    (loss, outputs), gradient = measure(parameters)
    seen = program.scores(loss, outputs, fixed["y"]) | {"time": memory["time"]} | gradient_sizes(gradient)
    seen |= program.evaluated(state, fixed) if evaluate else {}
    finite = jnp.stack([jnp.isfinite(value).all() for value in (loss, *gradient.values())]).all()
    span = jnp.where(finite, length * fixed["hyperparameters"]["time_step"], 0)
    # weights of any size are followed to the same relative error
    scales = jnp.stack([jnp.mean(jnp.abs(value)) for value in parameters.values()])  # squares would underflow
    smallest = jnp.min(jnp.where(scales > 0, scales, jnp.inf))
    atol = ATOL_SHARE * flow.rtol * jnp.where(jnp.isfinite(smallest), smallest, 1) if flow.atol is None else flow.atol
    # a first step that moves no parameter by more than 1%: from one that is far too long relu does not come back
    sizes = [(jnp.mean(jnp.abs(parameters[n])), jnp.mean(jnp.abs(gradient[n]))) for n in parameters]
    cautious = jnp.min(jnp.stack([jnp.where((w > 0) & (g > 0), 0.01 * w / g, jnp.inf) for w, g in sizes]))
    cautious = jnp.where(jnp.isinf(memory["pace"]), cautious, jnp.inf)
    first_step = jnp.minimum(jnp.minimum(memory["pace"], cautious), span)

    def descend(t: Any, y: Any, args: Any) -> Any:
        return jax.tree.map(jnp.negative, measure(y)[1])

    def above(t: Any, y: Any, args: Any, **_: Any) -> Array:
        return objective(y)[0] / memory["first_loss"] - flow.stop_ratio

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
            dt0=first_step,
            y0=parameters,
            stepsize_controller=diffrax.PIDController(
                rtol=flow.rtol,
                atol=atol,
                dtmin=LEAST_STEP * first_step,
                force_dtmin=False,
            ),
            saveat=diffrax.SaveAt(t1=True),
            adjoint=diffrax.ForwardMode(),
            event=event,
            max_steps=flow.most_steps or MOST_STEPS,
            throw=False,
        )
        assert solution.ys is not None
        assert solution.ts is not None
        stopped = solution.result == diffrax.RESULTS.event_occurred
        failed = (solution.result != diffrax.RESULTS.successful) & ~stopped | ~finite
        end = jax.tree.map(lambda value: jnp.where(failed, jnp.nan, value[-1]), solution.ys)
        passed = solution.ts[-1]
        accepted = jnp.maximum(solution.stats["num_accepted_steps"], 1)
        then = {"time": memory["time"] + passed, "pace": passed / accepted, "stopped": stopped}
        return state._replace(parameters=end, memory=memory | then)

    return lax.cond((length > 0) & ~memory["stopped"], move, lambda: state), seen
