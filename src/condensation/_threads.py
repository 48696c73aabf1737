"""Threads of BLAS: narrow products take less time in one thread than several threads take to wait for each other."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

NARROW = 64  # columns of a matrix up to which a product is narrow
_P = ParamSpec("_P")
_R = TypeVar("_R")


_LIMITED = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """One thread of BLAS, which has one limit for the whole process.

    Whoever comes first sets it, and lifts it; OpenBLAS does not let another thread do so. Those who come in meanwhile
    have it until then.
    """
    if not _LIMITED.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _LIMITED.release()


@cache
def _libraries() -> ThreadpoolController:
    """The libraries with threads of their own, looked for once: that takes a millisecond."""
    import scipy.linalg  # noqa: F401  it has a BLAS of its own, which is found when it is loaded

    return ThreadpoolController()


@contextmanager
def narrow(columns: int) -> Iterator[None]:
    """One thread of BLAS while matrices of so few columns are multiplied; beside busy processes that is far faster."""
    if columns > NARROW:
        yield
        return
    with one_blas_thread():
        yield


def narrow_products(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compute a function in one thread of BLAS where its argument ``x``, samples x inputs, has few inputs."""
    given = signature(function)

    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        shape = getattr(given.bind(*args, **kwargs).arguments["x"], "shape", ())  # that of a list is not worth knowing
        with narrow(shape[-1] if len(shape) > 1 else 1):
            return function(*args, **kwargs)

    return call
