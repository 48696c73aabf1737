"""What measuring and watching PyTorch models costs: `python benchmarks/pytorch.py` writes PYTORCH.md beside this file.

Reduction is judged by `examples/pytorch_mnist.py`, three seeds, whose table is taken over.
"""

import platform
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = 4096
REPEATS = 5


class Memory:
    """The largest resident memory while a block runs, beyond what there was before, in bytes."""

    def __enter__(self) -> "Memory":
        self.before, self.peak, self.running = _resident(), 0, True
        self.thread = threading.Thread(target=self._look)
        self.thread.start()
        return self

    def _look(self) -> None:
        while self.running:
            self.peak = max(self.peak, _resident() - self.before)
            time.sleep(0.005)

    def __exit__(self, *_: object) -> None:
        self.running = False
        self.thread.join()


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


def gpt2() -> dict[str, tuple[float, float]]:
    """Seconds and megabytes of one measurement of all layers of GPT-2 (124 million parameters, random weights)."""
    from transformers import GPT2Config, GPT2LMHeadModel

    from condensation.pytorch import units
    from condensation.weights import measure_listed

    model = GPT2LMHeadModel(GPT2Config())
    ways = {
        "as a watched training measures, one row a matrix": {"heads": False, "with_null": False, "jobs": 1},
        "with mean removed and null, one row a matrix": {"heads": False, "with_null": True, "jobs": 2},
        "with mean removed and null, one row a head": {"heads": True, "with_null": True, "jobs": 2},
    }
    found = {}
    for what, how in ways.items():
        heads = how.pop("heads")
        with Memory() as memory:
            began = time.perf_counter()
            rows = measure_listed(units(model, heads=bool(heads)), **how)
            seconds = time.perf_counter() - began
        measured = sum(not row.reason for row in rows)
        found[f"{what} ({measured} rows)"] = (seconds, memory.peak / 1e6)
    return found


def overhead() -> tuple[float, float]:
    """Median over repetitions of a watched training's time over a plain one's: default schedule, and a budget of 3%."""
    import torch
    from torch import nn

    from condensation.pytorch import watch

    x, y = torch.randn(6400, 784), torch.randint(10, (6400,))

    def train(watched: bool, budget: float | None) -> float:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(784, 400), nn.ReLU(), nn.Linear(400, 10))
        optimizer = torch.optim.Adam(model.parameters())
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            watcher = watch(model, Path(folder) / "run", budget=budget) if watched else None
            for step in range(2000):
                part = slice(64 * (step % 100), 64 * (step % 100) + 64)
                loss = nn.functional.cross_entropy(model(x[part]), y[part])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if watcher is not None:
                    watcher.step(loss)
            if watcher is not None:
                watcher.close()
            return time.perf_counter() - began

    train(False, None)
    ratios = [
        [train(True, budget) / train(False, None) for budget in (None, 0.03)] for _ in range(REPEATS)
    ]  # in turn, so that a slow while slows both
    default, limited = (statistics.median(column) for column in zip(*ratios, strict=True))
    return default, limited


def mnist(seeds: range) -> list[str]:
    """The table of `examples/pytorch_mnist.py`, its dense networks."""
    sys.path.insert(0, str(ROOT / "examples"))
    from pytorch_mnist import main as example  # pyright: ignore[reportMissingImports]

    lines = [
        "MNIST, 784-400-10, reduced by 10,000 training images to 98.8% agreement there; on the 10,000 test images",
        "",
    ]
    lines += ["| start, seed | accuracy | units | agreement | tuned | accuracy, tuned | pruned agreement | tuned |"]
    lines += ["| --- " * 8 + "|"]
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            found = example(Path(folder) / "mnist", seed=seed)
        for start, n in found.items():
            cells = [f"{start}, {seed}", f"{n['accuracy']:.4f}", f"{n['units']:.0f}", f"{n['merged, agreement']:.4f}"]
            cells += [f"{n[f'merged and tuned, {what}']:.4f}" for what in ("agreement", "accuracy")]
            cells += [f"{n['pruned, agreement']:.4f}", f"{n['pruned and tuned, agreement']:.4f}"]
            lines.append(f"| {' | '.join(cells)} |")
    asked = "Asked: better than the literature's 58 units at 98.5%. *Tuned*: after one epoch more."
    return [*lines, "", f"{asked} *Pruned*: by Torch-Pruning's magnitude importance, to the same number of units."]


def main() -> None:
    """Measure, and write the page."""
    import torch

    lines = ["# PyTorch models", ""]
    lines += [f"Two cores ({platform.processor() or platform.machine()}), PyTorch {torch.__version__}.", ""]
    lines += ["A measurement of all layers of GPT-2, 124 million parameters, random weights from its configuration", ""]
    lines += ["| how | seconds | asked | memory beyond the model | asked |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {what} | {s:.1f} | < 10 | {mb:.0f} MB | < 1 GB |" for what, (s, mb) in gpt2().items()]
    default, limited = overhead()
    lines += ["", "Watching 2000 steps of a 784-400-10 network (batches of 64, Adam), all layers, files written", ""]
    lines += ["| schedule | time with / without |", "| --- | --- |"]
    lines += [f"| geometric, the default | {default:.2f} |", f"| geometric, budget=0.03 | {limited:.2f} |"]
    lines += ["", *mnist(range(3))]
    Path(__file__).with_name("PYTORCH.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
