"""Dropout from an ordinary initialization: k_eff at the end beside that of the same network at step 0."""

import condensation as c

data = c.Expression("tanh(x1 + x2 + x3 + x4 + x5)", dim=5, n=30, low=-1, high=1)
init = c.Init(c.PyTorchDefault())
for dropout in (0.0, 0.5):
    network = c.Dense((5, 100, 1), "tanh", output_bias=True, dropout=dropout)
    experiment = c.Experiment(network, init, data, c.Adam(learning_rate=1e-3), steps=20_000, save=c.Every(20_000))
    trajectory = c.train(experiment, seeds=3)
    first, last = c.measure.count_lines(trajectory.history("dense1")).k_eff.T
    shown = [" ".join(f"{value:.1f}" for value in values) for values in (first, last)]
    loss = trajectory.loss[:, -1].mean()
    print(f"dropout {dropout}: k_eff {shown[0]} at step 0, {shown[1]} at the end, loss {loss:.4f}")
