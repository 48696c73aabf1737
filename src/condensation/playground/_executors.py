"""Three lanes of threads that all sessions share: frames, compiling, and what else may take seconds.

A session has at most one piece of work in each, and takes its turn in the order in which it asks; a frame may train
for its share of a fixed time. So a page that asks for much, or compiles again and again, takes its share and no more,
and no page's frames wait behind another's compilation or prediction.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

TRAINING = 0.02  # seconds of training in a frame, where no other page asks
LEAST = 0.002
THREADS = 2  # for frames: one page that opens a network does not stop the others; more would only share one interpreter
T = TypeVar("T")


class Executors:
    """The threads of a server."""

    def __init__(self) -> None:
        self.quick = ThreadPoolExecutor(THREADS, thread_name_prefix="frames")
        self.compiling = ThreadPoolExecutor(1, thread_name_prefix="compiling")
        self.slow = ThreadPoolExecutor(1, thread_name_prefix="slow")
        self.waiting = 0  # frames under way

    def seconds(self) -> float:
        """How long a frame may train now."""
        return max(LEAST, TRAINING * THREADS / max(self.waiting, THREADS))

    async def quickly(self, work: Callable[..., T], *given: Any) -> T:
        """Do a piece of work in the quick lane."""
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.quick, work, *given)
        finally:
            self.waiting -= 1

    async def compile(self, work: Callable[..., T], *given: Any) -> T:
        """Do a piece of work in the lane of compilations."""
        return await asyncio.get_running_loop().run_in_executor(self.compiling, work, *given)

    async def slowly(self, work: Callable[..., T], *given: Any) -> T:
        """Do a piece of work in the slow lane."""
        return await asyncio.get_running_loop().run_in_executor(self.slow, work, *given)

    def close(self) -> None:
        """Let no more work in."""
        for lane in (self.quick, self.compiling, self.slow):
            lane.shutdown(wait=False, cancel_futures=True)
