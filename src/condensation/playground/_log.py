"""The server's log: the same line a few times a minute and no more, whatever clients do."""

import logging
import time
from collections import Counter

TIMES, SECONDS = 3, 60.0
LOGGERS = (__package__, "uvicorn.error", "asyncio")
log = logging.getLogger(__package__)


class Sparing(logging.Filter):
    """Lets a line of the program through ``TIMES`` in ``SECONDS``; the last one says so."""

    def __init__(self) -> None:
        super().__init__()
        self.until, self.counts = 0.0, Counter[tuple[str, int, str]]()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written."""
        if time.monotonic() > self.until:
            self.until, self.counts = time.monotonic() + SECONDS, Counter()
        line = record.pathname, record.lineno, str(record.msg).partition("\n")[0]
        self.counts[line] += 1
        if self.counts[line] == TIMES:
            record.msg = f"{str(record.msg).rstrip()} (this line is left out for up to a minute now)"
        return self.counts[line] <= TIMES


def spare_lines() -> None:
    """Let the loggers of the server write sparingly."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(one, Sparing) for one in logger.filters):
            logger.addFilter(Sparing())
