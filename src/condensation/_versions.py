"""Versions of this package and of what it stands on."""

import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from . import __version__

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "diffrax", "numpy", "scipy", "safetensors", "matplotlib")


@cache  # reading what is installed takes ten milliseconds
def versions() -> dict[str, str]:
    """Version by name; a package that is not installed is left out."""
    installed = {"condensation": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed
