"""Words and claims that several figures of the fully connected paper share."""

from collections.abc import Callable
from typing import Any

from ...activations import label
from .._claims import Claim, at_most
from .._counts import Counts
from .experiments import LINES


def lines_in_words(activation: str) -> str:
    """The paper's number of lines.

    >>> lines_in_words("x_tanh")
    'two lines'
    """
    count = LINES[activation]
    return f"{('one', 'two', 'three')[count - 1]} line{'s' * (count > 1)}"


def with_multiplicity(activation: str) -> str:
    """An activation with its multiplicity: as many lines as that is what the paper states."""
    return f"{label(activation)} (multiplicity {LINES[activation]})"


def at_most_2p(
    key: str,
    where: str,
    layer: str,
    activation: str,
    counts: Callable[[Any], Counts],
    why: str | Callable[[Any], str] = "",
) -> Claim[Any]:
    """The claim that a layer has at most two orientations for each line of the paper's."""
    most = 2 * LINES[activation]
    return Claim(
        f"{key}-most", f"{where}, Sec. 4.3", f"{layer}: at most 2p = {most} orientations",
        "orientations at the same step", at_most(most), lambda figure: counts(figure).orientations_found(), why,
    )  # fmt: skip
