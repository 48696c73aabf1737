"""Weights of any framework, in files and models: which units they have, and how condensed these are."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
