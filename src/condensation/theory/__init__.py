"""What the leading order predicts from the data alone, before any training: NumPy in, NumPy out."""

from .deep import LayerField as LayerField
from .deep import layer_fields as layer_fields
from .directions import Directions as Directions
from .directions import stationary_directions as stationary_directions
from .homogeneous import extremal_directions as extremal_directions
from .homotopy import generic_count as generic_count
from .labels import labels_for as labels_for
from .tensor import Tensor as Tensor
