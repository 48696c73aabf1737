"""A flipped bit anywhere in the folder of a run or of a sweep is harmless or named, and training again mends it."""

import json
import os
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest

import condensation as c
from condensation._writing import write_json
from condensation.cli._verify import verify as verify_command
from condensation.errors import Damaged
from condensation.runs import DamagedFile, open_run, run_folder
from condensation.sweeps import Local, Sweep, open_sweep, run_sweep

STREAM = np.random.default_rng(0)
BASE = c.Experiment(
    c.Dense((2, 6, 1)), c.Init(c.Normal(0.1)), c.Arrays(STREAM.normal(size=(9, 2)), STREAM.normal(size=9)), c.GD(0.1),
    40, save=c.Every(10),
)  # fmt: skip
SWEEP = Sweep(BASE, {"optimizer.learning_rate": [0.1, 0.2]}, seeds=2)
KINDS = {
    "run": (lambda folder: c.train(BASE, 2, out=folder), lambda folder: c.load_run(run_folder(folder, BASE))),
    "sweep": (lambda folder: run_sweep(SWEEP, folder, Local(1), block=1), open_sweep),
}


def content(result) -> list[np.ndarray]:
    """All numbers of a run or a table."""
    if hasattr(result, "rows"):
        columns = ("dense1.k_eff", "dense1.change", "loss", "step")
        return [np.asarray(result.rows.column(name).to_numpy(zero_copy_only=False)) for name in columns]
    data = [array for seed in result.seeds for array in result.data(seed)]
    arrays = [*sorted(result.parameters.items()), *sorted(result.curves.items())]
    return [*(array for _, array in arrays), *data, np.array(result.seeds)]


def same(one, other) -> bool:
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(content(one), content(other), strict=True))


def files_of(folder: Path) -> list[Path]:
    passed = {"driver.json", "table.parquet"}  # who runs it, and an export that is never read back
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in passed)


def load_folder(out: Path):
    return open_run(run_folder(out, BASE))


def flip(path: Path, place: int, bit: int) -> None:
    changed = bytearray(path.read_bytes())
    changed[place] ^= 1 << bit
    path.write_bytes(changed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [40, pytest.param(250, marks=pytest.mark.trials)])
def test_a_flipped_bit_is_harmless_or_named_and_mended(kind, count, tmp_path):
    make, read = KINDS[kind]
    whole = tmp_path / "whole"
    make(whole)
    reference, stream, named = read(whole), np.random.default_rng(count), 0
    files = files_of(whole)
    for k in range(count):
        folder = tmp_path / "flipped"
        shutil.copytree(whole, folder)
        path = folder / files[k % len(files)].relative_to(whole)
        flip(path, int(stream.integers(path.stat().st_size)), int(stream.integers(8)))
        try:
            assert same(read(folder), reference), f"believed a flipped bit in {path.name}"
        except c.InputError as error:
            named += 1
            if path.name not in str(error):
                raise
        if k % 4 == 0:  # training again mends it
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DamagedFile)
                make(folder)
            assert same(read(folder), reference)
        shutil.rmtree(folder)
    assert named > 0.9 * count


