"""CNN Figs. 6, 7 and 9: three convolution layers with the squared error, after softmax and without, and on MNIST."""

from collections.abc import Callable, Mapping

from ...experiment import Experiment
from ...losses import Loss
from .._legacy import Recipe
from .experiments import CROSS_ENTROPY, FIG3_EPOCH, FIG3_RATE, QUICK_FIG3_EPOCH, deep, layers_of
from .maps import Maps, Panel, map_statements
from .words import ADAM_SETTINGS, NO_CAPTION, QUICK_DEEP, SETS

LOSSES = {"softmax_mse": "MSE after softmax", "mse": "MSE without softmax", "cross_entropy": "cross-entropy"}


def _experiments(data: str, loss: Loss) -> Callable[[str], Mapping[str, Experiment]]:
    return lambda scale: {"deep": deep(scale, data, loss)}


def _recipe(number: int, data: str, loss: Loss) -> Recipe:
    figure, said, lossy = f"cnn-fig{number}", SETS[data], LOSSES[loss.name]
    twice = loss.name == "softmax_mse"
    epoch, quick = FIG3_EPOCH * (1 + twice), QUICK_FIG3_EPOCH * (1 + twice)
    panels = tuple(
        Panel(layer, "deep", layer, f"three convolution layers, {said}, {lossy}, layer {k + 1}", f"layer {k + 1}", 2)
        for k, layer in enumerate(layers_of(3))
    )
    chosen = f"{NO_CAPTION} Fig. 3, but for " + ("the data" if data == "mnist" else "the loss")
    if twice:
        chosen += f" and the epoch, {epoch} instead of {FIG3_EPOCH}: its gradients are ten times as small"
    settings = {
        "network": "three convolution layers of 32 channels with 5 x 5 kernels (tanh), a dense layer of 1024 (relu), "
        "10 outputs",
        "data": f"500 images of {said} drawn at random, pixels in [-1, 1]",
        "optimizer": f"Adam, learning rate {FIG3_RATE:g}, full batch, eps 1e-8, epoch {epoch}",
        **ADAM_SETTINGS,
        "loss": lossy,
        "chosen by us": chosen,
    }
    maps = Maps(figure, panels, f"Kernels of three convolution layers on {said} with {lossy}, epoch {epoch}.", settings)
    return Recipe(
        figure,
        f"CNN Fig. {number}: three convolution layers, {said}, {lossy}",
        map_statements(figure, f"Fig. {number}", panels, f"at epoch {epoch} (at the quick scale: at step {quick})"),
        _experiments(data, loss),
        maps.measure,
        maps.show,
        QUICK_DEEP.format(epoch=quick),
    )


AFTER_SOFTMAX = _recipe(6, "cifar10", Loss("softmax_mse"))
WITHOUT_SOFTMAX = _recipe(7, "cifar10", Loss("mse"))
MNIST = _recipe(9, "mnist", CROSS_ENTROPY)
