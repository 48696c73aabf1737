"""``condensation show``, help texts, and progress in a log."""

import io
import re
import subprocess
import sys
import warnings
from pathlib import Path

import fuzzing
import numpy as np
import pytest
from PIL import Image

from condensation import GD, Adam, Dense, Experiment, Init, InputError, Loss, Normal, sweep, train, two_waves
from condensation.cli._commands import COMMANDS
from condensation.cli._output import training_progress
from condensation.data import Arrays, Images
from condensation.drawing._layer_curves import layer_curves
from condensation.drawing._terminal_run import EMPTY, chart
from condensation.measure import count_lines, measure_units
from condensation.papers import FIGURES
from condensation.prediction import predict
from condensation.runs import Watched, WatchedLayer, WatchedRow, WatchWriter, load_run, run_folder
from condensation.saving import Every
from condensation.seeds import Seed
from condensation.training import PrintedProgress, Progress, train_pairs
from condensation.training._live import Live
from condensation.training._progress import Tenths

EXPERIMENT = Experiment(Dense((1, 6, 5, 1)), Init(Normal(0.05)), two_waves(), GD(0.05), 12)


def told(*words) -> subprocess.CompletedProcess:
    return subprocess.CompletedProcess(words, *fuzzing.told(*words))


def refused(*words) -> str:
    """The one sentence of a command that was refused."""
    done = told(*words)
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("condensation: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    train(EXPERIMENT, seeds=3, out=out)
    return out


def test_a_run_is_drawn_in_the_terminal_and_as_a_picture(runs, tmp_path):
    picture = tmp_path / "new" / "picture.png"
    done = told("show", run_folder(runs, EXPERIMENT), "--out", picture)
    assert done.returncode == 0, done.stderr
    trajectory = load_run(run_folder(runs, EXPERIMENT))
    assert "Trajectory of 3 seeds: 1-6-5-1" in done.stdout
    loss = np.median(trajectory.loss, axis=0)
    assert f"{loss[0]:.4g} {chr(EMPTY + 0x09)}" in done.stdout  # the curve begins at its largest value
    for layer, units in (("dense1", 6), ("dense2", 5)):
        counts = count_lines(trajectory.history(layer)[:, [0, -1]])
        first, last = np.median(counts.k_eff, axis=0)
        lines = np.median(counts.lines[:, 1])
        row = rf"{layer} +{units} +{lines:.4g} +{re.escape(f'{first:.4g}')} +{re.escape(f'{last:.4g}')} +[▁▂▃▄▅▆▇█]+"
        assert re.search(row, done.stdout), done.stdout
    with Image.open(picture) as image:
        assert image.size[0] > 500
    alone = told("show", runs)  # the only run in a folder of runs
    assert alone.stdout in done.stdout


def test_a_single_layer_curve_has_the_counted_numbers(runs):
    run = load_run(run_folder(runs, EXPERIMENT))
    curve = layer_curves(run)["dense1"]
    expected = count_lines(run.history("dense1"))
    assert curve.steps.tolist() == run.saved.tolist()
    np.testing.assert_array_equal(curve.k_eff, expected.k_eff)
    np.testing.assert_array_equal(curve.lines, expected.lines)


def test_a_run_that_diverged_is_drawn(tmp_path):
    with warnings.catch_warnings(action="ignore"):
        train(EXPERIMENT.replace(optimizer=GD(1e200)), seeds=2, out=tmp_path)
    done = told("show", tmp_path, "--out", tmp_path / "picture.svg")
    assert done.returncode == 0, done.stderr
    assert "2 of 2 seeds" in done.stdout
    assert "<svg" in (tmp_path / "picture.svg").read_text()


def test_a_watched_run_is_drawn(tmp_path):
    name = "a[b]$<script>\x1b[2J"
    writer = WatchWriter(
        Watched("Net", (WatchedLayer(name, "neuron", 20, 4),), Every(1)), tmp_path / "run", resume=False
    )
    generator = np.random.default_rng(0)
    for step in range(4):
        row = measure_units(name, generator.normal(size=(20, 4)) + step, "neuron")
        writer.add([WatchedRow(**vars(row), step=step, loss=1 / (1 + step))], {})
    writer.begin(lambda _: True)
    writer.write(3, now=True, finished=False)
    done = told("show", tmp_path / "run", "--out", tmp_path / "picture.png")
    assert done.returncode == 0, done.stderr
    assert "WatchedRun of Net: 1 layer" in done.stdout
    assert "\x1b[2J" not in done.stdout
    assert re.search(r"a\[b\]\$<script>\S* +20 ", done.stdout)


def test_a_sweep_is_drawn_as_a_map_or_a_curve(tmp_path):
    axes = {"init.hidden.std": [0.01, 0.1, 1.0], "optimizer.learning_rate": [0.1, 0.05]}
    table = sweep(EXPERIMENT, axes, out=tmp_path / "two", n_jobs=1)
    done = told("show", tmp_path / "two", "--quantity", "loss", "--out", tmp_path / "map.png")
    assert done.returncode == 0, done.stderr
    assert "SweepTable: 6 rows" in done.stdout
    assert re.search(r"^loss$", done.stdout, re.M)
    assert (tmp_path / "map.png").exists()
    assert "unknown quantity 'lose'" in refused("show", tmp_path / "two", "--quantity", "lose")
    assert "unknown axis 'nothing'" in refused("show", tmp_path / "two", "--x", "nothing")
    sweep(EXPERIMENT, {"init.hidden.std": axes["init.hidden.std"]}, out=tmp_path / "one", n_jobs=1)
    done = told("show", tmp_path / "one", "--quantity", "loss", "--out", tmp_path / "curve.svg")
    assert done.returncode == 0, done.stderr
    assert "loss over the 3 values of init.hidden.std" in done.stdout
    values = table.map("loss", "init.hidden.std", "optimizer.learning_rate")[0][1]  # the rate of the one sweep
    assert f"{values.max():.4g} " in done.stdout
    assert (tmp_path / "curve.svg").exists()
    (tmp_path / "two" / "sweep.json").write_bytes(b"{}")
    assert "sweep.json" in refused("show", tmp_path / "two")
    for path in (tmp_path / "one" / "cells").iterdir():
        path.unlink()
    assert "has no finished cell yet" in refused("show", tmp_path / "one")


def test_what_cannot_be_shown_is_refused_in_a_sentence(runs, tmp_path):
    assert "there is no folder" in refused("show", tmp_path / "nothing")
    assert "there is no run and no sweep in" in refused("show", tmp_path)
    (tmp_path / "file.npz").write_bytes(b"")
    assert "is a file: condensation measure" in refused("show", tmp_path / "file.npz")
    assert "ends in .png, .svg, .pdf, .eps, not 'a.txt'" in refused("show", runs, "--out", tmp_path / "a.txt")
    assert "are of the map of a sweep" in refused("show", runs, "--x", "steps")
    train(EXPERIMENT.replace(steps=3), out=tmp_path / "both")
    train(EXPERIMENT.replace(steps=4), out=tmp_path / "both")
    assert "there are 2 runs and sweeps in" in refused("show", tmp_path / "both")


def test_damaged_and_unfinished_runs_are_told(tmp_path):
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(EXPERIMENT, seeds=1, out=tmp_path / "begun", progress=stop)
    assert "has no finished seed yet" in refused("show", tmp_path / "begun")
    train(EXPERIMENT, seeds=1, out=tmp_path / "whole")
    file = next((tmp_path / "whole").glob("*/*.safetensors"))
    content = bytearray(file.read_bytes())
    content[-40] ^= 1
    file.write_bytes(content)
    assert file.name in refused("show", tmp_path / "whole")


def test_a_chart_shows_its_curve():
    lines = chart(np.arange(9), np.arange(9.0), width=9, height=4)
    dots = [[ord(character) - EMPTY for character in line[2:].ljust(9, chr(EMPTY))] for line in lines[:-1]]
    columns = [[row for row in range(4) if dots[row][column]] for column in range(9)]
    assert [max(rows) for rows in columns] == sorted((max(rows) for rows in columns), reverse=True)
    assert all(columns)
    assert (lines[0][0], lines[3][0]) == ("8", "0")
    assert chart(np.arange(3), np.full(3, np.nan)) == []
    assert len(chart(np.array([5]), np.array([2.0]))) == 11
    flat = chart(np.arange(3), np.array([1.0, np.nan, 1.0]), width=4, height=3)
    assert [len({*line[2:]} - {chr(EMPTY)}) for line in flat[:3]].count(1) == 1
    log = chart(np.arange(3), np.array([1.0, 100.0, 10000.0]), width=3, height=3)  # a straight line in logarithms
    assert all(len(line.strip()) > 0 for line in log)


# help texts


@pytest.mark.parametrize("name", [*COMMANDS, "data fetch", "data list"])
def test_no_help_text_shows_none(name):
    text = told(*name.split(), "--help").stdout
    assert "usage: condensation " + name in text
    assert "None" not in text
    assert "(default: )" not in text


def test_an_option_that_may_be_left_out_cannot_be_none():
    assert told("predict", "e.toml", "--step", "None").returncode == 2


def test_the_help_of_reproduce_lists_the_figures():
    text = told("reproduce", "--help").stdout
    for name, figure in FIGURES.items():
        note = " (on request)" if figure.on_request else ""
        assert re.search(rf"^- {name} +{re.escape(figure.title + note)}$", text, re.M), name


# progress in a log


def test_progress_in_a_log_is_ten_lines(monkeypatch):
    output = io.StringIO()
    monkeypatch.setattr(sys, "stderr", output)
    train(EXPERIMENT.replace(steps=500), seeds=2, progress=True)
    lines = output.getvalue().splitlines()
    assert 1 <= len(lines) <= 10
    assert "\r" not in output.getvalue()
    assert lines[-1].startswith("100%  1000/1000 steps  loss ")
    output.truncate(0)
    report = PrintedProgress()
    for done in range(0, 10_001):
        report(Progress(done, 10_000, 0.5, 1.0, 2.0))
    assert len(output.getvalue().splitlines()) == 10


def test_progress_on_a_terminal_is_one_line(monkeypatch):
    output = io.StringIO()
    output.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", output)
    report = PrintedProgress()
    for done in (1, 5, 10):
        report(Progress(done, 10, 0.5, 1.0, 2.0))
    assert output.getvalue().count("\r") == 3
    assert output.getvalue().count("\n") == 1


def test_progress_of_a_command_in_a_log_waits_between_lines(monkeypatch, capsys):
    clock = iter(np.arange(0, 1e6, 4.0))  # four seconds between two reports
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    with training_progress("mine") as report:
        for done in range(101):
            report(Progress(done, 100, 0.25, 1.0, 2.0))
    lines = capsys.readouterr().err.splitlines()
    assert 5 <= len(lines) <= 10
    assert lines[0].startswith("mine: ")
    assert "of 100 steps, loss 0.25" in lines[0]
    tenths = Tenths(1e9)
    assert not any(tenths.due(share) for share in (0.5, 1.0))


# what does not go together


MISFITS = {
    "samples": (EXPERIMENT.replace(**{"network.widths": (2, 6, 1)}), r"samples of shape \(1,\)"),
    "outputs": (EXPERIMENT.replace(**{"network.widths": (1, 6, 2)}), "1 outputs"),
    "held-out data": (EXPERIMENT.replace(test=Arrays(np.zeros((3, 2)), np.zeros((3, 1)))), "the test data has samples"),
    "batch": (EXPERIMENT.replace(batch_size=10_000), "a batch of 10000 samples is asked for"),
    "loss": (EXPERIMENT.replace(loss=Loss("cross_entropy")), "needs a network with an output for each"),
    "images' targets": (
        Experiment(
            Dense((784, 4, 10)), Init(Normal(0.1)), Images("mnist", n=10, target="sign", flat=True), Adam(1e-3), 3,
            loss=Loss("cross_entropy"),
        ),
        "target = 'sign': one_hot would do",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("experiment", "sentence"), MISFITS.values(), ids=MISFITS)
def test_a_mismatch_is_told_before_anything_is_drawn_or_compiled(experiment, sentence, monkeypatch, tmp_path):
    def drawn(*_, **__):
        raise AssertionError("data were drawn")

    monkeypatch.setattr(type(experiment.data), "draw", drawn)
    monkeypatch.setattr("condensation.training._train.run", drawn)
    monkeypatch.setattr("condensation.data._images.load", drawn)
    for way in (
        lambda: train(experiment),
        lambda: train([experiment, experiment], seeds=[3, Seed(1, 2)]),
        lambda: train_pairs([(experiment, Seed(0, 0))]),
        lambda: Live(experiment),
        lambda: predict(experiment),
        lambda: sweep(experiment, {"init.hidden.std": [0.1, 0.2]}, out=tmp_path / "sweep", n_jobs=1),
    ):
        with pytest.raises(InputError, match=sentence):
            way()
    assert not (tmp_path / "sweep").exists()


def test_parts_that_do_not_fit_the_network_are_told_when_the_experiment_is_made():
    with pytest.raises(InputError, match="unknown kept layer 'dense9'"):
        EXPERIMENT.replace(kept_layers=("dense9",))
    with pytest.raises(InputError, match="hidden"):
        EXPERIMENT.replace(init=Init((Normal(0.1),) * 5))
