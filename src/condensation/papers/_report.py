"""The report: one HTML file with verdicts, pictures, settings and the numbers behind them."""

import base64
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from .._phrases import plural
from .._settings import titles_of
from .._templates import page_environment
from ..drawing._strip import strip
from ._claims import PARTLY, REPRODUCED, Verdict, judge
from ._section import Section

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
PAPERS = {
    "FC": "fully connected networks",
    "CNN": "convolutional networks",
    "PHASES": "phase diagrams of the literature, and two of our own",
}
RULE: dict[Verdict, str] = {
    "reproduced": f"holds in at least {REPRODUCED:.0%} of the seeds",
    "partly": f"holds in at least {PARTLY:.0%}, but in fewer than {REPRODUCED:.0%}",
    "not reproduced": f"holds in fewer than {PARTLY:.0%}",
    "not run": "the reason stands with the claim",
}
PICTURES = {"time": "Against training time", "loss": "The loss", "features": "Orientation and amplitude of the neurons"}
MINUS, DASH = "\N{MINUS SIGN}", "\N{EN DASH}"
_ALT_WORDS = 24
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_EXAMPLE = {  # the dots that the reader is shown first, beside what they mean
    "measured": {"seeds": [1, 1, 1, 1, 1, 2, 2, 4], "valid": [True] * 7 + [False], "median": 1, "low": 1, "high": 4},
    "holds": [True] * 5 + [False] * 3,
    "expected": "1",
}


class Group(NamedTuple):
    """The sections of one paper, with its settings as captioned or with other ones, and its id in the page."""

    name: str
    about: str
    anchor: str
    sections: list[Section]

    @property
    def counts(self) -> dict[str, int]:
        """How many claims have which verdict."""
        return count(claim for section in self.sections for claim in section.claims)


class Picture(NamedTuple):
    """A picture as the page holds it; without data where its file is gone."""

    name: str
    label: str
    alt: str
    data: str
    width: int
    height: int


def write_report(sections: Sequence[Section], folder: Path) -> str:
    """The page's HTML, pictures inside."""
    environment = page_environment("condensation.papers")
    slug: Callable[[str], str] = lambda text: text.replace(" ", "-")  # noqa: E731
    environment.filters |= {"number": number, "duration": duration, "slug": slug, "minus": _minus}
    environment.globals |= {
        "strip": strip,
        "count": lambda section: count(section.claims),
        "pictures": lambda section: [_picture(section, name, folder) for name in section.pictures],
        "shared_runs": lambda section: titles_of(section.runs),
        "seeds_in_words": seeds_in_words,
        "share": lambda holds: f"{sum(holds)} of {len(holds)}" if holds else DASH,
        "holds_untrained": holds_untrained,
        "files": lambda section: section.data + [f"figures/{name}.pdf" for name in section.pictures],
    }
    captioned = [section for section in sections if not section.variant]
    return environment.get_template("report.html").render(
        groups=groups(sections),
        captioned=captioned,
        varied=[section for section in sections if section.variant],
        counts=count(claim for section in captioned for claim in section.claims),
        sections=sections,
        verdicts=VERDICTS,
        scales=Counter(section.scale for section in captioned),
        smaller=[section for section in captioned if section.reduced],
        unfinished=[section for section in sections if section.status != "done"],
        rule=RULE,
        example=strip(_EXAMPLE),
    )


def groups(sections: Sequence[Section]) -> list[Group]:
    """The sections by paper, those with other settings than the captioned ones apart."""
    by_paper: dict[tuple[str, bool], Group] = {}
    for section in sections:
        paper = section.claims[0]["paper"] if section.claims else section.name.split("-")[0].upper()
        varied, anchor = bool(section.variant), f"paper-{paper.lower()}"
        captioned = Group(paper, PAPERS.get(paper, ""), anchor, [])
        group = Group(f"{paper} with other settings", "", f"{anchor}-other", []) if varied else captioned
        by_paper.setdefault((paper, varied), group).sections.append(section)
    return [*by_paper.values()]


def count(claims: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How many claims have which verdict, in the order of the verdicts, all of them named."""
    verdicts = Counter(claim["verdict"] for claim in claims)
    return {verdict: verdicts[verdict] for verdict in VERDICTS}


def holds_untrained(claim: dict[str, Any]) -> bool:
    """Whether untrained networks pass too, at least in part, so that the claim says nothing about training."""
    return "untrained" in claim and judge(claim["untrained"]["holds"]) in ("reproduced", "partly")


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
    return _minus(mantissa + times_power)


def duration(seconds: float) -> str:
    """A time as it is read.

    >>> duration(1.78), duration(27.3), duration(150), duration(3 * 3600 + 300)
    ('1.8 s', '27 s', '2.5 min', '3 h 5 min')
    """
    if seconds < 60:
        return f"{seconds:.{int(seconds < 9.95)}f} s"
    minutes = round(seconds / 60)
    return f"{seconds / 60:.2g} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _minus(text: str) -> str:
    return text.replace("-", MINUS)


def _picture(section: Section, name: str, folder: Path) -> Picture:
    """A picture as data for the page, with its size and what it shows in words."""
    rest = name.removeprefix(section.name).strip("-").replace("-", " ")
    label = f"Part {rest}" if rest.isdigit() else PICTURES.get(rest, rest.capitalize())
    words = section.caption.split()
    caption = " ".join(words[:_ALT_WORDS]) + (" …" if len(words) > _ALT_WORDS else "")
    alt = ". ".join(part for part in (section.title, label or caption) if part)
    try:
        content = (folder / "figures" / f"{name}.png").read_bytes()
    except FileNotFoundError:
        return Picture(name, label, alt, "", 0, 0)
    width, height = (int.from_bytes(content[k : k + 4]) for k in (16, 20))  # where a PNG keeps them
    return Picture(name, label, alt, base64.b64encode(content).decode(), width, height)
