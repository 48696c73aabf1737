"""The threads of a server: one pool for frames, one for compiling, one for everything else that may take seconds.

All sessions share them. A client has at most one task in each pool, and tasks run in the order in which they come. The
training time of a frame is divided among the pages that wait. So no page gets more than its share, and no frame waits
for the compilation or the prediction of another page.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

TRAINING = 0.02  # seconds of training in a frame, if no other page waits
LEAST = 0.002
THREADS = 2  # for frames: one page that opens a network does not stop the others; more would only share one interpreter
POOLS = {"frames": THREADS, "compiling": 1, "slow": 1}
T = TypeVar("T")


class Executors:
    """Three thread pools, and the number of frames that wait for one of them."""

    def __init__(self) -> None:
        self.pools = {name: ThreadPoolExecutor(size, thread_name_prefix=name) for name, size in POOLS.items()}
        self.waiting = 0  # frames in progress

    def seconds(self) -> float:
        """How long a frame may train now."""
        return max(LEAST, TRAINING * THREADS / max(self.waiting, THREADS))

    async def run(self, pool: str, work: Callable[..., T], *arguments: Any) -> T:
        """Run work in a pool: ``frames``, ``compiling`` or ``slow``."""
        self.waiting += pool == "frames"
        try:
            return await asyncio.get_running_loop().run_in_executor(self.pools[pool], work, *arguments)
        finally:
            self.waiting -= pool == "frames"

    def close(self) -> None:
        """Cancel waiting work and accept no more."""
        for pool in self.pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
