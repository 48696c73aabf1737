"""The guided tour, and what a page is told when it comes."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import __version__
from ..activations import ACTIVATIONS, label, multiplicity
from ..theory import labels_for
from ._library import Library
from ._presets import figures, targets
from ._settings import DEEP_WIDTH, LIMITS, MOST_CHANNELS, OPTIMIZERS, Settings


@dataclass(frozen=True)
class Scene:
    """One scene: a text, the settings it shows, and others to compare them with."""

    name: str
    title: str
    text: str
    settings: Settings
    speed: int
    watch: str
    compare: dict[str, Settings] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """What the page is told."""
        return {
            "name": self.name,
            "title": self.title,
            "text": self.text,
            "words": self.settings.words(),
            "speed": self.speed,
            "watch": self.watch,
            "compare": [{"label": name, "words": one.words()} for name, one in self.compare.items()],
        }


_WAVE = Settings(formula="sin(3*x)", low=-1.0, high=1.2, layers=("tanh",), std_w=5e-4, std_a=5e-4)
_PLANE = Settings(
    formula="sin(2.5*x1 + 0.6*x2)",
    inputs=2,
    n=100,
    low=-1.0,
    high=1.0,
    bias=False,
    layers=("tanh",),
    std_w=5e-4,
    std_a=5e-4,
    optimizer="flow",
    rate=0.02,
)


def four_lines() -> Settings:
    """Labels on a grid of points for which x² tanh x (p = 3) has four attracting lines, the axes of a tetrahedron."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)
    side = np.linspace(-1, 1, 6)
    x = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    y = labels_for(corners, np.concatenate([x, np.ones((len(x), 1))], axis=1), 3)
    rows = np.concatenate([x, (y / np.abs(y).max())[:, None]], axis=1).round(4) + 0.0
    points = tuple(tuple(row) for row in rows.tolist())
    return Settings(data="points", points=points, layers=("x2_tanh",), width=200, std_w=2e-3, std_a=2e-3)


def scenes() -> tuple[Scene, ...]:
    """The six scenes."""
    first = _WAVE.replace(optimizer="flow", rate=0.05)
    order = Settings()
    cubic = Settings(layers=("x2_tanh",), rate=5e-4)
    adam = _PLANE.replace(optimizer="adam", rate=2e-5)
    lines = four_lines()
    return (
        Scene(
            "condensation",
            "What condensation is",
            "A hundred neurons start small and in all directions. Gradient flow turns nearly all of them to one line "
            "before the loss has fallen by one percent. The line was computed from the data before training.",
            first,
            1,
            "field",
        ),
        Scene(
            "multiplicity",
            "One, two, three lines",
            "How many lines there are depends on the activation's multiplicity p, the order of its first non-zero "
            "derivative at 0: tanh has p = 1, x tanh x has p = 2, x² tanh x has p = 3. While the weights are small, "
            "the output is a polynomial of order p.",
            order,
            2,
            "field",
            {
                "tanh: p = 1": _WAVE.replace(rate=2e-4),
                "x tanh x: p = 2": order,
                "x² tanh x: p = 3": order.replace(layers=("x2_tanh",)),
            },
        ),
        Scene(
            "start",
            "Only from a small start",
            "The same network from four starts. From 0.0005 all neurons condense; from 0.05 the loss has fallen before "
            "they get there; from 0.3 some turn, late and elsewhere; from 1 they hardly turn, because the output moves "
            "without it.",
            _WAVE.replace(rate=2e-4),
            4,
            "orientation",
            {f"std {std:g}": _WAVE.replace(rate=2e-4, std_w=std, std_a=std) for std in (5e-4, 0.05, 0.3, 1.0)},
        ),
        Scene(
            "adam",
            "Adam goes another way",
            "Gradient flow turns with the data: turn the inputs by 20 degrees, and its line turns as much. Adam's "
            "early steps are signs of the gradient, so its first lines are those of a cube: the diagonal stays where "
            "it is, or jumps by 90 degrees when the data are turned beyond an axis. Later it leaves the cube.",
            _PLANE,
            2,
            "field",
            {
                "flow": _PLANE,
                "flow, turned 20°": _PLANE.replace(turn=20.0),
                "Adam": adam,
                "Adam, turned 20°": adam.replace(turn=20.0),
                "Adam, turned -30°": adam.replace(turn=-30.0),
            },
        ),
        Scene(
            "reduction",
            "A hundred neurons that are three",
            "Neurons on one line do the work of one. Merge each line to a single neuron: at the start the reduced "
            "network is far off; once the layer has condensed, and while it is, three neurons give the output of a "
            "hundred.",
            cubic,
            4,
            "output",
            {"x² tanh x: three": cubic, "x tanh x: two": order.replace(rate=5e-4), "tanh: one": first},
        ),
        Scene(
            "beyond",
            "Where the 2p rule fails",
            "At most 2p orientations, says the paper. True for p = 1 and for neurons with two inputs; here they have "
            "three (two and the bias), p = 3, and the labels were solved for: four lines attract, eight orientations "
            "where the rule allows six.",
            lines,
            1,
            "lines",
            {"normalised descent": lines, "Adam": lines.replace(optimizer="adam", rate=2e-4)},
        ),
    )


def hello(shelf: Library) -> dict[str, Any]:
    """The first message to a page."""
    return {
        "kind": "hello",
        "version": __version__,
        "defaults": Settings().words(),
        "targets": targets(),
        "figures": figures(),
        "scenes": [scene.plain() for scene in scenes()],
        "activations": [{"name": name, "label": label(name), "p": multiplicity(name)} for name in ACTIVATIONS],
        "optimizers": [{"name": name, "label": text} for name, text in OPTIMIZERS.items()],
        "limits": {name: list(pair) for name, pair in LIMITS.items()},
        "widest": {"channels": MOST_CHANNELS, "deep": DEEP_WIDTH},
        "shelf": shelf.listed(),
    }
