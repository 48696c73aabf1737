"""Two moons with integer labels, cross-entropy and Adam: predicted against found lines."""

import numpy as np
from sklearn.datasets import make_moons

import condensation as c
from condensation.measure import nearest_lines
from condensation.prediction import predict

x, labels = make_moons(200, noise=0.1, random_state=0)
network, init = c.Dense((2, 64, 2), "tanh"), c.Init(c.Normal(std=1e-4))
data, loss = c.Arrays(np.asarray(x), np.asarray(labels)), c.Loss("cross_entropy")
experiment = c.Experiment(network, init, data, c.Adam(learning_rate=1e-3), steps=100, loss=loss)
trajectory = c.train(experiment, seeds=3)

for seed in range(3):
    predicted = predict(experiment, seed)["dense1"].directions
    found = c.find_lines(trajectory.weights("dense1", 50, seed))
    _, cosines = nearest_lines(found.directions, predicted.directions[predicted.attracts])
    print(f"seed {seed}: {found.count} lines, |cos| to the nearest predicted one", cosines.round(3))
print(f"accuracy at step 100: {trajectory.accuracy[:, -1]}")
