"""Bytes to arrays: the formats in which sets of images, and texts, are distributed.

Every reader gives images as samples x channels x height x width and labels, both uint8; a text is its bytes. CIFAR's
python batches are pickles; they are read by an unpickler that knows nothing but NumPy arrays.
"""

import fnmatch
import gzip
import io
import json
import lzma
import pickle
import tarfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import UInt8

from ..errors import InputError

CIFAR_SHAPE = (3, 32, 32)
CIFAR_BYTES = 3 * 32 * 32
TENTH = 10


class Split(NamedTuple):
    """Images and their labels."""

    images: UInt8[np.ndarray, "samples channels height width"]
    labels: UInt8[np.ndarray, " samples"]


class Prose(NamedTuple):
    """A text, as its UTF-8 bytes."""

    text: UInt8[np.ndarray, " bytes"]


Splits = dict[str, Any]  # "train" and "test": a Split or a Prose each


@dataclass(frozen=True)
class ArchiveLayout:
    """How a data set stands in files: the names of each split's files, and what reads their contents in that order."""

    train: tuple[str, ...]
    test: tuple[str, ...]
    read: Callable[..., Split]

    @property
    def names(self) -> tuple[str, ...]:
        """All files of the layout."""
        return self.train + self.test

    def choose(self, there: Iterable[str]) -> tuple[str, ...]:
        """The files of the layout among those that are there; none unless all of them are."""
        return self.names if set(there) >= set(self.names) else ()

    def decode(self, files: Mapping[str, bytes]) -> Splits:
        """Both splits from the contents of the files."""
        parts = {"train": self.train, "test": self.test}
        return {split: self.read(*(files[name] for name in names)) for split, names in parts.items()}


@dataclass(frozen=True)
class Documents:
    """How a text stands in files: a document a file. In the order of their names, every tenth is to test with.

    >>> found = Documents("*.txt").decode({f"{k}.txt": str(k).encode() for k in range(10)})
    >>> found["train"].text.tobytes().split(), found["test"].text.tobytes()
    ([b'0', b'1', b'2', b'3', b'4', b'5', b'6', b'7', b'8'], b'9')
    """

    pattern: str

    @property
    def names(self) -> tuple[str, ...]:
        """What the files are called."""
        return (self.pattern,)

    def choose(self, there: Iterable[str]) -> tuple[str, ...]:
        """The documents among the files that are there."""
        return tuple(sorted(fnmatch.filter(there, self.pattern)))

    def decode(self, files: Mapping[str, bytes]) -> Splits:
        """Both splits from the documents, a new line between two of them."""
        found = [files[name] for name in sorted(files)]
        test = found[TENTH - 1 :: TENTH]
        train = [document for k, document in enumerate(found) if k % TENTH != TENTH - 1]
        joined = {"train": b"\n".join(train), "test": b"\n".join(test)}
        return {split: Prose(np.frombuffer(text, np.uint8)) for split, text in joined.items()}


def file_name(name: str) -> str:
    """The name of a file in a layout, whichever way it came.

    >>> file_name("train-images.idx3-ubyte.gz")
    'train-images-idx3-ubyte'
    """
    return name.removesuffix(".gz").replace(".idx", "-idx")


def gunzip(content: bytes) -> bytes:
    """What a gzipped file holds; other content as it is."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"the gzipped file is damaged or cut short ({error})") from error


def unpack(archive: bytes) -> dict[str, bytes]:
    """The files of a tar archive, compressed or not, by their names without folders; nothing is written anywhere."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            files = ((member, tar.extractfile(member)) for member in tar if member.isfile())
            return {member.name.rpartition("/")[2]: file.read() for member, file in files if file}
    except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        reason = str(error).partition(":\n")[0]  # tarfile lists line by line what it tried
        raise InputError(f"the archive is damaged or cut short ({reason})") from error


def read_idx(content: bytes) -> UInt8[np.ndarray, "..."]:
    """The array of an IDX file: 0, 0, type, number of sides, each side as four bytes, then the numbers.

    >>> read_idx(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9]))
    array([7, 8, 9], dtype=uint8)
    """
    start = 4 + 4 * content[3] if len(content) > 3 else 4
    if content[:3] != b"\0\0\x08" or len(content) < start:
        raise InputError(f"this is not an IDX file of bytes: it begins with {content[:4]!r}")
    sides = [int(side) for side in np.frombuffer(content[4:start], ">u4")]
    if len(content) - start != np.prod(sides, dtype=object):
        raise InputError(f"an IDX file of {sides} holds {len(content) - start} numbers: it is damaged or cut short")
    return np.frombuffer(content, np.uint8, offset=start).reshape(sides)


