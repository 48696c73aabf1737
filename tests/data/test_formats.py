"""Each original format, made by the test and read back."""

import os
import pickle

import numpy as np
import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from condensation import InputError
from condensation.data._formats import (
    CIFAR10,
    CIFAR100,
    IDX,
    gunzip,
    read_cifar_binary,
    read_cifar_python,
    read_idx,
    read_idx_pair,
    read_sheets,
    unpack,
)

SPLITS = tiny.random_splits(**tiny.CIFAR)
BATCHES = tiny.batches(SPLITS)
TEST = SPLITS["test"]


def same(found, wanted):
    for split in ("train", "test"):
        for one, other in zip(found[split], wanted[split], strict=True):
            assert one.dtype == np.uint8
            np.testing.assert_array_equal(one, other)


@given(arrays(np.uint8, array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)), st.data())
def test_idx_comes_back_and_never_cut_short(array, data):
    content = tiny.idx(array)
    np.testing.assert_array_equal(read_idx(content), array)
    with pytest.raises(InputError, match="IDX file"):
        read_idx(content[: data.draw(st.integers(0, len(content) - 1))])


def test_idx_files_are_a_set():
    splits = tiny.random_splits(**tiny.MNIST)
    same(IDX.decode(tiny.idx_files(splits)), splits)


@pytest.mark.parametrize(
    ("layout", "files"),
    [
        (CIFAR10[0], {name: tiny.python_batch(batch) for name, batch in BATCHES.items()}),
        (CIFAR10[0], {name: tiny.python2_batch(batch) for name, batch in BATCHES.items()}),
        (CIFAR10[1], {f"{name}.bin": tiny.binary_batch(batch) for name, batch in BATCHES.items()}),
        (CIFAR10[2], tiny.sheet_files(SPLITS)),
    ],
    ids=["python", "python 2", "binary", "sheets"],
)
def test_cifar10_is_the_same_in_every_format(layout, files):
    same(layout.decode(files), SPLITS)


def test_cifar100_has_fine_labels():
    python = {split: tiny.python_batch(SPLITS[split], "fine_labels") for split in SPLITS}
    same(CIFAR100[0].decode(python), SPLITS)
    binary = {f"{split}.bin": tiny.binary_batch(SPLITS[split], coarse=True) for split in SPLITS}
    same(CIFAR100[1].decode(binary), SPLITS)


def test_both_spellings_of_numpy_are_read():
    new = tiny.python_batch(TEST)
    assert b"numpy._core.multiarray" in new
    old = new.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    np.testing.assert_array_equal(read_cifar_python(old).images, TEST.images)


@pytest.mark.parametrize("inside", [(os.system, ("touch opened",)), (eval, ("open('opened', 'w')",))])
def test_a_pickle_that_would_run_something_is_not_opened(inside, tmp_path, monkeypatch):
    class Evil:
        def __reduce__(self):
            return inside

    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"nothing that needs .*{inside[0].__name__}: not opened"):
        read_cifar_python(pickle.dumps({"data": Evil(), "labels": [0]}))
    assert not (tmp_path / "opened").exists()


def python(data, labels):
    return pickle.dumps({"data": data, "labels": labels}, protocol=3)


@pytest.mark.parametrize(
    ("read", "said"),
    [
        (lambda: read_cifar_python(tiny.python_batch(TEST)[:-100]), "damaged or cut short"),
        (lambda: read_cifar_python(b"no pickle"), "damaged or cut short"),
        (lambda: read_cifar_python(pickle.dumps([1, 2])), "damaged or cut short"),
        (lambda: read_cifar_python(python(np.zeros((2, 3072), np.uint8), [1])), r"n labels, not \(2, 3072\)"),
        (lambda: read_cifar_python(python(np.zeros((1, 784), np.uint8), [1])), r"not \(1, 784\) uint8"),
        (lambda: read_cifar_python(python(np.zeros((1, 3072)), [1])), "not .* float64"),
        (lambda: read_cifar_binary(tiny.binary_batch(TEST)[:-1]), "3073 bytes an image, but this one 12291"),
        (lambda: read_cifar_binary(b""), "3073 bytes an image"),
        (lambda: read_sheets(tiny.png(np.zeros((2, 784, 3), np.uint8)), b"[0, 1]"), r"shape \(784, 3\)"),
        (lambda: read_sheets(tiny.png(np.zeros((2, 1024), np.uint8)), b"[0, 1]"), r"shape \(1024,\)"),
        (lambda: read_sheets(tiny.sheet_files(SPLITS)["test_batch.png"][:-900], b"[]"), "damaged or cut short"),
        (lambda: read_sheets(tiny.png(np.zeros((1, 1024, 3), np.uint8)), b"<html>"), "JSON list"),
        (lambda: read_sheets(tiny.png(np.zeros((1, 1024, 3), np.uint8)), b"[300]"), "JSON list"),
        (lambda: read_idx_pair(tiny.idx(np.zeros((2, 3), np.uint8)), tiny.idx(np.zeros(2, np.uint8))), "not 2 and 1"),
        (lambda: read_idx(b"<html>"), "begins with b'<htm'"),
        (lambda: gunzip(b"\x1f\x8b\x08 nothing"), "damaged or cut short"),
        (lambda: unpack(b"<html>a page</html>"), "the archive is damaged or cut short"),
        (lambda: unpack(tiny.tar({"a": os.urandom(9999)})[:-2000]), "the archive is damaged or cut short"),
    ],
)
def test_what_is_not_in_the_format_is_refused(read, said):
    with pytest.raises(InputError, match=said) as refused:
        read()
    assert "\n" not in str(refused.value)
