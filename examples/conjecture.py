"""More than 2p orientations: labels for which a network of multiplicity 3 condenses on 5 lines.

The paper conjectures at most 2p orientations, p lines. In two dimensions and for p = 1 that is a theorem; here, in four
dimensions with p = 3, the labels are solved for so that five lines attract, and the trained neurons go to all five.
"""

import numpy as np

import condensation as c
from condensation.theory import labels_for, stationary_directions


def main() -> None:
    """Solve for labels, predict their lines, train five seeds and compare."""
    D, p = 4, 3
    simplex = np.linalg.svd(np.eye(D + 1) - 1 / (D + 1))[0][:, :D]  # D + 1 lines of equal angles
    lines = simplex / np.linalg.norm(simplex, axis=1, keepdims=True)
    x = np.random.default_rng(0).normal(size=(60, D))
    y = labels_for(lines, x, p)

    predicted = stationary_directions(x, y, p)
    attracting = predicted.attracts.sum()
    print(f"{predicted.count} lines are stationary, {attracting} attract (certified: {predicted.certified})")
    experiment = c.Experiment(
        c.Dense((D, 200, 1), "x2_tanh", bias=False), c.Init(c.Normal(1e-3)), c.Arrays(x, y / np.abs(y).max()),
        c.NormalisedGD(1e-5), 4000, save=c.At(()),
    )  # fmt: skip
    trajectory = c.train(experiment, seeds=5)
    for seed in range(5):
        weights = trajectory.weights("dense1", 4000, seed)
        cosines = np.abs(weights @ lines.T) / np.linalg.norm(weights, axis=1, keepdims=True)
        measured = c.find_lines(weights)
        near = (cosines.max(axis=1) > 0.99).mean()
        print(
            f"seed {seed}: {measured.count} lines, {measured.orientations} orientations, {near:.0%} of neurons on them"
        )


if __name__ == "__main__":
    main()
