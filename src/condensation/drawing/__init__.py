"""Pictures, one kind a file; ``save`` writes vector files.

Each ``draw_*`` draws on the ``axes`` it is given, or makes a figure; ``title`` is the text above the picture.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
