"""FC Fig. 6: the direction field of weight and bias, its lines, and the neurons on it, for three multiplicities."""

import numpy as np
from matplotlib.figure import Figure

import condensation as c
from condensation.activations import label
from condensation.drawing import draw_field, look, save

STEPS = 300


def main(file: str = "field.png") -> None:
    """Train three networks by neuron-normalised descent and draw each on the field of its initial residual."""
    with look():
        figure = Figure(figsize=(6.9, 2.7), layout="constrained")
        panels = figure.subplots(1, 3)
        for axes, activation in zip(panels, ("tanh", "x_tanh", "x2_tanh"), strict=True):
            network, init = c.Dense((1, 100, 1), activation), c.Init(c.Normal(std=1e-3))
            data = c.two_waves(spacing="even")
            experiment = c.Experiment(network, init, data, c.NormalisedGD(1e-4), STEPS, save=c.At(()))
            trajectory = c.train(experiment, seeds=1)
            x, y = trajectory.data(0)
            inputs, model = np.c_[x, np.ones(len(x))], trajectory.model(STEPS, 0)
            weights, outputs = model.weights("dense1"), model.parameters["output.weight"]
            draw_field(inputs, y[:, 0], activation, axes, weights=weights, outputs=outputs, title=label(activation))
        entries = [axes.get_legend_handles_labels() for axes in panels]
        legend = {name: handle for handles, names in entries for handle, name in zip(handles, names, strict=True)}
        figure.legend(legend.values(), legend.keys(), loc="outside lower center", ncols=5)
    save(figure, file)


if __name__ == "__main__":
    main()
