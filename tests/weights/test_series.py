"""Checkpoints over training: which files are steps, in which order, and how layers change."""

import numpy as np
import pytest
from rich.console import Console
from safetensors.numpy import save_file

from condensation import InputError, find_lines
from condensation.cli import _measure
from condensation.weights import measure_path
from condensation.weights._series import find_steps


def weights(step, seed=0):
    """Random at first, on one line at the end."""
    rng = np.random.default_rng(seed)
    start, line = rng.normal(size=(30, 20)), np.outer(rng.normal(size=30), rng.normal(size=20))
    return {"fc.weight": (start + step * line).astype(np.float32), "still.weight": (start**3).astype(np.float32)}


def write(folder, names):
    folder.mkdir(exist_ok=True)
    for step, name in names.items():
        (folder / name).parent.mkdir(exist_ok=True)
        save_file(weights(step), folder / name)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name",
    [
        "checkpoint-{}/model.safetensors",
        "step_{}.safetensors",
        "epoch={0}-step={0}.safetensors",
        "epoch=1-step={}-val_loss=0.25.safetensors",
        "model_{:04}.safetensors",
        "run7_model_{}.safetensors",
        "epoch_{}.safetensors",
        "ckpt{}.safetensors",
        "global_step{}/weights.safetensors",
    ],
)
def test_steps_are_told_by_names_and_sorted_by_size(tmp_path, name):
    write(tmp_path, {step: name.format(step) for step in (1000, 9, 100, 0)})
    steps, notes = find_steps(tmp_path)
    assert list(steps) == [0, 9, 100, 1000]
    assert notes == ()
    assert list(measure_path(tmp_path).steps) == [0, 9, 100, 1000]


def test_rows_tell_lines_and_change_of_every_step(tmp_path):
    write(tmp_path, {step: f"step_{step}.safetensors" for step in (0, 1, 50)})
    found = measure_path(tmp_path)
    for step in (0, 1, 50):
        row = found.history("fc.weight")[step]
        now, start = (weights(k)["fc.weight"].astype(float) for k in (step, 0))
        assert row.change == pytest.approx(np.linalg.norm(now - start) / np.linalg.norm(start), rel=1e-6)
        assert row.lines == find_lines(now).count
        assert found.history("still.weight")[step].change == 0
    assert found.rows[0].layer == "fc.weight"
    assert found.rows[0].condensed
    assert found.facts["steps"] == "0 to 50, all measured"


@pytest.mark.trials
def test_a_long_training_is_told_by_a_dozen_steps(tmp_path):
    write(tmp_path, {step: f"step_{step}.safetensors" for step in range(30)})
    few = measure_path(tmp_path)
    assert len(few.steps) <= 12
    assert {0, 29} <= set(few.steps)
    assert few.facts["steps"].endswith("of 30 measured")
    assert list(measure_path(tmp_path, every_step=True).steps) == list(range(30))


def test_what_is_no_step_is_left_out_and_told(tmp_path):
    names = {1: "step_1.safetensors", 2: "step_2.safetensors", 3: "last.safetensors", 4: "optimizer_1.safetensors"}
    write(tmp_path, names)
    (tmp_path / "notes.txt").write_text("")
    steps, notes = find_steps(tmp_path)
    assert list(steps) == [1, 2]
    assert notes == (
        "left out, for their names tell no step: last.safetensors",
        "passed over, for their names are not those of weights: optimizer_1.safetensors",
    )


def test_names_are_passed_over_by_whole_words_only(tmp_path):
    write(tmp_path, {1: "optimized_step_1.safetensors", 2: "optimized_step_2.safetensors", 3: "optim.safetensors"})
    steps, notes = find_steps(tmp_path)
    assert list(steps) == [1, 2]
    assert notes == ("passed over, for their names are not those of weights: optim.safetensors",)
    write(tmp_path / "alone", {3: "model_cosine_sched.safetensors"})
    assert measure_path(tmp_path / "alone").rows[0].units == 30  # there is nothing else
    write(tmp_path / "beside", {3: "model_cosine_sched.safetensors", 4: "upscaler.safetensors"})
    found = measure_path(tmp_path / "beside")
    assert found.notes == ("passed over, for their names are not those of weights: model_cosine_sched.safetensors",)


def test_layers_that_went_bad_keep_their_good_steps(tmp_path):
    write(tmp_path, {step: f"step_{step}.safetensors" for step in (0, 9)})
    save_file({name: np.full_like(w, np.nan) for name, w in weights(20).items()}, tmp_path / "step_20.safetensors")
    lost = weights(30) | {"fc.weight": np.full((30, 20), np.nan, np.float32)}
    save_file({"fc.weight": lost["fc.weight"]}, tmp_path / "step_30.safetensors")
    found = measure_path(tmp_path)
    assert [row.layer for row in found.rows] == ["fc.weight", "still.weight"]
    assert str([*map(vars, found.rows)]) == str([vars(found.history(row.layer)[9]) for row in found.rows])
    assert found.rows[0].condensed
    assert found.reasons == {
        f"{found.history('fc.weight')[20].reason} (at 2 steps, 20 to 30)": ["fc.weight"],
        f"{found.history('still.weight')[20].reason} (at step 20)": ["still.weight"],
    }
    read = {units.name: units.weights() for units in found.units}
    np.testing.assert_array_equal(read["fc.weight"], weights(9)["fc.weight"])


