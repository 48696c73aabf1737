"""All of REDUCTION.md's CIFAR-10 in one go, on one GPU and within a time limit: `python benchmarks/reduction/gpu.py`.

This process trains ResNet-56, MobileNetV2 and VGG-16, three seeds of each side by side; as soon as they are trained, a
process of its own for each seed and share reduces, compares and fine-tunes them. A result is a line of JSON in a file,
and what the limit cuts off is missing there; a second call on the same folder goes on from the networks and lines that
are there. `python benchmarks/reduction tables --folder DIR` prints the tables.
"""

import argparse
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # else each process takes most of the GPU's memory for JAX

import torch
from compare import OURS, Images, compared, keep, read, some
from mobilenet import GAIN, rows
from networks import make
from rivals import RIVALS
from sheets import read as read_sheets
from together import train_together

BUDGETS = {"resnet56": 110.0, "mobilenetv2": 70.0, "vgg16": 45.0}  # seconds of training
SHARES: dict[str, tuple[float, ...]] = {"resnet56": (0.5, 0.3), "mobilenetv2": (0.0,), "vgg16": (0.5, 0.3)}
TUNED = ("ours, best", "l1 pruning, least squares", "folding", "Torch-Pruning, l2", "Torch-Pruning, Taylor")
METHODS = {"resnet56": (*OURS, *RIVALS), "vgg16": (*OURS, *RIVALS), "mobilenetv2": ("ours, best", "Torch-Pruning, l2")}
LEAST, MOST = 10, 60  # epochs


def main() -> None:
    """Train and start the comparisons; or, with --work, do one of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sheets", type=Path, nargs="+", required=True, help="folders of sheets.py")
    parser.add_argument("--folder", type=Path, default=Path("out/reduction-gpu"), help="of the results")
    parser.add_argument("--networks", type=Path, default=Path("/tmp/networks"), help="where trained networks are kept")
    parser.add_argument("--limit", type=float, default=540.0, help="seconds in all")
    parser.add_argument("--names", nargs="+", default=list(BUDGETS), choices=list(BUDGETS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, help="of training; as many as there is time for, if not given")
    parser.add_argument("--seen", type=int, default=2000, help="training images that a reduction sees")
    parser.add_argument("--images", type=int, help="use so few of each split")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--work", nargs=3, help="a network, a seed and a share: compare the methods on these")
    given = parser.parse_args()
    for folder in (given.folder, given.networks):
        folder.mkdir(parents=True, exist_ok=True)
    if given.work:
        _work(given, given.work[0], int(given.work[1]), float(given.work[2]))
    else:
        _lead(given, time.monotonic() + given.limit)


def _lead(given: argparse.Namespace, end: float) -> None:
    workers: dict[str, subprocess.Popen[bytes]] = {}
    torch.backends.cudnn.benchmark = True
    torch.set_num_threads(2)
    data = _data(given)
    try:
        for name in given.names:
            missing = [seed for seed in given.seeds if not _place(given, name, seed).exists()]
            if missing and time.monotonic() > end - 60:
                _note(given, f"{name}: no time to train it")
                continue
            if missing:
                _train(given, name, missing, *data[0])
            for share in SHARES[name]:
                for seed in given.seeds:
                    workers[f"{name} {seed} {share}"] = _start(given, name, seed, share)
        while time.monotonic() < end and any(worker.poll() is None for worker in workers.values()):
            time.sleep(0.5)
    except Exception:  # what was trained before is still compared
        _note(given, f"training: {traceback.format_exc()}")
        while time.monotonic() < end and any(worker.poll() is None for worker in workers.values()):
            time.sleep(0.5)
    for what, worker in workers.items():
        if worker.poll() is None:
            worker.kill()
            _note(given, f"{what}: out of time")
        elif worker.returncode:
            _note(given, f"{what}: failed with {worker.returncode}")


def _train(given: argparse.Namespace, name: str, seeds: list[int], x: torch.Tensor, y: torch.Tensor) -> None:
    began = time.monotonic()

    def epochs(seconds: float) -> int:
        return given.epochs or int(min(max(BUDGETS[name] / seconds, LEAST), MOST))

    gain = GAIN if name == "mobilenetv2" else 1.0
    networks, count = train_together(name, seeds, x, y, epochs, gain)
    for seed, network in zip(seeds, networks, strict=True):
        place = _place(given, name, seed)
        torch.save({key: value.cpu() for key, value in network.state_dict().items()}, place.with_suffix(".part"))
        place.with_suffix(".part").rename(place)
    took = time.monotonic() - began
    _note(given, f"{name}: seeds {seeds}, {count} epochs of {len(x)} images, {took:.0f} s of training")


def _start(given: argparse.Namespace, name: str, seed: int, share: float) -> "subprocess.Popen[bytes]":
    command = [sys.executable, __file__, "--work", name, str(seed), str(share), "--device", given.device]
    command += ["--sheets", *map(str, given.sheets), "--folder", str(given.folder), "--networks", str(given.networks)]
    command += ["--seen", str(given.seen)] + (["--images", str(given.images)] if given.images else [])
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with (given.folder / "log.txt").open("a") as log:
        return subprocess.Popen(command, env=os.environ | threads, stdout=log, stderr=subprocess.STDOUT)


def _work(given: argparse.Namespace, name: str, seed: int, share: float) -> None:
    """The rows of one network at one share; on the CPU where the GPU fails, which is then told."""
    network = make(name, seed)
    network.load_state_dict(torch.load(_place(given, name, seed), weights_only=True))
    train, test = _data(given)
    file = given.folder / f"{name}.jsonl"
    for device in dict.fromkeys((given.device, "cpu")):
        done = {row.method for row in read(file) if (row.seed, row.removed) == (seed, share)}
        if done.issuperset(METHODS[name]):
            return
        try:
            parts = [(x.to(device), y.to(device)) for x, y in (train, some(*train, given.seen, seed), test)]
            network, data = network.to(device).eval(), Images(*parts)
            tuned = TUNED if device == given.device else ()
            if name == "mobilenetv2":
                found = rows(network, seed, data)
            else:
                found = compared(name, network, seed, share, data, tuned, done=done)
            for row in found:
                keep(row, file)
        except Exception:
            _note(given, f"{name}, seed {seed}, {share:.0%} removed, on {device}: {traceback.format_exc()}")


def _data(given: argparse.Namespace) -> list[tuple[torch.Tensor, torch.Tensor]]:
    splits = [read_sheets(given.sheets, split) for split in ("train", "test")]
    return [(x[: given.images].to(given.device), y[: given.images].to(given.device)) for x, y in splits]


def _place(given: argparse.Namespace, name: str, seed: int) -> Path:
    return given.networks / f"{name}-{seed}.pt"


def _note(given: argparse.Namespace, text: str) -> None:
    print(text, flush=True)
    with (given.folder / "notes.txt").open("a") as out:
        out.write(text + "\n")


if __name__ == "__main__":
    main()
