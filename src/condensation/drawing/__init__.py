"""Pictures, one a file. Each ``draw_*`` takes axes to draw on, or makes a figure; ``save`` writes vector files."""

from .features import draw_features as draw_features
from .history import draw_history as draw_history
from .loss import draw_loss as draw_loss
from .similarity import draw_similarity as draw_similarity
from .style import look as look
from .style import save as save
