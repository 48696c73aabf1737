"""The guided tour, and the first message to a page."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..activations import ACTIVATIONS, label, multiplicity
from ..theory import labels_for
from ._library import Library
from ._presets import figures, targets
from ._settings import DEEP_WIDTH, LIMITS, MOST_CHANNELS, OPTIMIZERS, Settings


@dataclass(frozen=True)
class Scene:
    """A text, the settings that it describes, and others to compare them with. ``watch`` names a picture."""

    name: str
    title: str
    text: str
    settings: Settings
    speed: int
    watch: str
    compare: dict[str, Settings] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """The scene as JSON for the page."""
        compare = [{"label": name, "settings": settings.to_text()} for name, settings in self.compare.items()]
        return vars(self) | {"settings": self.settings.to_text(), "compare": compare}


_WAVE = Settings(formula="sin(3*x)", low=-1.0, high=1.2, layers=("tanh",), std_w=5e-4, std_a=5e-4)
_PLANE = _WAVE.replace(
    formula="sin(2.5*x1 + 0.6*x2)", inputs=2, n=100, high=1.0, bias=False, optimizer="flow", rate=0.02
)


def four_lines() -> Settings:
    """Targets on a grid of points for which x² tanh x (p = 3) has four attracting lines, the axes of a tetrahedron."""
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]]) / np.sqrt(3)
    side = np.linspace(-1, 1, 6)
    x = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    y = labels_for(corners, np.concatenate([x, np.ones((len(x), 1))], axis=1), 3)
    rows = np.concatenate([x, (y / np.abs(y).max())[:, None]], axis=1).round(4) + 0.0
    points = tuple(tuple(row) for row in rows.tolist())
    return Settings(data="points", points=points, layers=("x2_tanh",), width=200, std_w=2e-3, std_a=2e-3)


def scenes() -> tuple[Scene, ...]:
    """The six scenes of the tour. Each term is defined where it first occurs."""
    first = _WAVE.replace(optimizer="flow", rate=0.05)
    tanh, order, lines = _WAVE.replace(rate=2e-4), Settings(), four_lines()
    cubic = Settings(layers=("x2_tanh",), rate=5e-4)
    adam = _PLANE.replace(optimizer="adam", rate=2e-5)
    return (
        Scene(
            "condensation",
            "What condensation is",
            "A hundred neurons begin with small random weights that point in all directions. Training turns nearly all "
            "of them to one common line: the layer condenses. This happens before the loss has fallen by one percent. "
            "Theory computed the line from the data before training.",
            first,
            1,
            "field",
        ),
        Scene(
            "multiplicity",
            "One, two, three lines",
            "The number of lines depends on the multiplicity p of the activation, the order of its first non-zero "
            "derivative at 0: tanh has p = 1, x tanh x has p = 2, x² tanh x has p = 3. While the weights are small, "
            "the output is a polynomial of order p.",
            order,
            2,
            "field",
            {"tanh: p = 1": tanh, "x tanh x: p = 2": order, "x² tanh x: p = 3": order.replace(layers=("x2_tanh",))},
        ),
        Scene(
            "initialization",
            "Only from small initial weights",
            "Here is one network with four initializations. The initial weights are random numbers; std is their "
            "standard deviation. With 0.0005 all neurons condense. With 0.05 the loss falls before they do. With 0.3 "
            "some neurons turn, but late and to other directions. With 1 they hardly turn: the output can change "
            "without it.",
            tanh,
            4,
            "orientation",
            {f"std {std:g}": tanh.replace(std_w=std, std_a=std) for std in (5e-4, 0.05, 0.3, 1.0)},
        ),
        Scene(
            "adam",
            "Adam finds other lines",
            "Gradient flow is gradient descent with very small steps. If the inputs are rotated by 20 degrees, its "
            "line rotates by 20 degrees, too. Adam's early steps follow the signs of the gradient. So its first lines "
            "are diagonals of a cube: they stay where they are, or jump by 90 degrees if the data are rotated past an "
            "axis. Later Adam leaves these lines.",
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
            "A hundred neurons that act as three",
            "Neurons on one line act as a single neuron, so each line can be merged into one. Before training the "
            "reduced network is far off. Once the layer has condensed, three neurons give the same output as a "
            "hundred.",
            cubic,
            4,
            "output",
            {"x² tanh x: three": cubic, "x tanh x: two": order.replace(rate=5e-4), "tanh: one": first},
        ),
        Scene(
            "beyond",
            "Where the 2p rule fails",
            "A line has two orientations, its two opposite directions. The paper says that there are at most 2p "
            "orientations. This is true for p = 1, and for neurons with two inputs. Here neurons have three inputs "
            "(two and the bias), p = 3, and we chose the targets so that four lines attract. These are eight "
            "orientations; the rule allows six.",
            lines,
            1,
            "lines",
            {"normalised descent": lines, "Adam": lines.replace(optimizer="adam", rate=2e-4)},
        ),
    )


def hello(library: Library) -> dict[str, Any]:
    """The first message to a page: everything that it can offer."""
    return {
        "kind": "hello",
        "defaults": Settings().to_text(),
        "targets": targets(),
        "figures": figures(),
        "scenes": [scene.plain() for scene in scenes()],
        "activations": [{"name": name, "label": label(name), "p": multiplicity(name)} for name in ACTIVATIONS],
        "optimizers": [{"name": name, "label": text} for name, text in OPTIMIZERS.items()],
        "limits": {name: list(pair) for name, pair in LIMITS.items()},
        "widest": {"channels": MOST_CHANNELS, "deep": DEEP_WIDTH},
        "library": library.listed(),
    }
