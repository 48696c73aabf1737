"""What results show of themselves: ten useful lines, a small picture in notebooks, nothing that runs or takes long."""

import re
import time
import warnings
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from condensation import (
    GD,
    Arrays,
    Conv,
    Dense,
    Every,
    Experiment,
    Init,
    Model,
    Normal,
    find_lines,
    reduce,
    sweep,
    train,
    two_waves,
)
from condensation._display import CHARACTERS, LINES
from condensation._sketch import bars, curves, heat
from condensation.derivatives import hessian_spectrum
from condensation.measure import count_lines, measure_units, most_condensed_first
from condensation.prediction import Predictions, predict, predict_model, validity
from condensation.runs import Trajectory, Watched, WatchedLayer, WatchedRun
from condensation.seeds import Seed
from condensation.theory import cube_directions, effective_residual, predict_growth, stationary_directions

HOSTILE = "<script>alert(1)</script>\x1b[2J&\nfc"
EXPERIMENT = Experiment(Dense((1, 6, 1)), Init(Normal(0.01)), two_waves(), GD(0.05), 8)


def checked(value) -> tuple[str, str]:
    """The text and the page of a result, after what holds for all of them."""
    began = time.perf_counter()
    text, page = repr(value), value._repr_html_()
    taken = time.perf_counter() - began
    assert 1 <= len(text.splitlines()) <= LINES
    assert max(map(len, text.splitlines())) <= CHARACTERS
    assert "\x1b" not in text + page
    assert "array(" not in text
    assert len(page.encode()) < 30_000
    assert "<script" not in page
    assert taken < 1, f"{taken:.2f} s"  # of a few milliseconds, on a loaded machine too
    ET.fromstring(page)  # tags are closed and names are escaped
    return text, page


@pytest.fixture(scope="module")
def trajectory() -> Trajectory:
    return train(EXPERIMENT, seeds=3)


def test_a_trajectory_tells_what_it_is_and_what_became_of_it(trajectory):
    text, page = checked(trajectory)
    first, last = np.median(trajectory.loss[:, [0, -1]], axis=0)
    k_eff = np.median(count_lines(trajectory.history("dense1")[:, [0, -1]]).k_eff, axis=0)
    assert text.splitlines()[0] == "Trajectory of 3 seeds: 1-6-1, tanh, no output bias"
    assert f"loss           {first:.4g} at first, {last:.4g} at last (median of 3 seeds)" in text
    assert f"k_eff dense1   {k_eff[0]:.4g} at first, {k_eff[1]:.4g} at last, of 6 units" in text
    assert page.count("<polyline") == 3


def test_one_seed_and_seeds_that_diverged():
    one, _ = checked(train(EXPERIMENT, seeds=1))
    assert "Trajectory of 1 seed:" in one
    assert "median" not in one
    with warnings.catch_warnings(action="ignore"):
        wild = train(EXPERIMENT.replace(optimizer=GD(1e200), steps=4), seeds=2)
    text, _ = checked(wild)
    assert re.search(r"diverged +2 of 2 seeds: seed 0 at step \d, seed 1 at step \d", text)
    assert "loss" not in text
    assert "k_eff dense1" not in text


def test_a_huge_run_is_printed_at_once(trajectory):
    """Ten thousand seeds of wide layers; the arrays are views of one, so that they take no memory."""
    seeds = tuple(Seed(k, k) for k in range(10_000))
    wide = EXPERIMENT.replace(**{"network.widths": (1, 5000, 1)})
    shapes = {name: shape for layer in wide.network.layers for name, shape in layer.parameters.items()}
    parameters = {name: np.broadcast_to(0.5, (len(seeds), 2, *shape)) for name, shape in shapes.items()}
    loss = np.broadcast_to(np.linspace(1, 0.1, 500), (len(seeds), 500))
    run = Trajectory(
        experiment=wide, seeds=seeds, saved=np.array([0, 8]), recorded=np.arange(500), parameters=parameters,
        curves={"loss": loss}, diverged=dict.fromkeys(seeds[:5000], 3), seconds=1.0,
    )  # fmt: skip
    text, _ = checked(run)
    assert "5000 of 10000 seeds" in text
    assert "k_eff" not in text  # 25 million pairs a network


