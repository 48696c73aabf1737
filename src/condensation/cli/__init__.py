"""The command line, a file for each command.

Exit codes: 0 success, 2 bad input, 3 a seed diverged, 4 a figure or a cell failed, 130 interrupted, 141 the output was
not read to its end.
"""

import io
import logging
import os
import sys
import warnings

import tyro

from ..errors import InputError
from ._data import data
from ._info import info
from ._measure import measure
from ._output import BAD_INPUT, INTERRUPTED, UNREAD, shown
from ._play import play
from ._predict import predict
from ._reduce import reduce
from ._reproduce import reproduce
from ._sweep import sweep
from ._train import train
from ._watch import watch

_COMMANDS = (play, train, sweep, watch, measure, predict, reduce, reproduce, data, info)
COMMANDS = {command.__name__: command for command in _COMMANDS}


def main() -> None:
    """Run a command; for bad input, print one sentence."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may lack characters such as ²
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("condensation").setLevel(logging.INFO)
    warnings.showwarning = lambda message, category, *_: print(f"warning: {shown(message)}", file=sys.stderr)
    try:
        tyro.extras.subcommand_cli_from_dict(
            COMMANDS, prog="condensation", description="A laboratory for the condensation of neural networks."
        )
    except InputError as error:
        print(f"condensation: {shown(error)}", file=sys.stderr)
        sys.exit(BAD_INPUT)
    except BrokenPipeError:  # the reader of the output has closed it, such as head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(UNREAD)
    except KeyboardInterrupt:
        print(
            "condensation: interrupted; what was saved stays, and the same command goes on from there", file=sys.stderr
        )
        sys.exit(INTERRUPTED)
