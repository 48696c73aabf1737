"""A convolutional network on digits: its kernels, its filters, and a count of one's own."""

import numpy as np

import condensation as c
from condensation.measure import cosine_similarity

data = c.Images("digits", n=300, scale="unit")
network = c.Conv(data.shape, channels=(16,), kernel=3, outputs=10)
init = c.Init(c.Normal(1e-4), convolution=c.Normal(1e-4))
loss = c.Loss("cross_entropy")
experiment = c.Experiment(network, init, data, c.Adam(learning_rate=1e-4), steps=100, loss=loss, save=c.At((30,)))
trajectory = c.train(experiment, seeds=2)

for step in trajectory.saved:
    kernels, filters = (c.find_lines(trajectory.weights("conv1", step, 0, view=view)) for view in ("kernel", "filter"))
    cosines = np.abs(cosine_similarity(trajectory.weights("conv1", step, 0, view="filter")))
    aligned = (cosines[np.triu_indices(16, 1)] > 0.95).mean()
    counted = f"k_eff {kernels.k_eff:.1f} of kernels, {filters.k_eff:.1f} of filters"
    print(f"step {step}: {counted}, pairs above 0.95: {aligned:.0%}")
