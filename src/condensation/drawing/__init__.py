"""Pictures, one a file. Each ``draw_*`` takes axes to draw on, or makes a figure; ``save`` writes vector files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
