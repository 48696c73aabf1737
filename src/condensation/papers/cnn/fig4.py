"""CNN Figs. 4 and 8: one convolution layer with relu, sigmoid and tanh, on CIFAR-10 and on MNIST."""

from collections.abc import Callable, Mapping

from ...experiment import Experiment
from .._legacy import Recipe
from .experiments import (
    FIG4_EPOCHS,
    FIG4_RATE,
    QUICK_FIG4_CHANNELS,
    QUICK_FIG4_RATES,
    QUICK_FIG4_SAMPLES,
    QUICK_FIG4_STEPS,
    QUICK_HIDDEN,
    shallow,
)
from .maps import Maps, Panel, map_statements
from .words import ADAM_SETTINGS, NO_CAPTION, SETS

PANELS = tuple(Panel(name, name, "conv1", f"one convolution layer, {name}", name) for name in FIG4_EPOCHS)
WHEN = "at epoch " + ", ".join(f"{epoch} ({name})" for name, epoch in FIG4_EPOCHS.items())
REDUCED = (
    f"{QUICK_FIG4_SAMPLES} images instead of 500, {QUICK_FIG4_CHANNELS} channels instead of 32, {QUICK_HIDDEN} hidden "
    f"neurons instead of 1024, {QUICK_FIG4_STEPS} steps at the rate "
    + ", ".join(f"{rate:g} ({name})" for name, rate in QUICK_FIG4_RATES.items())
    + f" instead of {FIG4_RATE:g}"
)


def _experiments(data: str) -> Callable[[str], Mapping[str, Experiment]]:
    return lambda scale: {name: shallow(scale, name, data) for name in FIG4_EPOCHS}


def _recipe(number: int, data: str, chosen: str) -> Recipe:
    figure, said = f"cnn-fig{number}", SETS[data]
    settings = {
        "network": "one convolution layer of 32 channels with 5 x 5 kernels, a dense layer of 1024 (relu), 10 outputs",
        "data": f"500 images of {said} drawn at random, pixels in [-1, 1]",
        "optimizer": f"Adam, learning rate {FIG4_RATE:g}, full batch, eps 1e-8, {WHEN}",
        **ADAM_SETTINGS,
        **({"chosen by us": chosen} if chosen else {}),
    }
    maps = Maps(figure, PANELS, f"Kernels of one convolution layer on {said}, {WHEN}.", settings, times=True)
    return Recipe(
        figure,
        f"CNN Fig. {number}: three activations on {said}",
        map_statements(figure, f"Fig. {number}", PANELS, "at the captioned epoch (at the quick scale: at the end)"),
        _experiments(data),
        maps.measure,
        maps.show,
        REDUCED,
    )


RECIPE = _recipe(4, "cifar10", "")
MNIST = _recipe(8, "mnist", f"{NO_CAPTION} Fig. 4")
