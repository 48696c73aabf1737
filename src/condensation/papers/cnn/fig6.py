"""CNN Figs. 6, 7 and 9: three convolution layers with the squared error, after softmax and without, and on MNIST."""

from typing import ClassVar

from ...experiment import Experiment
from ...losses import Loss
from .experiments import CROSS_ENTROPY, FIG3_EPOCH, NO_CAPTION, QUICK_FIG3_EPOCH, deep, layers_of
from .maps import HeatMaps, Panel, map_claims


class Layers(HeatMaps):
    """Kernels of Fig. 3's network with another loss or other images, a layer a panel.

    A figure gives its number, its network in words, and how many times the captioned epoch of Fig. 3 it shows.
    """

    data: ClassVar[str] = "cifar10"
    loss: ClassVar[Loss]

    def __init_subclass__(cls, number: int, network: str, times: int = 1) -> None:
        epoch, quick = times * FIG3_EPOCH, times * QUICK_FIG3_EPOCH
        cls.name, cls.title = f"cnn-fig{number}", f"CNN Fig. {number}: three convolution layers, {network}"
        cls.caption = f"Kernels of three convolution layers, {network}, epoch {epoch}."
        cls.panels = tuple(
            Panel(layer, "deep", layer, f"three convolution layers, {network}, layer {k}", f"layer {k}", 2)
            for k, layer in enumerate(layers_of(3), 1)
        )
        when = f"at epoch {epoch} (at the quick scale: at step {quick})"
        cls.claims = map_claims(f"Fig. {number}", cls.panels, when)

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The network to the captioned epoch."""
        return {"deep": deep(scale, cls.data, cls.loss)}


class Fig6(Layers, number=6, network="CIFAR-10, MSE after softmax", times=2):
    """The squared error after softmax."""

    loss = Loss("softmax_mse")
    chosen = f"{NO_CAPTION} Fig. 3, but for the loss and twice the epoch: its gradients are ten times as small"


class Fig7(Layers, number=7, network="CIFAR-10, MSE without softmax"):
    """The squared error without softmax."""

    loss, chosen = Loss("mse"), f"{NO_CAPTION} Fig. 3, but for the loss"


class Fig9(Layers, number=9, network="MNIST, cross-entropy"):
    """Cross-entropy on MNIST."""

    data, loss, chosen = "mnist", CROSS_ENTROPY, f"{NO_CAPTION} Fig. 3, but for the data"
