"""For the fuzzers: odd values, mutations of plain data, texts and bytes, and commands run in this process.

Numbers are small, or too large for any array: what lies between is work that lasts.
"""

import contextlib
import copy
import datetime
import io
import json
import logging
import os
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from condensation import InputError
from condensation.activations import ACTIVATIONS
from condensation.cli import main
from condensation.cli._signals import NUMBERS as SIGNALS

Stream = np.random.Generator
CODES = {0, 2, 3, 4}  # of a command: success, bad input, a seed diverged, a cell failed
SEED = int(os.environ.get("FUZZ_SEED", "0"))  # other numbers give other cases
LONGEST = 20  # seconds of one case, many times what it takes
MOST_TOLD = 4000  # characters on standard error

NUMBERS = (
    *(0, 1, 2, 3, 7, 20, -1, -7, True, False, 2**31, 2**31 - 1 + 2**40, 2**63 - 1, -(2**63), 2**64, 10**400),
    *(0.0, -0.0, 0.5, -0.5, 1.0, 2.0, 1e-30, 5e-324, 1e40, -1e40, 1e308, float("nan"), float("inf"), -float("inf")),
)
TEXTS = (
    *("", "a", "tanh", "gd", "nan", "e", "x * y", "mine:f", "os:getcwd", ":", "json:dumps", "..", "/", "a" * 300),
    *("größe", "中文", "مرحبا", "🙂", "\x1b[2J", "a\nb", "\x00", "\u202e", "\ud800", "[/]", "[red]", "{0}", "%s", "-1"),
)
NAMES = (
    *ACTIVATIONS,
    *("dense", "conv", "resnet", "normal", "uniform", "glorot", "width_power", "fan_out_power", "synthetic", "images"),
    *(
        "expression",
        "gd",
        "adam",
        "adamw",
        "muon",
        "sign_gd",
        "normalised_gd",
        "gradient_flow",
        "cosine",
        "warmup",
        "constant",
    ),
    *("at", "every", "evenly", "geometric", "mse", "softmax_mse", "cross_entropy", "sum", "mean", "float32", "tf32"),
    *(
        "even",
        "random",
        "digits",
        "lines",
        "change",
        "rank",
        "share",
        "cosine",
        "initial",
        "saved",
        "end",
        "m",
        "2 * m",
    ),
)


def stream_of(count: int) -> Stream:
    """The random numbers of a test with so many cases."""
    return np.random.default_rng([SEED, count])


def odd_value(stream: Stream, depth: int = 0) -> Any:
    """A value that may stand anywhere and seldom fits."""
    kind = stream.integers(10)
    if kind < 4:
        return NUMBERS[stream.integers(len(NUMBERS))]
    if kind < 7:
        return TEXTS[stream.integers(len(TEXTS))]
    if kind == 7:
        return datetime.date(2020, 1, 1)
    if kind == 8 or depth > 2:
        return [odd_value(stream, depth + 1) for _ in range(stream.integers(4))] if depth < 3 else []
    return {TEXTS[stream.integers(len(TEXTS))]: odd_value(stream, depth + 1) for _ in range(stream.integers(3))}


def places(plain: Any) -> list[tuple[Any, Any]]:
    """All places in plain data: what holds each, and its key or number there."""
    found, level = [], [plain]
    while level:
        held = level.pop()
        keys = held.keys() if isinstance(held, dict) else range(len(held)) if isinstance(held, list) else ()
        found += [(held, key) for key in keys]
        level += [held[key] for key in keys]
    return found


def mutated(plain: Any, stream: Stream, odd: Callable[[Stream], Any] = odd_value) -> Any:
    """A copy of plain data with one to three changes."""
    plain = copy.deepcopy(plain)
    for _ in range(stream.choice([1, 1, 1, 2, 3])):
        everywhere = places(plain)
        if not everywhere:
            return odd(stream)
        held, key = everywhere[stream.integers(len(everywhere))]
        other, there = everywhere[stream.integers(len(everywhere))]
        value = held[key]
        match stream.integers(16):
            case 0:
                del held[key]
            case 1:
                held[key] = [value]
            case 2:
                held[key] = {str(key): value}
            case 3:
                held[key] = copy.deepcopy(other[there])
            case 4 if isinstance(held, dict):
                held[TEXTS[stream.integers(len(TEXTS))]] = held.pop(key)
            case 5 if isinstance(held, dict):
                held[TEXTS[stream.integers(len(TEXTS))]] = odd(stream)
            case 6 if isinstance(value, int | float):
                held[key] = [-value, value + 1, float(max(-9, min(value, 9))), str(value)[:400], value * 2**70][
                    stream.integers(5)
                ]
            case 7 if isinstance(held, list):
                held += held[: 3 * len(held)]
            case 8:
                held[key] = odd(stream)
            case _:
                held[key] = alike(value, stream)
    return plain


