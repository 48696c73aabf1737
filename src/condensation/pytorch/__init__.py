"""Any PyTorch model: its units, watched in training, reduced. The extra ``condensation[pytorch]``."""

from typing import TYPE_CHECKING, Any

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("condensation.pytorch needs PyTorch: pip install 'condensation[pytorch]'") from error

from ..checkpoints import Units as Units
from ..checkpoints import measure_listed as measure_listed
from .units import units as units
from .watch import Watcher as Watcher
from .watch import watch as watch

if TYPE_CHECKING:
    from .reduction import Reduction as Reduction
    from .reduction import reduce as reduce

__all__ = ["Reduction", "Units", "Watcher", "measure_listed", "reduce", "units", "watch"]


def __getattr__(name: str) -> Any:
    """Reduction is imported when first used: watching needs neither Torch-Pruning nor JAX."""
    if name not in ("Reduction", "reduce"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from . import reduction
    except ModuleNotFoundError as error:
        if error.name != "torch_pruning":
            raise
        raise ModuleNotFoundError("reduce needs Torch-Pruning: pip install 'condensation[pytorch]'") from error
    return getattr(reduction, name)
