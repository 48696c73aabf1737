"""Versions of this package and of what it stands on."""

import platform
from importlib.metadata import PackageNotFoundError, version

from . import __version__

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "diffrax", "numpy", "scipy", "safetensors", "matplotlib")


def versions() -> dict[str, str]:
    """Version by name; a package that is not installed is left out."""
    installed = {"condensation": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            installed[name] = version(name)
        except PackageNotFoundError:
            continue
    return installed
