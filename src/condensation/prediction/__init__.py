"""Predictions for experiments and models: the theory applied to their networks, data and losses."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
