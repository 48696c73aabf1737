"""Networks: a frozen description (``Dense``) and the value it describes (``DenseNetwork``, an Equinox module)."""

from .dense import Dense as Dense
from .dense import DenseNetwork as DenseNetwork
from .layer import Affine as Affine
from .layer import LayerShape as LayerShape
