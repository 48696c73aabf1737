"""A laboratory for the condensation of neural networks: train, watch, count, predict, draw.

The names below are imported when first used, so that ``import condensation`` is quick and measuring a user's
weights needs no JAX.
"""

from typing import TYPE_CHECKING

from .lazy import lazy

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .activations import derivatives_at_zero as derivatives_at_zero
    from .activations import multiplicity as multiplicity
    from .data import Arrays as Arrays
    from .data import Expression as Expression
    from .data import Images as Images
    from .data import Points as Points
    from .data import Synthetic as Synthetic
    from .data import hinges as hinges
    from .data import images_or_digits as images_or_digits
    from .data import sine_sum as sine_sum
    from .data import two_waves as two_waves
    from .errors import InputError as InputError
    from .experiment import Experiment as Experiment
    from .measure import Lines as Lines
    from .measure import find_lines as find_lines
    from .networks import Conv as Conv
    from .networks import Dense as Dense
    from .networks import Model as Model
    from .networks import ResNet as ResNet
    from .reduction import Reduction as Reduction
    from .reduction import embed as embed
    from .reduction import reduce as reduce
    from .seeds import Seed as Seed
    from .starts import ChannelPower as ChannelPower
    from .starts import GlorotNormal as GlorotNormal
    from .starts import Normal as Normal
    from .starts import OutCubed as OutCubed
    from .starts import Start as Start
    from .starts import WidthPower as WidthPower
    from .starts import Zero as Zero
    from .sweeps.axes import linspace as linspace
    from .sweeps.axes import logspace as logspace
    from .sweeps.run import sweep as sweep
    from .training.losses import Loss as Loss
    from .training.optimizers import GD as GD
    from .training.optimizers import Adam as Adam
    from .training.optimizers import GradientFlow as GradientFlow
    from .training.optimizers import Muon as Muon
    from .training.optimizers import NormalisedGD as NormalisedGD
    from .training.optimizers import SignGD as SignGD
    from .training.rates import Cosine as Cosine
    from .training.rates import Stairs as Stairs
    from .training.rates import Warmup as Warmup
    from .training.schedule import At as At
    from .training.schedule import Evenly as Evenly
    from .training.schedule import Every as Every
    from .training.schedule import Geometric as Geometric
    from .training.store import load_run as load_run
    from .training.train import train as train
    from .training.trajectory import Trajectory as Trajectory

_HOMES = {
    "activations": ("derivatives_at_zero", "multiplicity"),
    "data": (
        "Arrays",
        "Expression",
        "Images",
        "Points",
        "Synthetic",
        "hinges",
        "images_or_digits",
        "sine_sum",
        "two_waves",
    ),
    "errors": ("InputError",),
    "experiment": ("Experiment",),
    "measure": ("Lines", "find_lines"),
    "networks": ("Conv", "Dense", "Model", "ResNet"),
    "reduction": ("Reduction", "embed", "reduce"),
    "seeds": ("Seed",),
    "starts": ("ChannelPower", "GlorotNormal", "Normal", "OutCubed", "Start", "WidthPower", "Zero"),
    "sweeps.axes": ("linspace", "logspace"),
    "sweeps.run": ("sweep",),
    "training.losses": ("Loss",),
    "training.optimizers": ("GD", "Adam", "GradientFlow", "Muon", "NormalisedGD", "SignGD"),
    "training.rates": ("Cosine", "Stairs", "Warmup"),
    "training.schedule": ("At", "Evenly", "Every", "Geometric"),
    "training.store": ("load_run",),
    "training.train": ("train",),
    "training.trajectory": ("Trajectory",),
}
_ROOMS = (
    "activations",
    "checkpoints",
    "data",
    "drawing",
    "measure",
    "networks",
    "papers",
    "reduction",
    "starts",
    "sweeps",
    "theory",
    "training",
)
__getattr__, __all__ = lazy(__name__, _HOMES, _ROOMS)  # pyright: ignore[reportUnsupportedDunderAll]


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
