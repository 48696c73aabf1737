"""The known sets of images, as ``catalog.toml`` lists them: what each holds, its sums, and where it is available."""

import hashlib
import tomllib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from .._serialization import from_plain
from ..errors import InputError, unknown_name
from ._formats import CIFAR10, CIFAR100, IDX, ArchiveLayout, Splits

SPLITS = ("train", "test")


@dataclass(frozen=True)
class DataSet:
    """A set of images: its shape, its files and its sums.

    Args:
        name: what it is called.
        shape: channels, height and width of an image.
        classes: number of classes.
        counts: number of images to train and to test with.
        top: the largest value of a pixel.
        layouts: the files that it may consist of.
        sums: SHA-256 of the decoded bytes of the training images and labels and of the test images and labels.
        originals: published sums (SHA-256 or MD5) of original files. They are all there is to check where ``sums``
            are not known, as of CIFAR-100, whose classes are also counted.
        archives: archives that its host offers, of which one is enough; without any, single gzipped files.
        hosts: addresses of folders at the original hosts.
        package: a mirror, as the kind of package (``"npm"`` or ``"debian"``) and its name.
        title: how the set is called in a text; its name if not given.
    """

    name: str
    shape: tuple[int, int, int]
    classes: int
    counts: tuple[int, int]
    top: int = 255
    layouts: tuple[ArchiveLayout, ...] = ()
    sums: tuple[str, ...] = ()
    originals: tuple[tuple[str, str], ...] = ()
    archives: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    package: tuple[str, str] | None = None
    title: str = ""

    @property
    def downloads(self) -> tuple[str, ...]:
        """The files to ask a host for."""
        return self.archives[:1] or tuple(f"{name}.gz" for name in self.layouts[0].names)

    def check_original(self, name: str, content: bytes) -> None:
        """Refuse an original file whose published sum is another."""
        known_sum = dict(self.originals).get(name)
        if known_sum is None:
            return
        kind = "sha256" if len(known_sum) == 64 else "md5"
        if hashlib.new(kind, content, usedforsecurity=False).hexdigest() != known_sum:
            raise InputError(
                f"the {kind.upper()} sum of {name} is not the published one: it is damaged or another file"
            )

    def check(self, splits: Splits) -> None:
        """Refuse arrays that are not this set: by shapes and sums, or shapes and classes where sums are not known."""
        for split, count in zip(SPLITS, self.counts, strict=True):
            images, labels = splits[split]
            if images.shape[1:] != self.shape:
                actual, wanted = (" x ".join(map(str, shape)) for shape in (images.shape[1:], self.shape))
                raise InputError(f"its images are {actual}, but those of {self.name} are {wanted}")
            if (len(images), len(labels)) != (count, count):
                raise InputError(
                    f"{self.name} has {count} {split} images, but here are {len(images)} with {len(labels)} labels"
                )
            per_class = np.bincount(labels, minlength=self.classes)
            if not self.sums and set(per_class) != {count // self.classes}:
                raise InputError(f"the {split} images of {self.name} are {count // self.classes} a class, but not here")
        parts = [(split, kind) for split in SPLITS for kind in ("images", "labels")]
        for (split, kind), known_sum in zip(parts, self.sums, strict=bool(self.sums)):
            if digest(getattr(splits[split], kind)) != known_sum:
                raise InputError(f"the SHA-256 sum of its {split} {kind} is not that of {self.name}")

    def moments(self, images: UInt8[np.ndarray, "samples channels height width"]) -> tuple[list[float], list[float]]:
        """Mean and standard deviation of each channel, pixels being between 0 and 1; exact, by counting values."""
        values = np.arange(256) / self.top
        shares = [np.bincount(images[:, c].ravel(), minlength=256) / images[:, c].size for c in range(images.shape[1])]
        means = [float(share @ values) for share in shares]
        return means, [float((share @ (values - m) ** 2) ** 0.5) for share, m in zip(shares, means, strict=True)]


def digest(array: UInt8[np.ndarray, "..."]) -> str:
    """SHA-256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


LAYOUTS = {None: [], "idx": [IDX], "cifar10": [*CIFAR10], "cifar100": [*CIFAR100]}
_TABLES = tomllib.loads((Path(__file__).parent / "catalog.toml").read_text(encoding="utf-8"))
SETS: dict[str, DataSet] = {
    name: from_plain(DataSet, table | {"name": name, "layouts": LAYOUTS[table.get("layouts")]}, name)
    for name, table in _TABLES.items()
}


def known(name: str) -> DataSet:
    """The set of images with this name."""
    if name not in SETS:
        raise unknown_name("data set", name, SETS)
    return SETS[name]
