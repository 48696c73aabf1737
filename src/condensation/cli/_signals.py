"""Signals that end a command: the first one lets it save what it has, the second one ends it at once."""

import os
import signal
import sys
import threading
from types import FrameType
from typing import Any

NUMBERS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
LATER = 0.1  # seconds after which a signal that came at a bad moment is given again
_coming = threading.Event()  # a signal is to be given again
_TERMINALS = [output for output in (1, 2) if os.isatty(output)]


class Stopped(KeyboardInterrupt):
    """A signal asks the command to end, as Ctrl-C does."""


def listen() -> None:
    """Let signals stop the command; those that its parent told it to ignore (``nohup``) stay ignored."""
    for number in NUMBERS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    sys.unraisablehook = _not_raised


def exit_code(stopped: KeyboardInterrupt) -> int:
    """What a command that was stopped returns: 128 and the number of the signal, as in a shell."""
    return 128 + (stopped.args[0] if isinstance(stopped, Stopped) else signal.SIGINT)


def _stop(number: int, frame: FrameType | None) -> None:
    if _is_fragile(frame):
        _give_again(number)
        return
    for each in NUMBERS:
        if signal.getsignal(each) is _stop:
            signal.signal(each, signal.SIG_DFL)  # threads of native code may run on for long, and would not let us exit
    for output in _TERMINALS:
        if not os.isatty(output):  # it was closed: what is still said goes nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    raise Stopped(number)


def _is_fragile(frame: FrameType | None) -> bool:
    """Whether nothing may be raised now.

    While a module is imported: native ones crash. While an event loop is made: a half-made one complains when it goes.
    """
    while frame is not None and frame.f_globals.get("__name__") != __package__:  # where the command begins
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        if frame.f_code.co_name == "__init__" and str(frame.f_globals.get("__name__")).startswith("asyncio."):
            return True
        frame = frame.f_back
    return False


def _give_again(number: int) -> None:
    """Give a signal to this process once more, a moment later; once is enough, since a second one would not wait."""
    if not _coming.is_set():
        _coming.set()
        timer = threading.Timer(LATER, _give, (number,))
        timer.daemon = True
        timer.start()


def _give(number: int) -> None:
    _coming.clear()
    os.kill(os.getpid(), number)


def _not_raised(about: Any) -> None:
    """Python drops what is raised in a finalizer or a callback of garbage collection: then stop a moment later.

    Of two signals within one native call it handles the first, after which it tells that the second one is ignored.
    """
    if isinstance(about.exc_value, OSError) and "ignored due to race condition" in str(about.exc_value):
        return
    if not isinstance(about.exc_value, Stopped):
        sys.__unraisablehook__(about)
        return
    number = about.exc_value.args[0]
    signal.signal(number, _stop)
    _give_again(number)
