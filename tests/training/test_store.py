"""Runs on disk: kept, found again, resumed bit for bit, refused when they are not what they should be."""

import dataclasses
import functools
import json
import os
import sys

import numpy as np
import processes
import pytest
from longer import BASE, DATA, LONG, same
from safetensors.numpy import save_file

from condensation import (  # fmt: skip
    GD,
    Arrays,
    Dense,
    Every,
    Experiment,
    Init,
    InputError,
    Normal,
    Seed,
    load_run,
    train,
)
from condensation._writing import write_json, write_tensors
from condensation.runs import RunFolder, UnfinishedSeeds, open_run, run_folder
from condensation.training import _chunks as chunks
from condensation.training import _work as work
from condensation.training._engine import run


def rewrite(folder, unfinished):
    """Write each seed to a file of its own, some as if their training had been interrupted just before its end."""
    there = folder.checkpoints()
    for path in folder.files():
        path.unlink()
    for seed, checkpoint in there.items():
        folder.write({seed: dataclasses.replace(checkpoint, finished=seed not in unfinished)})
    write_json(folder.path / "run.json", json.loads((folder.path / "run.json").read_text()) | {"seeds": []})


def test_seeds_that_are_not_finished_are_named(tmp_path):
    trained = train(BASE, 3, out=tmp_path)
    folder = open_run(run_folder(tmp_path, BASE))
    rewrite(folder, [Seed(1, 1)])
    with pytest.warns(UnfinishedSeeds, match=r"1 of 3 seeds in .* are not finished, and are left out: 1-1; train"):
        loaded = load_run(folder.path)
    assert loaded.seeds == (Seed(0, 0), Seed(2, 2))
    np.testing.assert_array_equal(loaded.loss, trained.loss[[0, 2]])
    rewrite(folder, trained.seeds)
    with pytest.raises(InputError, match="has no finished seed yet"):
        load_run(folder.path)


def test_many_seeds_are_kept_in_few_files(tmp_path):
    small = BASE.replace(network=Dense((5, 3, 1)), steps=4, save=Every(4))
    few, many = train(small, 100, out=tmp_path), train(small, 300, out=tmp_path)
    folder = open_run(run_folder(tmp_path, small))
    assert len(folder.files()) < 40
    same(load_run(folder.path), many)
    np.testing.assert_array_equal(few.loss, many.loss[:100])
    same(many, train(small, 300))


def test_states_of_finished_seeds_are_removed(tmp_path, monkeypatch):
    """A batch of four that was interrupted is gone on with as four networks: no state is left, all seeds are there."""
    monkeypatch.setattr(chunks, "SECONDS_PER_CALL", 0.01)
    monkeypatch.setattr(work, "KEEP_SECONDS", -1.0)
    monkeypatch.setattr(work, "KEEP_SHARE", np.inf)
    experiment = BASE.replace(steps=1000, save=Every(200))
    module = sys.modules[train.__module__]
    folder = run_folder(tmp_path, experiment)

    def stop(progress):
        if progress.done > 600:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "run", functools.partial(run, block=4))
        with pytest.raises(KeyboardInterrupt):
            train(experiment, 4, out=tmp_path, progress=stop)
    kept = open_run(folder)
    assert [kept.header(path).finished for path in kept.files()] == [False]
    assert len(kept.header(kept.files()[0]).seeds) == 4
    resumed = train(experiment, 4, out=tmp_path)
    first = slice(None), slice(500)  # batches round otherwise, which grows
    np.testing.assert_allclose(resumed.loss[first], train(experiment, 4).loss[first], rtol=1e-6)
    assert all(kept.header(path).finished for path in kept.files())
    assert not list(folder.glob(".*"))


