"""Sets of images as data: which images, how their pixels are scaled, and what the targets are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float32, Int, UInt8

from .._phrases import listed
from .._serialization import Part
from ..errors import InputError, check_whole, one_of
from ..seeds import Seed
from ._catalog import SPLITS, known
from ._sources import load

SCALES = {  # in words
    "unit": "pixels in [0, 1]",
    "centred": "pixels in [-1, 1]",
    "standardised": "pixels of mean 0 and standard deviation 1 in each channel",
}
TARGETS = {"index": "class numbers", "one_hot": "one-hot classes", "sign": "classes as -1 and +1"}


@dataclass(frozen=True)
class Images(Part, kind="images"):
    """Images of a known set, fetched when they are first drawn.

    Args:
        name: ``"cifar10"``, ``"cifar100"``, ``"mnist"``, ``"fashion-mnist"``, or ``"digits"``, which is always there.
        n: how many, drawn without replacement by the data seed; all of them, in their order, if not given.
        split: ``"train"`` or ``"test"``.
        classes: the class numbers to choose from; all if not given.
        balanced: draw the same number of each class, or one more.
        scale: ``"unit"`` for pixels in [0, 1], ``"centred"`` for [-1, 1], ``"standardised"`` for mean 0 and standard
            deviation 1 of each channel over the whole training split.
        target: ``"one_hot"``; ``"index"``, the position among the classes; or ``"sign"``, which is -1 and +1 for two
            classes, and for more one output a class, +1 for its own and -1 for the others.
        flat: samples x pixels instead of samples x channels x height x width.
        drawn_by: the data seed that draws the n images in place of each run's own: all seeds then see the same ones.

    >>> x, y = Images("digits", n=20, classes=(3, 8), target="sign").draw(Seed(data=0, init=0))
    >>> x.shape, y.shape
    ((20, 1, 8, 8), (20, 1))
    """

    name: str
    n: int | None = None
    split: Annotated[str, one_of("split", SPLITS)] = "train"
    classes: tuple[int, ...] | None = None
    balanced: bool = False
    scale: Annotated[str, one_of("scale", SCALES)] = "centred"
    target: Annotated[str, one_of("target", TARGETS)] = "one_hot"
    flat: bool = False
    drawn_by: Annotated[int, partial(check_whole, least=0)] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        known_set = known(self.name)
        chosen = self.chosen
        if len({c for c in chosen if 0 <= c < known_set.classes}) < max(2, len(chosen)):
            raise InputError(
                f"classes of {self.name} must be two or more different numbers from 0 to {known_set.classes - 1}, "
                f"not {self.classes}"
            )
        if self.n is None and self.balanced:
            raise InputError("balanced=True draws a number of images: n is needed")
        if self.n is None and self.drawn_by is not None:
            raise InputError("drawn_by draws a number of images: n is needed")
        count = known_set.counts[SPLITS.index(self.split)]
        if self.n is not None and not len(chosen) <= self.n <= count:
            raise InputError(
                f"n must be from {len(chosen)} (one image a class) to {count} (all {self.split} images of "
                f"{self.name}), not {self.n}"
            )

    @property
    def chosen(self) -> tuple[int, ...]:
        """The classes that are drawn from."""
        return self.classes if self.classes is not None else tuple(range(known(self.name).classes))

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""
        return known(self.name).shape

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of a sample."""
        return (int(np.prod(self.shape)),) if self.flat else self.shape

    @property
    def outputs(self) -> int:
        """Number of targets of a sample."""
        alone = self.target == "index" or (self.target == "sign" and len(self.chosen) == 2)
        return 1 if alone else len(self.chosen)

    @property
    def most_samples(self) -> int:
        """Number of samples, or where classes are chosen that of the whole split, which they are not more than."""
        return self.n if self.n is not None else known(self.name).counts[SPLITS.index(self.split)]

    def draw(self, seed: Seed) -> tuple[Float32[np.ndarray, "samples ..."], Float32[np.ndarray, "samples outputs"]]:
        """Samples and targets. Without n they are the same arrays for every seed, and cannot be written to."""
        chosen = seed if self.drawn_by is None else seed._replace(data=self.drawn_by)
        return _all(self) if self.n is None else _samples(self, chosen)

    def describe(self) -> str:
        """Images, pixels and targets in words.

        >>> Images("cifar10", n=500).describe()
        '500 random images of CIFAR-10, pixels in [-1, 1], one-hot classes'
        """
        images = known(self.name)
        if self.n is not None:
            count = f"{self.n:,} random" + (" balanced" if self.balanced else "")
        else:
            count = "all" if self.classes is not None else f"all {images.counts[SPLITS.index(self.split)]:,}"
        test = " test" if self.split == "test" else ""
        classes = "" if self.classes is None else f" (classes {listed(self.classes)})"
        drawn = "" if self.drawn_by is None else f", drawn by data seed {self.drawn_by} for all seeds"
        which = f"{count}{test} images of {images.title or images.name}{classes}{drawn}"
        each = "+1 for the own class and -1 for the others"
        target = each if self.target == "sign" and self.outputs > 1 else TARGETS[self.target]
        return f"{which}, {SCALES[self.scale]}, {target}"


