"""Pictures, one a file. Each ``draw_*`` takes axes to draw on, or makes a figure; ``save`` writes vector files."""

from .basins import draw_basins as draw_basins
from .features import draw_features as draw_features
from .field import draw_field as draw_field
from .history import draw_history as draw_history
from .layers import draw_beside_null as draw_beside_null
from .layers import draw_layers as draw_layers
from .layers import draw_steps as draw_steps
from .loss import draw_loss as draw_loss
from .network import draw_network as draw_network
from .phase_map import Boundary as Boundary
from .phase_map import Mark as Mark
from .phase_map import Regime as Regime
from .phase_map import draw_phase_map as draw_phase_map
from .phase_map import draw_phase_maps as draw_phase_maps
from .predicted import draw_predicted as draw_predicted
from .similarity import draw_similarity as draw_similarity
from .spectrum import draw_spectrum as draw_spectrum
from .style import look as look
from .style import save as save
from .terminal_map import map_text as map_text
