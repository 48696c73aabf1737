"""CNN Figs. 6, 7 and 9: three convolution layers with the squared error, after softmax and without, and on MNIST."""

from typing import ClassVar

from ...experiment import Experiment
from ...losses import Loss
from .._claims import Claim
from .experiments import CROSS_ENTROPY, FIG3_EPOCH, NO_CAPTION, QUICK_FIG3_EPOCH, deep, layers_of
from .maps import HeatMaps, Panel, map_claims


def _panels(network: str) -> tuple[Panel, ...]:
    """The three layers of a network that is told in words."""
    return tuple(
        Panel(layer, "deep", layer, f"three convolution layers, {network}, layer {k}", f"layer {k}", 2)
        for k, layer in enumerate(layers_of(3), 1)
    )


def _claims(where: str, panels: tuple[Panel, ...], times: int = 1) -> tuple[Claim[HeatMaps], ...]:
    """The claims of a figure that shows so many times the captioned epoch of Fig. 3."""
    epoch, quick = times * FIG3_EPOCH, times * QUICK_FIG3_EPOCH
    return map_claims(where, panels, f"at epoch {epoch} (at the quick scale: at step {quick})")


class Layers(HeatMaps):
    """Kernels of Fig. 3's network with another loss or other images, a layer a panel."""

    data: ClassVar[str] = "cifar10"
    loss: ClassVar[Loss]

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """The network to the captioned epoch."""
        return {"deep": deep(scale, cls.data, cls.loss)}


class Fig6(Layers):
    """The squared error after softmax."""

    name, title = "cnn-fig6", "CNN Fig. 6: three convolution layers, CIFAR-10, MSE after softmax"
    loss = Loss("softmax_mse")
    panels = _panels("CIFAR-10, MSE after softmax")
    caption = f"Kernels of three convolution layers on CIFAR-10 with MSE after softmax, epoch {2 * FIG3_EPOCH}."
    chosen = (
        f"{NO_CAPTION} Fig. 3, but for the loss and the epoch, {2 * FIG3_EPOCH} instead of {FIG3_EPOCH}: its gradients "
        "are ten times as small"
    )
    claims = _claims("Fig. 6", panels, times=2)


class Fig7(Layers):
    """The squared error without softmax."""

    name, title = "cnn-fig7", "CNN Fig. 7: three convolution layers, CIFAR-10, MSE without softmax"
    loss = Loss("mse")
    panels = _panels("CIFAR-10, MSE without softmax")
    caption = f"Kernels of three convolution layers on CIFAR-10 with MSE without softmax, epoch {FIG3_EPOCH}."
    chosen = f"{NO_CAPTION} Fig. 3, but for the loss"
    claims = _claims("Fig. 7", panels)


class Fig9(Layers):
    """Cross-entropy on MNIST."""

    name, title = "cnn-fig9", "CNN Fig. 9: three convolution layers, MNIST, cross-entropy"
    data, loss = "mnist", CROSS_ENTROPY
    panels = _panels("MNIST, cross-entropy")
    caption = f"Kernels of three convolution layers on MNIST with cross-entropy, epoch {FIG3_EPOCH}."
    chosen = f"{NO_CAPTION} Fig. 3, but for the data"
    claims = _claims("Fig. 9", panels)
