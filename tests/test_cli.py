"""The command line as a user types it."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import fuzzing
import numpy as np
import processes
import pytest
from safetensors.numpy import save_file

from condensation import (  # fmt: skip
    GD,
    AdamW,
    At,
    Attention,
    Conv,
    Experiment,
    Init,
    InputError,
    LeCun,
    Loss,
    Model,
    Normal,
    RandomSequences,
    Seed,
    __version__,
    find_lines,
    load_run,
    train,
)
from condensation.cli._commands import COMMANDS
from condensation.reduction._reduce import centred_error
from condensation.runs import run_folder

EXAMPLE = Path(__file__).parents[1] / "examples" / "tanh.toml"


def command(*words) -> subprocess.CompletedProcess:
    """A command in this process."""
    return subprocess.CompletedProcess(words, *fuzzing.told(*words))


def process(*words, cwd=None) -> subprocess.CompletedProcess:
    """A command in a process of its own, as a user's."""
    line = [sys.executable, "-m", "condensation", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, cwd=cwd, timeout=300, check=False)


def said(done: subprocess.CompletedProcess) -> str:
    """The one sentence of a command that was refused."""
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("condensation: ")]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return lines[0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    done = process("train", EXAMPLE, "--seeds", 3, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_train_keeps_a_run_that_python_reads(trained):
    trajectory = load_run(trained["run"])
    assert trajectory.experiment == Experiment.load(EXAMPLE)
    assert trained["fingerprint"] == trajectory.experiment.fingerprint()
    assert trained["loss"] == pytest.approx(trajectory.loss[:, -1].tolist())
    counts = [find_lines(trajectory.weights(1, 500, seed)).count for seed in range(3)]
    assert trained["layers"]["dense1"]["lines"] == counts


def test_train_changes_fields_and_takes_a_list_of_seeds(tmp_path):
    changes = (
        "optimizer.learning_rate=1e-4",
        "network.activation=x_tanh",
        'save={kind = "at", chosen = [0, 30]}',
        "steps=30",
    )
    words = [word for change in changes for word in ("--set", change)]
    done = command("train", EXAMPLE, *words, "--seeds", "3,7", "--out", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    trajectory = load_run(json.loads(done.stdout)["run"])
    expected = Experiment.load(EXAMPLE).replace(
        **{"optimizer.learning_rate": 1e-4, "network.activation": "x_tanh", "save": At((0, 30)), "steps": 30}
    )
    assert trajectory.experiment == expected
    assert trajectory.seeds == (Seed(3, 3), Seed(7, 7))


def test_train_takes_every_part_by_its_field(tmp_path):
    """The command and the Python call give the same experiment and the same loss."""
    pooled = 'padding = "same", stride = 2, pooling = "sum", pool_size = "all"'
    changes = (
        f'network={{kind = "conv", image = [5], channels = [4], kernel = 3, outputs = 1, {pooled}}}',
        "init.balance=dominated",
        'init.hidden={kind = "lecun", uniform = true}',
        'optimizer={kind = "adamw", learning_rate = 1e-3}',
        "label_noise=0.5",
        "save.chosen=[0]",
        "steps=3",
    )
    words = [word for change in changes for word in ("--set", change)]
    done = command("train", EXAMPLE, *words, "--seeds", "1", "--out", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    network = Conv((5,), (4,), 3, 1, padding="same", stride=2, pooling="sum", pool_size="all")
    expected = Experiment.load(EXAMPLE).replace(
        network=network,
        init=Init(LeCun(uniform=True), balance="dominated"),
        optimizer=AdamW(1e-3),
        label_noise=0.5,
        save=At((0,)),
        steps=3,
    )
    run = load_run(json.loads(done.stdout)["run"])
    assert run.experiment == expected
    np.testing.assert_array_equal(run.loss, train(expected, 1).loss)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--set", "network.padding=1"), "unknown field of Dense 'padding'"),
        (("--set", "label_noise=-1"), "label_noise must be a finite number of at least 0, not -1"),
        (("--set", "init.balance=even"), "unknown balance 'even'; known: balanced, dominated"),
        (("--set", "steps"), "a change is written as field=value, such as optimizer.learning_rate=1e-4, not 'steps'"),
        (("--set", "steps=x"), "steps must be a whole number, not 'x'"),
        (("--set", "stepz=3"), "unknown field of Experiment 'stepz'; did you mean 'steps'"),
        (("--set", "steps=2", "--set", "steps=3"), "the field steps is set twice"),
        (("--seeds", "x"), "seeds are a number, such as 10, or a list of them, such as 3,7, not 'x'"),
        (("--seeds", ","), "seeds are a number"),
        (("--seeds", "3,3"), "each seed may stand once"),
    ],
)
def test_changes_that_cannot_be_are_refused_in_a_sentence(tmp_path, words, sentence):
    assert sentence in said(command("train", EXAMPLE, *words, "--out", tmp_path))


def test_train_continues_a_run(trained):
    run = Path(trained["run"])
    done = command("train", "--continue", run, "--steps", 20, "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    longer = load_run(result["run"])
    assert (result["step"], Path(result["run"]).parent, len(longer.seeds)) == (520, run.parent, 3)
    np.testing.assert_array_equal(longer.weights(1, 500), load_run(run).weights(1, 500))
    assert longer.experiment == Experiment.load(EXAMPLE).extended(20)
    changed = ("--set", "optimizer.learning_rate=1e-4", "--seeds", "2,")
    done = command("train", "--continue", run, "--steps", 20, *changed, "--json")
    other = load_run(json.loads(done.stdout)["run"])
    assert (other.seeds, other.saved[-1], other.experiment.optimizer.learning_rate) == ((Seed(2, 2),), 20, 1e-4)
    np.testing.assert_array_equal(other.weights(1, 0, 2), load_run(run).weights(1, 500, 2))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ((), "either an experiment file or --continue RUN is needed, and not both"),
        ((EXAMPLE, "--continue", "RUN"), "either an experiment file or --continue RUN is needed, and not both"),
        (("--continue", "RUN"), "--continue needs --steps"),
        (("--continue", "RUN", "--steps", 0), "steps must be a whole number of at least 1, not 0"),
        (
            ("--continue", "RUN", "--steps", 9, "--out", "elsewhere"),
            "kept beside the one that goes on, not in elsewhere",
        ),
        (("--continue", "RUN", "--steps", 9, "--seeds", "7,", "--set", "steps=3"), "there are none for Seed(data=7"),
        (("--continue", EXAMPLE.parent, "--steps", 9), "there is no file"),
    ],
)
def test_train_continues_only_what_it_can(trained, words, sentence):
    assert sentence in said(command("train", *(trained["run"] if word == "RUN" else word for word in words)))


def test_train_prints_a_table(trained):
    done = command("train", EXAMPLE, "--seeds", 3, "--out", Path(trained["run"]).parent)
    assert done.returncode == 0
    assert "80 points of sum 3.5 sin(5 x_k + 1), x_k uniform on [-4, 2]" in done.stdout
    assert "dense1" in done.stdout
    assert f"run: {trained['run']}\n" in done.stdout


def test_train_prints_its_settings_in_a_terminal_without_their_signs(trained, monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = process("train", EXAMPLE, "--seeds", 3, "--out", Path(trained["run"]).parent)
    assert done.returncode == 0, done.stderr
    assert "N(0, 0.005?)" in done.stdout


def test_a_users_own_activation_stands_beside_the_file(tmp_path):
    (tmp_path / "mine.py").write_text("import jax.numpy as jnp\ndef f(x):\n    return jnp.sin(x)\n")
    (tmp_path / "mine.toml").write_text(EXAMPLE.read_text().replace('"tanh"', '"mine:f"'))
    done = process("train", "mine.toml", "--seeds", 1, "--out", "runs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = next((tmp_path / "runs").iterdir())
    assert process("measure", folder, "--trust", cwd=tmp_path).returncode == 0


def test_a_layer_without_directions_does_not_spoil_the_rest(tmp_path):
    text = EXAMPLE.read_text().replace("[5, 50, 1]", "[1, 50, 1]\nbias = false").replace("dim = 5", "dim = 1")
    (tmp_path / "flat.toml").write_text(text)
    done = command("train", tmp_path / "flat.toml", "--seeds", 1, "--out", tmp_path / "runs")
    assert done.returncode == 0, done.stderr
    assert "at least 2 inputs" in done.stdout


def test_a_seed_of_a_run_is_not_measured_alone(trained):
    path = next(Path(trained["run"]).glob("*.safetensors"))
    assert "holds seeds of a run; its folder" in said(command("measure", path))


def test_measure_a_run_gives_a_row_a_layer_and_step(trained):
    rows = json.loads(command("measure", trained["run"], "--json").stdout)
    assert [row["step"] for row in rows] == [0, 20, 50, 100, 200, 500]
    assert {row["layer"] for row in rows} == {"dense1"}
    at = {row["step"]: row for row in rows}
    assert (at[0]["seeds"], at[0]["condensed_seeds"], at[0]["condensed"]) == (3, 0, False)
    assert (at[50]["lines"], at[50]["condensed_seeds"], at[50]["condensed"]) == (1, 3, True)
    trajectory = load_run(trained["run"])
    lines = [find_lines(trajectory.weights("dense1", 50, seed)) for seed in trajectory.seeds]
    assert at[50]["k_eff"] == np.median([own.k_eff for own in lines])
    table = command("measure", trained["run"]).stdout.splitlines()
    assert {"step", "seeds", "lines", "k_eff", "reading"} < {*table[0].split(), *table[1].split()}
    assert ["dense1", "50", "3", "3"] in [line.split()[:4] for line in table]


@pytest.mark.parametrize("suffix", ["safetensors", "npz", "npy"])
def test_measure_files_of_arrays(tmp_path, suffix):
    stream = np.random.default_rng(0)
    line = np.outer(stream.normal(size=30), stream.normal(size=7))
    arrays = {
        "a.weight": line,
        "a.bias": line[:, 0].copy(),
        "conv.weight": stream.normal(size=(40, 3, 3, 3)),
        "n": np.arange(4),
    }
    path = tmp_path / f"w.{suffix}"
    if suffix == "safetensors":
        save_file(arrays, path)
    elif suffix == "npz":
        np.savez(path, **arrays)
    else:
        np.save(path, line)
    rows = {row["layer"]: row for row in json.loads(command("measure", path, "--json").stdout)}
    if suffix == "npy":
        assert rows["w"]["lines"] == 1
        return
    assert (rows["a.weight"]["lines"], rows["a.weight"]["inputs"], rows["a.weight"]["condensed"]) == (1, 8, True)
    assert (rows["conv.weight"]["units"], rows["conv.weight"]["inputs"]) == (40, 27)
    assert rows["conv.weight"]["condensed"] is False
    assert "vector" in rows["n"]["reason"]


def test_measure_goes_on_past_a_layer_that_cannot_be_measured(tmp_path):
    arrays = {
        "bad": np.full((5, 4), np.nan),
        "good": np.ones((20, 4)),
        "zero": np.zeros((5, 4)),
        "empty": np.zeros((0, 5)),
    }
    np.savez(tmp_path / "w.npz", **arrays)
    rows = {row["layer"]: row for row in json.loads(command("measure", tmp_path / "w.npz", "--json").stdout)}
    assert "NaN" in rows["bad"]["reason"]
    assert "norm zero" in rows["zero"]["reason"]
    assert "empty" in rows["empty"]["reason"]
    assert "NaN" in command("measure", tmp_path / "w.npz").stdout
    assert rows["good"]["lines"] == 1


def test_measure_gives_errors_and_says_where_there_are_no_directions(tmp_path):
    rng = np.random.default_rng(0)
    one_input = {"one.weight": rng.normal(size=(20, 1)), "one.bias": np.zeros(20)}
    np.savez(tmp_path / "w.npz", random=rng.normal(size=(40, 6)), **one_input)
    path = tmp_path / "w.npz"
    rows = {row["layer"]: row for row in json.loads(command("measure", path, "--json", "--errors").stdout)}
    random = rows["random"]
    assert 0 < random["k_eff_error"] < random["k_eff"] < random["chance_k_eff"] * 1.3
    assert 0 < random["stable_rank_error"] < random["stable_rank"] < random["effective_rank"] < 6
    assert rows["one.weight"]["condensed"] is False
    assert "no directions to condense to" in rows["one.weight"]["reason"]
    table = command("measure", path, "--errors").stdout
    assert f"{random['effective_rank']:.3g} ±{random['effective_rank_error']:.1g}" in table
    assert "one.weight: a single input carries all weights: there are no directions to condense to" in table
    assert "±" not in command("measure", path).stdout


def test_measure_tells_the_most_condensed_layer_first_in_a_table_that_fits(tmp_path):
    rng = np.random.default_rng(0)
    long = "a_model_with_a_long_name.encoder_of_text.block"
    arrays = {f"{long}.{k}.attention.projection_of_outputs.weight": rng.normal(size=(40, 30)) for k in range(12)}
    arrays[f"{long}.7.attention.projection_of_outputs.weight"] = np.outer(rng.normal(size=40), rng.normal(size=30))
    arrays |= {f"{long}.{k}.norm.weight": np.ones(40) for k in range(12)} | {"head.bias": np.ones(4)}
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, tmp_path / "w.safetensors")
    done = command("measure", tmp_path / "w.safetensors")
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= 160
    assert ".7." in lines[2]
    assert "condensed on 1 line" in lines[2]
    assert sum(line.split()[1:2] == ["neuron"] for line in lines) == 12
    assert sum(" as chance: k_eff" in line or " as random weights: k_eff" in line for line in lines) == 11
    assert f" 12 such as {long}.0.norm.weight: a norm's scale or shift" in done.stdout
    assert " head.bias: a bias whose head.weight is missing" in done.stdout
    assert done.stderr == ""
    rows = json.loads(command("measure", tmp_path / "w.safetensors", "--json").stdout)
    assert rows[0]["layer"] == f"{long}.7.attention.projection_of_outputs.weight"
    assert {row["layer"] for row in rows} == set(arrays)
    assert rows[0]["reading"].startswith("condensed on 1 line: k_eff 1 where chance leaves ")


@pytest.mark.trials
def test_measure_checkpoints_over_training_and_write_a_page(tmp_path):
    rng = np.random.default_rng(0)
    start, line = rng.normal(size=(30, 8)), np.outer(rng.normal(size=30), rng.normal(size=8))
    for step in (10, 0, 9):
        save_file({"fc.weight": start + step * line}, tmp_path / f"step_{step}.safetensors")
    done = command("measure", tmp_path, "--report", tmp_path / "page.html")
    named = [line.split()[:2] for line in done.stdout.splitlines() if line.startswith("fc.weight")]
    assert named == [["fc.weight", s] for s in ("0", "9", "10")]
    last = done.stdout[done.stdout.rindex("fc.weight") :]
    assert "condensed on 1 line" in " ".join(last.split())
    assert "Over training" in (tmp_path / "page.html").read_text()
    rows = json.loads(command("measure", tmp_path, "--json").stdout)
    assert [row["step"] for row in rows] == [0, 9, 10]
    change = np.linalg.norm(10 * line) / np.linalg.norm(start)
    assert rows[2]["change"] == pytest.approx(change)
    refused = command("measure", tmp_path, "--report", tmp_path / "page.txt")
    assert "should end in .html" in said(refused)
    assert refused.stdout == ""  # before any work
    assert "cannot be made" in said(command("measure", tmp_path, "--report", tmp_path / "page.html" / "page.html"))
    (tmp_path / "step_9-v1.safetensors").write_bytes(b"")
    assert "two checkpoints of step 9" in said(command("measure", tmp_path))


def test_measure_a_series_whose_last_step_is_nan(tmp_path):
    rng = np.random.default_rng(0)
    start, line = rng.normal(size=(30, 8)), np.outer(rng.normal(size=30), rng.normal(size=8))
    for step in (0, 9):
        save_file({"a.weight": start, "fc.weight": start + step * line}, tmp_path / f"step_{step}.safetensors")
    bad = {name: np.full((30, 8), np.nan) for name in ("a.weight", "fc.weight")}
    save_file(bad, tmp_path / "step_10.safetensors")
    done = command("measure", tmp_path, "--report", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    named = [line.split()[:2] for line in lines if line.startswith(("fc.weight", "a.weight"))]
    assert named == [[name, step] for name in ("fc.weight", "a.weight") for step in ("0", "9")]
    assert lines[-1].startswith(" 2 such as fc.weight: 30 of 30 units hold NaN")
    assert lines[-1].endswith("(at step 10)")
    assert "(at step 10)" in (tmp_path / "page.html").read_text()


def test_measure_heads_and_kernels(tmp_path):
    rng = np.random.default_rng(0)
    arrays = {"h.attn.c_attn.weight": rng.normal(size=(8, 24)), "h.attn.c_attn.bias": rng.normal(size=24)}
    save_file(arrays | {"conv.weight": rng.normal(size=(6, 4, 3, 3))}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"n_embd": 8, "n_head": 2}))
    rows = json.loads(command("measure", tmp_path, "--heads", "--view", "kernel", "--json").stdout)
    assert {row["layer"]: row["units"] for row in rows} == {"conv.weight": 24} | {
        f"h.attn.c_attn.weight[{part}, head {head}]": 4 for part in "qkv" for head in (0, 1)
    }


@pytest.mark.trials
def test_the_page_of_a_run_has_the_medians_of_the_table(trained, tmp_path):
    done = command("measure", trained["run"], "--report", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert "3: the numbers are medians over them" in page
    [shown] = re.findall(r"<tbody>(.*)</tbody>", page, re.DOTALL)
    told = [cell for cell in re.sub("<[^>]*>", " ", shown).split() if cell != "neuron"]
    last = [line for line in done.stdout.splitlines() if line.startswith("dense1 ")][-1]
    layer, step, *words = last.split()
    assert (layer, step) == ("dense1", "500")
    cells = iter(told)
    assert all(word in cells for word in words)  # in this order
    assert "as they were kept" in said(command("measure", trained["run"], "--heads"))


def test_a_file_of_nothing_but_nan_is_refused(tmp_path):
    np.save(tmp_path / "nan.npy", np.full((5, 4), np.nan))
    assert "has no layer that can be measured; nan: 5 of 5 units hold NaN" in said(
        command("measure", tmp_path / "nan.npy")
    )


def test_info_tells_versions_and_devices():
    found = json.loads(process("info", "--json").stdout)
    assert {"jax", "condensation", "python"} <= found["versions"].keys()
    assert found["devices"]
    assert "kept" in found["runs"]
    assert "tanh" in found["activations"]
    assert "jax" in command("info").stdout


def test_help_names_every_command_and_option():
    done = process("--help")
    assert done.returncode == 0
    for name in ("train", "measure", "reproduce", "info"):
        assert name in done.stdout
        assert command(name, "--help").returncode == 0
    assert "--seeds" in command("train", "--help").stdout


def test_the_version_is_printed_in_any_folder(tmp_path):
    assert "--version" in command("--help").stdout
    assert command("--version").stdout == f"condensation {__version__}\n"
    gone = tmp_path / "gone"
    gone.mkdir()
    code = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); from condensation.cli import main; main()"
    line = [sys.executable, "-P", "-c", code, "--version"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, f"condensation {__version__}\n"), done.stderr


def test_bad_input_gives_one_sentence_and_exit_code_2(tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text(EXAMPLE.read_text().replace("steps", "stepz"))
    assert "unknown field of an experiment 'stepz'; did you mean 'steps'" in said(command("train", bad))
    assert "cannot be read" in said(command("train", tmp_path / "none.toml"))
    assert "at least one seed" in said(command("train", EXAMPLE, "--seeds", 0, "--out", tmp_path / "out"))
    (tmp_path / "file").write_text("")
    assert "cannot be made" in said(command("train", EXAMPLE, "--out", tmp_path / "file"))
    assert "there is no file" in said(command("measure", tmp_path / "none.npz"))
    for name in ("empty.npz", "empty.npy", "empty.safetensors"):
        (tmp_path / name).write_bytes(b"")
        assert "cannot be read" in said(command("measure", tmp_path / name))
    assert "there is no file" in said(command("measure", tmp_path / "model.pt"))
    assert "unknown kind of file '.toml'" in said(command("measure", bad))
    (tmp_path / "nothing").mkdir()
    assert "is no run (no run.json), no model" in said(command("measure", tmp_path / "nothing"))
    np.savez(tmp_path / "none_inside.npz")
    assert "holds no arrays" in said(command("measure", tmp_path / "none_inside.npz"))
    np.save(tmp_path / "object.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert "holds no tensors by name but a dict" in said(command("measure", tmp_path / "object.npy"))
    np.save(tmp_path / "good.npy", np.ones((9, 4)))
    assert "there is no file or folder" in said(command("measure", tmp_path / "nonexist"))
    for wrong in (2, -1, 0, "nan"):
        assert "the threshold is a cosine between 0 and 1" in said(
            command("measure", tmp_path / "good.npy", "--threshold", wrong)
        )
    assert process("nonsense").returncode == 2


def test_a_diverged_seed_gives_exit_code_3(tmp_path):
    text = (
        EXAMPLE.read_text()
        .replace('kind = "adam"', 'kind = "gd"')
        .replace("1e-3", "1e3")
        .replace('"tanh"', '"x2_tanh"')
    )
    (tmp_path / "wild.toml").write_text(text)
    done = command("train", tmp_path / "wild.toml", "--seeds", 1, "--out", tmp_path / "out", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout)["diverged"]
    assert json.loads(done.stdout)["layers"]["dense1"] == {"lines": [None], "condensed": 0, "reason": ""}
    assert "not finite" in done.stderr
    told = command("train", tmp_path / "wild.toml", "--seeds", 1, "--out", tmp_path / "out")
    (row,) = [line.split() for line in told.stdout.splitlines() if line.strip().startswith("dense1")]
    assert row == ["dense1", "diverged", "0/1"]


def test_ctrl_c_keeps_what_was_saved_and_the_command_goes_on(tmp_path):
    text = EXAMPLE.read_text().replace("steps = 500", "steps = 300000000").replace("[20, 50, 100, 200]", "[1000000]")
    (tmp_path / "long.toml").write_text(text)
    line = (*processes.COMMAND, "train", tmp_path / "long.toml", "--seeds", 1, "--out", tmp_path)
    folder = run_folder(tmp_path, Experiment.load(tmp_path / "long.toml"))
    with processes.started(*line) as process:
        processes.wait_until(lambda: [*folder.glob("data*.safetensors")], process)
        process.send_signal(signal.SIGINT)
        code, errors = processes.ended(process)
    assert code == 130
    assert "interrupted; what was saved stays" in errors
    assert "Traceback" not in errors
    assert not list(folder.glob(".*.part"))
    assert "has no finished seed yet" in said(command("measure", folder))


def test_reduce_prints_the_errors_and_keeps_the_networks(trained, tmp_path):
    done = command("reduce", trained["run"], "--step", 50, "--units", 1, "--out", tmp_path / "small", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["seed"] for row in rows] == ["0-0", "1-1", "2-2"]
    for row in rows:
        assert row["sizes"] == {"dense1": [50, 1]}
        assert row["centred_error"] < 0.01 < 0.3 < row["untrained_error"]
        assert row["pruned_error"] > 0.5
    trajectory = load_run(trained["run"])
    x = trajectory.data(0)[0]
    small = Model.load(tmp_path / "small" / "data0-init0.safetensors")
    assert centred_error(trajectory.output(x, 50, 0), small(x)) == pytest.approx(rows[0]["centred_error"])
    assert "50 -> 1" in command("reduce", trained["run"], "--step", 50, "--units", 1).stdout


def test_what_reduce_cannot_do_is_said(trained, tmp_path):
    assert "step 51 was not saved" in said(command("reduce", trained["run"], "--step", 51))
    assert "cannot be reduced to 99" in said(command("reduce", trained["run"], "--units", 99))
    assert "there is no file" in said(command("reduce", "nowhere"))
    (tmp_path / "model.onnx").write_bytes(b"")
    assert "pytorch.reduce_model(model, data)" in said(command("reduce", tmp_path / "model.onnx"))
    assert "is the folder of a run" in said(command("reduce", trained["run"], "--out", trained["run"]))
    assert command("measure", trained["run"]).returncode == 0


def test_a_run_that_kept_one_layer_is_measured(tmp_path):
    (tmp_path / "one.toml").write_text(
        EXAMPLE.read_text().replace("steps = 500", 'steps = 500\nkept_layers = ["dense1"]')
    )
    done = command("train", tmp_path / "one.toml", "--seeds", 1, "--out", tmp_path, "--json")
    assert list(json.loads(done.stdout)["layers"]) == ["dense1"]
    assert "dense1" in command("measure", json.loads(done.stdout)["run"]).stdout


@pytest.mark.trials
def test_predict_tells_the_lines_and_how_many_neurons_went_there(tmp_path):
    flow = EXAMPLE.parent / "flow.toml"
    done = command("predict", flow, "--seeds", 2, "--out", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["seed"] for row in found["lines"]] == [0, 1]
    for row in found["lines"]:
        assert row["neurons_predicted"] == 50
        assert row["neurons_found"] >= 45
    assert all("all certified" in note and "100% on its side" in note for note in found["notes"])
    before = command("predict", flow, "--no-train")
    assert before.returncode == 0
    assert "neurons predicted" in before.stdout


def test_predict_compares_the_rows_of_attention_with_its_lines(tmp_path):
    own = Experiment(
        Attention(3, 4, 1, projection=False), Init(Normal(0.001)), RandomSequences(20, 3, 4), GD(1.0), 25,
        Loss("exponential"),
    )  # fmt: skip
    (tmp_path / "heads.toml").write_text(own.to_toml())
    done = command("predict", tmp_path / "heads.toml", "--out", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {row["layer"] for row in found["lines"]} == {"query1", "key1", "value1"}
    assert all("of the neurons are on a predicted line" in note for note in found["notes"])
    assert max(row["neurons_found"] for row in found["lines"] if row["layer"] == "value1") == 4


def test_what_predict_cannot_do_is_said(tmp_path):
    (tmp_path / "relu.toml").write_text(EXAMPLE.read_text().replace('"tanh"', '"no"'))
    assert "unknown activation 'no'" in said(command("predict", tmp_path / "relu.toml"))
    (tmp_path / "zero.toml").write_text(EXAMPLE.read_text().replace("[[3.5, 5, 1]]", "[[0, 5, 1]]"))
    assert "the targets are all zero" in said(command("predict", tmp_path / "zero.toml"))


LATE = {
    "a step": ("predict", {"step": 7}, "step 7 is not among the steps that are saved: 0, 20, 50, 100, 200, 500"),
    "a step before all": ("predict", {"step": -1}, "step -1 is not among the steps"),
    "a step of no training": ("predict", {"step": 50, "train": False}, "--no-train leaves that out"),
    "no seed of a prediction": ("predict", {"seeds": 0, "train": False}, "at least one seed is needed"),
    "a prediction's folder": ("predict", {"out": Path("file")}, "the folder file cannot be made: Not a directory"),
    "no seed of a training": ("train", {"seeds": "-1"}, "at least one seed is needed, not seeds=-1"),
    "many seeds of a training": ("train", {"seeds": str(10**20)}, r"a list of some 10\^20 seeds takes"),
    "a training's folder": ("train", {"out": Path("file")}, "the folder file cannot be made"),
    "little memory": ("train", {"memory": "1MiB"}, r"of the 1 MiB that are allowed \(--memory\) 0 bytes are left"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with an experiment and a file; nothing may be drawn."""
    (tmp_path / "tanh.toml").write_text(EXAMPLE.read_text())
    (tmp_path / "file").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONDENSATION_MEMORY", "8GiB")
    monkeypatch.setattr("condensation.data._synthetic.Synthetic.draw", lambda *_: pytest.fail("data were drawn"))
    return tmp_path


@pytest.mark.parametrize(("name", "options", "said"), LATE.values(), ids=LATE)
def test_an_option_is_checked_before_anything_is_drawn_or_written(folder, name, options, said):
    before = sorted(folder.rglob("*"))
    with pytest.raises(InputError, match=said):
        COMMANDS[name](folder / "tanh.toml", **options)
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("name", ["train", "predict"])
def test_data_that_do_not_fit_the_network_are_refused_before_they_are_drawn(folder, name):
    path = folder / "tanh.toml"
    path.write_text(path.read_text().replace("dim = 5", "dim = 4"))
    before = sorted(folder.rglob("*"))
    with pytest.raises(
        InputError, match=r"the data has samples of shape \(4,\) and 1 outputs, the network \(5,\) and 1"
    ):
        COMMANDS[name](path)
    path.write_text(EXAMPLE.read_text().replace("steps = 500", "steps = 500\nbatch_size = 81"))
    with pytest.raises(InputError, match="a batch of 81 samples is asked for, but there are only 80"):
        COMMANDS[name](path)
    assert sorted(folder.rglob("*")) == before


def test_a_layer_that_is_predicted_must_be_kept_to_be_compared(folder):
    path = folder / "tanh.toml"
    path.write_text(EXAMPLE.read_text().replace("steps = 500", 'steps = 500\nkept_layers = ["output"]'))
    with pytest.raises(InputError, match="the layer dense1 is predicted and not kept"):
        COMMANDS["predict"](path)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"step": 51}, "step 51 was not saved; saved are 0, 20, 50, 100, 200, 500"),
        ({"step": -1}, "step -1 was not saved"),
        ({"threshold": 0.0}, "threshold is a cosine above 0"),
        ({"units": 0}, "units must be a whole number of at least 1, not 0"),
        ({"error": -1.0}, "an allowed error is a number of at least 0, not -1.0"),
        ({"units": 99}, "dense1 has 50 units and cannot be reduced to 99"),
        ({"layers": ("nope",)}, "unknown layer that can be reduced 'nope'"),
    ],
)
def test_reduce_makes_no_folder_for_what_it_refuses(trained, tmp_path, options, said):
    with pytest.raises(InputError, match=said):
        COMMANDS["reduce"](Path(trained["run"]), out=tmp_path / "new" / "small", **options)
    assert not (tmp_path / "new").exists()


def test_measure_makes_no_folder_for_what_it_refuses(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        COMMANDS["measure"](tmp_path / "none.npz", report=tmp_path / "new" / "page.html")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("option", ["host", "token"])
def test_play_refuses_empty_texts(option):
    with pytest.raises(InputError, match=f"the {option} is empty: name one, or leave --{option} out"):
        COMMANDS["play"](browser=False, **{option: " "})


@pytest.mark.parametrize("options", [{"preset": ("fc-fig4",)}, {"tour": True}])
def test_play_records_only_for_a_folder(options):
    with pytest.raises(InputError, match="they need --export FOLDER"):
        COMMANDS["play"](browser=False, **options)


def test_play_exports_to_no_folder_of_others_and_makes_none_for_what_it_refuses(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds notes\.txt, which --export did not write"):
        COMMANDS["play"](export=tmp_path)
    with pytest.raises(InputError, match="unknown preset 'fc-fig5'"):
        COMMANDS["play"](export=tmp_path / "new", preset=("fc-fig5",))
    with pytest.raises(InputError, match="neither a run nor a sweep"):
        COMMANDS["play"]((tmp_path / "none",), export=tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
