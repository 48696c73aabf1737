"""All figures by name, in the order of the papers."""

from . import phases
from ._figure import PaperFigure
from ._legacy import Recipe
from .cnn import recipes as cnn
from .fc import figures as fc

FIGURES: dict[str, type[PaperFigure] | Recipe] = {
    figure.name: figure for figure in (*fc.FIGURES, *cnn.FIGURES, *phases.FIGURES)
}
