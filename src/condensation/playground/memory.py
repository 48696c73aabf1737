"""Memory that is free goes back to the system: compiling leaves much of it in pieces that the C library keeps."""

import ctypes
import gc
import time

SECONDS = 10.0  # between two times


class Keeper:
    """Gives memory back now and then."""

    def __init__(self) -> None:
        self.last = time.perf_counter()

    @property
    def due(self) -> bool:
        """Whether it is time again."""
        return time.perf_counter() - self.last > SECONDS

    def give_back(self) -> None:
        """Give back what is free, where the C library can (glibc)."""
        self.last = time.perf_counter()
        gc.collect()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
