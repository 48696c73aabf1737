"""Memory: what there is, and what a call would take. What does not fit is refused before anything is allocated.

A need is arithmetic on shapes. It is set against the least of what the machine, the container (cgroup) and the limit of
the process (``ulimit -v``) leave free, or against the user's own number (``limit_memory``, ``--memory``). Where none of
them is known, nothing is refused.
"""

import math
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .errors import InputError

VARIABLE = "CONDENSATION_MEMORY"  # worker processes inherit it
SMALL = 2**26  # bytes that are there in any case: nothing is looked up for them
_UNITS = {f"{prefix}{end}": base**k for k, prefix in enumerate("KMGT", 1) for end, base in (("B", 1000), ("iB", 1024))}
_NAMES = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_UNLIMITED = 2**60  # cgroups of the first kind write a number near 2^63 for no limit
_GROUPS = Path("/sys/fs/cgroup")
_PROCESS = Path("/proc/self")


class Free(NamedTuple):
    """Bytes that can still be taken, and a phrase of whom they are."""

    size: int
    phrase: str


def limit_memory(limit: str | int | None) -> None:
    """Let this process, and each worker process of it, take so much memory; None: what the machine has.

    A call that would take more is refused with the number before it begins.

    Args:
        limit: bytes, or a text such as ``"4GiB"``.

    >>> limit_memory("4GiB")
    >>> os.environ[VARIABLE]
    '4294967296'
    >>> limit_memory(None)
    """
    if limit is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = str(_bytes(limit))


def _bytes(limit: str | int) -> int:
    known = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", limit) if isinstance(limit, str) else None
    factor = next((_UNITS[unit] for unit in _UNITS if known and unit.lower() == known[2].lower()), None)
    size = int(min(float(known[1]), 2.0**40) * factor) if known and factor else limit if type(limit) is int else 0
    if size < 1:
        raise InputError(f"memory is a positive number with a unit, such as 4GiB or 500MB, not {limit!r}")
    return size


def in_words(size: float) -> str:
    """A number of bytes as it is read.

    >>> in_words(512), in_words(26.4 * 2**30), in_words(3 * 2**20), in_words(2**96)
    ('512 bytes', '26.4 GiB', '3 MiB', '6.87e+10 EiB')
    """
    size = min(size, 2**200)  # a float would end there
    power = next((k for k in reversed(range(len(_NAMES))) if size >= 1024**k), 0)
    value = size / 1024**power
    return f"{value:.0f} bytes" if not power else f"{value:.3g} {_NAMES[power]}"


def in_digits(count: int) -> str:
    """A number of things as it is read, however large it is.

    >>> in_digits(12345), in_digits(10**20)
    ('12,345', 'some 10^20')
    """
    return f"{count:,}" if count < 10**15 else f"some 10^{int(count.bit_length() * math.log10(2))}"


def require(needed: float, what: str, advice: str, *, warn: bool = False) -> None:
    """Refuse what takes more memory than there is.

    Args:
        needed: bytes.
        what: takes them, as the subject of the sentence.
        advice: what would fit.
        warn: also warn of what takes more than half of it.
    """
    if needed <= SMALL and VARIABLE not in os.environ:
        return
    free = free_memory()
    if free is not None and needed > free.size:
        raise InputError(f"{what} takes {in_words(needed)} of memory, but {free.phrase}: {advice}")
    if free is not None and warn and 2 * needed > free.size:
        warnings.warn(f"{what} takes {in_words(needed)} of memory, and {free.phrase}: {advice}", stacklevel=4)


def fits(needed: float) -> bool:
    """Whether so many bytes can be had, as far as that is known."""
    free = free_memory() if needed > SMALL or VARIABLE in os.environ else None
    return free is None or needed <= free.size


def free_memory() -> Free | None:
    """What can still be taken; None where that cannot be told."""
    if limit := os.environ.get(VARIABLE):
        allowed = int(limit) if limit.isdecimal() and int(limit) else _bytes(limit)
        left = max(0, allowed - _taken())
        return Free(left, f"of the {in_words(allowed)} that are allowed (--memory) {in_words(left)} are left")
    return min((*_of_machine(), *_of_group(), *_of_process()), default=None)


def _taken() -> int:
    """Bytes that this process has for itself; files that are mapped are not counted."""
    try:
        _, resident, shared, *_ = map(int, (_PROCESS / "statm").read_text().split())
        return (resident - shared) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _of_machine() -> Iterator[Free]:
    try:
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        size = int(lines["MemAvailable"].split()[0]) * 1024
    except (OSError, ValueError, KeyError):
        try:
            import psutil  # not on every machine

            size = int(psutil.virtual_memory().available)
        except Exception:
            return
    yield Free(size, f"this machine has {in_words(size)} free")


def _of_group() -> Iterator[Free]:
    """What the process's cgroup and those around it leave; caches of files can be given back."""
    try:
        lines = [line.split(":", 2) for line in (_PROCESS / "cgroup").read_text().splitlines()]
    except OSError:
        return
    for _, controllers, place in (line for line in lines if len(line) == 3):
        if controllers == "":
            root, names = _GROUPS, ("memory.max", "memory.current", "")
        elif "memory" in controllers.split(","):
            root, names = _GROUPS / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
        else:
            continue
        inner = Path(place.lstrip("/"))
        for folder in (root / part for part in (inner, *inner.parents)):
            try:
                limit, used = (int((folder / name).read_text()) for name in names[:2])
                stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
            except (OSError, ValueError):  # "max": no limit
                continue
            cached = sum(int(stat.get(f"{names[2]}{kind}_file", 0)) for kind in ("active", "inactive"))
            if limit < _UNLIMITED:
                left = max(0, limit - used + cached)
                yield Free(left, f"this container has {in_words(left)} of its {in_words(limit)} free")


def _of_process() -> Iterator[Free]:
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        used = int((_PROCESS / "statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError):  # Windows has no such limit
        return
    if limit != resource.RLIM_INFINITY:
        left = max(0, limit - used)
        yield Free(left, f"this process may have {in_words(limit)} (ulimit -v), of which {in_words(left)} are left")
