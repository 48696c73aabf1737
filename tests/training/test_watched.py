"""Watched runs without a framework: schedules step by step, the writer and its files, the table in a terminal."""

import io
import json
import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from condensation import At, Every, Geometric, InputError, load_run
from condensation._files import read_tensors
from condensation._writing import write_json
from condensation.cli._watch import watch as command
from condensation.drawing import _terminal as terminal
from condensation.measure import measure_units
from condensation.runs import Watched, WatchedLayer, WatchedRow, WatchWriter
from condensation.runs._watched import InitialWeights, to_curves, to_rows
from condensation.weights._runs import measure_run

follow = sys.modules["condensation.cli._watch"]
LAYERS = (WatchedLayer("a/b", "neuron", 20, 4), WatchedLayer("c", "filter", 5, 7))
WATCHED = Watched("Net", LAYERS, Every(2), keep=("c",), torch="2.0")


def weights_at(step: int) -> dict[str, np.ndarray]:
    """Units that condense: the first layer on one line by step 2, the second later."""
    rng = np.random.default_rng(7)
    return {
        "a/b": (rng.normal(size=(20, 4)) * 0.5**step + step).astype(np.float32),
        "c": rng.normal(size=(5, 7)) + step,
    }


def enter(writer: WatchWriter, step: int) -> None:
    weights, rows = weights_at(step), []
    for layer in LAYERS:
        row = measure_units(layer.name, weights[layer.name], layer.kind, start=writer.start_of(layer.name))
        rows.append(WatchedRow(**vars(row), step=step, loss=1 / (1 + step)))
    writer.add(rows, {"c": weights["c"]})


def filled(path, steps=(0, 2, 4), finished=True) -> WatchWriter:
    writer = WatchWriter(WATCHED, path, resume=False)
    writer.keep_start(iter(weights_at(0).values()))
    for step in steps:
        enter(writer, step)
    writer.begin(lambda _: True)
    writer.write(steps[-1], now=True, finished=finished)
    return writer


@given(
    st.one_of(
        st.tuples(st.just(Every), st.integers(1, 40)),
        st.tuples(st.just(Geometric), st.integers(1, 300)),
        st.tuples(st.just(At), st.lists(st.integers(0, 999), max_size=9).map(tuple)),
    ),
    st.integers(0, 1000),
)
@example((Geometric, 10_000), 40)
@example((Geometric, 1), 10)
def test_the_next_due_step_is_the_next_that_is_listed(kind, after):
    schedule = kind[0](kind[1])  # here: the checker of types draws random numbers, which a strategy must not
    listed = [step for step in schedule.steps(12_345) if step < 12_345]  # the last is one that nobody asked for
    assert schedule.next_due(after) == next((step for step in listed if step > after), None)


def test_rows_and_curves_are_the_same(tmp_path):
    writer = filled(tmp_path)
    writer.rows[1] = WatchedRow(
        "c", "filter", 5, 7, reason="all 5 units have norm zero: there is no direction", loss=1.0
    )
    curves = to_curves(writer.rows)
    assert curves["step"].tolist() == [0, 2, 4]
    assert curves["lines/a/b"].tolist() == [row.lines for row in writer.rows[::2]]
    assert np.isnan(curves["lines/c"][0])
    again = to_rows(LAYERS, curves, {(0, "c"): writer.rows[1].reason})
    assert [repr(row) for row in again] == [repr(row) for row in writer.rows]


def test_what_stands_in_the_folder(tmp_path):
    writer = filled(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        "run.json",
        "initial.safetensors",
        "data0-init0.safetensors",
    }
    about = json.loads((tmp_path / "run.json").read_text())
    assert Watched.from_plain(about["watched"]) == WATCHED
    assert about["fingerprint"] == WATCHED.fingerprint()
    assert [(one["data"], one["diverged"]) for one in about["seeds"]] == [(0, None)]
    for name, array in read_tensors(tmp_path / "initial.safetensors")[1].items():
        assert np.array_equal(array, weights_at(0)[name])
        assert array.dtype == weights_at(0)[name].dtype
    found = load_run(tmp_path)
    assert found.watched == WATCHED
    for step in (0, 2, 4):
        assert np.array_equal(found.weights("c", step, 0), weights_at(step)["c"])
    assert found.curves["condensed/a/b"][0].tolist() == [0, 1, 1]
    assert found.curves.keys() == writer.trajectory.curves.keys()


def test_an_unfinished_run_can_be_read_and_gone_on_with(tmp_path):
    filled(tmp_path, finished=False)
    assert load_run(tmp_path).recorded.tolist() == [0, 2, 4]
    again = WatchWriter(WATCHED, tmp_path, resume=True)
    assert again.resumed
    again.begin(lambda step: step < 4)
    enter(again, 4)
    enter(again, 6)
    again.write(6, finished=True)
    whole = filled(tmp_path / "whole", (0, 2, 4, 6))
    assert [repr(row) for row in again.rows] == [repr(row) for row in whole.rows]
    assert np.array_equal(load_run(tmp_path).history("c"), load_run(tmp_path / "whole").history("c"))


def test_nothing_has_its_name_before_the_first_step(tmp_path):
    writer = WatchWriter(WATCHED, tmp_path, resume=False)
    writer.keep_start(iter(weights_at(0).values()))
    enter(writer, 0)
    assert [path.name[0] for path in tmp_path.iterdir()] == ["."]
    assert writer.rows[0].change == 0  # it is read where it is
    writer.abandon()
    writer.write(0, finished=True)
    assert not list(tmp_path.iterdir())
    assert not writer.rows


def test_rows_of_a_checkpoint_come_without_weights():
    rows = filled(None).rows
    writer = WatchWriter(WATCHED, None, resume=True, rows=rows)
    writer.begin(lambda step: step < 4)
    enter(writer, 4)
    assert np.isnan(writer.rows[-2].change)
    kept = writer.trajectory.history("c")[0]
    assert np.isnan(kept[:2]).all()
    assert np.array_equal(kept[2], weights_at(4)["c"])


def test_damaged_files_are_told(tmp_path):
    filled(tmp_path)
    (tmp_path / "initial.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match="the weights at the start cannot be read from"):
        InitialWeights(tmp_path).read("c")
    about = json.loads((tmp_path / "run.json").read_text())
    for watched, said in (
        ([], "a watched run is a table of fields, not list"),
        (about["watched"] | {"layers": [{"name": "a"}]}, r"layers\[0\] needs name, kind, units and inputs, not name"),
        (about["watched"] | {"schedule": {"kind": "often"}}, "unknown kind of schedule 'often'"),
        (about["watched"] | {"format": 99}, "has format 99"),
    ):
        write_json(tmp_path / "run.json", about | {"watched": watched})
        with pytest.raises(InputError, match=said):
            load_run(tmp_path)


def test_the_table_of_a_run(tmp_path, capsys):
    filled(tmp_path)
    command(tmp_path)
    title, head, first, second = capsys.readouterr().out.strip().splitlines()
    assert title.strip() == "Net, step 4, loss 0.2, closed"
    assert head.split() == ["layer", "units", "lines", "cover", "k_eff", "rank", "change", "k_eff", "over", "steps"]
    assert first.split()[:4] == ["a/b", "20", "1", "100%"]
    assert first.split()[-1] == terminal.sparkline(load_run(tmp_path).curves["k_eff/a/b"][0])
    assert second.split()[:2] == ["c", "5"]


def test_the_table_follows_a_run_until_it_is_closed(tmp_path, capsys, monkeypatch):
    writer = filled(tmp_path, finished=False)
    command(tmp_path, once=True)
    assert "step 4, loss 0.2\n" in capsys.readouterr().out.replace(" \n", "\n")
    frames, later = [], iter([6, 8, None])
    monkeypatch.setattr(
        terminal, "frame", lambda found, finished: frames.append((found.recorded[-1], finished)) or "frame"
    )

    def sleep(_):
        step = next(later)
        if step is not None:
            enter(writer, step)
        writer.write(8, now=True, finished=step is None)

    monkeypatch.setattr(follow.time, "sleep", sleep)
    command(tmp_path)
    assert frames == [(4, False), (6, False), (8, False), (8, True)]


def test_the_table_ends_quietly_when_interrupted(tmp_path, monkeypatch):
    filled(tmp_path, finished=False)

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(follow.time, "sleep", interrupt)
    command(tmp_path)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_live_table_is_for_terminals(monkeypatch):
    found = filled(None).trajectory
    for shown, stderr in ((True, Terminal()), (False, io.StringIO())):
        monkeypatch.setattr("sys.stderr", stderr)
        monkeypatch.setenv("TERM", "xterm")
        table = terminal.LiveTable()
        table.show(found)
        table.stop()
        assert ("a/b" in stderr.getvalue()) == shown


def test_sparklines():
    assert terminal.sparkline([]) == ""
    assert terminal.sparkline([3.0, 3.0]) == "▁▁"
    assert terminal.sparkline([float("nan")]) == " "
    assert terminal.sparkline(np.geomspace(1, 100, 8)) == terminal.BLOCKS
    assert len(terminal.sparkline(np.arange(1.0, 100))) == terminal.WIDTH


def test_a_folder_is_written_by_one_at_a_time(tmp_path):
    writer = filled(tmp_path, finished=False)
    with pytest.raises(InputError, match=r"another watcher of this process writes to .*: close\(\) it"):
        WatchWriter(WATCHED, tmp_path / ".." / tmp_path.name, resume=True)
    writer.release()
    again = WatchWriter(WATCHED, tmp_path, resume=True)
    del again  # one that nobody has any more does not write
    assert WatchWriter(WATCHED, tmp_path, resume=True).resumed


def test_a_start_that_is_gone_is_told_once(tmp_path):
    filled(tmp_path).release()
    (tmp_path / "initial.safetensors").unlink()
    again = WatchWriter(WATCHED, tmp_path, resume=True)
    again.begin(lambda _: True)
    with warnings.catch_warnings(record=True, action="always") as told:
        enter(again, 6)
        enter(again, 8)
    assert "the weights at the start cannot be read from" in str(told[0].message)
    assert len(told) == 1
    assert np.isnan([row.change for row in again.rows[-4:]]).all()
    assert [row.lines for row in again.rows[-4::2]] == [1, 1]


def test_a_folder_that_is_taken_away_is_written_again(tmp_path):
    writer = filled(tmp_path / "run", finished=False)
    whole = [repr(row) for row in writer.rows]
    shutil.rmtree(tmp_path / "run")
    writer.write(4, finished=True)
    assert load_run(tmp_path / "run").recorded.tolist() == [0, 2, 4]
    writer.release()
    assert [repr(row) for row in WatchWriter(WATCHED, tmp_path / "run", resume=True).rows] == whole


def test_a_start_without_a_name_goes_with_its_process(tmp_path):
    for number in range(2):
        start = InitialWeights(tmp_path)
        start.write(LAYERS, iter(weights_at(0).values()))
        assert len(list(tmp_path.iterdir())) == 1
        if number:
            start.publish()
        del start
        assert len(list(tmp_path.iterdir())) == number
    program = (
        "import sys; from pathlib import Path; import numpy as np\n"
        "from condensation.runs._watched import InitialWeights, WatchedLayer\n"
        "file = InitialWeights(Path(sys.argv[1])); file.write([WatchedLayer('a', '', 2, 2)], iter([np.ones((2, 2))]))\n"
        "print(len(list(Path(sys.argv[1]).glob('.*.part')))); raise SystemExit(3)"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout.strip()) == (3, "1"), ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["initial.safetensors"]


def test_a_watched_run_is_measured_with_its_reasons_and_zeros(tmp_path):
    layers = (WatchedLayer("one", "neuron", 1, 4), WatchedLayer("some", "neuron", 25, 4))
    arrays = {"one": np.ones((1, 4)), "some": np.concatenate([np.zeros((5, 4)), np.ones((20, 4))])}
    writer = WatchWriter(Watched("Net", layers, Every(1), keep=("some",)), tmp_path, resume=False)
    writer.keep_start(iter(arrays.values()))
    rows = [WatchedRow(**vars(measure_units(name, array, "neuron")), step=0) for name, array in arrays.items()]
    writer.add(rows, {"some": arrays["some"]})
    writer.begin(lambda _: True)
    writer.write(0, finished=True)
    found = measure_run(tmp_path)
    assert [repr(row) for row in found.steps[0]] == [repr(row) for row in rows]
    assert [row.reading for row in found.steps[0]] == [
        "a single unit: lines are of two and more",
        "condensed on 1 line: k_eff 1 where random units have 16.8; 5 units are zero; reduce",
    ]
    assert np.array_equal(found.units[0].weights(), arrays["some"])
