"""Networks: frozen descriptions (``Dense``, ``Conv``, ``ResNet``), and the Equinox modules they describe."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
