"""Runs on disk: kept, found again, resumed bit for bit, refused when they are not what they should be."""

import dataclasses
import functools
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from condensation import (  # fmt: skip
    GD,
    Adam,
    Arrays,
    Conv,
    Dense,
    Every,
    Experiment,
    GradientFlow,
    Init,
    InputError,
    Loss,
    Normal,
    ResNet,
    Seed,
    load_run,
    sine_sum,
    train,
)
from condensation.runs import RunFolder, UnfinishedSeeds, open_run, run_folder
from condensation.training import _chunks as chunks
from condensation.training import _work as work
from condensation.training._engine import run

DATA = sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2)
BASE = Experiment(Dense((5, 50, 1)), Init(Normal(0.005)), DATA, Adam(1e-3), 300, save=Every(50))


def same(one, other) -> None:
    assert one.experiment == other.experiment
    assert one.seeds == other.seeds
    assert one.diverged == other.diverged
    for ours, theirs in ((one.parameters, other.parameters), (one.curves, other.curves)):
        assert ours.keys() == theirs.keys()
        for name in ours:
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)


def test_seeds_that_are_not_finished_are_named(tmp_path):
    trained = train(BASE, 3, out=tmp_path)
    folder = open_run(run_folder(tmp_path, BASE))
    interrupted = dataclasses.replace(folder.read(Seed(1, 1)), finished=False)
    folder.write(Seed(1, 1), interrupted)
    with pytest.warns(UnfinishedSeeds, match=r"1 of 3 seeds in .* are not finished, and are left out: 1-1; train"):
        loaded = load_run(folder.path)
    assert loaded.seeds == (Seed(0, 0), Seed(2, 2))
    np.testing.assert_array_equal(loaded.loss, trained.loss[[0, 2]])
    for seed in (Seed(0, 0), Seed(2, 2)):
        folder.write(seed, interrupted)
    with pytest.raises(InputError, match="has no finished seed yet"):
        load_run(folder.path)


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


stream = np.random.default_rng(0)
IMAGES = Arrays(stream.normal(size=(32, 1, 10, 10)), np.eye(3)[stream.integers(3, size=32)])
CONV = Conv((1, 10, 10), channels=(4,), kernel=3, outputs=3, hidden=(16,))
LONG = {
    "adam": BASE.replace(steps=100_000, save=Every(25_000)),
    "gd": BASE.replace(optimizer=GD(1e-3), steps=100_000, save=Every(25_000)),
    "batches": BASE.replace(batch_size=16, steps=100_000, save=Every(25_000), **{"network.dropout": 0.2}),
    "flow": BASE.replace(optimizer=GradientFlow(0.05), steps=5000, save=Every(1000)),
    "conv": Experiment(CONV, Init(Normal(0.1)), IMAGES, Adam(1e-3), 5000, Loss("cross_entropy"), save=Every(1000)),
    "resnet": Experiment(
        ResNet((1, 10, 10), 3, (16,), channels=(4, 8), depth=1, stem="small"), Init(Normal(0.1)), IMAGES, Adam(1e-3),
        800, Loss("cross_entropy"), save=Every(200), record=Every(200), batch_size=8, test=IMAGES,
    ),
}  # fmt: skip
SCRIPT = """
import sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, {tests!r})
from condensation.training import _chunks as chunks, _work as work
work.KEEP_SECONDS = 0.05
chunks.SECONDS_PER_CALL = 0.02
from training.test_store import LONG
from condensation import train
moving = iter(["moving"])
train(LONG[{name!r}], 2, out={out!r}, progress=lambda p: [print(word, flush=True) for word in moving])
print("done", flush=True)
"""


KILLS = {"adam": 4, "gd": 3, "batches": 4, "flow": 3, "conv": 4, "resnet": 2}


