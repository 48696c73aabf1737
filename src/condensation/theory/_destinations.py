"""Where neurons can end: the orientations that attract, on the sphere (gradient flow) or on the cube (sign descent)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from ..errors import InputError
from ._cube import CubeDirections
from ._directions import Directions


@dataclass(frozen=True, eq=False)
class Destinations:
    """One entry for each orientation that attracts neurons with a c of one sign.

    Attributes:
        points: unit vectors, or points of the cube.
        serves: the sign of a c of the neurons that it attracts.
        line: the number of its line.
        side: +1 along the line's direction, -1 against it.

    >>> from ._directions import stationary_directions
    >>> lines = stationary_directions(np.eye(2), np.array([6.0, 8.0]), 1)  # g = (3, 4): +g for a c > 0, -g for a c < 0
    >>> ends = Destinations.of(lines)
    >>> ends.points.round(12), ends.serves
    (array([[ 0.6,  0.8],
           [-0.6, -0.8]]), array([ 1, -1]))
    """

    points: Float[np.ndarray, "ends inputs"]
    serves: Int[np.ndarray, " ends"]
    line: Int[np.ndarray, " ends"]
    side: Int[np.ndarray, " ends"]

    @staticmethod
    def of(lines: Directions | CubeDirections) -> "Destinations":
        """The destinations on some lines: for odd p a side serves one sign of a c, for even p both sides serve it."""
        oriented = isinstance(lines, Directions) and lines.oriented
        rows = []
        for sign, attracts in ((1, lines.attracts_positive), (-1, lines.attracts_negative)):
            sides = (1,) if oriented else (sign,) if lines.p % 2 else (1, -1)
            rows += [(sign, line, side) for line in np.flatnonzero(attracts) for side in sides]
        serves, line, side = np.array(rows, int).reshape(-1, 3).T
        return Destinations(side[:, None] * lines.directions[line], serves, line, side)


def check_directions(directions: Directions | CubeDirections, p: int, inputs: int) -> None:
    """Refuse directions of another multiplicity or of another number of inputs than the network's."""
    of = directions.directions.shape[1]
    if (directions.p, of) != (p, inputs):
        raise InputError(
            f"the directions are of p = {directions.p} and {of} inputs, the network has p = {p} and {inputs} inputs"
        )