def test_a_watched_run_escapes_its_names():
    names = [HOSTILE, *(f"layer{k}" for k in range(30))]
    layers = tuple(WatchedLayer(name, "neuron", 4, 3) for name in names)
    curves_of = {f"k_eff/{name}": np.array([[3.0, np.nan, 1.5]]) for name in names}
    run = WatchedRun(
        watched=Watched(HOSTILE, layers, Every(1)), reasons={}, seeds=(Seed(0, 0),), saved=np.arange(3),
        recorded=np.arange(3), parameters={HOSTILE: np.zeros((1, 3, 4, 3))},
        curves={"loss": np.array([[np.nan, 2.0, 1.0]])} | curves_of, diverged={}, seconds=0.0,
    )  # fmt: skip
    text, page = checked(run)
    assert "31 layers" in text
    assert "k_eff 3 at first, 1.5 at last" in text
    assert "27 layers" in text  # those that are not listed
    assert "2 at first, 1 at last" in text  # the loss before training is told with step 1
    assert "&lt;script&gt;" in page
    empty = replace(run, recorded=np.arange(0), saved=np.arange(0), curves={n: c[:, :0] for n, c in run.curves.items()})
    assert "none" in checked(empty)[0]


def test_lines_and_their_history():
    lines = find_lines(np.array([[1.0, 2, 3], [2, 4, 6], [-1, -2, -3], [0, 0, 1]]))
    text, page = checked(lines)
    assert text.startswith("Lines: 4 units on 1 line\n")
    assert f"k_eff            {lines.k_eff:.4g}" in text
    assert "<rect" in page
    nothing, page = checked(find_lines(np.array([[1.0, 0.0], [2.0, 0.0]])))
    assert "reason  a single input carries all weights" in nothing
    assert "<svg" not in page
    history = count_lines(np.concatenate([np.ones((2, 3, 20, 3)), np.full((1, 3, 20, 3), np.nan)]))
    assert "condensed     6 of 9\n  not counted   3" in checked(history)[0]


def test_rows_of_a_model_are_a_list_that_prints_a_line_a_layer():
    rng = np.random.default_rng(0)
    planted = np.outer(rng.normal(size=40), np.ones(6)) + 0.1 * rng.normal(size=(40, 6))
    line = measure_units("line", planted, "neuron", with_null=True)
    chance = measure_units(HOSTILE, rng.normal(size=(40, 6)), "neuron", with_null=True)
    rows = most_condensed_first([chance, line, measure_units("bias", np.ones(4))])
    text, _ = checked(rows)
    assert isinstance(rows, list)
    assert text.splitlines()[0] == "3 layers"
    assert re.match(r"  line +condensed on 1 line", text.splitlines()[1])
    own, _ = checked(line)
    assert own.splitlines()[0] == "line: 40 x 6 (neuron)"
    assert f"k_eff           {line.k_eff:.4g}, chance {line.chance_k_eff:.4g}" in own
    assert "chance" in checked(chance)[0]
    assert checked(rows[-1])[0].startswith("bias\n  not measured  weights must be units x inputs")


def test_directions_and_fates():
    text, page = checked(stationary_directions(np.eye(2), np.array([2.0, 4.0]), 3))
    assert text.splitlines()[0] == "Directions: 3 lines of 2 inputs, 2 of them attract (p = 3)"
    assert "line 1  F = 2, attracts a c > 0 and a c < 0, u = 0, 1" in text
    assert "line 3  F = 0.8944, does not attract, u = 0.894, 0.447" in text
    assert page.count("<rect") == 3
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(20, 7)), generator.normal(size=20)
    many, _ = checked(stationary_directions(x, y, 2))
    assert "others" in many
    several, _ = checked(stationary_directions(x, generator.normal(size=(20, 3)), 1))
    assert "line 3" in several
    checked(cube_directions(x, y, 1))
    checked(effective_residual(x, y, "sigmoid", 10))
    checked(predict_growth(generator.normal(size=(4, 7)) * 0.01, np.ones(4) * 0.01, x, y, "x_tanh"))


def test_predictions_are_a_dictionary_that_prints_a_line_a_layer(trajectory):
    found = predict(EXPERIMENT)
    assert isinstance(found, dict)
    text, page = checked(found)
    assert text.splitlines()[0] == "Predictions for 1 layer"
    assert re.search(r"dense1  1 line of the sphere attracts; 6 of 6 neurons go there", text)
    assert page.count("<svg") == 1
    prediction = found["dense1"]
    checked(prediction)
    checked(prediction.field)
    checked(prediction.fates)
    assert checked(Predictions())[0] == "Predictions for 0 layers"
    assert "..." in checked(Predictions({f"dense{k}": prediction for k in range(40)}))[0]
    chosen = predict_model(trajectory.model(0, 0), *trajectory.data(0), layers=[])
    assert checked(chosen)[0] == "Predictions for 0 layers"
    clock = validity(trajectory, 0, layer="dense1")
    assert str(clock) in checked(clock)[0]


