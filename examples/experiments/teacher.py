"""A teacher of three neurons, a student of 100, from small and from large weights: test loss and lines at the end."""

import condensation as c

weights = {
    "dense1.weight": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]],
    "dense1.bias": [0.0, 0.5, -0.5],
    "output.weight": [[1.0, -1.0, 0.5]],
}
teacher = c.Model(c.Dense((2, 3, 1), "tanh"), weights)
data, test = (c.Teacher(teacher, c.Gaussian(dim=2, n=n)) for n in (60, 500))

for name, std in (("small", 1e-3), ("large", 1.0)):
    init, student = c.Init(c.Normal(std)), c.Dense((2, 100, 1), "tanh")
    experiment = c.Experiment(
        student, init, data, c.Adam(learning_rate=3e-3), steps=6000, test=test, save=c.Every(6000)
    )
    trajectory = c.train(experiment, seeds=5)
    found = [c.find_lines(trajectory.weights("dense1", 6000, seed)) for seed in range(5)]
    losses = " ".join(f"{loss:.5f}" for loss in trajectory.curves["test_loss"][:, -1])
    print(f"{name} initialization: test loss {losses}; k_eff", *(f"{lines.k_eff:.1f}" for lines in found))