@pytest.mark.kill
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KILLS)
def test_a_killed_run_goes_on_bit_for_bit(name, tmp_path):
    """SIGKILL at random moments, 20 in all over the kinds of training; what is resumed ends with the same numbers."""
    expected = train(LONG[name], 2)
    moments = random.Random(name)
    killed = resumed = finished = 0

    def start(kill: bool) -> None:
        nonlocal killed, resumed, finished
        out = tmp_path / str(finished)
        code = SCRIPT.format(tests=str(Path(__file__).parents[1]), name=name, out=str(out))
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline().strip() == "moving"
            resumed += any(run_folder(out, LONG[name]).glob("data*.safetensors"))
            if kill:
                time.sleep(moments.uniform(0.05, 1.0))
                process.send_signal(signal.SIGKILL)
            code = process.wait()
        if code == -signal.SIGKILL:
            killed += 1
        else:  # it came to its end: hold it against the run that nobody killed, and begin another
            assert code == 0
            same(load_run(run_folder(out, LONG[name])), expected)
            finished += 1

    for _ in range(4 * KILLS[name]):
        if killed < KILLS[name]:
            start(kill=True)
    start(kill=False)
    assert killed == KILLS[name]
    assert resumed >= 1
    assert finished >= 1


@pytest.mark.parametrize("block", [1, 4])
def test_an_interrupted_run_goes_on(tmp_path, block, monkeypatch):
    module = sys.modules[train.__module__]
    monkeypatch.setattr(module, "run", functools.partial(run, block=block))
    monkeypatch.setattr(chunks, "SECONDS_PER_CALL", 0.01)
    seen = []

    def stop(progress):
        seen.append(progress.done)
        if progress.done > 3000:
            raise KeyboardInterrupt

    experiment = BASE.replace(steps=5000, save=Every(1000))
    with pytest.raises(KeyboardInterrupt):
        train(experiment, 4, out=tmp_path, progress=stop)
    assert seen[-1] < 20_000
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
    refused("cannot be read as safetensors")
    seed.write_bytes(b"")
    refused("cannot be read as safetensors")
    save_file({"a": np.ones(2)}, seed)
    refused("was not written by condensation")
    seed.write_bytes(good)
    about.write_text(described.replace('"format": 1', '"format": 99', 1))
    refused("has format 99, but this version of condensation knows up to 1")
    about.write_text("{")
    refused("cannot be read as JSON")
    about.write_text(described.replace('"steps": 300', '"steps": 301'))
    refused("is not the one that was run")
    about.write_text(described.replace('"steps": 300', '"stepz": 300'))
    refused("unknown field of an experiment 'stepz'; did you mean 'steps'")
    about.write_text(described)
    load_run(folder)
    with pytest.raises(InputError, match="there is no file"):
        load_run(tmp_path / "nowhere")
    about.write_text(described.replace(BASE.fingerprint(), "0" * 64))
    with pytest.raises(InputError, match="holds the run of another experiment"):
        train(BASE, 1, out=tmp_path)


def test_a_kill_between_two_files_loses_nothing(tmp_path):
    """run.json is made from the seeds' files, so that it may be behind them."""
    train(BASE, 2, out=tmp_path)
    about = run_folder(tmp_path, BASE) / "run.json"
    described = json.loads(about.read_text())
    about.write_text(json.dumps(described | {"seeds": []}))
    same(load_run(about.parent), train(BASE, 2))
    train(BASE, 2, out=tmp_path)
    assert json.loads(about.read_text())["seeds"] == described["seeds"]


def test_a_worker_that_fails_stops_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(work, "KEEP_SECONDS", 0.1)
    monkeypatch.setattr(chunks, "SECONDS_PER_CALL", 0.05)
    write = RunFolder.write

    def full(self, seed, kept):
        if seed.init == 1:
            raise InputError("the disk is full")
        write(self, seed, kept)

    monkeypatch.setattr(RunFolder, "write", full)
    began = time.perf_counter()
    with pytest.raises(InputError, match="the disk is full"):
        train(BASE.replace(steps=20_000_000, save=Every(10_000_000)), 2, out=tmp_path)
    assert time.perf_counter() - began < 60  # all steps of both seeds would take many minutes


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
