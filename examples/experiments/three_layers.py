"""Three tanh layers, each with a standard deviation of its own: k_eff of each layer over time."""

import condensation as c

network = c.Dense((5, 40, 40, 40, 1), "tanh")
init = c.Init((c.Normal(0.005), c.Normal(0.01), c.Normal(0.02)), output=c.Normal(0.005))
data = c.sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
experiment = c.Experiment(network, init, data, c.Adam(learning_rate=1e-3), steps=200, save=c.At((10, 50, 100)))
trajectory = c.train(experiment, seeds=5)

print("median k_eff at steps", *trajectory.saved)
for layer in ("dense1", "dense2", "dense3"):
    k_eff = c.measure.count_lines(trajectory.history(layer)).k_eff  # seeds x saved steps
    print(layer, *(f"{value:.1f}" for value in sorted(k_eff.tolist())[2]))
