"""A laboratory for the condensation of neural networks: train, watch, count, predict, draw.

Names are imported when first used, so that ``import condensation`` is quick and measuring a user's weights needs no
JAX. They are listed once, in ``__init__.pyi``.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
