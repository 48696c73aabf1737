"""``python -m condensation``."""

import os
import sys
from contextlib import suppress

with suppress(FileNotFoundError):  # the current folder may be gone
    if sys.path and sys.path[0] in ("", os.getcwd()):  # Python puts it first; installed packages go before
        sys.path.append(sys.path.pop(0))

from .cli import main

main()
