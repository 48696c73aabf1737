"""What the leading order predicts from arrays and activations, before any training: NumPy in, NumPy out."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
