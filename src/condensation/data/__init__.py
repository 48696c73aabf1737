"""Data: what a network is trained on. Each kind draws samples x and targets y for a seed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
