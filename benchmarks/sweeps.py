"""What sweeps cost, beside a plain loop of PyTorch: `python benchmarks/sweeps.py` writes SWEEPS.md beside this file.

`python benchmarks/sweeps.py bookkeeping 64 128` prints where the time of sweeps of 64 x 64 and 128 x 128 cells and 4
seeds goes: planning, training, measuring, writing; and what counting lines takes.

The GPU's numbers in SWEEPS.md come from `benchmarks/ensemble.py`, run on one.
"""

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from condensation import Adam, Dense, Evenly, Experiment, Init, Normal, sine_sum
from condensation.measure import count_lines, find_lines
from condensation.sweeps import Local, Sweep, _run, _task, linspace, logspace, run_sweep

STEPS, WIDTH, LOOPS = 2000, 100, 12
BEGIN, END = "<!-- written by sweeps.py -->", "<!-- end -->"


def base(width: int = WIDTH, steps: int = STEPS) -> Experiment:
    """FC Fig. 3's experiment with a wider network, as the benchmark asks."""
    return Experiment(
        Dense((5, width, 1), "tanh"),
        Init(Normal(0.005)),
        sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2),
        Adam(1e-3),
        steps=steps,
        save=Evenly(3),
        record=Evenly(101),
        dtype="float32",
    )


def grid() -> Sweep:
    """Learning rate against start std."""
    axes = {"optimizer.learning_rate": logspace(1e-4, 1e-2, 15), "init.hidden.std": logspace(1e-4, 1e-1, 15)}
    return Sweep(base(), axes, seeds=5)


def timed(sweep: Sweep, jobs: int, block: int | None = None) -> float:
    """Seconds of a sweep in an empty folder, workers' start included."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        table = run_sweep(sweep, folder, Local(jobs), block=block)
        seconds = time.perf_counter() - began
        assert table.complete and not table.failed
    return seconds


PARTS = {  # where the time of a sweep goes: a module's function, or a method, by part
    "planning": (_run, "pairs_of", _run.pairs_of),
    "training": (_task, "train_pairs", _task.train_pairs),
    "measuring": (_task.Task, "_measure", _task.Task._measure),
    "writing": (_task.SweepFolder, "commit", _task.SweepFolder.commit),
}


def split(side: int, steps: int = 5) -> dict[str, float]:
    """CPU seconds of the parts of a sweep of side x side cells and 4 seeds, 5-50-1, lines counted; in this process."""
    axes = {"optimizer.learning_rate": logspace(1e-4, 1e-2, side), "init.hidden.std": logspace(1e-4, 1e-1, side)}
    spent = dict.fromkeys(PARTS, 0.0)

    def clocked(part: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any, **options: Any) -> Any:
            began = time.process_time()
            try:
                return call(*given, **options)
            finally:
                spent[part] += time.process_time() - began

        return run

    for part, (place, name, call) in PARTS.items():
        setattr(place, name, clocked(part, call))
    count_lines(np.random.default_rng(0).normal(size=(1, 9, 5)))  # imports are not counted
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        run_sweep(Sweep(base(50, steps), axes, seeds=4), folder, Local(1), block=16384)
    spent["the rest"] = time.process_time() - began - sum(spent.values())
    return spent


def counting(networks: int = 16384) -> dict[str, tuple[float, float]]:
    """CPU seconds of counting the lines of so many networks of 50 x 6 weights: together, and one by one (a 16th)."""
    stream = np.random.default_rng(0)
    random = stream.normal(size=(networks, 50, 6))
    lines = stream.normal(size=(networks, 50, 1)) * stream.normal(size=(networks, 1, 6))
    kinds = {
        "random": random,
        "condensed": lines + 0.03 * random,
        "from condensed to random": lines + 10 ** stream.uniform(-2, 0.5, (networks, 1, 1)) * random,
    }
    took = {}
    for kind, weights in kinds.items():
        weights = weights.astype(np.float32)
        together = []
        for _ in range(3):
            began = time.process_time()
            count_lines(weights)
            together.append(time.process_time() - began)
        began = time.process_time()
        for own in weights[::16]:
            find_lines(own)
        took[kind] = min(together), 16 * (time.process_time() - began)
    return took


def show_bookkeeping() -> None:
    """Print where the time of large sweeps goes beside training, on one core."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    for side in map(int, sys.argv[2:] or ("64",)):
        spent, networks = split(side), 4 * side**2
        spent["without training"] = sum(spent.values()) - spent["training"]
        each = [f"{part} {seconds / networks * 1e6:.0f}" for part, seconds in spent.items()]
        print(f"{networks} networks, microseconds of a core for each: {', '.join(each)}", flush=True)
    for kind, (together, alone) in counting().items():
        print(f"lines of 16384 networks, {kind}: {together:.2f} s together, {alone:.1f} s one by one", flush=True)


