"""Any PyTorch model: its units, watched in training, reduced. The extra ``condensation[pytorch]``."""

from typing import TYPE_CHECKING, Any

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("condensation.pytorch needs PyTorch: pip install 'condensation[pytorch]'") from error

from ..weights import Units as Units
from ..weights import measure_listed as measure_listed
from ._units import units as units
from ._watch import Watcher as Watcher
from ._watch import watch as watch

if TYPE_CHECKING:
    from ._reduction import ReducedModel as ReducedModel
    from ._reduction import reduce_model as reduce_model

__all__ = ["ReducedModel", "Units", "Watcher", "measure_listed", "reduce_model", "units", "watch"]


def __getattr__(name: str) -> Any:
    """Reduction is imported when first used: watching needs neither Torch-Pruning nor JAX."""
    if name not in ("ReducedModel", "reduce_model"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from . import _reduction
    except ModuleNotFoundError as error:
        if error.name != "torch_pruning":
            raise
        raise ModuleNotFoundError("reduce_model needs Torch-Pruning: pip install 'condensation[pytorch]'") from error
    return getattr(_reduction, name)
