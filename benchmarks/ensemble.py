"""How many small networks a device trains at once: `python benchmarks/ensemble.py [NETWORKS ...]`, for a GPU.

5-50-1 networks, 80 samples, Adam, TF32 and float32; losses recorded at 101 steps, all weights saved at 11. Prints
network-steps a second of the second call (the first compiles): of the training alone, and of `train` as a user calls
it, which draws data and starts and gathers the trajectories.
"""

import sys
import tempfile
import time

import jax

from condensation import Adam, Dense, Evenly, Experiment, Init, Normal, sine_sum, train
from condensation.sweeps import Local, Sweep, linspace, run_sweep

STEPS = 10_000


def experiment(steps: int = STEPS, dtype: str = "tf32") -> Experiment:
    """FC Fig. 3's tanh network."""
    network, data = Dense((5, 50, 1), "tanh"), sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
    start = Init(Normal(0.005))
    return Experiment(network, start, data, Adam(1e-3), steps=steps, save=Evenly(11), record=Evenly(101), dtype=dtype)


def measure(networks: int, dtype: str) -> str:
    """Rates of an ensemble."""
    train(experiment(dtype=dtype), seeds=networks)
    began = time.perf_counter()
    run = train(experiment(dtype=dtype), seeds=networks)
    whole = time.perf_counter() - began
    assert run.weights("dense1", STEPS).shape == (networks, 50, 6)
    assert run.loss.shape == (networks, 101)
    work = networks * STEPS / 1e6
    rates = f"{work / run.seconds:.1f} million network-steps a second, with all else {work / whole:.1f}"
    return f"{networks} networks, {dtype}: {rates}"


def sweep(cells: int, seeds: int, steps: int) -> str:
    """Seconds of a whole sweep, its parts apart: cells, training, measuring, files."""
    axes = {"init.hidden.std": linspace(0.001, 0.1, cells)}
    asked = Sweep(experiment(steps), axes, seeds=seeds)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        table = run_sweep(asked, folder, Local(1))
        whole = time.perf_counter() - began
    training = table.column("seconds").sum()
    return f"sweep of {cells} x {seeds}, {steps} steps: {whole:.1f} s, of which training {training:.1f}"


if __name__ == "__main__":
    print(jax.devices())
    for count in [int(one) for one in sys.argv[1:]] or [1024, 4096, 16384]:
        for dtype in ("tf32", "float32"):
            print(measure(count, dtype), flush=True)
    for _ in range(2):
        print(sweep(4096, 4, 2000), flush=True)
