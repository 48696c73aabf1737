"""All figures of this paper, in their order, and the additional questions behind them."""

from .accuracy import FinalAccuracy
from .dense import DenseAgainstConv
from .equal import EqualValues
from .fig1 import Fig1
from .fig2 import Fig2, Fig10, Fig11
from .fig3 import Fig3, Fig5
from .fig4 import Fig4, Fig8
from .fig6 import Fig6, Fig7, Fig9
from .fig13 import Fig13
from .optimizers import OptimizersFigure
from .reset import Reset
from .samples import Samples
from .speed import Speed
from .table import Fig12, ImageTable
from .theorem1 import Theorem1
from .zero import ZeroOutput

PAPER = Fig1, Fig2, Fig3, Fig4, Fig5, Fig6, Fig7, Fig8, Fig9, Fig10, Fig11, Fig12, Fig13, ImageTable, Theorem1
QUESTIONS = DenseAgainstConv, Reset, Samples, FinalAccuracy, EqualValues, ZeroOutput, OptimizersFigure, Speed
FIGURES = PAPER + QUESTIONS
