"""Evidence: what becomes of a figure's claims under other settings, as a table."""

from collections.abc import Mapping, Sequence

import numpy as np

from .claims import Rule, Seeds
from .recipe import Table


def settings_table(found: Mapping[str, Sequence[Seeds | None]], columns: Sequence[str], rules: Sequence[Rule]) -> Table:
    """How often each column's rule holds, and the median number of lines, a row a setting; None is left blank."""
    rows = tuple(
        (said, *(_cell(one, rule) for one, rule in zip(each, rules, strict=True))) for said, each in found.items()
    )
    title = "Seeds with the paper's number of lines, and the median number, under other settings"
    return Table(title, ("settings", *columns), rows)


def _cell(measured: Seeds | None, rule: Rule) -> str:
    """A cell of the table.

    >>> _cell(Seeds([1, 1, 2], [True, False, True]), Rule("exactly", 1))
    '1/3 (1, 1 not condensed)'
    """
    if measured is None:
        return ""
    lost = 0 if measured.valid is None else int(np.sum(~np.asarray(measured.valid)))
    more = f", {lost} not condensed" if lost else ""
    return f"{sum(measured.holds(rule))}/{len(measured.values)} ({measured.median:g}{more})"
