"""``python -m condensation``."""

import os
import sys

if sys.path and sys.path[0] in ("", os.getcwd()):  # Python puts the current folder first; installed packages go before
    sys.path.append(sys.path.pop(0))

from .cli import main

main()
