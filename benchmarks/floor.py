"""The floor of training: the same network in a plain C loop, compiled on the spot."""

import ctypes
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np

from condensation import Adam, Dense, Experiment, Seed

KINDS = {"tanh": 0, "sigmoid": 1, "softplus": 2, "x_tanh": 3, "x2_tanh": 4}
REALS = {"float32": ("float", ctypes.c_float), "float64": ("double", ctypes.c_double)}


@cache
def library(dtype: str) -> ctypes.CDLL:
    folder = Path(tempfile.mkdtemp())
    source = Path(__file__).with_name("floor.c")
    target = folder / "floor.so"
    flags = ["-Ofast", "-march=native", "-shared", "-fPIC", f"-DREAL={REALS[dtype][0]}"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(target), "-lm", "-lmvec"], check=True)
    return ctypes.CDLL(str(target))


def train_in_c(experiment: Experiment, steps: int) -> tuple[float, dict[str, np.ndarray]]:
    """Seconds for some steps of one network, and the parameters it ends with."""
    network, dtype, optimizer = experiment.network, experiment.dtype, experiment.optimizer
    assert isinstance(network, Dense) and isinstance(optimizer, Adam)
    real = REALS[dtype][1]
    start = experiment.init.draw(network, Seed(0, 0).init_stream())
    flat = np.concatenate([value.ravel() for value in start.values()]).astype(dtype)
    x, y = (np.ascontiguousarray(value, dtype) for value in experiment.data.draw(Seed(0, 0)))
    widths = np.array(network.widths[:-1], np.int32)
    kinds = np.array([KINDS[str(name)] for name in network.activations], np.int32)
    pointer = lambda array, kind: array.ctypes.data_as(ctypes.POINTER(kind))  # noqa: E731
    call = library(dtype).train
    rate = real(optimizer.learning_rate)
    began = time.perf_counter()
    call(
        len(kinds), pointer(widths, ctypes.c_int), pointer(kinds, ctypes.c_int), int(network.residual), len(x),
        pointer(x, real), pointer(y, real), pointer(flat, real), steps, rate,
    )  # fmt: skip
    seconds = time.perf_counter() - began
    parts, place = {}, 0
    for name, value in start.items():
        parts[name] = flat[place : place + value.size].reshape(value.shape)
        place += value.size
    return seconds, parts
