"""Measures on weights: NumPy in, NumPy out, no framework."""

from .chance import chance_above as chance_above
from .chance import chance_cosine as chance_cosine
from .change import effective_rank as effective_rank
from .change import orientation_amplitude as orientation_amplitude
from .change import participation_ratio as participation_ratio
from .change import relative_change as relative_change
from .change import share_along as share_along
from .history import LineHistory as LineHistory
from .history import count_lines as count_lines
from .lines import Lines as Lines
from .lines import find_lines as find_lines
from .null import null_count as null_count
from .null import permuted as permuted
from .polynomial import fit_polynomial as fit_polynomial
from .similarity import block_order as block_order
from .similarity import cosine_similarity as cosine_similarity
from .similarity import directions as directions
from .table import Row as Row
from .table import measure_units as measure_units
from .table import most_condensed_first as most_condensed_first
