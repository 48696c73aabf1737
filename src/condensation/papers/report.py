"""The report: one HTML file with verdicts, pictures, settings and the numbers behind them."""

import base64
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, PackageLoader

from ..versions import versions
from .claims import PARTLY, REPRODUCED
from .fc import Findings


@dataclass(frozen=True)
class Section:
    """One reproduced figure: its name, what was found, the files written and the seconds it took."""

    name: str
    findings: Findings
    files: tuple[Path, ...]
    seconds: float

    def images(self) -> list[dict[str, str]]:
        """Each picture as PNG data for the page, with the name of its vector file."""
        return [
            {
                "png": base64.b64encode(path.read_bytes()).decode(),
                "pdf": path.with_suffix(".pdf").name,
                "name": path.stem,
            }
            for path in self.files
            if path.suffix == ".png"
        ]


def write_report(sections: list[Section], seeds: int) -> str:
    """The page's HTML."""
    page = Environment(loader=PackageLoader("condensation.papers", "."), autoescape=True).get_template("report.html")
    claims = [claim for section in sections for claim in section.findings.claims]
    return page.render(
        sections=sections,
        claims=claims,
        counts=Counter(claim.verdict for claim in claims),
        seeds=seeds,
        versions=versions(),
        rule=(REPRODUCED, PARTLY),
    )
