"""A sweep over width and standard deviation with a measure of one's own, read in pandas and drawn."""

import numpy as np

import condensation as c
from condensation.drawing import draw_sweep, save


def largest_share(trajectory, step):
    """The share of the neurons' norm that the largest neuron has."""
    norms = np.linalg.norm(trajectory.weights("dense1", step, trajectory.seeds[0]), axis=1)
    return norms.max() / norms.sum()


if __name__ == "__main__":
    data = c.sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
    experiment = c.Experiment(c.Dense((5, 50, 1)), c.Init(c.Normal(0.01)), data, c.Adam(1e-3), steps=100)
    axes = {"network.widths.1": (20, 50, 100), "init.hidden.std": c.logspace(1e-3, 1, 4)}
    table = c.sweep(experiment, axes, ("lines", largest_share), seeds=2, out="sweep")
    frame = table.rows.to_pandas()
    print(frame.groupby("init.hidden.std")[["dense1.k_eff", "largest_share"]].median().round(3))
    picture = draw_sweep(table, quantity="largest_share")
    assert picture, "two axes make a map"
    save(picture, "map.png")
