"""Small sets of images, and their files in each original format."""

import gzip
import io
import json
import pickle
import struct
import tarfile

import numpy as np
from PIL import Image

from condensation.data._catalog import SETS, SPLITS, DataSet, digest
from condensation.data._formats import CIFAR10, CIFAR100, IDX, Split

CIFAR = {"shape": (3, 32, 32), "classes": 2, "counts": (10, 4)}
MNIST = {"shape": (1, 5, 4), "classes": 3, "counts": (12, 6)}
LAYOUTS = {"cifar10": (CIFAR10, CIFAR), "cifar100": (CIFAR100, CIFAR), "mnist": ((IDX,), MNIST)}


def random_splits(shape, classes, counts, seed=0):
    """Random pixels, every class equally often."""
    stream = np.random.default_rng(seed)
    pixels = {split: stream.integers(0, 256, (n, *shape), np.uint8) for split, n in zip(SPLITS, counts, strict=True)}
    labels = {split: stream.permutation(np.arange(len(pixels[split])) % classes).astype(np.uint8) for split in SPLITS}
    return {split: Split(pixels[split], labels[split]) for split in SPLITS}


def sums_of(splits):
    return tuple(digest(part) for split in SPLITS for part in splits[split])


def make(monkeypatch, like="mnist", name="tiny", seed=0, **changes):
    """A small set in the manner of a real one, known to the package for the time of a test, and its arrays."""
    layouts, about = LAYOUTS[like]
    splits = random_splits(**about, seed=seed)
    settings = about | {"layouts": layouts, "sums": sums_of(splits)} | changes
    one = DataSet(name, **settings)
    monkeypatch.setitem(SETS, name, one)
    return one, splits


def idx(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def idx_files(splits, zipped=False):
    names = {"train": "train", "test": "t10k"}
    files = {}
    for split, (images, labels) in splits.items():
        files[f"{names[split]}-images-idx3-ubyte"] = idx(images[:, 0])
        files[f"{names[split]}-labels-idx1-ubyte"] = idx(labels)
    return {f"{name}.gz": gzip.compress(content) for name, content in files.items()} if zipped else files


def batches(splits):
    """CIFAR-10's five training batches and its test batch."""
    fifths = zip(*(np.split(part, 5) for part in splits["train"]), strict=True)
    return {f"data_batch_{k}": Split(*batch) for k, batch in enumerate(fifths, 1)} | {"test_batch": splits["test"]}


def binary_batch(batch, coarse=False):
    labels = [np.zeros_like(batch.labels)] * coarse + [batch.labels]
    return np.hstack([*(one[:, None] for one in labels), batch.images.reshape(len(batch.images), -1)]).tobytes()


def python_batch(batch, key="labels"):
    data = np.ascontiguousarray(batch.images).reshape(len(batch.images), -1)
    return pickle.dumps({b"data": data, key.encode(): batch.labels.tolist()}, protocol=3)


def python2_batch(batch):
    """The same as Python 2 wrote it: byte strings, NumPy's old module, protocol 2."""
    text = lambda word: b"U" + bytes([len(word)]) + word  # noqa: E731
    whole = lambda number: b"J" + struct.pack("<i", number)  # noqa: E731
    pixels = np.ascontiguousarray(batch.images).tobytes()
    dtype = (
        b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R(K\x03" + text(b"|") + b"NNN" + whole(-1) * 2 + b"K\x00tb"
    )
    shape = whole(len(batch.images)) + whole(3072) + b"\x86"
    array = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
    array += b"(K\x01" + shape + dtype + b"\x89T" + struct.pack("<i", len(pixels)) + pixels + b"tb"
    labels = b"](" + b"".join(whole(int(label)) for label in batch.labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(b"labels") + labels + b"u."


def png(rows):
    file = io.BytesIO()
    Image.fromarray(rows).save(file, "PNG")
    return file.getvalue()


def sheet_files(splits):
    files = {
        f"{name}.png": png(batch.images.transpose(0, 2, 3, 1).reshape(len(batch.images), 1024, 3))
        for name, batch in batches(splits).items()
    }
    return files | {f"{split}_lables.json": json.dumps(splits[split].labels.tolist()).encode() for split in splits}


def tar(files, mode="w:gz", folder="inside"):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder
