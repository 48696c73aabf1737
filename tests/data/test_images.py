"""Images as data: which are drawn, how they are scaled, what their targets are. On digits, which are always there."""

import numpy as np
import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from condensation import Images, InputError, Seed
from condensation._serialization import from_plain, to_plain, without_none
from condensation.data import Data
from condensation.data._sources import fetch

SEED = Seed(0, 0)
PIXELS, LABELS = load_digits(return_X_y=True)


def test_digits_are_scikit_learns():
    x, y = Images("digits", scale="unit", flat=True, target="index").draw(SEED)
    np.testing.assert_array_equal(x, (PIXELS[:1500] / 16).astype(np.float32))
    np.testing.assert_array_equal(y[:, 0], LABELS[:1500])
    x, y = Images("digits", split="test", scale="unit").draw(SEED)
    np.testing.assert_array_equal(x.reshape(-1, 64), (PIXELS[1500:] / 16).astype(np.float32))
    np.testing.assert_array_equal(y, np.eye(10)[LABELS[1500:]])
    assert x.dtype == y.dtype == np.float32


def test_scales():
    unit, centred, standardised = (
        Images("digits", scale=scale).draw(SEED)[0] for scale in ("unit", "centred", "standardised")
    )
    assert (unit.min(), unit.max(), centred.min(), centred.max()) == (0, 1, -1, 1)
    np.testing.assert_allclose(centred, 2 * unit - 1)
    np.testing.assert_allclose([standardised.mean(), standardised.std()], [0, 1], atol=1e-5)
    test = Images("digits", scale="standardised", split="test").draw(SEED)[0]
    test_unit = Images("digits", scale="unit", split="test").draw(SEED)[0]
    np.testing.assert_allclose(test, (test_unit - unit.mean()) / unit.std(), atol=1e-5)


