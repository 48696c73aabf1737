"""The cache: whole or not there, mapped into memory, mended when damaged."""

import json
from pathlib import Path

import numpy as np
import platformdirs
import pytest
import tiny

from condensation import InputError
from condensation._writing import write_json
from condensation.data import _cache as kept
from condensation.data._sources import fetch, load


@pytest.fixture
def stored(monkeypatch, tmp_path):
    """A small set in the cache, with its arrays and the folder it came from."""
    _, splits = tiny.make(monkeypatch)
    folder = tiny.write(tmp_path / "files", tiny.idx_files(splits))
    return fetch("tiny", data_dir=folder), splits, folder


def test_what_is_stored_comes_back_mapped_into_memory(stored, cache):
    place, splits, folder = stored
    assert place == cache / "tiny"
    assert [path.name for path in cache.iterdir()] == ["tiny"]
    loaded = load("tiny")
    for split, wanted in splits.items():
        for one, other in zip(loaded.splits[split], wanted, strict=True):
            assert isinstance(one, np.memmap)
            np.testing.assert_array_equal(one, other)
    unit = splits["train"].images / 255
    np.testing.assert_allclose([loaded.mean, loaded.std], [[unit.mean()], [unit.std()]], rtol=1e-12)
    assert loaded.source == f"the folder {folder}"
    assert json.loads((place / "about.json").read_text())["format"] == 1


def test_moments_are_those_of_each_channel(monkeypatch):
    one, splits = tiny.make(monkeypatch, like="cifar10")
    unit = splits["train"].images / 255
    np.testing.assert_allclose(one.moments(splits["train"]), [unit.mean((0, 2, 3)), unit.std((0, 2, 3))])


def cut(place):
    content = (place / "train_images.npy").read_bytes()
    (place / "train_images.npy").write_bytes(content[:-1])


def of_another_shape(place):
    np.save(place / "test_images.npy", np.zeros((6, 1, 4, 4), np.uint8))


def of_numbers(place):
    np.save(place / "test_labels.npy", np.zeros(6))


def newer(place):
    about = json.loads((place / "about.json").read_text())
    write_json(place / "about.json", about | {"format": 99})


@pytest.mark.parametrize(
    "damage",
    [
        cut,
        of_another_shape,
        of_numbers,
        newer,
        lambda place: (place / "test_labels.npy").unlink(),
        lambda place: (place / "test_labels.npy").write_bytes(b""),
        lambda place: (place / "about.json").write_text("{"),
        lambda place: (place / "about.json").write_text("[]"),
        lambda place: [path.unlink() for path in place.iterdir()],
    ],
)
def test_damage_is_told_and_mended(stored, damage):
    place, splits, folder = stored
    damage(place)
    for use in (lambda: load("tiny"), lambda: fetch("tiny", data_dir=folder)):
        with pytest.raises(InputError, match=r"is damaged \(.*`condensation data fetch tiny --again` mends it"):
            use()
    assert "damaged" in kept.entries()[0].problem
    fetch("tiny", data_dir=folder, again=True)
    np.testing.assert_array_equal(load("tiny").splits["train"].images, splits["train"].images)
    assert kept.entries()[0].problem is None


def test_a_copy_from_before_there_were_checksums_is_checked_by_its_sums(stored):
    place, splits, _ = stored
    about = json.loads((place / "about.json").read_text())
    old = {name: value for name, value in about.items() if name not in ("seal", "checksums")}
    (place / "about.json").write_text(json.dumps(old | {"mean": [9.0]}))
    np.testing.assert_array_equal(load("tiny").splits["train"].images, splits["train"].images)
    assert json.loads((place / "about.json").read_text()) == about
    images = bytearray((place / "train_images.npy").read_bytes())
    images[-1] ^= 1
    (place / "train_images.npy").write_bytes(images)
    with pytest.raises(InputError, match=r"is damaged \(the bytes of train_images.npy"):
        load("tiny")
    (place / "about.json").write_text(json.dumps(old))
    with pytest.raises(InputError, match=r"is damaged \(the SHA-256 sum of its train images"):
        load("tiny")


def test_the_first_of_two_stays(stored, cache, monkeypatch):
    place, _, folder = stored
    before = (place / "about.json").stat().st_ino
    monkeypatch.setattr(kept, "holds", lambda one: False)  # as it was when the other process had not finished
    assert fetch("tiny", data_dir=folder) == place
    assert (place / "about.json").stat().st_ino == before
    assert [path.name for path in cache.iterdir()] == ["tiny"]


def test_a_copy_in_use_survives_being_fetched_again(stored):
    _, splits, folder = stored
    loaded = load("tiny")
    fetch("tiny", data_dir=folder, again=True)
    np.testing.assert_array_equal(loaded.splits["train"].images, splits["train"].images)


def test_a_cache_that_cannot_be_written_is_told(monkeypatch, tmp_path):
    _, splits = tiny.make(monkeypatch)
    folder = tiny.write(tmp_path / "files", tiny.idx_files(splits))
    (tmp_path / "taken").write_text("")
    monkeypatch.setenv("CONDENSATION_CACHE", str(tmp_path / "taken"))
    with pytest.raises(InputError, match=r"taken cannot be written \(Not a directory\): set CONDENSATION_CACHE"):
        fetch("tiny", data_dir=folder)


@pytest.mark.parametrize("step", ["mkdir", "rename"])
def test_a_read_only_cache_is_told(step, monkeypatch, tmp_path, cache):
    _, splits = tiny.make(monkeypatch)
    folder = tiny.write(tmp_path / "files", tiny.idx_files(splits))

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, step, refuse)
    with pytest.raises(InputError, match=r"cannot be written \(Permission denied\)"):
        fetch("tiny", data_dir=folder)
    assert not cache.exists() or not list(cache.iterdir())


def test_a_full_disk_leaves_nothing(monkeypatch, tmp_path, cache):
    _, splits = tiny.make(monkeypatch)
    folder = tiny.write(tmp_path / "files", tiny.idx_files(splits))

    def full(file, array):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(InputError, match="No space left on device"):
        fetch("tiny", data_dir=folder)
    assert not list(cache.iterdir())


def test_entries_tell_what_is_there(stored):
    place, _, folder = stored
    size = sum(path.stat().st_size for path in place.iterdir())
    assert kept.entries() == [kept.CacheEntry("tiny", str(place), size, f"the folder {folder}")]


def test_without_a_choice_it_is_the_users_cache_folder(monkeypatch):
    monkeypatch.delenv("CONDENSATION_CACHE")
    assert kept.root() == Path(platformdirs.user_cache_dir("condensation"))
