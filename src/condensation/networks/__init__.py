"""Networks: frozen descriptions (``Dense``, ``Conv``, ``ResNet``, ``Attention``), and the Equinox modules of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
