"""A table that lacks rows, or whose rows are not what they seem, says so: when it is made, opened, mapped and drawn."""

import warnings

import numpy as np
import pytest

from condensation import GD, Adam, Arrays, At, Dense, Evenly, Experiment, Init, InputError, Normal, sine_sum, sweep
from condensation.drawing import draw_sweep
from condensation.playground._library import sweep_map
from condensation.sweeps import IncompleteTable, Local, Sweep, SweepWarning, open_sweep, run_sweep

DATA = sine_sum(1, 2, 1, dim=2, n=8, low=-1, high=1)
BASE = Experiment(Dense((2, 6, 1)), Init(Normal(0.1)), DATA, Adam(1e-2), 8, save=Evenly(3))
RATE, STD = "optimizer.learning_rate", "init.hidden.std"
AXES = {STD: [0.1, 0.2], RATE: [0.01, 0.02]}
BROKEN = [True]  # whether the measures below fail


def one_seed(trajectory, step):
    """Fails in two of three seeds."""
    if BROKEN[0] and trajectory.seeds[0].init > 0:
        raise RuntimeError("only the first seed is good")
    return float(trajectory.seeds[0].init)


def one_cell(trajectory, step):
    if BROKEN[0] and trajectory.experiment.init.hidden.std == 0.1 and trajectory.seeds[0].init == 2:
        raise RuntimeError("not here")
    return float(trajectory.seeds[0].init)


def never(trajectory, step):
    raise RuntimeError("nothing is good enough")


@pytest.fixture(autouse=True)
def broken():
    BROKEN[0] = True
    yield
    BROKEN[0] = True


def swept(out, measure, **options):
    return run_sweep(Sweep(BASE, AXES, measure=measure, seeds=3, **options), out, Local(1))


