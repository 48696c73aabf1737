"""Gradient, neural tangent kernel and Hessian of a saved model; the same model in PyTorch with equal outputs."""

import numpy as np
import torch

import condensation as c
from condensation.derivatives import as_vector, gradient, hessian, hessian_spectrum, ntk
from condensation.pytorch import from_torch, to_torch

experiment = c.Experiment(c.Dense((1, 20, 1)), c.Init(c.Normal(0.1)), c.two_waves(), c.GD(0.1), steps=1000)
trajectory = c.train(experiment)
trajectory.model(1000, seed=0).save("model.safetensors")

model, (x, y) = c.Model.load("model.safetensors"), trajectory.data(seed=0)
spectrum = hessian_spectrum(model, x, y, smallest=1, largest=1)
print(f"|gradient| {np.linalg.norm(as_vector(gradient(model, x, y))):.2e}, kernel {ntk(model, x).shape}")
print(f"Hessian {hessian(model, x, y).shape}, eigenvalues from {spectrum.values[0]:.3f} to {spectrum.values[-1]:.3f}")
module = to_torch(model)
difference = np.abs(module(torch.tensor(x)).detach().numpy() - model(x)).max()
back = from_torch(module)
print(f"outputs differ by {difference:.0e}; the same weights back:", np.array_equal(back(x), model(x)))
