"""What all phase diagrams share: one sweep, and the table of what was measured in its cells."""

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

import numpy as np

from ...sweeps import Sweep, SweepTable
from .._figure import PaperFigure


class PhaseDiagram(PaperFigure):
    """A figure that is one sweep.

    Attributes:
        sizes: cells along an axis, and seeds, at each scale.
    """

    paper, has_variants = "PHASES", False
    sizes: ClassVar[Mapping[str, tuple[int, int]]] = {"quick": (9, 3), "paper": (17, 5)}

    @classmethod
    def sweep(cls, size: int = 9, seeds: int = 3) -> Sweep:
        """The diagram as a sweep of size x size cells."""
        raise NotImplementedError

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Sweep]:
        """The sweep at a scale."""
        return {cls.name: cls.sweep(*cls.sizes[scale])}

    @property
    def table(self) -> SweepTable:
        """What was measured in the cells."""
        return self.tables[self.name]

    def axis(self, name: str) -> np.ndarray:
        """The values of an axis of numbers."""
        return np.array(self.table.sweep.axes[name], float)

    def columns(self, *names: str) -> dict[str, np.ndarray]:
        """Columns of the table under the last part of their names, for the figure's data file."""
        return {name.split(".")[-1]: self.table.column(name) for name in names}


class ExponentDiagram(PhaseDiagram):
    """A diagram over the exponents gamma and gamma' of the initialization, and over widths m."""

    @cached_property
    def exponents(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The values of gamma, gamma' and m."""
        return self.axis("gamma"), self.axis("gamma_prime"), self.axis("m")


def by_cell(**axes: np.ndarray | range) -> dict[str, np.ndarray]:
    """A row for each cell: the coordinates along named axes.

    >>> by_cell(x=np.array([1, 2]), seed=range(1))
    {'x': array([1, 2]), 'seed': array([0, 0])}
    """
    grid = np.meshgrid(*axes.values(), indexing="ij")
    return {name: coordinate.ravel() for name, coordinate in zip(axes, grid, strict=True)}
