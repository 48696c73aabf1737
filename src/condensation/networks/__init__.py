"""Networks: a frozen description (``Dense``, ``Conv``) and the value it describes, an Equinox module."""

from .conv import Conv as Conv
from .conv import ConvNetwork as ConvNetwork
from .dense import Dense as Dense
from .dense import DenseNetwork as DenseNetwork
from .layer import Affine as Affine
from .layer import LayerShape as LayerShape

Network = Dense | Conv
