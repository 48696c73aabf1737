"""CNN Figs. 4 and 8: one convolution layer with relu, sigmoid and tanh, on CIFAR-10 and on MNIST."""

from typing import ClassVar

import numpy as np

from ..._phrases import joined
from ...experiment import Experiment
from ...prediction._kernels import cosines_to_ones
from .._counts import relative_loss
from .experiments import FIG4_EPOCHS, FIG8_RELU_STEPS, NO_CAPTION, relu_on_mnist, shallow
from .maps import HeatMaps, Panel, map_claims

PANELS = tuple(Panel(name, name, "conv1", f"one convolution layer, {name}", name) for name in FIG4_EPOCHS)
EPOCHS = "at epoch " + ", ".join(f"{epoch} ({name})" for name, epoch in FIG4_EPOCHS.items())
BEST = "where each seed is most condensed within the initial stage"
ALIGNED = 0.95
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
    """Three activations on MNIST; no step is known, and relu is trained to the end of the initial stage."""

    name, title, data = "cnn-fig8", "CNN Fig. 8: three activations on MNIST", "mnist"
    relu = PANELS[0]._replace(epoch=lambda run: None)
    panels = (relu, *PANELS[1:])
    caption = (
        f"Kernels of one convolution layer on MNIST, {BEST} (relu), at epoch {FIG4_EPOCHS['sigmoid']} (sigmoid) and "
        f"{FIG4_EPOCHS['tanh']} (tanh)."
    )
    chosen = (
        f"{NO_CAPTION} Fig. 4; but relu, not condensed at the epoch of Fig. 4 ({FIG4_EPOCHS['relu']}), is trained for "
        f"{FIG8_RELU_STEPS} steps and looked at {BEST}"
    )
    claims = (*map_claims("Fig. 8", (relu,), BEST), *map_claims("Fig. 8", PANELS[1:], WHEN))

    @classmethod
    def experiments(cls, scale: str) -> dict[str, Experiment]:
        """Those of Fig. 4 on MNIST, relu for longer."""
        return super().experiments(scale) | {"relu": relu_on_mnist(scale)}

    def there_and_before(self, panel: Panel) -> str:
        """For relu also what tells its kernels apart: whether the black background, pixels of -1, activates them."""
        if panel.key != "relu":
            return super().there_and_before(panel)
        run, counts = self.runs[panel.run], self.counts["kernel"][panel.key]
        filters = run.history("conv1", view="filter").astype(float)
        at_minus_ones = np.stack([cosines_to_ones(kernels) for kernels in filters[:, -1, :, :-1]]) < -ALIGNED
        activated = filters[:, 1, :, -1] > filters[:, 1, :, :-1].sum(axis=-1)
        ends, right = relative_loss(run)[:, -1], (at_minus_ones == activated).mean(axis=1)
        return (
            f"At steps {joined(counts.steps)}: {counts}. The loss ends at {joined(ends, '.2f')} of its first value; "
            f"{joined(at_minus_ones.mean(axis=1), '.0%')} of the kernels have then a cosine below -{ALIGNED} with the "
            "kernel of ones. They are those that the black background (pixels of -1) activates early: its answer at "
            f"step {run.saved[1]} tells {joined(right, '.0%')} of the kernels rightly. The others learn "
            "from strokes only."
        )
