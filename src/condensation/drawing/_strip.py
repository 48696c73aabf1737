"""A claim's distribution over the seeds as a small picture inside a line of text (SVG)."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

WIDTH, HEIGHT, FLOOR = 124, 31, 26  # below the floor: the median
MARGIN = 9  # left and right of the values, so that a clump of equal ones has room

_MARKS = {
    "holds": '<circle class="seed holds" cx="{x:.1f}" cy="{y:.1f}" r="{r}"/>',
    "fails": '<circle class="seed fails" cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="none"/>',
    "void": '<path class="seed void" d="M{x:.1f} {y:.1f}m-{r} -{r}l{d} {d}m0 -{d}l-{d} {d}"/>',
}


class Accepted(NamedTuple):
    """The accepted values: exactly one, at least or at most it."""

    word: str
    value: float


def strip(claim: dict[str, Any]) -> Markup:
    """The picture of one claim: a dot a seed over the accepted region.

    A dot is filled where the claim holds, hollow where it fails, and a cross where the value does not count. Seeds
    without a value are left out.
    """
    measured, rule = claim["measured"], accepted(claim["expected"])
    seeds = [
        (float(value), "holds" if holds else "fails" if valid else "void")
        for value, valid, holds in zip(measured["seeds"], measured["valid"], claim["holds"], strict=True)
        if value is not None
    ]
    if not seeds:
        return Markup("")
    values = [value for value, _ in seeds]
    low, high = _range([*values, rule.value], rule)

    def place(value: float) -> float:
        return MARGIN + (value - low) / (high - low) * (WIDTH - 2 * MARGIN)

    seeds.sort(key=lambda seed: seed[0])
    radius = 2.4 if len(seeds) <= 30 else 1.3
    spots = _spread([place(value) for value, _ in seeds], radius)
    marks = Markup("").join(
        Markup(_MARKS[kind]).format(x=x, y=y, r=round(radius - 0.3, 1), d=round(2 * radius - 0.6, 1))
        for (_, kind), (x, y) in zip(seeds, spots, strict=True)
    )
    return Markup(
        '<svg class="strip" role="img" viewBox="0 0 {w} {h}" width="{w}" height="{h}"><title>{title}</title>'
        '{region}<path class="axis" d="M0 {floor}H{w}"/><path class="median" d="M{median:.1f} {floor}l3 5h-6z"/>'
        "{marks}</svg>"
    ).format(
        w=WIDTH, h=HEIGHT, floor=FLOOR, title=_title(claim), region=_region(rule, place),
        median=place(float(measured["median"])), marks=marks,
    )  # fmt: skip


def accepted(expected: str) -> Accepted:
    """The accepted values that a claim's ``expected`` says.

    >>> accepted("at most 0.05"), accepted("3")
    (Accepted(word='at most', value=0.05), Accepted(word='exactly', value=3.0))
    """
    words, _, value = expected.rpartition(" ")
    return Accepted("at most" if words == "at most" else "at least" if words == "at least" else "exactly", float(value))


def _title(claim: dict[str, Any]) -> str:
    """The picture in words."""
    measured, holds = claim["measured"], claim["holds"]
    void = sum(not ok and value is not None for ok, value in zip(measured["valid"], measured["seeds"], strict=True))
    missing = measured["seeds"].count(None)
    notes = f"; {void} do not count" * bool(void) + f"; {missing} without a value" * bool(missing)
    return (
        f"holds in {sum(holds)} of {len(holds)} seeds; median {measured['median']:g}, from {measured['low']:g} to "
        f"{measured['high']:g}; accepted: {claim['expected']}{notes}"
    )


def _range(values: Sequence[float], rule: Accepted) -> tuple[float, float]:
    """The ends of the axis: all values and the bound, and never of no width."""
    low, high = min(values), max(values)
    if rule.word == "exactly":  # counts: a whole step to either side
        return min(low, rule.value - 1), max(high, rule.value + 1)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        half = 0.5 * abs(high) or 1.0
        return low - half, high + half
    return low, high


def _region(rule: Accepted, place: Callable[[float], float]) -> Markup:
    """The accepted region, shaded, with its bound."""
    bound = place(rule.value)
    half = min(max((place(rule.value + 0.5) - place(rule.value - 0.5)) / 2, 2.5), MARGIN + 3)
    ends = {"exactly": (bound - half, bound + half), "at most": (0.0, bound), "at least": (bound, float(WIDTH))}
    left, right = ends[rule.word]
    rectangle = Markup('<rect class="accepted" x="{:.1f}" y="0" width="{:.1f}" height="{}"/>')
    return rectangle.format(left, right - left, FLOOR)


def _spread(places: Sequence[float], radius: float) -> list[tuple[float, float]]:
    """Where dots go so that they do not hide each other: at their place, else above or below it, else beside it."""
    step = 2 * radius + 0.2
    rows = int((FLOOR - 1) / step + 1) // 2 * 2 - 1  # odd: a single dot stands in the middle
    middle = FLOOR / 2
    heights = sorted((middle + (k - (rows - 1) / 2) * step for k in range(rows)), key=lambda y: (abs(y - middle), y))
    columns = range(-math.ceil(WIDTH / step), math.ceil(WIDTH / step))
    taken: list[tuple[float, float]] = []
    for place in places:
        even = math.ceil(places.count(place) / rows) % 2 == 0  # columns of equal values: centred too
        beside = sorted((place + (k + even / 2) * step for k in columns), key=lambda x: (abs(x - place), x))
        free = (
            (x, y)
            for x in beside
            for y in heights
            if radius <= x <= WIDTH - radius and all(y != v or abs(x - u) >= step - 1e-9 for u, v in taken)
        )
        taken.append(next(free, (place, middle)))
    return taken
