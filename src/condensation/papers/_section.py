"""A section of the report: one figure made, not run or failed, as plain data that a later run can take up again."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from .._files import read_sealed_json
from .._writing import write_json
from ..errors import InputError

Status = Literal["done", "not run", "failed"]


@dataclass(frozen=True)
class Section:
    """What the report says of one figure.

    Attributes:
        name: the figure's name, with the variant's tag.
        title: what stands above it.
        key: what it was made from (code, settings): another key, and it is made anew.
        status, reason: done, or why it was not run or failed.
        scale: ``quick`` or ``paper``.
        seeds: how many seeds its runs have, least and most.
        variant: what differs from the captioned settings.
        reduced: what the quick scale made smaller; empty where nothing.
        caption, settings, tables: what is read.
        claims: objects as in ``claims.json``.
        pictures, data: names of files beside the report.
        runs: folders of the runs by name, likewise.
        command: what makes it again.
        experiments: what it trains, as files of TOML, likewise (see ``_rerun.write_experiments``).
        missing: why some of its experiments could not be trained; it is made again in the hope that they can.
        notes: warnings of the trainings.
        seconds, versions, device: how long it took, and what it was made with and on.
    """

    name: str
    title: str
    key: str
    status: Status
    reason: str = ""
    scale: str = "quick"
    seeds: tuple[int, int] = (0, 0)
    variant: str = ""
    reduced: str = ""
    caption: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    tables: list[dict[str, Any]] = field(default_factory=list)
    claims: list[dict[str, Any]] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    runs: dict[str, str] = field(default_factory=dict)
    command: str = ""
    experiments: list[dict[str, Any]] = field(default_factory=list)
    missing: str = ""
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0
    versions: dict[str, str] = field(default_factory=dict)
    device: str = ""

    def write(self, folder: Path) -> None:
        """Keep it as a file of its name."""
        write_json(folder / f"{self.name}.json", asdict(self))

    @classmethod
    def read(cls, path: Path) -> Section | None:
        """What a file holds; None where there is none, or one that is damaged or of another form."""
        try:
            plain = read_sealed_json(path)
            plain["seeds"] = tuple(plain["seeds"])
            return cls(**plain)
        except (InputError, TypeError, KeyError):
            return None
