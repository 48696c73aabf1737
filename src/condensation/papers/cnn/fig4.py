"""CNN Figs. 4 and 8: one convolution layer with relu, sigmoid and tanh, on CIFAR-10 and on MNIST."""

from typing import ClassVar

from ...experiment import Experiment
from .experiments import FIG4_EPOCHS, NO_CAPTION, shallow
from .maps import HeatMaps, Panel, map_claims

PANELS = tuple(Panel(name, name, "conv1", f"one convolution layer, {name}", name) for name in FIG4_EPOCHS)
EPOCHS = "at epoch " + ", ".join(f"{epoch} ({name})" for name, epoch in FIG4_EPOCHS.items())
WHEN = "at the captioned epoch (at the quick scale: at the end)"


class Activations(HeatMaps):
    """Kernels of one layer, an activation a panel."""

    data: ClassVar[str]
    panels, times = PANELS, True

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """A network for each activation."""
        return {name: shallow(scale, name, cls.data) for name in FIG4_EPOCHS}


class Fig4(Activations):
    """Three activations on CIFAR-10."""

    name, title, data = "cnn-fig4", "CNN Fig. 4: three activations on CIFAR-10", "cifar10"
    caption = f"Kernels of one convolution layer on CIFAR-10, {EPOCHS}."
    claims = map_claims("Fig. 4", PANELS, WHEN)


class Fig8(Activations):
    """Three activations on MNIST."""

    name, title, data = "cnn-fig8", "CNN Fig. 8: three activations on MNIST", "mnist"
    caption = f"Kernels of one convolution layer on MNIST, {EPOCHS}."
    chosen = f"{NO_CAPTION} Fig. 4"
    claims = map_claims("Fig. 8", PANELS, WHEN)
