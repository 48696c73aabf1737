"""The known sets of images and texts of ``catalog.toml``: what each holds, its sums, and where it is available."""

import hashlib
import tomllib
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import UInt8

from .._serialization import from_plain
from ..errors import InputError, unknown_name
from ._formats import CIFAR10, CIFAR100, IDX, SOTU, ArchiveLayout, Documents, Prose, Split, Splits

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Source:
    """What is fetched and checked: its files, its sums, and where it is available.

    Args:
        name: what it is called.
        counts: number of images, or bytes of text, to train and to test with.
        layouts: the files that it may consist of.
        sums: SHA-256 of the decoded bytes, of the training images and labels and of the test images and labels, or of
            the text to train and to test with.
        originals: published sums (SHA-256 or MD5) of original files. They are all there is to check where ``sums``
            are not known, as of CIFAR-100, whose classes are also counted.
        archives: archives that its host offers, of which one is enough; without any, single gzipped files.
        hosts: addresses of folders at the original hosts.
        package: a mirror, as the kind of package (``"npm"`` or ``"debian"``) and its name.
        title: how it is called in a text; its name if not given.
    """

    content: ClassVar[type[Split] | type[Prose]]

    name: str
    _: KW_ONLY
    counts: tuple[int, int]
    layouts: tuple[ArchiveLayout | Documents, ...] = ()
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

    def shapes(self, split: str) -> dict[str, tuple[int, ...]]:
        """The shapes of a split's arrays, by their names."""
        raise NotImplementedError

    def moments(self, split: Any) -> tuple[list[float], list[float]]:
        """Mean and standard deviation of each channel of a split's images, pixels being between 0 and 1."""
        raise NotImplementedError

    def check(self, splits: Splits) -> None:
        """Refuse arrays that are not these."""
        raise NotImplementedError

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

    def check_sums(self, splits: Splits) -> None:
        """Refuse arrays with other sums."""
        parts = [(split, kind) for split in SPLITS for kind in self.content._fields]
        for (split, kind), known_sum in zip(parts, self.sums, strict=bool(self.sums)):
            if digest(getattr(splits[split], kind)) != known_sum:
                raise InputError(f"the SHA-256 sum of its {split} {kind} is not that of {self.name}")


@dataclass(frozen=True, kw_only=True)
class DataSet(Source):
    """A set of images.

    Args:
        shape: channels, height and width of an image.
        classes: number of classes.
        top: the largest value of a pixel.
    """

    content = Split

    shape: tuple[int, int, int]
    classes: int
    top: int = 255

    def shapes(self, split: str) -> dict[str, tuple[int, ...]]:
        count = self.counts[SPLITS.index(split)]
        return {"images": (count, *self.shape), "labels": (count,)}

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
        self.check_sums(splits)

    def moments(self, split: Split) -> tuple[list[float], list[float]]:
        """Mean and standard deviation of each channel, pixels being between 0 and 1; exact, by counting values."""
        images, values = split.images, np.arange(256) / self.top
        shares = [np.bincount(images[:, c].ravel(), minlength=256) / images[:, c].size for c in range(images.shape[1])]
        means = [float(share @ values) for share in shares]
        return means, [float((share @ (values - m) ** 2) ** 0.5) for share, m in zip(shares, means, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Corpus(Source):
    """A text, whose documents are either to train or to test with."""

    content = Prose

    def shapes(self, split: str) -> dict[str, tuple[int, ...]]:
        return {"text": (self.counts[SPLITS.index(split)],)}

    def check(self, splits: Splits) -> None:
        """Refuse another text: by its length and its sums."""
        for split, count in zip(SPLITS, self.counts, strict=True):
            if len(splits[split].text) != count:
                raise InputError(
                    f"{self.name} has {count} bytes to {split} with, but here are {len(splits[split].text)}"
                )
        self.check_sums(splits)

    def moments(self, split: Prose) -> tuple[list[float], list[float]]:
        """A text has none."""
        return [], []


def digest(array: UInt8[np.ndarray, "..."]) -> str:
    """SHA-256 of an array's bytes."""
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


LAYOUTS = {None: [], "idx": [IDX], "cifar10": [*CIFAR10], "cifar100": [*CIFAR100], "sotu": [SOTU]}
_TABLES = tomllib.loads((Path(__file__).parent / "catalog.toml").read_text(encoding="utf-8"))
SETS: dict[str, DataSet | Corpus] = {
    name: from_plain(
        DataSet if "shape" in table else Corpus,
        table | {"name": name, "layouts": LAYOUTS[table.get("layouts")]},
        name,
    )
    for name, table in _TABLES.items()
}


def known(name: str) -> DataSet:
    """The set of images with this name."""
    images = {key: one for key, one in SETS.items() if isinstance(one, DataSet)}
    if name not in images:
        raise unknown_name("data set", name, images)
    return images[name]


def known_text(name: str) -> Corpus:
    """The text with this name."""
    texts = {key: one for key, one in SETS.items() if isinstance(one, Corpus)}
    if name not in texts:
        raise unknown_name("text", name, texts)
    return texts[name]


def listed_source(name: str) -> DataSet | Corpus:
    """What has this name, images or text."""
    if name not in SETS:
        raise unknown_name("data set", name, SETS)
    return SETS[name]