@pytest.mark.parametrize("kind", KINDS)
def test_a_zeroed_stretch_and_a_cut_file_are_named(kind, tmp_path):
    make, read = KINDS[kind]
    make(tmp_path)
    for path in files_of(tmp_path):
        before = path.read_bytes()
        for damaged in (before[: len(before) // 2], bytes(len(before)), b"", before[:200] + bytes(64) + before[264:]):
            path.write_bytes(damaged)
            with pytest.raises(c.InputError, match=path.name):
                read(tmp_path)
        path.write_bytes(before)
    read(tmp_path)


def test_a_seed_that_is_gone_is_named_and_trained_again(tmp_path):
    c.train(BASE, 3, out=tmp_path)
    folder = run_folder(tmp_path, BASE)
    reference = c.load_run(folder)
    for path in load_folder(tmp_path).files():
        path.unlink()
    with pytest.raises(Damaged, match=r"Seed\(data=0, init=0\) was finished in .*, and its file is gone"):
        c.load_run(folder)
    c.train(BASE, [2], out=tmp_path)
    with pytest.raises(Damaged, match=r"Seed\(data=0, init=0\) was finished in .*, and its file is gone"):
        c.load_run(folder)
    c.train(BASE, 3, out=tmp_path)
    assert same(c.load_run(folder), reference)


def test_a_damaged_checkpoint_goes_on_from_the_one_before(tmp_path, monkeypatch):
    """An interrupted training whose last checkpoint has a flipped bit ends with the same numbers."""
    from condensation.runs import RunFolder

    long = BASE.replace(steps=4000, save=c.Every(500), record=c.Every(500))
    reference, written, write = c.train(long, 1), [], RunFolder.write

    def interrupted(self, checkpoints):
        write(self, checkpoints)
        written.append(next(iter(checkpoints.values())).finished)
        if len(written) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "write", interrupted)
    monkeypatch.setattr("condensation.training._work.KEEP_SECONDS", -1.0)
    monkeypatch.setattr("condensation.training._work.KEEP_SHARE", np.inf)
    with pytest.raises(KeyboardInterrupt):
        c.train(long, 1, out=tmp_path)
    assert written == [False] * 3
    monkeypatch.setattr(RunFolder, "write", write)
    whole = run_folder(tmp_path, long)
    assert (whole / ".data0-init0.previous").exists()
    stream, names = np.random.default_rng(0), ["data0-init0.safetensors", ".data0-init0.previous", "run.json"]
    for k in range(12):
        out = tmp_path / str(k)
        folder = shutil.copytree(whole, out / whole.name)
        path = folder / names[k % 3]
        flip(path, int(stream.integers(path.stat().st_size)), int(stream.integers(8)))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert same(c.train(long, 1, out=out), reference)
        told = [str(warning.message) for warning in caught if warning.category is DamagedFile]
        assert all(path.name in sentence for sentence in told)
        assert len(told) == (not path.name.startswith("."))
        assert not (folder / ".data0-init0.previous").exists()


def test_a_changed_model_file_is_refused(tmp_path):
    run = c.train(BASE, 1)
    run.model(40, run.seeds[0]).save(tmp_path / "model.safetensors")
    flip(tmp_path / "model.safetensors", (tmp_path / "model.safetensors").stat().st_size - 3, 0)
    with pytest.raises(Damaged, match=r"model\.safetensors is damaged"):
        c.Model.load(tmp_path / "model.safetensors")
    with pytest.raises(Damaged, match=r"model\.safetensors is damaged"):
        c.weights.measure_path(tmp_path / "model.safetensors")


def test_files_stay_readable_for_others(tmp_path):
    from pyarrow import parquet
    from safetensors.numpy import load_file

    c.train(BASE, 1, out=tmp_path / "runs")
    folder = run_folder(tmp_path / "runs", BASE)
    assert json.loads((folder / "run.json").read_text())["seal"].startswith("checksum:")
    assert "weights/dense1.weight" in load_file(folder / "data0-init0.safetensors")
    run_sweep(SWEEP, tmp_path / "sweep", Local(1))
    files = (tmp_path / "sweep" / "cells").glob("*.parquet")
    assert sum(parquet.read_table(file).num_rows for file in files) == 4


def test_verify_names_what_is_damaged_or_gone(tmp_path, capsys):
    runs, sweeps = tmp_path / "runs", tmp_path / "sweep"
    c.train(BASE, 2, out=runs)
    run_sweep(SWEEP, sweeps, Local(1), block=1, keep_runs=True)
    assert all(not each.problems and not each.unfinished for each in c.verify(tmp_path))
    assert {each.kind for each in c.verify(tmp_path)} == {"run", "sweep"}
    for path in (*files_of(runs), *files_of(sweeps)):
        before = path.read_bytes()
        flip(path, len(before) // 2, 2)
        [problem] = [problem for each in c.verify(tmp_path) for problem in each.problems]
        assert path.name in problem
        path.write_bytes(before)
    for path in load_folder(runs).files():
        path.unlink()
    with pytest.raises(SystemExit) as ended:
        verify_command((tmp_path,))
    assert ended.value.code == 4
    out = capsys.readouterr().out
    assert "Seed(data=0, init=0) was finished in" in out
    assert out.count("files, damaged") == 1
    with pytest.raises(c.InputError, match="there is no run and no sweep in"):
        c.verify(tmp_path / "nowhere")
    np.savez(tmp_path / "foreign.npz", a=np.ones(3))
    with pytest.raises(c.InputError, match="carries no checksum"):
        c.verify(tmp_path / "foreign.npz")


def test_verify_runs_nothing_that_a_file_names(tmp_path, monkeypatch):
    (tmp_path / "evil_activation.py").write_text("import pathlib\npathlib.Path('ran').touch()\nact = None\n")
    c.train(BASE, 1, out=tmp_path / "runs")
    about = run_folder(tmp_path / "runs", BASE) / "run.json"
    plain = json.loads(about.read_text())
    plain["experiment"]["network"]["activation"] = "evil_activation:act"
    write_json(about, plain)
    monkeypatch.chdir(tmp_path)
    assert [each.problems for each in c.verify("runs")] == [()]
    assert not (tmp_path / "ran").exists()


def test_the_initial_weights_of_a_watched_run_are_checked(tmp_path):
    torch = pytest.importorskip("torch")
    from condensation.pytorch import watch

    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    data = torch.linspace(-1, 1, 30).reshape(10, 3)

    def steps(count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            loss = (model(data) ** 2).mean()
            loss.backward()
            optimizer.step()
            watcher.step(loss)

    with watch(model, tmp_path / "run", schedule=c.Every(1)) as watcher:
        steps(3)
    path = tmp_path / "run" / "initial.safetensors"
    flip(path, path.stat().st_size - 3, 4)
    assert any("initial.safetensors" in problem for each in c.verify(tmp_path) for problem in each.problems)
    with (
        pytest.warns(UserWarning, match=r"initial\.safetensors is damaged.*change of its layers is NaN"),
        watch(model, tmp_path / "run", schedule=c.Every(1), resume=True) as watcher,
    ):
        steps(3)


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path):
    c.train(BASE, 1, out=tmp_path)
    about = run_folder(tmp_path, BASE) / "run.json"
    about.unlink()
    os.mkfifo(about)
    for use in (lambda: c.load_run(about.parent), lambda: c.train(BASE, 1, out=tmp_path)):
        with pytest.raises(c.InputError, match=r"run\.json is a named pipe"):
            use()
    assert "named pipe" in c.verify(tmp_path)[0].problems[0]


def test_verify_tells_a_file_that_is_whole_and_no_run(tmp_path):
    c.train(BASE, 1, out=tmp_path)
    about = run_folder(tmp_path, BASE) / "run.json"
    for seeds in ([{"data": 0}], [3], "all", [{"data": "a", "init": 1}]):
        write_json(about, json.loads(about.read_text()) | {"seeds": seeds})
        assert (
            "run.json is not the description of a run" in c.verify(tmp_path)[0].problems[0]
            or "seed is a whole" in (c.verify(tmp_path)[0].problems[0])
        )
