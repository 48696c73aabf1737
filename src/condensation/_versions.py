"""Versions of this package and of what it stands on."""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from . import __version__

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "diffrax", "numpy", "scipy", "safetensors", "matplotlib")


def versions() -> dict[str, str]:
    """Version by name; a package that is not installed is left out."""
    own = {"condensation": __version__, "python": platform.python_version()}
    return own | {name: found for name in PACKAGES if (found := _installed(name))}


@cache  # each takes milliseconds, and every run that is opened asks
def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