def notes_of(make):
    """What ``make`` gives, and its warnings as texts."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = make()
    assert all(issubclass(warning.category, SweepWarning) for warning in caught)
    return made, [str(warning.message) for warning in caught]


def test_missing_rows_are_told(tmp_path):
    with pytest.warns(IncompleteTable, match="8 of 12 networks have no row") as caught:
        table = sweep(BASE, AXES, one_seed, seeds=3, out=tmp_path, n_jobs=1)
    (said,) = [str(warning.message) for warning in caught]
    assert f"{STD} = 0.1, {RATE} = 0.01 (seeds 1, 2)" in said
    assert "and 1 more cell" in said
    assert "RuntimeError: only the first seed is good" in said
    assert len(table) == 4
    assert not table.complete
    assert table.has_rows.shape == (2, 2, 3)
    assert (table.has_rows == [True, False, False]).all()
    assert len(table.missing) == 8
    assert table.missing == table.failed
    assert np.isnan(table.map("one_seed", STD, RATE)[0]).all()  # no median of one seed of three
    np.testing.assert_array_equal(table.array("one_seed")[..., 0], 0)


def test_a_table_that_is_opened_again_knows_what_failed(tmp_path):
    with pytest.warns(IncompleteTable):
        table = swept(tmp_path, one_cell)
    with pytest.warns(IncompleteTable, match="2 of 12 networks have no row.*RuntimeError: not here"):
        again = open_sweep(tmp_path)
    assert again.failed == table.failed
    assert again.failed[f"{STD} = 0.1, {RATE} = 0.02, seed 2"] == "RuntimeError: not here"
    BROKEN[0] = False
    assert swept(tmp_path, one_cell).complete
    assert open_sweep(tmp_path).failed == {}


def test_what_was_not_trained_yet_is_told(tmp_path):
    run_sweep(Sweep(BASE, AXES, measure="change", seeds=2), tmp_path, Local(1))
    from condensation.sweeps._folder import SweepFolder

    SweepFolder(tmp_path).make(Sweep(BASE, AXES, measure="change", seeds=3))
    with pytest.warns(IncompleteTable, match="4 of 12 networks have no row.*not trained yet"):
        table = open_sweep(tmp_path)
    assert {*table.missing.values()} == {"not trained yet"}


def test_equal_cells_share_a_reason(tmp_path):
    twice = Sweep(BASE, {"a": [1, 2]}, {STD: "0.1 + 0 * a"}, measure=one_cell, seeds=3)
    with pytest.warns(IncompleteTable, match="2 of 6 networks have no row"):
        table = run_sweep(twice, tmp_path, Local(1))
    assert table.missing == dict.fromkeys(("a = 1.0, seed 2", "a = 2.0, seed 2"), "RuntimeError: not here")


def test_incomplete_cells_are_not_drawn(tmp_path):
    with pytest.warns(IncompleteTable):
        table = swept(tmp_path, one_cell)
    values, _, _ = table.map("one_cell", STD, RATE)
    np.testing.assert_array_equal(values, [[np.nan, 1], [np.nan, 1]])
    np.testing.assert_array_equal(table.map("one_cell", STD, RATE, over=np.nanmax)[0], [[np.nan, 2], [np.nan, 2]])
    header, arrays = sweep_map(table, "one_cell", STD, RATE)
    np.testing.assert_array_equal(arrays["values"], values)
    assert header["notes"] == ["2 of 12 networks have no row"]
    picture = draw_sweep(table)
    assert "2 of 12 networks have no row" in picture.get_suptitle()
    assert "missing or diverged" in [text.get_text() for legend in picture.legends for text in legend.get_texts()]


def test_a_sweep_of_one_axis_has_no_medians_of_some_seeds(tmp_path):
    with pytest.warns(IncompleteTable):
        table = run_sweep(Sweep(BASE, {STD: [0.1, 0.2]}, measure=one_cell, seeds=3), tmp_path, Local(1))
    np.testing.assert_array_equal(sweep_map(table, None, None, None)[1]["values"], [[np.nan, 1]])


def test_nothing_of_a_sweep_in_a_folder_of_others_is_refused(tmp_path):
    swept(tmp_path, "change")
    with pytest.raises(InputError, match="no cell of the sweep could be trained: RuntimeError: nothing is good"):
        swept(tmp_path, never)


def test_a_complete_table_says_nothing(tmp_path):
    assert notes_of(lambda: swept(tmp_path, ("lines", "change", "rank", "cosine")))[1] == []
    assert notes_of(lambda: open_sweep(tmp_path))[1] == []
    assert open_sweep(tmp_path).notes == {}


# Rows that are there and are not what they seem


def test_an_initial_stage_that_does_not_end_is_told(tmp_path):
    rates = {RATE: [1e-9, 0.03]}  # the first never leaves it
    experiment = BASE.replace(steps=60, save=Evenly(61))
    table, said = notes_of(lambda: run_sweep(Sweep(experiment, rates, at="initial", seeds=2), tmp_path, Local(1)))
    np.testing.assert_array_equal(table.column("stage_ended"), [False, False, True, True])
    assert (table.column("step")[:2] == 60).all()
    assert (table.column("step")[2:] < 60).all()
    (note,) = said
    assert "in 2 of 4 networks the initial stage did not end" in note
    assert notes_of(lambda: open_sweep(tmp_path))[1] == said


def test_the_end_of_a_stage_that_was_not_saved_is_told(tmp_path):
    experiment = BASE.replace(steps=60, save=At((60,)))
    ended = Sweep(experiment, {RATE: [0.3]}, at="initial", seeds=2)
    table, said = notes_of(lambda: run_sweep(ended, tmp_path, Local(1)))
    assert (table.column("step") == 0).all()
    assert (table.array("dense1.change") == 0).all()
    (note,) = said
    assert "2 of 2 networks were measured at step 0" in note


def test_diverged_networks_are_told_and_never_counted(tmp_path):
    table, said = notes_of(lambda: run_sweep(Sweep(BASE, {RATE: [1e-2, 1e200]}, seeds=2), tmp_path, Local(1)))
    (note,) = said
    assert "2 of 4 networks diverged" in note
    assert np.isnan(table.column("dense1.lines")[2:]).all()
    assert np.isnan(table.column("diverged")[:2]).all()  # no step, and not -1
    assert (table.column("diverged")[2:] > 0).all()


def test_a_loss_that_still_rises_is_told(tmp_path):
    experiment = BASE.replace(optimizer=GD(1.0), steps=20)
    rising = Sweep(experiment, {RATE: [1e-3, 30.0]}, measure="change", backoffs=1)
    table, said = notes_of(lambda: run_sweep(rising, tmp_path, Local(1)))
    assert table.column("rising").tolist() == [False, True]
    assert any("in 1 of 2 networks the loss still rises" in note for note in said)


def test_what_could_not_be_measured_is_told(tmp_path):
    x = np.linspace(-1, 1, 5)[:, None]
    one_input = BASE.replace(network=Dense((1, 6, 1), bias=False), data=Arrays(x, x))
    _, said = notes_of(lambda: run_sweep(Sweep(one_input, {RATE: [0.1]}, seeds=2), tmp_path, Local(1)))
    (note,) = said
    assert "the measure lines has no value in any row" in note
    still = BASE.replace(init=Init(Normal(1e-200)), dtype="float32")
    networks = [Dense((2, 6, 1)), Dense((2, 6, 6, 1))]
    deeper = Sweep(still, {"network": networks, STD: [1e-200, 0.1]}, measure="lines")
    table, said = notes_of(lambda: run_sweep(deeper, tmp_path / "deep", Local(1)))
    empty = {layer: np.isnan(table.array(f"{layer}.k_eff")[..., 0]) for layer in ("dense1", "dense2")}
    assert empty["dense2"][0].all()  # the network has no such layer
    counts = {"dense1": int(empty["dense1"].sum()), "dense2": int(empty["dense2"][1].sum())}
    assert counts["dense2"] == 1
    expected = {f"{layer}.k_eff has no value in {count} of 4 rows" for layer, count in counts.items() if count}
    assert {note.partition(": ")[0] for note in said} == expected
