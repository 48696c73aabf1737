"""FC Fig. 3, tanh: the same experiment as tanh.toml, trained, measured and drawn."""

from condensation import Adam, At, Dense, Experiment, Init, Normal, find_lines, sine_sum, train
from condensation.drawing import draw_similarity, save

experiment = Experiment(
    network=Dense((5, 50, 1), "tanh"),
    init=Init(Normal(std=0.005)),
    data=sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2),
    optimizer=Adam(learning_rate=1e-3),
    steps=500,
    save=At((20, 50, 100, 200)),
)

if __name__ == "__main__":
    trajectory = train(experiment, seeds=10, progress=True)
    for step in trajectory.saved:
        counts = [find_lines(trajectory.weights("dense1", int(step), seed)).count for seed in range(10)]
        print(f"step {step}: lines of each seed {counts}")
    print(save(draw_similarity(trajectory.weights("dense1", 100, 0), title="tanh, step 100"), "tanh"))
