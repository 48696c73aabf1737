"""Large models layer by layer: what is in memory, samples of many units, stacked experts, progress."""

import sys
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

from condensation.measure import measure_units
from condensation.weights import _streaming, measure_path, open_model_file
from condensation.weights._streaming import Room, of_all_units

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from large_files import make, measure  # pyright: ignore[reportMissingImports]


def test_layers_are_let_in_while_they_fit():
    room, inside, most, lock = Room(10), [], [], threading.Lock()

    def work(size):
        for _ in range(50):
            with room.hold(size):
                with lock:
                    inside.append(size)
                    most.append((sum(inside), len(inside)))
                with lock:
                    inside.remove(size)

    threads = [threading.Thread(target=work, args=(size,)) for size in (2, 4, 4, 7, 30, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=20)
    assert not any(thread.is_alive() for thread in threads)
    assert all(size <= 10 or size == 30 for size, count in most)
    with pytest.raises(ZeroDivisionError), room.hold(30):
        raise ZeroDivisionError
    with room.hold(30):  # it was given back
        pass


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["random", "lines", "unequal"])
def test_a_sample_stands_for_all_units(kind):
    """k_eff, its chance and its null as all units have them; random, on 40 lines, and of unequal norms."""
    stream = np.random.default_rng(1)
    array = stream.normal(size=(6000, 30))
    if kind == "lines":
        array = array[stream.integers(40, size=6000)] * stream.uniform(0.5, 2, (6000, 1))
    if kind == "unequal":
        array *= np.exp(stream.normal(size=(6000, 1)))
    whole = measure_units("a", array, with_null=True)
    part = array[stream.choice(6000, 2000, replace=False)]
    found = of_all_units(measure_units("a", part, with_null=True), part, 6000)
    assert found.units == 6000
    for name in ("k_eff", "chance_k_eff", "centred_k_eff", "null_k_eff"):
        near = 0.25 if name == "null_k_eff" and kind == "unequal" else 0.1  # the null itself is a mean of few draws
        assert getattr(found, name) == pytest.approx(getattr(whole, name), rel=near), name
    assert found.effective_rank == pytest.approx(whole.effective_rank, rel=0.03)
    assert found.copies == pytest.approx(whole.copies, rel=0.03)
    assert (found.copies > 5000) == (kind == "lines")


def test_a_large_layer_is_sampled_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(_streaming, "SAMPLE", 500)
    embedding = np.random.default_rng(0).normal(size=(3000, 20)).astype(np.float32)
    save_file({"embed_tokens.weight": embedding, "fc.weight": embedding[:400]}, tmp_path / "model.safetensors")
    told = []
    measured = measure_path(tmp_path, progress=lambda *what: told.append(what))
    rows = {row.layer: row for row in measured.steps[0]}
    assert rows["embed_tokens.weight"].units == 3000
    assert rows["embed_tokens.weight"].k_eff == pytest.approx(measure_units("", embedding).k_eff, rel=0.1)
    assert rows["fc.weight"].k_eff == measure_units("", embedding[:400]).k_eff
    assert any("embed_tokens.weight: 500 of its 3,000 units are measured" in note for note in measured.notes)
    assert [what[1:] for what in told][-1] == (68000, 68000)
    assert {what[0] for what in told} == rows.keys()


def test_stacked_experts_are_read_one_by_one(tmp_path):
    folder = tmp_path / "model"
    make(folder, layers=0, width=16, hidden=64, rows=40)
    opened = open_model_file(folder)
    [name] = [name for name in opened.arrays if "experts" in name]
    whole = opened.arrays[name].read()
    listed = [units for units in opened.units() if units.parameter == name]
    assert len(listed) == len(whole) == 8
    read = []
    for units, matrix in zip(listed, whole, strict=True):
        weights = units.weights()
        read.append(weights)
        assert weights.shape in (matrix.shape, matrix.T.shape)
        assert np.array_equal(weights, matrix if weights.shape == matrix.shape else matrix.T)
    part = opened.arrays[name].read_part(3)
    assert part.dtype == np.float32
    assert np.array_equal(part, whole[3])


def test_half_precision_in_a_large_file_reads_as_it_was_written(tmp_path, monkeypatch):
    """Memory of a mapped file is given back between arrays; what is read again is the same."""
    monkeypatch.setattr("condensation._files.LARGE_MAP", 0)
    stream = np.random.default_rng(0)
    arrays = {f"{k}.weight": stream.normal(size=(50, 40)).astype(ml_dtypes.bfloat16) for k in range(5)}
    save_file(arrays, tmp_path / "model.safetensors")
    stored = open_model_file(tmp_path).arrays
    views = {name: stored[name].load() for name in arrays}
    for name, array in arrays.items():
        assert np.array_equal(stored[name].read(), array.astype(np.float32))
    assert all(np.array_equal(views[name].astype(np.float32), arrays[name].astype(np.float32)) for name in arrays)


@pytest.mark.trials
def test_memory_does_not_grow_with_the_file(tmp_path):
    """Of 300 MB that twelve blocks have more than two, not all is ever resident."""
    make(tmp_path / "small", layers=2, width=1024, hidden=4096, rows=20000)
    make(tmp_path / "large", layers=12, width=1024, hidden=4096, rows=20000)
    _, _, small, _ = measure(tmp_path / "small")
    _, _, large, rows = measure(tmp_path / "large")
    assert rows == 1 + 12 * 7 + 8
    assert large - small < 250e6  # 210 MB were seen, with a null for each layer
