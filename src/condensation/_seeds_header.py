"""What a file of seeds says of itself. Its checksum tells that it is whole, not by whom."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ._plain import parse_json
from ._serialization import check_format
from .errors import InputError, brief
from .seeds import Seed


@dataclasses.dataclass(frozen=True)
class SeedsHeader:
    """What a file of seeds says of itself: the seeds, how far they are, where each diverged, how long it took."""

    seeds: tuple[Seed, ...]
    finished: bool
    row: int
    offset: int
    diverged: list[int | None]
    seconds: list[float]


def read_header(path: Path, about: Mapping[str, str], fingerprint: str) -> SeedsHeader:
    """What a file of seeds says of itself in its metadata; refused if it is of another run than the fingerprint's."""
    try:
        plain = parse_json(about["condensation"])
        version, own = plain.pop("format"), plain.pop("fingerprint")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} was not written by condensation: {error}") from error
    check_format(f"file {path}", version)
    if own != fingerprint:
        raise InputError(f"{path} belongs to another experiment")
    _check_header(path, plain)
    fields: dict[str, Any] = {field.name: plain[field.name] for field in dataclasses.fields(SeedsHeader)}
    fields["seeds"] = tuple(Seed(*seed) for seed in plain["seeds"])
    return SeedsHeader(**fields)


def _check_header(path: Path, header: dict[str, Any]) -> None:
    """Refuse a header whose fields are not what is written there."""
    whole = lambda value: type(value) is int and value >= 0  # noqa: E731
    number = lambda value: isinstance(value, int | float) and math.isfinite(value)  # noqa: E731
    pair = lambda value: isinstance(value, list) and len(value) == 2 and all(map(whole, value))  # noqa: E731
    count = len(header["seeds"]) if isinstance(header.get("seeds"), list) else 0

    def each(value: Any, fits: Callable[[Any], bool]) -> bool:
        return isinstance(value, list) and len(value) == max(count, 1) and all(map(fits, value))

    checks = {
        "seeds": lambda value: each(value, pair),
        "finished": lambda value: isinstance(value, bool),
        "row": whole,
        "offset": whole,
        "diverged": lambda value: each(value, lambda step: step is None or whole(step)),
        "seconds": lambda value: each(value, number),
    }
    for name, fits in checks.items():
        if name not in header or not fits(header[name]):
            given = brief(header[name]) if name in header else "missing"
            raise InputError(f"{path} is not the file of a seed: its field {name} is {given}")
