"""Initialization: the laws that weights are drawn from, and how a network's layers use them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
