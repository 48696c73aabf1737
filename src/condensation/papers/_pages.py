"""The pages of the report: the first with all claims, and one for each figure with its pictures inside.

    OUT/index.html        contents, filters, verdicts and reasons; a light picture of each figure
        pages/NAME.html   one figure: pictures, claims with the numbers of the seeds, command, TOML, settings, tables

A page needs no other file to be read, so that one of them can be sent alone; links lead to the files beside it.
"""

import base64
import hashlib
import io
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup
from PIL import Image

from .._settings import titles_of
from .._templates import page_environment
from .._writing import make_folder, write_atomic
from ..drawing._strip import strip
from ._report import (
    RULE,
    VERDICTS,
    at_paper_scale,
    count,
    duration,
    found,
    groups,
    holds_untrained,
    minus,
    number,
    seeds_in_words,
    share,
)
from ._rerun import EXPERIMENTS
from ._section import Section

PAGES = "pages"
PICTURES = {"time": "Against training time", "loss": "The loss", "features": "Orientation and amplitude of the neurons"}
THUMBNAIL = (300, 200)  # pixels, at most: a page shows 192 x 128
_ALT_WORDS = 24
_EXAMPLE = {  # the dots that the reader is shown first, beside what they mean
    "measured": {"seeds": [1, 1, 1, 1, 1, 2, 2, 4], "valid": [True] * 7 + [False], "median": 1, "low": 1, "high": 4},
    "holds": [True] * 5 + [False] * 3,
    "expected": "1",
}


class Picture(NamedTuple):
    """A picture as a page holds it; without data where its file is gone."""

    name: str
    label: str
    alt: str
    data: str
    width: int
    height: int


def write_pages(sections: Sequence[Section], folder: Path, *, complete: bool = True) -> None:
    """Write the pages of all sections, the first one last, and remove those of figures that are not among them.

    Args:
        sections: what is finished.
        folder: of the report.
        complete: write all of them; otherwise those of sections that are newer than their page, and the first. The
            others lack at most links to figures that were made since.
    """
    make_folder(folder / PAGES)
    for section in sections:
        page = folder / PAGES / f"{section.name}.html"
        if complete or _is_older(page, folder / "sections" / f"{section.name}.json"):
            write_atomic(page, figure_page(section, sections, folder).encode())
    write_atomic(folder / "index.html", first_page(sections, folder).encode())
    for page in {*(folder / PAGES).glob("*.html")} - {folder / PAGES / f"{each.name}.html" for each in sections}:
        page.unlink(missing_ok=True)


def first_page(sections: Sequence[Section], folder: Path) -> str:
    """The page with all claims, as HTML."""
    captioned = [section for section in sections if not section.variant]
    claims = [claim for section in captioned or sections for claim in section.claims]
    known = [(claim, paper) for claim in claims if (paper := at_paper_scale(claim)) is not None]
    return _render(
        "index.html",
        groups=groups(sections),
        captioned=captioned,
        varied=[section for section in sections if section.variant],
        counts=count(claims, settled=True),
        shown=count(claim for section in sections for claim in section.claims),
        known=len(known),
        differing=sum(claim["verdict"] != paper["verdict"] for claim, paper in known),
        sections=sections,
        scales=Counter(section.scale for section in captioned),
        smaller=[section for section in captioned if section.reduced],
        unfinished=[section for section in sections if section.status != "done"],
        thumbnail=lambda section: thumbnail(section, folder),
    )


def figure_page(section: Section, sections: Sequence[Section], folder: Path) -> str:
    """The page of one figure, as HTML, with links to those before and behind it."""
    names = [each.name for each in sections]
    place = names.index(section.name)
    (group,) = groups([section])
    return _render(
        "figure.html",
        section=section,
        group=group,
        before=sections[place - 1] if place else None,
        behind=sections[place + 1] if place + 1 < len(sections) else None,
        pictures=[picture(section, name, folder) for name in section.pictures],
        shared_runs=titles_of(section.runs),
        files=section.data + [f"figures/{name}.pdf" for name in section.pictures],
        experiments=[entry | {"text": _text(entry["file"], section, folder)} for entry in section.experiments],
        example=strip(_EXAMPLE),
    )


def picture(section: Section, name: str, folder: Path) -> Picture:
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
    return Picture(name, label, alt, f"data:image/png;base64,{base64.b64encode(content).decode()}", width, height)


def thumbnail(section: Section, folder: Path) -> Picture | None:
    """The first picture of a figure, small; None where it has none."""
    if not section.pictures:
        return None
    name = section.pictures[0]
    path = folder / "figures" / f"{name}.png"
    try:
        data, width, height = _shrunk(path, path.stat().st_mtime_ns)
    except (OSError, KeyError):  # gone, no picture, or a Pillow without WebP
        return None
    return Picture(name, "", "", data, width, height)


@lru_cache(maxsize=1000)
def _shrunk(path: Path, changed: int) -> tuple[str, int, int]:
    """A picture as small data, with its size."""
    with Image.open(path) as opened:
        small = opened.convert("RGB")
    small.thumbnail(THUMBNAIL, Image.Resampling.LANCZOS, reducing_gap=3.0)
    buffer = io.BytesIO()
    small.save(buffer, "WEBP", quality=45, method=6)
    return f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}", *small.size


def _text(file: str, section: Section, folder: Path) -> str:
    """An experiment's TOML as it lies beside the report; empty where it does not."""
    try:
        return (folder / EXPERIMENTS / section.name / Path(file).name).read_text(encoding="utf-8") if file else ""
    except OSError:
        return ""


def _is_older(page: Path, section: Path) -> bool:
    try:
        return page.stat().st_mtime_ns <= section.stat().st_mtime_ns
    except FileNotFoundError:
        return True


def _render(template: str, **values: object) -> str:
    return _environment().get_template(f"report/{template}").render(values)


@cache
def _environment() -> Environment:
    """The templates, with what all of them need. The script is allowed by its digest, and nothing may be loaded."""
    environment = page_environment("condensation.papers")
    style, script = (
        Path(__file__).parent.joinpath("report", name).read_text(encoding="utf-8")
        for name in ("report.css", "report.js")
    )
    environment.filters |= {
        "number": number, "duration": duration, "minus": minus, "slug": lambda text: text.replace(" ", "-"),
        "link": lambda path: quote(path, safe="/"),
    }  # fmt: skip
    environment.globals |= {
        "style": Markup(style),
        "script": Markup(script),
        "digest": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "verdicts": VERDICTS,
        "rule": RULE,
        "strip": strip,
        "count": lambda section: count(section.claims),
        "at_paper_scale": at_paper_scale,
        "seeds_in_words": seeds_in_words,
        "share": share,
        "found": found,
        "holds_untrained": holds_untrained,
    }
    return environment