def in_process(what: str) -> float:
    """The same in a fresh process: no worker, no compiled program is left from before."""
    run = subprocess.run([sys.executable, __file__, what], check=True, capture_output=True, text=True)
    return float(run.stdout.split()[-1])


def torch_seconds() -> float:
    """Seconds of one run in a plain loop, mean over some cells of the grid; each cell costs the same."""
    from rivals import plain_loop

    return sum(plain_loop(base())(STEPS) for _ in range(LOOPS)) / LOOPS * STEPS


def one(what: str) -> float:
    """One measurement by name, in this process."""
    if what == "two workers":
        return timed(grid(), 2)
    if what == "one worker":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one thread
        return timed(grid(), 1)
    assert what == "overhead"
    steps = 20
    tiny = Sweep(base(10, steps), {"init.hidden.std": linspace(0.01, 0.1, 400)}, measure=("change",))
    timed(Sweep(base(10, steps), {"init.hidden.std": linspace(0.01, 0.1, 8)}, measure=("change",)), 2)  # workers start
    many, few = timed(tiny, 2, block=1), timed(tiny, 2, block=200)
    return (many - few) * 2 / 398  # seconds of a worker for each task more


def main() -> None:
    """Measure in turn, and write the page."""
    if sys.argv[1:2] == ["bookkeeping"]:
        show_bookkeeping()
        return
    if len(sys.argv) > 1:
        print(one(sys.argv[1]))
        return
    networks = 15 * 15 * 5
    loops, single, double = [], [], []
    for _ in range(2):  # in turn, so that a slow while slows all
        loops.append(torch_seconds())
        double.append(in_process("two workers"))
        single.append(in_process("one worker"))
    loop, whole = sum(loops) / 2, sum(double) / 2
    overhead = in_process("overhead")
    lines = [
        BEGIN,
        f"Two cores ({platform.processor() or platform.machine()}), float32, 5-{WIDTH}-1, 80 samples, Adam, {STEPS} "
        "steps, lines counted at the end; start of the workers and compilation included.",
        "",
        "| what | measured | asked |",
        "| --- | --- | --- |",
        f"| 15 x 15 cells, 5 seeds: {networks} networks | {whole:.1f} s, {networks * STEPS / whole / 1e3:.0f} thousand "
        "network-steps a second | |",
        f"| a plain PyTorch loop over them ({2 * LOOPS} of them measured: {loop:.2f} s a network) | "
        f"{loop * networks:.0f} s: **{loop * networks / whole:.1f} times** | >= 40 times |",
        f"| the same with one worker of one thread, which is the driver itself | {sum(single) / 2:.1f} s: two workers "
        f"are **{sum(single) / sum(double):.2f} times** as fast | >= 1.7 times |",
        f"| what a task costs beyond its training | **{overhead * 1e3:.0f} ms** | < 50 ms |",
        END,
    ]
    page = Path(__file__).with_name("SWEEPS.md")
    before = page.read_text() if page.exists() else f"# Sweeps\n\n{BEGIN}\n{END}\n"
    page.write_text(before[: before.index(BEGIN)] + "\n".join(lines) + before[before.index(END) + len(END) :])
    print("\n".join(lines))


if __name__ == "__main__":
    main()
