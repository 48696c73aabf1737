"""Composite anchor functions: answered by reasoning, or by memorising, as the initialization decides."""

from .phases import Phases

FIGURES = (Phases,)
