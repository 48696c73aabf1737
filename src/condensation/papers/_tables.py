"""Tables of the report."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ._claims import PerSeed, Rule


@dataclass(frozen=True)
class Table:
    """A table in the report: what a change of settings does, say."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def of_columns(cls, title: str, columns: Mapping[str, Iterable[str]]) -> "Table":
        """A table of columns by their headings."""
        return cls(title, tuple(columns), tuple(zip(*columns.values(), strict=True)))


def settings_table(
    measured: Mapping[str, Sequence[PerSeed | None]], columns: Sequence[str], rules: Sequence[Rule]
) -> Table:
    """How often each column's rule holds, and the median number of lines, a row a setting; None is left blank."""
    rows = tuple(
        (setting, *(_cell(values, rule) for values, rule in zip(each, rules, strict=True)))
        for setting, each in measured.items()
    )
    title = "Seeds with the paper's number of lines, and the median number, under other settings"
    return Table(title, ("settings", *columns), rows)


def _cell(measured: PerSeed | None, rule: Rule) -> str:
    """A cell of the table.

    >>> _cell(PerSeed([1, 1, 2], [True, False, True]), Rule("exactly", 1))
    '1/3 (1, 1 not condensed)'
    """
    if measured is None:
        return ""
    lost = measured.counted.count(False)
    more = f", {lost} not condensed" if lost else ""
    return f"{measured.holds(rule).count(True)}/{len(measured.values)} ({measured.median:g}{more})"


def in_brackets(measured: PerSeed) -> str:
    """The values of each seed, in brackets where they do not count.

    >>> in_brackets(PerSeed([1, 2], [True, False]))
    '1, (2)'
    """
    seeds = zip(measured.values, measured.counted, strict=True)
    return ", ".join(f"{value:g}" if counts else f"({value:g})" for value, counts in seeds)
