"""Experiments of a sweep as text: for their rows and fingerprints.

The cells of a grid share most of their parts, and each part is written once: the text of a cell is put together from
those of its parts. It is the text that ``json`` would write of the whole.
"""

import hashlib
import json
from dataclasses import fields
from typing import Any

from .._functions import function_fingerprint
from .._serialization import FORMAT, canonical, to_plain
from .._stored import StoredArrays
from ..experiment import Experiment

FIELDS = tuple(field.name for field in fields(Experiment))


def array_file(arrays: StoredArrays) -> str:
    """Where the folder of a sweep keeps arrays of the user: by their digests."""
    digests = [value[:12] for name, value in to_plain(arrays).items() if name.endswith("sha256")]
    return f"arrays/{'-'.join(digests)}.safetensors"


def plain_experiment(experiment: Experiment) -> dict[str, Any]:
    """An experiment as plain data; a user's arrays are named by the files that the sweep's folder has of them."""
    return {"format": FORMAT} | {name: plain_part(getattr(experiment, name)) for name in FIELDS}


def plain_part(value: Any) -> Any:
    """A part of an experiment as plain data."""
    return to_plain(value, place_of=lambda arrays: {"file": array_file(arrays)})


class ExperimentTexts:
    """Writes experiments that share parts."""

    def __init__(self) -> None:
        self._written: dict[tuple[str, int], tuple[Any, str]] = {}  # a part is kept with its text: its id stays its own

    def json(self, experiment: Experiment) -> str:
        """``json.dumps(plain_experiment(experiment))``."""
        key = "whole", id(experiment)
        if key not in self._written:
            parts = (f'"{name}": {self._text("json", getattr(experiment, name))}' for name in FIELDS)
            self._written[key] = experiment, f'{{"format": {FORMAT}, {", ".join(parts)}}}'
        return self._written[key][1]

    def fingerprint(self, experiment: Experiment) -> str:
        """``experiment.fingerprint()``."""
        values = ((name, getattr(experiment, name)) for name in sorted(FIELDS))
        parts = (f'"{name}":{self._text("canonical", value)}' for name, value in values if value is not None)
        return hashlib.sha256(f'{{"format":{FORMAT},"value":{{{",".join(parts)}}}}}'.encode()).hexdigest()

    def _text(self, kind: str, part: Any) -> str:
        key = kind, id(part)
        if key not in self._written:
            text = canonical(part, function_fingerprint) if kind == "canonical" else json.dumps(plain_part(part))
            self._written[key] = part, text
        return self._written[key][1]
