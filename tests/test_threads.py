"""Threads of BLAS: limited while narrow products are computed, and as before afterwards."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from condensation._threads import NARROW, narrow, narrow_products, one_blas_thread


def counts() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def three():
    """More threads than one, whatever the machine has."""
    with one_blas_thread(), threadpool_limits(3, user_api="blas"):
        pass  # the libraries are loaded
    with threadpool_limits(3, user_api="blas"):
        yield


def test_narrow_products_take_one_thread_and_wide_ones_all():
    for columns, expected in ((NARROW, {1}), (NARROW + 1, {3})):
        with narrow(columns):
            assert counts() == expected
        assert counts() == {3}


def test_the_argument_x_decides_wherever_it_stands():
    @narrow_products
    def seen(y, x, *, fails=False):
        if fails:
            raise KeyError(x)
        return counts()

    wide, few = np.zeros((2, NARROW + 1)), np.zeros((2, 3))
    assert seen(0, few) == seen(x=few, y=wide) == seen(0, [[1.0]]) == seen(0, np.zeros(900)) == {1}
    assert seen(few, wide) == {3}
    with pytest.raises(KeyError):
        seen(0, few, fails=True)
    with pytest.raises(TypeError, match="missing a required argument: 'x'"):
        seen(0)  # pyright: ignore[reportCallIssue]
    assert counts() == {3}


def test_who_comes_first_lifts_the_limit():
    """Others may come in, and leave, in between: within it, and in other threads."""
    entered, leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with one_blas_thread():
        with one_blas_thread():
            assert counts() == {1}
        assert counts() == {1}
        thread.start()
        assert entered.wait(60)
    assert counts() == {3}
    leave.set()
    thread.join()
    assert counts() == {3}
    with one_blas_thread():
        assert counts() == {1}
    assert counts() == {3}
