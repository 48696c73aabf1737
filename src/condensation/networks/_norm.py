r"""Batch normalisation of channels.

While training, $h \mapsto \gamma (h - \mu) / \sqrt{v + \epsilon} + \beta$ with mean $\mu$ and variance $v$ of each
channel over the batch and the places of an image; afterwards with their running means, which move by a tenth of the
way in each training step (towards the unbiased variance).
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

EPS = 1e-5
PACE = 0.1


@dataclass(frozen=True)
class NormShape:
    """Name of a batch norm and its number of channels; it starts as the identity of standardised channels."""

    name: str
    channels: int

    @property
    def parameters(self) -> dict[str, np.ndarray]:
        """First values of what is trained, by full name: scale and shift.

        >>> NormShape("norm1", 2).parameters
        {'norm1.scale': array([1., 1.]), 'norm1.shift': array([0., 0.])}
        """
        return {f"{self.name}.scale": np.ones(self.channels), f"{self.name}.shift": np.zeros(self.channels)}

    @property
    def statistics(self) -> dict[str, np.ndarray]:
        """First values of the running mean and variance, by full name."""
        return {f"{self.name}.mean": np.zeros(self.channels), f"{self.name}.variance": np.ones(self.channels)}


def batch_norm(
    h: Float[Array, "samples channels height width"], name: str, values: dict[str, Array], training: bool
) -> tuple[Float[Array, "samples channels height width"], dict[str, Array]]:
    """The normalised images, and the statistics after it (the same ones if it is not training)."""
    mean, variance = values[f"{name}.mean"], values[f"{name}.variance"]
    after = {f"{name}.mean": mean, f"{name}.variance": variance}
    if training:
        count = h.shape[0] * h.shape[2] * h.shape[3]
        running, mean, variance = (mean, variance), jnp.mean(h, (0, 2, 3)), jnp.var(h, (0, 2, 3))
        seen = (mean, variance * (count / max(count - 1, 1)))
        after = dict(
            zip(after, (old + PACE * (new - old) for old, new in zip(running, seen, strict=True)), strict=True)
        )
    factor = values[f"{name}.scale"] / jnp.sqrt(variance + EPS)
    return h * factor[:, None, None] + (values[f"{name}.shift"] - mean * factor)[:, None, None], after