def alike(value: Any, stream: Stream) -> Any:
    """Another value of the same type, which may well fit."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return NAMES[stream.integers(len(NAMES))]
    same = [number for number in NUMBERS if type(number) is type(value)]
    return same[stream.integers(len(same))] if same else value


def as_toml(plain: Any) -> str:
    """Plain data as TOML, as far as TOML can say it."""
    if isinstance(plain, dict):
        return "{" + ", ".join(f"{_quoted(str(key))} = {as_toml(value)}" for key, value in plain.items()) + "}"
    if isinstance(plain, list | tuple):
        return "[" + ", ".join(map(as_toml, plain)) + "]"
    if isinstance(plain, str):
        return _quoted(plain)
    return str(plain).lower() if isinstance(plain, bool) else repr(plain) if isinstance(plain, float) else str(plain)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=text.isascii()).replace("\x7f", "\\u007f")


def toml_file(plain: Any) -> bytes:
    """A TOML file of plain data, a line for each field."""
    lines = [f"{_quoted(str(key))} = {as_toml(value)}" for key, value in plain.items()]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def mutated_bytes(content: bytes, stream: Stream) -> bytes:
    """Bytes flipped, cut out, repeated or put in."""
    changed = bytearray(content)
    for _ in range(stream.choice([1, 1, 1, 2, 3])):
        place = int(stream.integers(len(changed) + 1))
        size = int(stream.choice([1, 1, 1, 2, 4, 8, 40]))
        match stream.integers(6):
            case 0 if place < len(changed):
                changed[place] ^= 1 << int(stream.integers(8))
            case 1:
                del changed[place : place + size]
            case 2:
                changed[place:place] = changed[place : place + size]
            case 3:
                changed[place : place + size] = stream.bytes(size)
            case 4 if stream.integers(4) == 0:
                del changed[place:]
            case _:
                changed[place : place + size] = bytes([stream.choice([0, 255, 49, 91, 123, 45])]) * size
    return bytes(changed)


class Failed(AssertionError):
    """A case that ended otherwise than by success or one sentence."""


@contextlib.contextmanager
def within_time() -> Iterator[None]:
    """Interrupt a case that hangs; seconds are those of the processor, as others may share the machine."""

    def late(*_: object) -> None:
        raise Failed(f"longer than {LONGEST} seconds")

    before = signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class Tally:
    """Counts how cases ended, and keeps those that failed."""

    def __init__(self) -> None:
        self.ends: Counter[Any] = Counter()
        self.failures: dict[str, str] = {}  # by where each came from

    @contextlib.contextmanager
    def case(self, what: object) -> Iterator[None]:
        """Run a case; what it raises is kept, and the next cases go on."""
        try:
            yield
        except Exception as error:
            cause = error.__cause__ or error
            last = traceback.extract_tb(cause.__traceback__)[-1]
            self.failures.setdefault(
                f"{last.filename}:{last.lineno}", f"{str(what)[:300]}: {type(cause).__name__}: {str(error)[-1500:]}"
            )

    def check(self) -> None:
        """Fail with all that went wrong."""
        assert not self.failures, "\n\n".join(f"{place}: {what[:2000]}" for place, what in self.failures.items())


def refused(call: Callable[[], Any]) -> bool:
    """Whether a call refuses its input; any error but ``InputError`` fails."""
    try:
        with within_time(), warnings.catch_warnings(action="ignore"):
            call()
    except InputError as error:
        if len(str(error)) > MOST_TOLD:
            raise Failed(f"a sentence of {len(str(error))} characters: {str(error)[:200]}") from error
        return True
    return False


def told(*words: object) -> tuple[int, str, str]:
    """Exit code, output and errors of a command run in this process; anything but an exit fails."""
    out, errors, code = io.StringIO(), io.StringIO(), 0
    with contextlib.ExitStack() as stack:
        stack.enter_context(within_time())
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("default")
        stack.enter_context(patch.object(sys, "argv", ["condensation", *map(str, words)]))
        stack.enter_context(patch.object(sys, "path", [*sys.path]))
        stack.enter_context(patch.object(sys, "unraisablehook", sys.unraisablehook))
        stack.enter_context(patch.object(logging.root, "handlers", []))  # each command has its own, for its stderr
        for number in SIGNALS:
            stack.callback(signal.signal, number, signal.getsignal(number))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(errors))
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except Exception as error:
            raise Failed(f"condensation {words}: {type(error).__name__}: {traceback.format_exc()[-1500:]}") from error
    return code, out.getvalue(), errors.getvalue()


def check_told(*words: object) -> int:
    """Run a command; it must succeed or say one sentence. Its exit code."""
    code, _, errors = told(*words)
    box = "╭──" in errors or "-----" in errors  # the line could not be understood: tyro says which of its words
    if code not in CODES or "Traceback" in errors or (len(errors) > MOST_TOLD and not box):
        raise Failed(f"condensation {words}: code {code}: {errors[:1500]}")
    if code == 2 and not box:
        *before, last = errors.splitlines()  # before it there may be warnings and what a sweep has begun
        if not last.startswith("condensation: ") or any(line.startswith("condensation: ") for line in before):
            raise Failed(f"condensation {words}: not one sentence: {errors[:1500]}")
    return code


def written(path: Path, content: bytes) -> Path:
    """A file with a content."""
    path.write_bytes(content)
    return path
