"""``condensation reproduce``."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.table import Table

from .show import Bars, print_json, print_table

COLOURS = {"reproduced": "green", "partly": "yellow", "not reproduced": "red", "not run": "dim"}


def reproduce(
    names: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="[NAME ...]")] = (),
    /,
    seeds: int = 10,
    out: Path = Path("out"),
    json: bool = False,
) -> None:
    """Make the papers' figures and a report on their claims.

    Args:
        names: figures to make, such as fc-fig3; all of them without a name.
        seeds: how many seeds of data and start.
        out: the folder for figures, claims.json and index.html.
        json: print the claims as JSON.
    """
    from ..papers import reproduce as run

    with Bars() as reporter:
        sections = run(names, seeds=seeds, out=out, progress=reporter)
    claims = [claim for section in sections for claim in section.findings.claims]
    if json:
        print_json([claim.to_plain() for claim in claims])
        return
    table = Table("claim", "expected", "holds", "verdict", box=None)
    for claim in claims:
        share = f"{sum(claim.holds)}/{len(claim.holds)}"
        table.add_row(claim.statement, str(claim.expected), share, f"[{COLOURS[claim.verdict]}]{claim.verdict}[/]")
    print_table(table)
    print(f"report: {out / 'index.html'}")
