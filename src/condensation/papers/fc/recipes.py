"""All figures of this paper, in their order."""

from . import a3, a4, a6, a7, fig1, fig2, fig3, fig4, fig5, fig6, prop1

FIGURES = (
    fig1.Fig1,
    fig2.Fig2,
    fig3.Fig3,
    fig4.Fig4,
    fig5.Fig5,
    fig6.Fig6,
    prop1.RECIPE,
    a3.RECIPE,
    a4.RECIPE,
    fig4.A5,
    a6.RECIPE,
    a7.RECIPE,
)
