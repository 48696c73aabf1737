"""Where the numbers of a watched training are told besides its own rows: the logger that a user has anyway."""

import inspect
import math
import re
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ..errors import InputError, unknown_name
from ..runs import WatchedRow
from ..runs._watched import QUANTITIES

Tell = Callable[[dict[str, float], int], Any]


NAMES = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow"}  # the libraries that must be there


def as_loggers(to: Any, out: str | Path | None = None) -> list[Tell]:
    """What tells each of some loggers, guarded; one alone need not stand in a list. TensorBoard writes to ``out``."""
    loggers = to if isinstance(to, list | tuple) else (to,)
    return [guarded(f"the logger {_name(logger)}", _as_logger(logger, out)) for logger in loggers]


def guarded(name: str, tell: Callable[..., Any]) -> Callable[..., None]:
    """A call that stops no training: what it raises is told as a warning, once."""
    warned = False

    def call(*arguments: Any) -> None:
        nonlocal warned
        try:
            tell(*arguments)
        except Exception as error:  # of a network, a disk, a user's function: anything
            if not warned:
                warned = True
                warnings.warn(f"{name} failed: {error!r}; the training goes on", stacklevel=2)

    return call


def named(rows: Iterable[WatchedRow]) -> dict[str, float]:
    """The measured numbers of rows by the names that loggers give them: ``condensation/LAYER/k_eff``."""
    return {
        f"condensation/{row.layer}/{name}": value
        for row in rows
        for name in QUANTITIES
        if not row.reason and not math.isnan(value := float(getattr(row, name)))
    }


def _as_logger(logger: Any, out: str | Path | None) -> Tell:
    if isinstance(logger, str):
        return _by_name(logger, out)
    if callable(getattr(logger, "add_scalar", None)):  # TensorBoard's SummaryWriter

        def scalars(numbers: dict[str, float], step: int) -> None:
            for name, value in numbers.items():
                logger.add_scalar(name, value, step)
            getattr(logger, "flush", lambda: None)()

        return scalars
    if getattr(logger, "__name__", "") == "mlflow":
        return lambda numbers, step: logger.log_metrics({_plain(name): n for name, n in numbers.items()}, step=step)
    if callable(getattr(logger, "define_metric", None)):
        return _weights_and_biases(logger)
    if callable(getattr(logger, "log_metrics", None)):  # Lightning's loggers
        return logger.log_metrics
    log = getattr(logger, "log", None)
    if callable(log):  # Weights & Biases and its like
        return (lambda numbers, step: log(numbers, step=step)) if _has_step(log) else log
    if callable(logger):
        return logger
    raise InputError(
        "to must be tensorboard, wandb, mlflow, a SummaryWriter, an object with log or log_metrics, or a function of "
        f"numbers and step, not {logger!r}"
    )


def _by_name(name: str, out: str | Path | None) -> Tell:
    """The logger of a library, which is asked for when the first numbers are there."""
    if name not in NAMES:
        raise unknown_name("logger", name, NAMES)
    if find_spec(NAMES[name]) is None:
        raise InputError(f"the logger {name} needs its library: pip install {NAMES[name]}")
    tell: list[Tell] = []

    def first(numbers: dict[str, float], step: int) -> None:
        if not tell:
            tell.append(_as_logger(_opened(name, out), out))
        tell[0](numbers, step)

    return first


def _opened(name: str, out: str | Path | None) -> Any:
    if name == "tensorboard":
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter(None if out is None else str(out))
    library = import_module(name)
    if name == "wandb" and library.run is None:
        raise InputError("there is no run of W&B: call wandb.init() before the first step")
    return library.run if name == "wandb" else library


def _weights_and_biases(run: Any) -> Tell:
    """W&B takes no step that is past: the numbers have a step of their own, against which they are drawn."""
    defined = False

    def tell(numbers: dict[str, float], step: int) -> None:
        nonlocal defined
        if not defined:
            run.define_metric("condensation/step")
            run.define_metric("condensation/*", step_metric="condensation/step")
            defined = True
        run.log(numbers | {"condensation/step": step})

    return tell


def _plain(name: str) -> str:
    """A name as MLflow takes it.

    >>> _plain("condensation/attn.weight[q, head 1]/k_eff")
    'condensation/attn.weight_q_ head 1_/k_eff'
    """
    return re.sub(r"[^\w./ -]", "_", name)


def _name(logger: Any) -> str:
    if isinstance(logger, str):
        return logger
    return logger.__qualname__ if inspect.isroutine(logger) else type(logger).__qualname__


def _has_step(log: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(log).parameters.values()
    except (TypeError, ValueError):  # a builtin that does not tell
        return True
    return any(parameter.name == "step" or parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters)