def test_a_seed_in_two_files_is_taken_from_the_one_that_is_further(tmp_path):
    trained = train(BASE, 2, out=tmp_path)
    folder = open_run(run_folder(tmp_path, BASE))
    whole = {path: path.read_bytes() for path in folder.files()}
    rewrite(folder, [Seed(0, 0)])
    path = folder.file_of([Seed(0, 0)])
    unfinished = path.read_bytes()
    for other in folder.files():
        other.unlink()
    for other, content in (whole | {path: unfinished}).items():
        other.write_bytes(content)
    same(load_run(folder.path), trained)
    same(train(BASE, 2, out=tmp_path), trained)
    assert all(folder.header(other).finished for other in folder.files())


def test_a_run_is_found_again_by_its_fingerprint(tmp_path, monkeypatch):
    first = train(BASE, 3, out=tmp_path)
    same(first, train(BASE, 3))
    same(first, load_run(run_folder(tmp_path, BASE)))

    def no_step(*_):
        raise AssertionError("a finished run must not be trained again")

    monkeypatch.setattr(work.Work, "advance", no_step)
    same(first, train(BASE, 3, out=tmp_path))


def test_more_seeds_are_added_to_a_run(tmp_path):
    train(BASE, [1], out=tmp_path)
    same(train(BASE, 3, out=tmp_path), train(BASE, 3))
    about = json.loads((run_folder(tmp_path, BASE) / "run.json").read_text())
    assert [entry["init"] for entry in about["seeds"]] == [0, 1, 2]
    assert about["fingerprint"] == BASE.fingerprint()
    assert "jax" in about["versions"]
    assert all(entry["seconds"] > 0 for entry in about["seeds"])


def test_a_run_with_arrays_carries_them(tmp_path):
    x, y = DATA.draw(Seed(4, 0))
    experiment = BASE.replace(data=Arrays(x, y), steps=20, save=Every(10))
    same(train(experiment, 2, out=tmp_path), load_run(run_folder(tmp_path, experiment)))


def test_a_diverged_seed_is_kept_as_such(tmp_path):
    data = Arrays(np.ones((4, 1)), np.ones(4))
    bad = Experiment(Dense((1, 4, 1), "x2_tanh"), Init(Normal(1.0)), data, GD(30.0), 400, save=Every(20))
    with pytest.warns(UserWarning, match="not finite"):
        first = train(bad, 1, out=tmp_path)
    loaded = load_run(run_folder(tmp_path, bad))
    assert loaded.diverged == first.diverged
    assert np.isnan(loaded.loss[0, -1])


@pytest.mark.kill
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["adam", "gd", "batches", "flow", "conv", "resnet"])
def test_a_killed_run_goes_on_bit_for_bit(name, tmp_path):
    """SIGKILL at random moments; what is resumed ends with the same numbers."""
    expected = train(LONG[name], 2)
    resumed = finished = 0

    def ready(process):
        nonlocal resumed
        assert processes.line(process) == "moving\n"
        resumed += any(run_folder(tmp_path / str(finished), LONG[name]).glob("*init*.safetensors"))

    def ended(process):
        nonlocal finished
        code, said = processes.ended(process)
        assert code == 0, said
        same(load_run(run_folder(tmp_path / str(finished), LONG[name])), expected)
        assert not [*tmp_path.glob(f"{finished}/*/.*")]  # nothing of the killed ones lies about
        finished += 1

    command = lambda: (sys.executable, processes.HERE / "longer.py", name, tmp_path / str(finished))  # noqa: E731
    processes.kill_again_and_again(name, command, ready, ended)
    assert resumed >= 1


@pytest.mark.parametrize("block", [1, 4])
def test_an_interrupted_run_goes_on(tmp_path, block, monkeypatch):
    module = sys.modules[train.__module__]
    monkeypatch.setattr(module, "run", functools.partial(run, block=block))
    monkeypatch.setattr(chunks, "SECONDS_PER_CALL", 0.01)
    seen = []

    def stop(progress):
        seen.append(progress.done)
        if progress.done > 600:
            raise KeyboardInterrupt

    experiment = BASE.replace(steps=1000, save=Every(200))
    with pytest.raises(KeyboardInterrupt):
        train(experiment, 4, out=tmp_path, progress=stop)
    assert seen[-1] < 4000
    same(train(experiment, 4, out=tmp_path), train(experiment, 4))


