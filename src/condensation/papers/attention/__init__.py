"""Attention: from condensation to rank collapse, and linear attention in context; a file a figure."""

from .anchor import Anchor
from .heads import Heads
from .in_context import InContext
from .points import Points
from .ranks import Ranks
from .stages import Stages
from .text import AttentionText

FIGURES = (Stages, Anchor, AttentionText, Heads, InContext, Points, Ranks)
