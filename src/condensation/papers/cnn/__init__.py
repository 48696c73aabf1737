"""The convolutional paper, a file a figure or two of one kind, and the questions of careful readers."""

from . import accuracy, fig1, fig2, fig3, fig4, fig6, fig13, optimizers, samples, speed, table, zero

RECIPES = (
    fig1.RECIPE,
    fig2.RECIPE,
    fig3.RECIPE,
    fig4.RECIPE,
    fig3.FIG5,
    fig6.AFTER_SOFTMAX,
    fig6.WITHOUT_SOFTMAX,
    fig4.MNIST,
    fig6.MNIST,
    fig2.FIG10,
    fig2.FIG11,
    table.SPECTRUM,
    fig13.RECIPE,
    table.RECIPE,
    samples.RECIPE,
    accuracy.RECIPE,
    zero.RECIPE,
    optimizers.RECIPE,
    speed.RECIPE,
)
