"""A wide relu network on four points: the lines of its neurons over a long training, drawn."""

import condensation as c
from condensation.drawing import draw_features, draw_history, save

data = c.Expression("0.2 * relu(x - 1/3) + 0.2 * relu(-x - 1/3)", dim=1, n=4, low=-1, high=1, spacing="even")
init = c.Init(c.WidthPower(2))  # a standard deviation of m^-2
network = c.Dense((1, 1000, 1), "relu", output_bias=False)
experiment = c.Experiment(network, init, data, c.GD(learning_rate=0.05), steps=10_000, save=c.Geometric(4))
trajectory = c.train(experiment, seeds=3)

history = c.measure.count_lines(trajectory.history("dense1"))
for step in (0, 100, 1000, 10_000):
    place = list(trajectory.saved).index(step)
    condensed, k_eff = history.condensed[:, place].sum(), history.k_eff[:, place].mean()
    print(
        f"step {step}: k_eff {k_eff:.1f}, condensed in {condensed} of 3 seeds, lines",
        *history.lines[:, place].astype(int),
    )
save(draw_history(trajectory.saved, history, title="relu, four points"), "lines.png")
save(draw_features(trajectory.weights("dense1", 10_000, 0)), "neurons.png")
