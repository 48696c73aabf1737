"""The reduction beside the literature: `python benchmarks/reduction lenet`, or resnet56, vgg16, mobilenetv2, starts.

`tables` prints the tables of what a folder has.

Trained networks and one line of JSON a result are kept in ``--folder``; a second call goes on from there. REDUCTION.md
has the tables.
"""

import argparse
from pathlib import Path

import torch
from compare import OURS, Images, compared, keep, read, some, table
from mobilenet import mobilenet, sizes
from networks import make
from rivals import RIVALS
from starts import starts
from torch import nn
from training import accuracy, images, train, train_plain

TUNED = ("ours, best", "l1 pruning, least squares", "folding", "Torch-Pruning, l2", "Torch-Pruning, Taylor")


def main() -> None:
    """One comparison, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("lenet", "resnet56", "vgg16", "mobilenetv2", "starts", "tables"))
    parser.add_argument(
        "--seeds", type=int, nargs="+", help="which seeds; three, 0 1 2, if not given", default=[0, 1, 2]
    )
    parser.add_argument("--epochs", type=int, default=60, help="of training on CIFAR-10")
    parser.add_argument("--half", type=int, default=0, help="how many of these, the first, see half the resolution")
    parser.add_argument("--removed", type=float, nargs="+", help="shares of units removed")
    parser.add_argument("--seen", type=int, default=5000, help="training images that a reduction sees")
    parser.add_argument("--test", type=int, default=10_000, help="test images, the first ones, that decide accuracy")
    parser.add_argument("--tuned", nargs="*", default=TUNED, choices=(*OURS, *RIVALS), help="what is fine-tuned")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--folder", type=Path, default=Path("out/reduction"))
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    given.folder.mkdir(parents=True, exist_ok=True)
    if given.what == "tables":
        _tables(given.folder)
    elif given.what == "starts":
        starts(given.seeds, given.folder)
    elif given.what == "mobilenetv2":
        mobilenet(given.seeds, given.epochs, given.half, given.seen, given.folder)
    else:
        _compare(given)


def _tables(folder: Path) -> None:
    """The tables of what a folder has, trained here or by gpu.py."""
    for name in ("lenet", "resnet56", "vgg16"):
        if rows := read(folder / f"{name}.jsonl"):
            print(name, table(rows), table(rows, tuned=True), sep="\n\n", end="\n\n")
    if rows := read(folder / "mobilenetv2.jsonl"):
        print("mobilenetv2", sizes(rows), sep="\n\n")


def _compare(given: argparse.Namespace) -> None:
    name, dense = given.what, given.what == "lenet"
    data = "fashion-mnist" if dense else "cifar10"
    kept, test = images(data, "train"), images(data, "test")
    test = test[0][: given.test], test[1][: given.test]
    shares = given.removed or ([0.5, 0.6, 0.7, 0.8] if dense else [0.3, 0.5])
    file = given.folder / f"{name}.jsonl"
    done = {(row.seed, row.removed) for row in read(file)}
    for seed in given.seeds:
        network = _lenet(seed, given.folder, *kept) if dense else train(
            name, seed, given.epochs, given.half, *kept, given.folder
        )  # fmt: skip
        print(f"{name}, seed {seed}: {accuracy(network, *test):.2f}% on the test images", flush=True)
        seen = Images(kept, some(*kept, given.seen, seed), test)
        for share in shares:
            if (seed, share) not in done:
                for row in compared(name, network, seed, share, seen, () if dense else tuple(given.tuned)):
                    keep(row, file)
    print(table(read(file)), table(read(file), tuned=True), sep="\n\n")


def _lenet(seed: int, folder: Path, x: torch.Tensor, y: torch.Tensor) -> nn.Module:
    """LeNet-300-100 after 15 epochs."""
    place, network = folder / f"lenet-seed{seed}.pt", make("lenet", seed)
    if place.exists():
        network.load_state_dict(torch.load(place, weights_only=True))
        return network.eval()
    network = train_plain(network, seed, 15, x, y)
    torch.save(network.state_dict(), place)
    return network


if __name__ == "__main__":
    main()
