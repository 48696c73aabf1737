"""What the report says: papers, verdicts and their counts, and numbers as they are read."""

import json
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

from .._phrases import plural
from ._claims import DECIDED, PARTLY, REPRODUCED, Verdict, judge
from ._section import Section

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
PAPERS = {
    "FC": "fully connected networks",
    "CNN": "convolutional networks",
    "BEYOND": "after the initial stage: saddles and splitting",
    "ATTENTION": "attention: rank collapse, and regression in context",
    "ANCHOR": "reasoning against memorising, by the initialization",
    "PHASES": "phase diagrams of the literature, and three of our own",
    "ALIGN": "early alignment of relu networks",
    "SADDLE": "saddle to saddle: exponents, width, one unit at a time",
    "DROPOUT": "noise: dropout, small batches, labels",
    "OVERVIEW": "clusters over training, and how many samples a target needs",
}
SOURCES: dict[str, list[dict[str, str]]] = tomllib.loads(
    Path(__file__).with_name("sources.toml").read_text(encoding="utf-8")
)
RULE: dict[Verdict, str] = {
    "reproduced": f"holds in at least {REPRODUCED:.0%} of the seeds",
    "partly": f"holds in at least {PARTLY:.0%}, but in fewer than {REPRODUCED:.0%}",
    "not reproduced": f"holds in fewer than {PARTLY:.0%}",
    "not decided": f"fewer than {DECIDED:.0%} of the seeds meet its premise",
    "not run": "the reason stands with the claim",
}
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Group(NamedTuple):
    """The sections of one paper, with its settings as captioned or with other ones, and its id in the page."""

    name: str
    paper: str
    about: str
    anchor: str
    sections: list[Section]

    @property
    def sources(self) -> list[dict[str, str]]:
        """The papers that the sections are about."""
        return SOURCES.get(self.paper, [])

    @property
    def counts(self) -> dict[str, int]:
        """How many claims have which verdict, at the paper's scale where that is known."""
        return count((claim for section in self.sections for claim in section.claims), settled=True)


def groups(sections: Sequence[Section]) -> list[Group]:
    """The sections by paper, those with other settings than the captioned ones apart."""
    by_paper: dict[tuple[str, bool], Group] = {}
    for section in sections:
        paper = section.claims[0]["paper"] if section.claims else section.name.split("-")[0].upper()
        varied, anchor = bool(section.variant), f"paper-{paper.lower()}"
        captioned = Group(paper, paper, PAPERS.get(paper, ""), anchor, [])
        group = Group(f"{paper} with other settings", paper, "", f"{anchor}-other", []) if varied else captioned
        by_paper.setdefault((paper, varied), group).sections.append(section)
    return [*by_paper.values()]


def count(claims: Iterable[dict[str, Any]], settled: bool = False) -> dict[str, int]:
    """How many claims have which verdict, in the order of the verdicts, all of them named.

    With ``settled`` the verdict at the paper's scale counts where that is known.
    """
    verdicts = Counter(((settled and at_paper_scale(claim)) or claim)["verdict"] for claim in claims)
    return {verdict: verdicts[verdict] for verdict in VERDICTS}


def at_paper_scale(claim: dict[str, Any]) -> dict[str, Any] | None:
    """Verdict and seeds of a claim of the quick scale at the paper's, where the same rule was judged there."""
    paper = paper_scale().get(claim["id"])
    return paper if claim["scale"] == "quick" and paper and paper["expected"] == claim["expected"] else None


@cache
def paper_scale() -> dict[str, dict[str, Any]]:
    """Each claim at the paper's scale, from ``results/``: expected, verdict, and whether it holds in each seed."""
    return json.loads(Path(__file__).with_name("paper_scale.json").read_text(encoding="utf-8"))


def holds_untrained(claim: dict[str, Any]) -> bool:
    """Whether untrained networks pass too, at least in part, so that the claim says nothing about training."""
    return "untrained" in claim and judge(claim["untrained"]["holds"]) in ("reproduced", "partly")


def share(holds: Sequence[bool | None]) -> str:
    """In how many seeds a claim holds, of those that decide something.

    >>> share([True, False]), share([True, None]), share([])
    ('1 of 2', '1 of 1; 1 not decided', '–')
    """
    if not holds:
        return DASH
    decided = [each for each in holds if each is not None]
    rest = len(holds) - len(decided)
    return f"{sum(decided)} of {len(decided)}" + (f"; {rest} not decided" if rest else "")


def found(measured: Mapping[str, Any]) -> str:
    """What was measured over the seeds.

    >>> found({"median": 3, "low": 2, "high": 5}), found({"median": 1, "low": 1, "high": 1}), found({"median": None})
    ('3 (median; 2 to 5)', '1', '')
    """
    if measured.get("median") is None:
        return ""
    low, median, high = (number(measured[key]) for key in ("low", "median", "high"))
    return median + (f" (median; {low} to {high})" if low != high else "")


def seeds_in_words(section: Section) -> str:
    """How many seeds, as a part of a sentence.

    >>> seeds_in_words(Section("a", "A", "", "done", seeds=(3, 10))), seeds_in_words(Section("a", "A", "", "done"))
    (', 3 to 10 seeds', '')
    """
    least, most = section.seeds
    return "" if not most else f", {least} to {most} seeds" if least != most else f", {plural(most, 'seed')}"


def number(value: float | None) -> str:
    """A measured value as it is read: three digits, more where it would seem whole and is not.

    >>> number(None), number(3), number(0.0597348), number(0.999946), number(-0.055), number(3.17838e-19)
    ('–', '3', '0.0597', '0.9999', '−0.055', '3.18 × 10⁻¹⁹')
    """
    if value is None:
        return DASH
    digits = 3
    while digits < 6 and float(f"{value:.{digits}g}") == round(value) != value:
        digits += 1
    if value == int(value) and abs(value) < 1e6:  # not as a power
        digits = 6
    mantissa, _, power = f"{value:.{digits}g}".partition("e")
    times_power = f" \N{MULTIPLICATION SIGN} 10{str(int(power)).translate(_SUPERSCRIPTS)}" if power else ""
    return minus(mantissa + times_power)


def duration(seconds: float) -> str:
    """A time as it is read.

    >>> duration(1.78), duration(27.3), duration(150), duration(3 * 3600 + 300)
    ('1.8 s', '27 s', '2.5 min', '3 h 5 min')
    """
    if seconds < 60:
        return f"{seconds:.{int(seconds < 9.95)}f} s"
    minutes = round(seconds / 60)
    return f"{seconds / 60:.2g} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def minus(text: str) -> str:
    """A text with minus signs in place of hyphens."""
    return text.replace("-", MINUS)
