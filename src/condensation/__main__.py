"""``python -m condensation``."""

from .cli import main

main()