def read_idx_pair(images: bytes, labels: bytes) -> Split:
    """One split of MNIST: images of one channel, and labels."""
    pixels, classes = read_idx(images), read_idx(labels)
    if (pixels.ndim, classes.ndim) != (3, 1):
        raise InputError(f"IDX files of images and labels have 3 and 1 sides, not {pixels.ndim} and {classes.ndim}")
    return Split(pixels[:, None], classes)


def read_cifar_binary(*batches: bytes, label_bytes: int = 1) -> Split:
    """CIFAR's binary batches: of each image its labels (the last one counts), then its 3 x 32 x 32 bytes."""
    size = label_bytes + CIFAR_BYTES
    for batch in batches:
        if not batch or len(batch) % size:
            raise InputError(f"a binary batch has {size} bytes an image, but this one {len(batch)} bytes in all")
    rows = np.frombuffer(b"".join(batches), np.uint8).reshape(-1, size)
    return Split(rows[:, label_bytes:].reshape(-1, *CIFAR_SHAPE), rows[:, label_bytes - 1].copy())


_reconstruct = np.empty(0).__reduce__()[0]


class _BatchUnpickler(pickle.Unpickler):
    """Knows what is needed for NumPy arrays and refuses everything else: a pickle can name any function."""

    ADMITTED: ClassVar[dict[tuple[str, str], Any]] = {
        ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
        ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self.ADMITTED:
            raise InputError(f"a python batch holds NumPy arrays and nothing that needs {module}.{name}: not opened")
        return self.ADMITTED[module, name]


def read_cifar_python(*batches: bytes) -> Split:
    """CIFAR's python batches: pickled dictionaries with data (n x 3072) and labels or fine_labels."""
    splits = [_read_python_batch(batch) for batch in batches]
    return Split(*(np.concatenate(parts) for parts in zip(*splits, strict=True)))


def _read_python_batch(batch: bytes) -> Split:
    try:
        pickled = _BatchUnpickler(io.BytesIO(batch), encoding="bytes").load()
        fields = {key.decode() if isinstance(key, bytes) else key: value for key, value in pickled.items()}
        data, labels = fields["data"], np.array(fields.get("fine_labels", fields.get("labels")))
        kinds = data.dtype == np.uint8 and labels.dtype.kind == "i" and labels.min() >= 0 and labels.max() < 256
        if not kinds or data.shape != (len(labels), CIFAR_BYTES):
            raise InputError(f"a python batch has n x {CIFAR_BYTES} bytes and n labels, not {data.shape} {data.dtype}")
    except InputError:
        raise
    except Exception as error:  # a broken pickle fails in many ways
        raise InputError(f"the python batch is damaged or cut short ({type(error).__name__}: {error})") from error
    return Split(data.reshape(-1, *CIFAR_SHAPE), labels.astype(np.uint8))


def read_sheets(*parts: bytes) -> Split:
    """PNG sheets of which each row is an image of CIFAR, its pixels line by line; last a JSON list of labels."""
    from PIL import Image

    *sheets, labels = parts
    pixels = []
    for sheet in sheets:
        try:
            rows = np.asarray(Image.open(io.BytesIO(sheet), formats=["PNG"]))
        except Exception as error:  # a broken picture fails in many ways
            raise InputError(f"the PNG sheet is damaged or cut short ({error})") from error
        if rows.shape[1:] != (32 * 32, 3) or rows.dtype != np.uint8:
            raise InputError(f"a PNG sheet has 1024 RGB pixels in a row, not rows of shape {rows.shape[1:]}")
        pixels.append(rows.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2))
    try:
        classes = np.array(json.loads(labels), dtype=np.uint8)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(f"the labels are not a JSON list of class numbers ({error})") from error
    return Split(np.concatenate(pixels), classes.reshape(-1))


def _batches(suffix: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(f"data_batch_{k}{suffix}" for k in range(1, 6)), (f"test_batch{suffix}",)


_IDX = ("images-idx3-ubyte", "labels-idx1-ubyte")
_SHEETS, _TEST_SHEET = _batches(".png")

IDX = ArchiveLayout(tuple(f"train-{kind}" for kind in _IDX), tuple(f"t10k-{kind}" for kind in _IDX), read_idx_pair)
CIFAR10 = (
    ArchiveLayout(*_batches(""), read_cifar_python),
    ArchiveLayout(*_batches(".bin"), read_cifar_binary),
    ArchiveLayout((*_SHEETS, "train_lables.json"), (*_TEST_SHEET, "test_lables.json"), read_sheets),  # misspelt there
)
CIFAR100 = (
    ArchiveLayout(("train",), ("test",), read_cifar_python),
    ArchiveLayout(("train.bin",), ("test.bin",), partial(read_cifar_binary, label_bytes=2)),
)
SOTU = Documents("[12][0-9][0-9][0-9]_*.txt")
