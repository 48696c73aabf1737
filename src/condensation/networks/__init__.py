"""Networks: a frozen description (``Dense``, ``Conv``, ``ResNet``) and the value it describes, an Equinox module."""

from .conv import Conv as Conv
from .conv import ConvNetwork as ConvNetwork
from .dense import Dense as Dense
from .dense import DenseNetwork as DenseNetwork
from .layer import Affine as Affine
from .layer import LayerShape as LayerShape
from .model import Model as Model
from .model import Network as Network
from .norm import NormShape as NormShape
from .resnet import ResNet as ResNet
from .resnet import ResNetwork as ResNetwork
