"""Training: experiments trained for many seeds at once by one compiled program."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
