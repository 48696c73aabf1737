"""Reduction: the units of one line become one effective unit; and its inverse, embedding."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
