"""A run continued for more steps, then with another learning rate, then perturbed at its plateau and continued."""

import condensation as c
from condensation.prediction import plateaus

network, data = c.Dense((1, 50, 1), "x_tanh"), c.two_waves(spacing="even")
experiment = c.Experiment(network, c.Init(c.Normal(std=0.01)), data, c.GD(learning_rate=0.1), 4000, record=c.Every(20))
trajectory = c.train(experiment, out="runs")
longer = c.train(experiment.extended(4000), out="runs")  # goes on from the run above
print(f"loss {longer.loss[0, 0]:.4f}, at step 4000 {trajectory.loss[0, -1]:.4f}, at step 8000 {longer.loss[0, -1]:.4f}")

faster = experiment.replace(init=c.Given(longer.models(8000)), optimizer=c.GD(learning_rate=0.05))
print(f"4000 steps of half the rate from there: {c.train(faster).loss[0, -1]:.4f}")

(plateau, *_) = plateaus(longer)
saved = int(longer.saved[abs(longer.saved - plateau).argmin()])
noise = c.Init(c.Normal(std=1e-2))
perturbed = experiment.replace(init=c.Given(longer.model(saved, 0), drawn=noise))
ends = c.train(perturbed, seeds=[c.Seed(0, k) for k in range(4)]).loss[:, -1]
print(f"four perturbations of the plateau at step {saved}, 4000 steps later:", *(f"{loss:.4f}" for loss in ends))
