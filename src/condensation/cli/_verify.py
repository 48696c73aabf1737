"""``condensation verify``."""

import dataclasses
import sys
from pathlib import Path
from typing import Annotated

import tyro

from .._phrases import plural
from ..errors import InputError
from ._output import FAILED, print_json, shown


def verify(
    paths: Annotated[
        tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="PATH [PATH ...]", help_behavior_hint="")
    ],
    /,
    json: bool = False,
) -> None:
    """Check that files are those that were written: of all runs and sweeps in folders, or of saved models.

    It reads the checksum that each file carries, and whether each finished seed has its file. Nothing that a file names
    is imported. The exit code is 4 if a file is damaged or gone; train or sweep again makes it anew.

    Args:
        paths: folders of runs or sweeps, or files of models.
        json: print what was checked as JSON.
    """
    from ..verification import verify as verify_path

    if not paths:
        raise InputError("a folder of runs or sweeps, or a model's file, is needed")
    verified = [each for path in paths for each in verify_path(path)]
    if json:
        print_json([dataclasses.asdict(each) | {"path": str(each.path)} for each in verified])
    for each in () if json else verified:
        state = "damaged" if each.problems else "as written"
        print(shown(f"{each.kind} {each.path}: {plural(each.files, 'file')}, {state}"))
        for sentence in (*each.problems, *each.unfinished):
            print(shown(f"  {sentence}"))
    if any(each.problems for each in verified):
        sys.exit(FAILED)
