"""Strange folders: runs and sweeps whose files were mutated and sealed again are opened, or refused in one sentence."""

import copy
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from fuzzing import Stream, Tally, check_told, mutated, refused, stream_of

import condensation as c
from condensation._files import SEAL, read_sealed_json, read_tensors
from condensation._writing import write_json, write_tensors
from condensation.runs import run_folder
from condensation.sweeps import Local, Sweep, open_sweep, run_sweep

BASE = c.Experiment(c.Dense((2, 4, 1)), c.Init(c.Normal(0.1)), c.two_waves(), c.GD(0.1), 4).replace(
    data=c.Synthetic(((1, 2, 0),), 2, 9, -1, 1), save=c.Every(2)
)
pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """A run and a sweep."""
    out = tmp_path_factory.mktemp("whole")
    c.train(BASE, 2, out=out / "runs")
    run_sweep(Sweep(BASE, {"optimizer.learning_rate": [0.1, 0.2]}), out / "sweep", Local(1))
    return {"run": run_folder(out / "runs", BASE), "sweep": out / "sweep"}


def resealed(path: Path, plain: object) -> None:
    """A JSON file with a valid checksum, whatever it holds; what JSON has not becomes text."""
    plain = json.loads(json.dumps(plain, default=str))
    write_json(path, plain if isinstance(plain, dict) else {"seeds": plain})


def fitting(plain: dict) -> dict:
    """A description with the fingerprint of what it describes, where that is an experiment."""
    try:
        return plain | {"fingerprint": c.Experiment.from_plain(plain["experiment"]).fingerprint()}
    except (c.InputError, KeyError, TypeError):
        return plain


def mutate_run(folder: Path, stream: Stream) -> object:
    """Mutate the description of a run, a seed's header or a seed's arrays; what was done."""
    description = read_sealed_json(folder / "run.json")
    seed = next(folder.glob("*.safetensors"))
    about, arrays = read_tensors(seed)
    header = json.loads(about["condensation"])
    kind = stream.integers(4)
    if kind < 2:
        description = mutated(description, stream)
        description = fitting(description) if kind else description
        if kind and isinstance(description, dict):
            header["fingerprint"] = description.get("fingerprint")
    elif kind == 2:
        header = mutated(header, stream)
    else:
        name = str(stream.choice([*arrays]))
        array = arrays.pop(name)
        others = [array[:1], array[..., None], array.astype(int), array.astype(">f8"), array * np.nan, np.zeros(0)]
        if choice := stream.integers(len(others) + 1):
            arrays[name if stream.integers(4) else "curves/loss"] = others[choice - 1]
    resealed(folder / "run.json", description)
    write_tensors(seed, arrays, {"condensation": json.dumps(header, default=str)})
    return description, header, {name: array.shape for name, array in arrays.items()}


@pytest.mark.parametrize("count", [100, pytest.param(1500, marks=pytest.mark.trials)])
def test_mutated_runs(count, folders, tmp_path):
    stream, tally = stream_of(count), Tally()
    for k in range(count):
        folder = tmp_path / "run"
        shutil.copytree(folders["run"], folder, dirs_exist_ok=True)
        what = mutate_run(folder, stream)
        with tally.case(what):
            tally.ends[refused(lambda folder=folder: c.load_run(folder))] += 1
            if k % 10 < 5:
                check_told("measure", folder, *["--json"][: stream.integers(2)])
            if k % 20 == 9:
                check_told("reduce", folder)
    tally.check()
    assert min(tally.ends.values()) > count / 20, tally.ends


@pytest.mark.parametrize("count", [100, pytest.param(1500, marks=pytest.mark.trials)])
def test_mutated_sweeps(count, folders, tmp_path):
    stream, tally = stream_of(count), Tally()
    folder = tmp_path / "sweep"
    shutil.copytree(folders["sweep"], folder)
    whole = read_sealed_json(folder / "sweep.json")
    for _ in range(count):
        plain = copy.deepcopy(whole)
        if stream.integers(2):
            del plain["fingerprint"]  # then nothing says which sweep was run
        plain = mutated(plain, stream)
        resealed(folder / "sweep.json", plain)
        resealed(folder / "failed.json", mutated({"a": "b"}, stream) if stream.integers(4) == 0 else {})
        with tally.case(plain):
            tally.ends[refused(lambda: open_sweep(folder))] += 1
    tally.check()
    assert min(tally.ends.values()) > count / 40, tally.ends


def test_a_seal_does_not_make_a_run_of_any_file(folders, tmp_path):
    """What a valid checksum covers and no training writes is named with its field."""
    folder = shutil.copytree(folders["run"], tmp_path / "run")
    seed = next(folder.glob("*.safetensors"))
    about, arrays = read_tensors(seed)
    header = json.loads(about["condensation"])
    for change in ({"finished": "yes"}, {"diverged": "2"}, {"seconds": None}, {"row": -1}):
        write_tensors(seed, arrays, {"condensation": json.dumps(header | change)})
        with pytest.raises(c.InputError, match=f"not the file of a seed: its field {next(iter(change))}"):
            c.load_run(folder)
    for name, array in (("weights/dense1.weight", np.zeros((2, 3, 4, 3))), ("curves/loss", np.zeros((2, 2), int))):
        write_tensors(seed, arrays | {name: array}, {"condensation": json.dumps(header)})
        with pytest.raises(c.InputError, match=f"not the file of a seed: .*{name.partition('/')[2]}"):
            c.load_run(folder)
    assert SEAL in about
