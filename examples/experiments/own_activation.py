"""Activations of one's own, with their multiplicity and the lines that they predict and find."""

import jax
import jax.numpy as jnp

import condensation as c
from condensation.prediction import predict


def x_tanh_squared(x):
    """X tanh(x)^2."""
    return x * jnp.tanh(x) ** 2


def gelu(x):
    """The exact one."""
    return jax.nn.gelu(x, approximate=False)


if __name__ == "__main__":
    data = c.two_waves(spacing="even")
    for activation in (x_tanh_squared, gelu):
        network, init = c.Dense((1, 60, 1), activation), c.Init(c.Normal(std=1e-3))
        experiment = c.Experiment(network, init, data, c.NormalisedGD(1e-4), steps=300)
        lines = c.find_lines(c.train(experiment, out="runs").weights("dense1", 300, 0))
        predicted = predict(experiment)["dense1"].directions.attracts.sum()
        print(f"{activation.__name__}: p = {c.multiplicity(activation)}, {predicted} predicted, {lines.count} found")