def test_what_is_not_a_run_is_refused(tmp_path):
    train(BASE, 1, out=tmp_path)
    folder = run_folder(tmp_path, BASE)
    seed, about = folder / "data0-init0.safetensors", folder / "run.json"
    good, described = seed.read_bytes(), about.read_text()

    def refused(said):
        with pytest.raises(InputError, match=said):
            load_run(folder)

    seed.write_bytes(good[: len(good) // 2])
    refused("init0.safetensors is damaged")
    seed.write_bytes(b"")
    refused("init0.safetensors is damaged")
    save_file({"a": np.ones(2)}, seed)
    refused("init0.safetensors is damaged")
    write_tensors(seed, {"a": np.ones(2)})
    refused("was not written by condensation")
    seed.write_bytes(good)

    def rewrite(old, new):
        write_json(about, json.loads(described.replace(old, new, 1)))

    rewrite('"format": 1', '"format": 99')
    refused("has format 99, but this version of condensation knows up to 1")
    about.write_text(described.replace('"steps": 300', '"steps": 301'))
    refused("run.json is damaged")
    rewrite('"steps": 300', '"steps": 301')
    refused("is not the one that was run")
    rewrite('"steps": 300', '"stepz": 300')
    refused("unknown field of an experiment 'stepz'; did you mean 'steps'")
    about.write_text(described)
    load_run(folder)
    with pytest.raises(InputError, match="there is no file"):
        load_run(tmp_path / "nowhere")
    rewrite(BASE.fingerprint(), "0" * 64)
    with pytest.raises(InputError, match="holds the run of another experiment"):
        train(BASE, 1, out=tmp_path)


def test_a_kill_between_two_files_loses_nothing(tmp_path):
    """run.json is made from the seeds' files, so that it may be behind them."""
    train(BASE, 2, out=tmp_path)
    about = run_folder(tmp_path, BASE) / "run.json"
    described = json.loads(about.read_text())
    write_json(about, described | {"seeds": []})
    same(load_run(about.parent), train(BASE, 2))
    train(BASE, 2, out=tmp_path)
    assert json.loads(about.read_text())["seeds"] == described["seeds"]


def test_a_worker_that_fails_stops_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(work, "KEEP_SECONDS", 0.1)
    monkeypatch.setattr(chunks, "SECONDS_PER_CALL", 0.05)
    write = RunFolder.write

    def full(self, checkpoints):
        if any(seed.init == 1 for seed in checkpoints):
            raise InputError("the disk is full")
        write(self, checkpoints)

    monkeypatch.setattr(RunFolder, "write", full)
    long = BASE.replace(steps=20_000_000, save=Every(10_000_000))  # which would take many minutes
    with pytest.raises(InputError, match="the disk is full"):
        train(long, 2, out=tmp_path)
    assert not any(header.finished for header in open_run(run_folder(tmp_path, long)).headers().values())


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        train(BASE, 1, out=tmp_path / "file")


def test_a_full_disk_keeps_what_was_saved(tmp_path, monkeypatch):
    train(BASE, [0], out=tmp_path)
    before = {path.name: path.read_bytes() for path in run_folder(tmp_path, BASE).iterdir()}

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="cannot be written: No space left on device; what was saved before stays"):
        train(BASE, 2, out=tmp_path)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in run_folder(tmp_path, BASE).iterdir()} == before
    same(train(BASE, 2, out=tmp_path), train(BASE, 2))


def test_what_a_killed_process_was_writing_is_removed(tmp_path):
    """A part of each file of a run: its description, arrays and seeds."""
    train(LONG["gd"], 1, out=tmp_path, progress=False)
    folder = run_folder(tmp_path, LONG["gd"])
    for name in ("run.json", "data.safetensors", "data0-init0.safetensors", "seeds-0a1b.safetensors"):
        (folder / f".{name}.30bf566e.part").write_text("half of")
    train(LONG["gd"], 1, out=tmp_path, progress=False)
    assert not [*folder.glob(".*")]