def test_each_channel_is_standardised_by_itself(monkeypatch, tmp_path):
    _, splits = tiny.make(monkeypatch, like="cifar10")
    splits["train"].images[:, 1] //= 4
    tiny.make(monkeypatch, like="cifar10", sums=tiny.sums_of(splits))
    files = {f"{name}.bin": tiny.binary_batch(batch) for name, batch in tiny.batches(splits).items()}
    fetch("tiny", data_dir=tiny.write(tmp_path / "files", files))
    unit, _ = Images("tiny", scale="unit").draw(SEED)
    np.testing.assert_array_equal(unit, (splits["train"].images / 255).astype(np.float32))
    x, _ = Images("tiny", scale="standardised").draw(SEED)
    np.testing.assert_allclose(x.mean((0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(x.std((0, 2, 3)), 1, atol=1e-5)


def test_targets_count_among_the_chosen_classes():
    labels = LABELS[:1500]
    chosen = labels[np.isin(labels, (8, 3))]
    _, index = Images("digits", classes=(8, 3), target="index").draw(SEED)
    np.testing.assert_array_equal(index[:, 0], chosen == 3)
    _, sign = Images("digits", classes=(8, 3), target="sign").draw(SEED)
    np.testing.assert_array_equal(sign[:, 0], np.where(chosen == 3, 1, -1))
    chosen = labels[np.isin(labels, (8, 3, 0))]
    _, sign = Images("digits", classes=(8, 3, 0), target="sign").draw(SEED)
    _, one_hot = Images("digits", classes=(8, 3, 0)).draw(SEED)
    np.testing.assert_array_equal(one_hot, chosen[:, None] == [8, 3, 0])
    np.testing.assert_array_equal(sign, 2 * one_hot - 1)


def test_shapes_are_known_before_drawing():
    for options in ({}, {"flat": True}, {"target": "sign"}, {"target": "sign", "classes": (1, 2)}, {"target": "index"}):
        data = Images("digits", **options)
        x, y = data.draw(SEED)
        assert x.shape == (len(x), *data.input_shape)
        assert y.shape == (len(x), data.outputs)
    assert (Images("cifar10").shape, Images("mnist", flat=True).input_shape) == ((3, 32, 32), (784,))
    assert Images("cifar100").outputs == 100


def test_all_images_are_one_array_for_every_seed():
    data = Images("digits")
    x, y = data.draw(SEED)
    other, _ = Images("digits").draw(Seed(5, 5))
    assert other is x
    for array in (x, y):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@given(
    n=st.integers(60, 400),
    classes=st.lists(st.integers(0, 9), min_size=2, max_size=4, unique=True),
    seed=st.integers(0, 100),
    balanced=st.booleans(),
)
def test_a_sample_has_no_repeats_and_only_the_classes(n, classes, seed, balanced):
    n = min(n, 100 * len(classes))
    data = Images("digits", n=n, classes=tuple(classes), balanced=balanced, target="index", scale="unit", flat=True)
    x, y = data.draw(Seed(seed, 0))
    rows = {row.tobytes(): k for k, row in enumerate((PIXELS[:1500] / 16).astype(np.float32))}
    found = [rows[row.tobytes()] for row in x]
    assert len(set(found)) == n
    np.testing.assert_array_equal(np.array(classes)[y[:, 0].astype(int)], LABELS[found])
    counts = np.bincount(y[:, 0].astype(int), minlength=len(classes))
    if balanced:
        assert counts.max() - counts.min() <= 1
    np.testing.assert_array_equal(x, data.draw(Seed(seed, 99))[0])


def test_samples_differ_by_the_data_seed():
    data = Images("digits", n=100)
    assert not np.array_equal(data.draw(Seed(0, 0))[0], data.draw(Seed(1, 0))[0])
    order = Images("digits", n=100, balanced=True, target="index").draw(SEED)[1][:, 0]
    assert (np.diff(order) < 0).any()


def test_images_drawn_by_one_seed_are_the_same_for_all():
    fixed = Images("digits", n=50, drawn_by=3)
    for seed in (Seed(0, 0), Seed(7, 1)):
        for one, other in zip(fixed.draw(seed), Images("digits", n=50).draw(Seed(3, 5)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_sample_without_one_of_its_classes_is_refused():
    data = Images("digits", n=10)
    with pytest.raises(InputError, match=r"10 images drawn of digits by Seed\(data=0, init=0\) hold none of class \d"):
        data.draw(SEED)
    assert (Images("digits", n=10, balanced=True).draw(SEED)[1].sum(axis=0) == 1).all()


def test_more_than_there_is_is_refused():
    with pytest.raises(InputError, match=r"digits has 302 train images of these classes, fewer than n = 1000"):
        Images("digits", n=1000, classes=(0, 1)).draw(SEED)
    with pytest.raises(InputError, match=r"class \d of digits has 1\d\d train images, but n = 1500 balanced over 10"):
        Images("digits", n=1500, balanced=True).draw(SEED)


def test_it_is_plain_data_and_back():
    data = Images("mnist", n=100, classes=(3, 5), balanced=True, scale="standardised", target="sign", flat=True)
    assert to_plain(data)["kind"] == "images"
    assert from_plain(Data, without_none(to_plain(data))) == data
    assert from_plain(Data, {"kind": "images", "name": "cifar10"}) == Images("cifar10")


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "minst"}, "unknown data set 'minst'; did you mean 'mnist'"),
        ({"split": "training"}, "unknown split 'training'; did you mean 'train'"),
        ({"scale": "centered"}, "unknown scale 'centered'; did you mean 'centred'"),
        ({"target": "onehot"}, "unknown target 'onehot'; did you mean 'one_hot'"),
        ({"classes": (3,)}, r"two or more different numbers from 0 to 9, not \(3,\)"),
        ({"classes": (3, 3)}, r"different numbers from 0 to 9, not \(3, 3\)"),
        ({"classes": (3, 10)}, r"from 0 to 9, not \(3, 10\)"),
        ({"n": 9}, r"n must be from 10 \(one image a class\) to 1500 \(all train images of digits\), not 9"),
        ({"n": 298, "split": "test"}, r"to 297 \(all test images of digits\), not 298"),
        ({"n": 2.5}, "n must be a whole number or left out, not 2.5"),
        ({"balanced": True}, "n is needed"),
        ({"drawn_by": 3}, "drawn_by draws a number of images: n is needed"),
        ({"drawn_by": -1, "n": 50}, "drawn_by must be a whole number of at least 0, not -1"),
    ],
)
def test_images_that_cannot_be_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        Images(**{"name": "digits"} | options)
