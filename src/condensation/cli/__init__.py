"""The command line, a file for each command.

Exit codes: 0 success, 2 bad input, 3 a seed diverged, 4 a figure or a cell failed, or a file is damaged,
130 interrupted (129 and 143 by SIGHUP and SIGTERM), 141 the output was not read to its end.
"""

import io
import logging
import os
import sys
import warnings
from contextlib import suppress

import tyro

from .. import __version__
from .._phrases import printable
from ..errors import InputError
from ._output import BAD_INPUT, UNREAD, shown
from ._signals import exit_code, listen


def main() -> None:
    """Run a command; for bad input, and for what the system refuses, print one sentence."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may lack characters such as ²
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("condensation").setLevel(logging.INFO)
    warnings.showwarning = lambda message, category, *_: _say(f"warning: {shown(message)}")
    listen()
    try:
        try:
            if sys.argv[1:] == ["--version"]:
                print(f"condensation {__version__}")
                return
            _check_folder()
            from ._commands import COMMANDS  # their libraries take a while to import: signals are heard by then

            if sys.argv[1:2] == ["reproduce"] and {"-h", "--help"} & {*sys.argv}:
                from ._reproduce import list_figures

                list_figures()
            tyro.extras.subcommand_cli_from_dict(
                COMMANDS,
                prog="condensation",
                description="A laboratory for the condensation of neural networks. --version prints the version.",
            )
        finally:
            sys.stdout.flush()  # a full disk is noticed here, while it can be told
    except InputError as error:
        _say(f"condensation: {printable(str(error))}")
        sys.exit(BAD_INPUT)
    except BrokenPipeError:  # the reader of the output has closed it, such as head
        _drop_output()
        sys.exit(UNREAD)
    except OSError as error:
        _drop_output()
        what = printable(str(error.filename or "the output or a file"))
        _say(f"condensation: {what} cannot be read or written: {error.strerror or error}")
        sys.exit(BAD_INPUT)
    except KeyboardInterrupt as stopped:
        _say("condensation: interrupted; what was saved stays, and the same command goes on from there")
        sys.exit(exit_code(stopped))


def _say(line: str) -> None:
    """Print a line to standard error, if that can be written."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def _drop_output() -> None:
    """Let what is left of the output go nowhere: it would be written, and fail, once more at the end."""
    with suppress(OSError, ValueError):
        output = sys.stdout.fileno()
        os.dup2(os.open(os.devnull, os.O_WRONLY), output)


def _check_folder() -> None:
    """Refuse to start in a folder that was deleted: nothing can be found from there."""
    try:
        os.getcwd()
    except OSError as error:
        raise InputError(f"the current folder is gone ({error.strerror}): go to another one first") from error
