"""The library's own results for the settings that a page shows."""

from functools import lru_cache
from typing import Any

import jax.numpy as jnp
import numpy as np

from condensation import At, train
from condensation._precision import precision
from condensation.networks import Model
from condensation.playground._frame import MOST_FITS
from condensation.playground._settings import Settings
from condensation.runs import Trajectory

CLOSE = 2e-6  # float32


def initial_model(settings: Settings) -> tuple[Model, np.ndarray, np.ndarray, float]:
    """The network before training, the samples and their targets, and the loss."""
    experiment = settings.experiment()
    model = Model(experiment.network, experiment.init.draw(experiment.network, settings.seeds.init_stream()))
    x, y = experiment.data.draw(settings.seeds)
    with precision("float64"):
        return model, x, y, float(experiment.loss(jnp.asarray(model(x)), jnp.asarray(y)))


@lru_cache(maxsize=64)
def trained(settings: Settings, step: int) -> Trajectory:
    """The same training by ``train``, saved at a step."""
    return train(settings.experiment(steps=max(step, 1)).replace(save=At((step,))), seeds=[settings.seeds])


def weights_at(settings: Settings, step: int, layer: str = "dense1") -> np.ndarray:
    return trained(settings, step).weights(layer, step)[0]


def loss_at(settings: Settings, step: int) -> float:
    trajectory = trained(settings, step)
    return float(trajectory.loss[0, list(trajectory.recorded).index(step)])


def same(shown: Any, known: Any, close: float = CLOSE) -> None:
    """Whether numbers that went through float32 are those of the library."""
    known = np.asarray(known, float)
    size = float(np.abs(known).max()) if known.size else 0.0
    np.testing.assert_allclose(np.asarray(shown, float), known, rtol=close, atol=close * size)


def check_initialization(page: Any, layer: str = "dense1", view: str | None = None) -> Settings:
    """The page shows its settings before training: weights, loss, samples."""
    settings = Settings.from_text(page.settings)
    model, x, y, loss = initial_model(settings)
    same(page.weights, model.weights(layer, view=view))
    assert page.step == 0
    assert abs(page.state("frame.loss") - loss) <= 1e-9 * loss
    same(page.array("opened", "y"), y[:MOST_FITS] if settings.of_tokens else y)
    if x.ndim == 2:
        same(page.array("opened", "x"), x)
    return settings
