"""Basins of the attracting directions: rings around the circle for two inputs, maps of the sphere for three."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Wedge
from numpy.typing import ArrayLike

from ..activations import Activation
from ..errors import InputError
from ..measure.similarity import as_floats
from ..theory.basins import basins, circle, sphere
from ..theory.directions import Directions, stationary_directions
from ..theory.leading import coefficient
from .style import COLOURS, FAINT, INK, PAGE, look

SECTORS = 360
ROWS = 60
SIGNS = {1: "$a > 0$", -1: "$a < 0$"}


def draw_basins(x: ArrayLike, residual: ArrayLike, activation: Activation, *, title: str = "") -> Figure:
    """To which line each direction goes, for either sign of the output weight; a darker shade is its other side.

    Args:
        x: inputs, samples x 2 or 3 (a bias's 1 counts as one).
        residual: y - f, one for each sample.
        activation: of the hidden layer.
        title: what stands above.
    """
    inputs = as_floats("inputs", x)
    if inputs.ndim != 2 or inputs.shape[1] not in (2, 3):
        raise InputError(f"basins are drawn for two or three inputs (the bias counts as one), not for {inputs.shape}")
    directions = stationary_directions(x, residual, coefficient(activation)[0])
    with look():
        figure = Figure(figsize=(PAGE, 2.9 if inputs.shape[1] == 2 else 2.4), layout="constrained")
        projection = None if inputs.shape[1] == 2 else "mollweide"
        for axes, (sign, name) in zip(
            figure.subplots(1, 2, subplot_kw={"projection": projection}), SIGNS.items(), strict=True
        ):
            draw = _draw_ring if inputs.shape[1] == 2 else _draw_map
            draw(axes, sign, x, residual, activation, directions)
            axes.set_title(name)
        figure.suptitle(title, fontsize=9)
        lines = np.flatnonzero(directions.attracts)
        handles = [Wedge((0, 0), 1, 0, 90, color=_colour(int(line), 1)) for line in lines]
        names = [f"line {line + 1}, growth {directions.growth[line]:.3g}" for line in lines]
        figure.legend(handles, names, loc="outside lower center", ncols=4)
    return figure


def _colour(line: int, side: int) -> tuple[float, ...]:
    """The colour of a line, darker on its other side; grey for none."""
    if line < 0:
        return to_rgb(FAINT)
    colour = np.array(to_rgb(COLOURS[line % len(COLOURS)]))
    return tuple(colour if side > 0 else 0.6 * colour)


def _draw_ring(axes: Axes, sign: int, x: ArrayLike, residual: ArrayLike, activation: Activation, d: Directions) -> None:
    lines, sides = basins(circle(SECTORS), sign, x, residual, activation, directions=d)
    step = 360 / SECTORS
    for k, (line, side) in enumerate(zip(lines.tolist(), sides.tolist(), strict=True)):
        wedge = Wedge((0, 0), 1, k * step, (k + 1) * step, width=0.28, color=_colour(line, side), antialiased=False)
        axes.add_patch(wedge)
    for k, u in enumerate(d.directions):
        ends = np.array([0.0 if d.oriented else -1.25, 1.25])
        attracts = bool(d.attracts[k])
        style = {"color": _colour(k, 1), "linewidth": 1.4} if attracts else {"color": INK, "linestyle": ":"}
        axes.plot(ends * u[0], ends * u[1], **style)  # type: ignore[arg-type]
    axes.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3), xlabel="input 1", ylabel="input 2")
    axes.set_aspect("equal")


def _draw_map(axes: Axes, sign: int, x: ArrayLike, residual: ArrayLike, activation: Activation, d: Directions) -> None:
    grid = sphere(ROWS)
    lines, sides = basins(grid.reshape(-1, 3), sign, x, residual, activation, directions=d)
    kinds = sorted(set(zip(lines.tolist(), sides.tolist(), strict=True)))
    number = {kind: k for k, kind in enumerate(kinds)}
    image = np.array([number[kind] for kind in zip(lines.tolist(), sides.tolist(), strict=True)])
    latitude, longitude = np.arcsin(grid[:, 0, 2]), np.arctan2(grid[0, :, 1], grid[0, :, 0])
    colours = ListedColormap([_colour(*kind) for kind in kinds])
    axes.pcolormesh(
        longitude, latitude, image.reshape(grid.shape[:2]), cmap=colours, vmin=-0.5, vmax=len(kinds) - 0.5,
        shading="nearest", rasterized=True,
    )  # fmt: skip
    ends = d.orientations(sign if coefficient(activation)[1] > 0 else -sign)
    axes.scatter(
        np.arctan2(ends[:, 1], ends[:, 0]), np.arcsin(ends[:, 2]), s=26, color="white", edgecolor=INK, linewidth=0.8
    )
    axes.set_xticks([])
    axes.set_yticks([])
