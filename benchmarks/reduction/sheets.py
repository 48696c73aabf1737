"""CIFAR-10 as lossless WebP sheets, for machines that cannot fetch it: `python benchmarks/reduction/sheets.py DIR`.

A sheet has 5000 images, a tenth of each split's classes as they come; it is named by its split and place, and its
labels stand beside it. What a machine has of the sheets is what it trains on.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from condensation import Images, Seed

SIZE, ACROSS = 5000, 50  # images of a sheet, and of each of its rows
MEAN, SPREAD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


def write(folder: Path, split: str) -> None:
    """All sheets of a split."""
    x, y = Images("cifar10", split=split, scale="unit", target="index").draw(Seed(0, 0))
    pixels = np.rint(np.asarray(x) * 255).astype(np.uint8)
    labels = np.asarray(y).ravel().astype(np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    for k in range(len(pixels) // SIZE):
        part = pixels[k * SIZE : (k + 1) * SIZE]
        rows = part.reshape(-1, ACROSS, 3, 32, 32).transpose(0, 3, 1, 4, 2)
        place = folder / f"{split}{k}.webp"
        Image.fromarray(rows.reshape(-1, ACROSS * 32, 3)).save(place, lossless=True, quality=60, method=4)
        np.save(place.with_suffix(".npy"), labels[k * SIZE : (k + 1) * SIZE])


def read(folders: list[Path], split: str) -> tuple[Tensor, Tensor]:
    """The images of all sheets of a split that are in some folders, each channel standardised, and their classes."""
    places = sorted({place.name: place for folder in folders for place in folder.glob(f"{split}*.webp")}.values())
    if not places:
        raise SystemExit(f"no sheets of the {split} split in {', '.join(map(str, folders))}: run sheets.py first")
    parts = []
    for place in places:
        sheet = np.asarray(Image.open(place).convert("RGB")).reshape(-1, 32, ACROSS, 32, 3)
        parts.append(sheet.transpose(0, 2, 4, 1, 3).reshape(-1, 3, 32, 32))
    x = torch.from_numpy(np.concatenate(parts)).float() / 255
    x = (x - torch.tensor(MEAN)[:, None, None]) / torch.tensor(SPREAD)[:, None, None]
    labels = np.concatenate([np.load(place.with_suffix(".npy")) for place in places])
    return x, torch.from_numpy(labels).long()


if __name__ == "__main__":
    for name in ("test", "train"):
        write(Path(sys.argv[1]), name)
