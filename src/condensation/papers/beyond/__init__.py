"""Beyond the initial stage: plateaus as saddles, and the embedding principle; a file a figure."""

from .saddles import Saddles
from .splitting import Splitting

FIGURES = (Saddles, Splitting)