def test_layers_copied_at_the_start_are_measured_and_change(tmp_path):
    start, end = weights(0)["fc.weight"], weights(5)["fc.weight"]
    copies = {f"layers.{k}.weight": start for k in range(2)}
    save_file(copies, tmp_path / "step_0.safetensors")
    save_file(copies | {"layers.1.weight": end}, tmp_path / "step_1.safetensors")
    found = measure_path(tmp_path)
    assert not found.reasons
    change = np.linalg.norm(end - start) / np.linalg.norm(start)
    assert found.history("layers.1.weight")[1].change == pytest.approx(change, rel=1e-6)


def test_the_output_of_a_trainer_is_a_series_and_its_model_is_told(tmp_path):
    write(tmp_path, {1: "checkpoint-1/model.safetensors", 2: "checkpoint-2/model.safetensors", 3: "model.safetensors"})
    steps, notes = find_steps(tmp_path)
    assert list(steps) == [1, 2]
    assert "model.safetensors" in notes[0]
    assert list(measure_path(tmp_path / "model.safetensors").steps) == [0]


def test_a_broken_step_is_left_out(tmp_path):
    write(tmp_path, {step: f"step_{step}.safetensors" for step in (0, 1, 2)})
    (tmp_path / "step_0.safetensors").write_bytes(b"")
    found = measure_path(tmp_path)
    assert list(found.steps) == [1, 2]
    assert "step 0 is left out" in found.notes[0]
    assert found.history("fc.weight")[1].change == 0
    for step in (1, 2):
        (tmp_path / f"step_{step}.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="holds no checkpoint that can be read; step 0 is left out"):
        measure_path(tmp_path)


def test_a_layer_that_comes_later_or_starts_at_zero_has_no_change(tmp_path):
    late, zero = {"late.weight": weights(0)["fc.weight"]}, {"zero.weight": np.zeros((30, 20), np.float32)}
    save_file(weights(0) | zero, tmp_path / "step_0.safetensors")
    save_file(weights(1) | late | {"zero.weight": weights(5)["fc.weight"]}, tmp_path / "step_1.safetensors")
    found = measure_path(tmp_path)
    assert "norm zero" in found.history("zero.weight")[0].reason
    assert np.isnan(found.history("zero.weight")[1].change)
    assert not found.history("zero.weight")[1].reason
    assert np.isnan(found.history("late.weight")[1].change)


def test_one_file_in_a_folder_is_measured_alone(tmp_path):
    write(tmp_path, {3: "final.safetensors"})
    assert list(measure_path(tmp_path).steps) == [0]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({}, r"is no run \(no run.json\), no model .* and holds no checkpoints"),
        ({1: "encoder.safetensors", 2: "decoder.safetensors"}, "tell no step .*: name one"),
        ({1: "step_1.safetensors", 2: "step_2.npz", 3: "step_1-v1.safetensors"}, "two checkpoints of step 1"),
        (
            {1: "a1.safetensors", 2: "a2.safetensors", 3: "b1.safetensors", 4: "b2.safetensors"},
            r"several series of checkpoints \(aN, bN\)",
        ),
        ({1: "m1_x2.safetensors", 2: "m2_x3.safetensors"}, "which number of mN_xN is the step"),
        (
            {1: "model-00001-of-00002.safetensors", 2: "model-00002-of-00002.safetensors"},
            "holds shards of a model, but not the index",
        ),
    ],
)
def test_folders_that_are_ambiguous_say_so(tmp_path, names, said):
    write(tmp_path, names)
    with pytest.raises(InputError, match=said) as refused:
        measure_path(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize("steps", [1, 3])
def test_a_narrow_terminal_shows_the_readings(tmp_path, monkeypatch, capsys, width, steps):
    """Columns go first, the reading last."""
    rng = np.random.default_rng(0)
    for step in range(steps):
        weights = {
            f"transformer.encoder.layers.{k}.linear.weight": rng.normal(size=(20, 8)).astype("f4") for k in range(2)
        }
        save_file(weights, tmp_path / f"step_{step}.safetensors")
    monkeypatch.setattr(_measure, "console", lambda: Console(width=width))
    _measure._show(measure_path(tmp_path), json=False)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    assert sum("as chance" in line for line in lines) == 2 * steps
    assert ("rank" in "".join(lines[:2])) == (width == 200)
    assert not any("…" in line[35:] for line in lines)