@lru_cache(maxsize=2)
def _all(images: Images) -> tuple[np.ndarray, np.ndarray]:
    x, y = _samples(images, None)
    x.setflags(write=False)
    y.setflags(write=False)
    return x, y


def _samples(images: Images, seed: Seed | None) -> tuple[np.ndarray, np.ndarray]:
    loaded = load(images.name)
    pixels, labels = loaded.splits[images.split]
    rows = _rows(images, np.asarray(labels), seed)
    missing = sorted({*images.chosen} - {*labels[rows].tolist()})
    if missing:
        raise InputError(
            f"the {len(rows)} images drawn of {images.name} by {seed} hold none of class {missing[0]}: use "
            "balanced=True or a larger n"
        )
    x = pixels[rows].astype(np.float32)
    x /= known(images.name).top
    if images.scale != "unit":
        mean, std = (loaded.mean, loaded.std) if images.scale == "standardised" else (0.5, 0.5)
        x -= np.reshape(mean, (-1, 1, 1)).astype(np.float32)
        x /= np.reshape(std, (-1, 1, 1)).astype(np.float32)
    return x.reshape(-1, *images.input_shape), _targets(images, labels[rows])


def _rows(images: Images, labels: UInt8[np.ndarray, " samples"], seed: Seed | None) -> Int[np.ndarray, " chosen"]:
    """Which images are drawn; all of the classes in their order without a seed."""
    n, chosen = images.n, images.chosen
    there = np.flatnonzero(np.isin(labels, chosen))
    if n is None or seed is None:
        return there
    stream = seed.data_stream()
    if not images.balanced:
        if n > len(there):
            raise InputError(
                f"{images.name} has {len(there)} {images.split} images of these classes, fewer than n = {n}"
            )
        return stream.choice(there, n, replace=False)
    rows = []
    more = stream.permutation(len(chosen)) < n % len(chosen)
    for k, one_more in zip(chosen, more.tolist(), strict=True):
        quota, of_class = n // len(chosen) + one_more, np.flatnonzero(labels == k)
        if quota > len(of_class):
            raise InputError(
                f"class {k} of {images.name} has {len(of_class)} {images.split} images, but n = {n} balanced over "
                f"{len(chosen)} classes needs {quota}"
            )
        rows.append(stream.choice(of_class, quota, replace=False))
    return stream.permutation(np.concatenate(rows))


def _targets(images: Images, labels: UInt8[np.ndarray, " samples"]) -> Float32[np.ndarray, "samples outputs"]:
    is_class = labels[:, None] == np.array(images.chosen)
    if images.outputs == 1:
        index = is_class.argmax(axis=1, keepdims=True).astype(np.float32)
        return index if images.target == "index" else 2 * index - 1
    return is_class.astype(np.float32) if images.target == "one_hot" else np.where(is_class, 1, -1).astype(np.float32)


def images_or_digits(name: str, **options: Any) -> tuple[Images, str]:
    """Images of a set where it can be had, else scikit-learn's digits with a sentence that says so and why.

    Args:
        name: the set that is wanted; the sentence is empty where it can be had.
        options: what else ``Images`` takes, for either.
    """
    wanted = Images(name, **options)
    try:
        load(name)
    except InputError as error:
        limit = known("digits").counts[SPLITS.index(wanted.split)]
        classes = wanted.classes if all(c < 10 for c in wanted.chosen) else None
        n = None if wanted.n is None else min(wanted.n, limit // 10 * 9)  # so that a balanced draw finds enough
        fewer = f", {n} images instead of {wanted.n}" if n != wanted.n else ""
        digits = replace(wanted, name="digits", n=n, classes=classes)
        return digits, f"digits take the place of {name}{fewer}: {error}"
    return wanted, ""