def test_models_reductions_and_spectra(trajectory):
    model, (x, y) = trajectory.model(8, 0), trajectory.data(0)
    text, _ = checked(model)
    assert text.splitlines()[:2] == ["Model: 1-6-1, tanh, no output bias", "  parameters  18, float64"]
    size = np.sqrt(np.mean(model.parameters["dense1.weight"] ** 2))
    assert f"dense1      6 x 1 and bias, entries of size {size:.4g}" in text
    deep = Dense((1, *[2] * 30, 1))
    shapes = {name: shape for layer in deep.layers for name, shape in layer.parameters.items()}
    assert "..." in checked(Model(deep, {name: np.zeros(shape) for name, shape in shapes.items()}))[0]
    images = Conv((1, 4, 4), (2,), 3, 1)
    shapes = {name: shape for layer in images.layers for name, shape in layer.parameters.items()}
    checked(Model(images, {name: np.full(shape, np.nan) for name, shape in shapes.items()}))
    text, _ = checked(reduce(model, x, untrained=trajectory.model(0, 0), units=2))
    assert text.startswith("Reduction of 6 units to 2: 1-2-1, tanh")
    assert "dense1     6 units become 2" in text
    assert "not measured: no samples were given" in checked(reduce(model))[0]
    spectrum = hessian_spectrum(model, x, y, smallest=2, largest=1)
    assert f"negative  {spectrum.escapes} of these" in checked(spectrum)[0]


def test_a_sweeps_table(tmp_path):
    axes = {"init.hidden.std": [0.01, 0.1, 1.0], "optimizer.learning_rate": [0.1, 0.05]}
    table = sweep(EXPERIMENT, axes, out=tmp_path / "two", seeds=2, n_jobs=1)
    text, page = checked(table)
    assert text.startswith("SweepTable: 12 rows of 6 cells and 2 seeds, 1-6-1")
    assert "init.hidden.std          3 values: 0.01, 0.1, 1.0" in text
    values = table.column(table.quantities[0])
    assert f"{values.min():.4g} to {values.max():.4g}, median {np.median(values):.4g}" in text
    assert "<path" in page
    one = sweep(EXPERIMENT, {"init.hidden.std": [0.01, 0.1]}, out=tmp_path / "one", n_jobs=1)
    assert "<polyline" in checked(one)[1]
    short = replace(table, rows=table.rows.slice(0, 4), places=table.places[:4], failed={"a": "too <large>"})
    assert "8 of 12 networks" in checked(short)[0]
    nothing = replace(table, rows=table.rows.slice(0, 0), places=table.places[:0])
    assert "12 of 12 networks" in checked(nothing)[0]


def test_pictures_show_what_they_are_given():
    svg = ET.fromstring(curves([0, 1, 2], [[1.0, 10.0, 100.0], [np.nan, 1.0, np.inf]], label="a<b", log=True))
    points = [line.get("points") for line in svg.iter() if line.tag.endswith("polyline")]
    ends = [[float(value) for value in point.split(",")] for point in points[0].split()]
    assert len(points) == 2
    assert len(points[1].split()) == 1
    assert ends[1][0] - ends[0][0] == pytest.approx(ends[2][0] - ends[1][0])
    assert ends[1][1] - ends[0][1] == pytest.approx(ends[2][1] - ends[1][1], abs=0.2)  # logarithms
    assert "a<b: 1 to 100" in [text.text for text in svg.iter() if text.tag.endswith("text")]
    for nothing in (curves([], []), curves([0], [[np.nan]]), bars([]), bars([np.nan]), heat([]), heat([[np.nan]])):
        assert nothing == ""
    heights = [float(rect.get("height")) for rect in ET.fromstring(bars([2.0, -1.0])) if rect.tag.endswith("rect")]
    assert heights[0] == pytest.approx(2 * heights[1], abs=0.2)
    assert len(heat(np.random.default_rng(0).normal(size=(500, 700)))) < 30_000
    assert len(curves(range(10**5), np.random.default_rng(0).normal(size=(100, 10**5)))) < 30_000
    assert heat(np.ones((2, 2))).count("<path") == 1


def test_data_of_a_user_are_described(trajectory):
    x, y = trajectory.data(0)
    own = train(EXPERIMENT.replace(data=Arrays(x, y), steps=2))
    assert "data" in checked(own)[0]
