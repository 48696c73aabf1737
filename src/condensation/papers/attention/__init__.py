"""Attention: from condensation to rank collapse, and linear attention in context; a file a figure."""

from .anchor import Anchor
from .in_context import InContext
from .ranks import Ranks
from .stages import Stages

FIGURES = (Stages, Anchor, InContext, Ranks)
