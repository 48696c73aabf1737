"""All figures of this paper, in their order."""

from .a3 import A3
from .a4 import A4
from .a6 import A6
from .a7 import A7
from .adam import AdamAndFlow
from .degenerate import Degenerate
from .fig1 import Fig1
from .fig2 import Fig2, Fig2Readings
from .fig3 import Fig3
from .fig4 import A5, Fig4
from .fig5 import Fig5
from .fig6 import Fig6
from .growth import Growth
from .prop1 import Prop1
from .relu import Relu
from .reset import Reset

CAPTIONED = Fig1, Fig2, Fig2Readings, Fig3, Fig4, Fig5, Fig6
FIGURES = *CAPTIONED, Prop1, Degenerate, AdamAndFlow, Relu, Growth, Reset, A3, A4, A5, A6, A7
