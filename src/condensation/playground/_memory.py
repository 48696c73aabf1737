"""Memory that is free goes back to the system, and what was compiled long ago is forgotten.

Compiling leaves much memory in pieces that the C library keeps, and JAX and Diffrax remember programs whose functions
are gone. What is in use is compiled again, in a second.
"""

import ctypes
import gc
import time

import jax

SECONDS = 10.0  # between two times
OPENED = 24  # networks after which all that was compiled is forgotten


class MemoryTrimmer:
    """Gives memory back now and then."""

    def __init__(self) -> None:
        self.last, self.opened = time.perf_counter(), 0

    def count(self) -> bool:
        """A network is opened; whether it is time to give back."""
        self.opened += 1
        return time.perf_counter() - self.last > SECONDS

    def give_back(self) -> None:
        """Give back what is free, where the C library can (glibc)."""
        self.last = time.perf_counter()
        if self.opened >= OPENED:
            self.opened = 0
            jax.clear_caches()
        gc.collect()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
