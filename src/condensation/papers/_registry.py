"""All figures by name, in the order of the papers."""

from . import align, anchor, attention, beyond, dropout, overview, phases, saddle
from ._figure import PaperFigure
from .cnn import figures as cnn
from .fc import figures as fc

FIGURES: dict[str, type[PaperFigure]] = {
    figure.name: figure
    for figure in (
        *fc.FIGURES,
        *cnn.FIGURES,
        *beyond.FIGURES,
        *phases.FIGURES,
        *align.FIGURES,
        *saddle.FIGURES,
        *dropout.FIGURES,
        *overview.FIGURES,
        *attention.FIGURES,
        *anchor.FIGURES,
    )
}
"""The figures by name, in the order of the report."""
