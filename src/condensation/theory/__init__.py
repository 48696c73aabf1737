"""What the leading order predicts from the data alone, before any training: NumPy in, NumPy out."""

from .basins import basins as basins
from .deep import LayerField as LayerField
from .deep import layer_fields as layer_fields
from .directions import Directions as Directions
from .directions import stationary_directions as stationary_directions
from .fate import Accuracy as Accuracy
from .fate import Fates as Fates
from .fate import accuracy as accuracy
from .fate import fates as fates
from .field import field as field
from .field import polar_velocity as polar_velocity
from .homogeneous import extremal_directions as extremal_directions
from .homotopy import generic_count as generic_count
from .labels import labels_for as labels_for
from .leading import leading_error as leading_error
from .leading import leading_output as leading_output
from .moving import MovingLine as MovingLine
from .moving import moving_line as moving_line
from .predict import Prediction as Prediction
from .predict import plateaus as plateaus
from .predict import predict as predict
from .predict import predict_model as predict_model
from .predict import predict_next as predict_next
from .tensor import Tensor as Tensor
from .validity import Validity as Validity
from .validity import validity as validity
