"""Sweeps: maps of condensation over any fields of an experiment, on one core or on a cluster."""

from typing import TYPE_CHECKING

from ..lazy import lazy

if TYPE_CHECKING:
    from .axes import linspace as linspace
    from .axes import logspace as logspace
    from .engines import Dask as Dask
    from .engines import Local as Local
    from .engines import Ray as Ray
    from .folder import open_sweep as open_sweep
    from .grid import Cell as Cell
    from .grid import Sweep as Sweep
    from .run import run_sweep as run_sweep
    from .run import sweep as sweep
    from .table import SweepTable as SweepTable

_HOMES = {
    "axes": ("linspace", "logspace"),
    "engines": ("Dask", "Local", "Ray"),
    "folder": ("open_sweep",),
    "grid": ("Cell", "Sweep"),
    "run": ("run_sweep", "sweep"),
    "table": ("SweepTable",),
}
__getattr__, __all__ = lazy(__name__, _HOMES)  # a worker pins itself to a core before it loads JAX
