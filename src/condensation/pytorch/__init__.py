"""Any PyTorch model: its units, watched in training, reduced; our models as modules. The extra ``[pytorch]``."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("condensation.pytorch needs PyTorch: pip install 'condensation[pytorch]'") from error

from ..weights import Units as Units
from ..weights import measure_listed as measure_listed
from ._measure import measure_model as measure_model
from ._units import units as units
from ._watch import Watcher as Watcher
from ._watch import watch as watch

if TYPE_CHECKING:
    from ._convert import from_torch as from_torch
    from ._convert import to_torch as to_torch
    from ._network import TorchNetwork as TorchNetwork
    from ._reduction import ReducedModel as ReducedModel
    from ._reduction import reduce_model as reduce_model

_LATER = {  # watching needs neither Torch-Pruning nor JAX
    "ReducedModel": "_reduction",
    "TorchNetwork": "_network",
    "from_torch": "_convert",
    "reduce_model": "_reduction",
    "to_torch": "_convert",
}
__all__ = [
    "ReducedModel",
    "TorchNetwork",
    "Units",
    "Watcher",
    "from_torch",
    "measure_listed",
    "measure_model",
    "reduce_model",
    "to_torch",
    "units",
    "watch",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f"{__name__}.{_LATER[name]}")
    except ModuleNotFoundError as error:
        if error.name != "torch_pruning":
            raise
        raise ModuleNotFoundError("reduce_model needs Torch-Pruning: pip install 'condensation[pytorch]'") from error
    return getattr(module, name)
