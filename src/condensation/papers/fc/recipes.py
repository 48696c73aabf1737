"""All figures of this paper, in their order."""

from . import a3, a4, a6, a7, fig1, fig2, fig3, fig4, fig5, fig6, prop1

FIGURES = (
    fig1.RECIPE,
    fig2.Fig2,
    fig3.Fig3,
    fig4.RECIPE,
    fig5.RECIPE,
    fig6.RECIPE,
    prop1.RECIPE,
    a3.RECIPE,
    a4.RECIPE,
    fig4.WITHOUT,
    a6.RECIPE,
    a7.RECIPE,
)
