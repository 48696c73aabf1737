"""The server returns free memory to the system, and drops compiled programs from time to time.

After compiling, the C library keeps much free memory, and JAX and Diffrax keep programs whose functions are gone. A
program that is still in use is compiled again, which takes about a second.
"""

import ctypes
import gc
import time

import jax

SECONDS = 10.0  # at least, between two trims
OPENED = 24  # networks after which all compiled programs are dropped


class MemoryTrimmer:
    """Decides when memory is returned, and returns it."""

    def __init__(self) -> None:
        self.last, self.opened = time.perf_counter(), 0

    def is_due(self) -> bool:
        """Count a network that is opened; tell whether it is time to trim."""
        self.opened += 1
        return time.perf_counter() - self.last > SECONDS

    def trim(self) -> None:
        """Return free memory, where the C library can (glibc)."""
        self.last = time.perf_counter()
        if self.opened >= OPENED:
            self.opened = 0
            jax.clear_caches()
        gc.collect()
        malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if malloc_trim is not None:
            malloc_trim(0)
