"""All commands by their names."""

from collections.abc import Callable

from ._data import data
from ._info import info
from ._measure import measure
from ._play import play
from ._predict import predict
from ._reduce import reduce
from ._reproduce import reproduce
from ._show import show
from ._sweep import sweep
from ._train import train
from ._verify import verify
from ._watch import watch

_COMMANDS = (play, train, sweep, show, watch, measure, predict, reduce, reproduce, verify, data, info)
COMMANDS: dict[str, Callable[..., None]] = {command.__name__: command for command in _COMMANDS}
