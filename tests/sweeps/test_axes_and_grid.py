"""Axes, and the cells of a sweep: what they are, how they stand in files, what is refused."""

import itertools
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import condensation as c
from condensation._files import read_sealed_json
from condensation.activations import x_tanh
from condensation.sweeps import Sweep, linspace, logspace, open_sweep
from condensation.sweeps._axes import COLUMNS, label, read_axis
from condensation.sweeps._folder import SweepFolder
from condensation.sweeps._texts import ExperimentTexts, array_file, plain_experiment

BASE = c.Experiment(
    c.Dense((5, 50, 1)), c.Init(c.Normal(0.005)), c.sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2), c.Adam(1e-3), 100,
    save=c.Evenly(3),
)  # fmt: skip
RATE, STD, WIDTH = "optimizer.learning_rate", "init.hidden.std", "network.widths.1"


def one(trajectory, step):
    return 1.0


def experiments(sweep):
    return [cell.experiment for cell in sweep.cells()]


def arrays(seed, n=6):
    x = np.random.default_rng(seed).normal(size=(n, 5))
    return c.Arrays(x, x[:, :1])


# Axes


numbers = st.floats(-1e6, 1e6).map(lambda x: x + 0.0)


@given(numbers, numbers, st.integers(2, 40))
def test_linspace_has_its_ends_and_equal_distances(first, last, count):
    if abs(first - last) <= 1e-6 * max(abs(first), abs(last)):
        return
    found = linspace(first, last, count)
    assert (found[0], found[-1], len(found)) == (first, last, count)
    scale = max(abs(first), abs(last))
    np.testing.assert_allclose(found, np.linspace(first, last, count), rtol=0, atol=1e-11 * scale)
    assert linspace(first, last, 2 * count - 1)[::2] == found  # a finer grid has the cells of a coarser one


@given(st.floats(-30, 30), st.floats(-30, 30), st.integers(2, 40))
def test_logspace_has_its_ends_and_equal_ratios(first, last, count):
    if abs(first - last) < 1e-3:
        return
    first, last = 10**first, 10**last
    found = logspace(first, last, count)
    assert (found[0], found[-1], len(found)) == (first, last, count)
    np.testing.assert_allclose(found, np.geomspace(first, last, count), rtol=1e-11)
    assert logspace(first, last, 2 * count - 1)[::2] == found


def test_values_between_the_ends_are_short():
    assert linspace(0, 1, 11) == tuple(k / 10 for k in range(11))
    assert linspace(-0.3, 0.3, 7) == (-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3)
    assert logspace(1e-5, 1, 6) == (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    assert linspace(1 / 3, 1, 3) == (1 / 3, 0.666666666667, 1.0)
    assert all(type(value) is float for value in (*linspace(0, np.float64(1), 3), *logspace(1, 9, 3)))
    assert linspace(-1e308, 1e308, 3) == (-1e308, 0.0, 1e308)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("spacing", "ends", "said"),
    [
        (linspace, (0, 1, 1), "the count of linspace must be a whole number of at least 2, not 1"),
        (linspace, (0, 1, 2.5), "must be a whole number"),
        (linspace, (0, float("nan"), 3), "from one finite number to another, not from 0 to nan"),
        (linspace, ("a", 1, 3), "not from 'a' to 1"),
        (linspace, (False, True, 3), "not from False to True"),
        (linspace, (1, 1, 3), "not from 1 to 1"),
        (logspace, (0, 1, 3), "an end of logspace must be a positive finite number, not 0"),
        (logspace, (-1, 1, 3), "positive"),
    ],
)
def test_a_spacing_that_cannot_be_is_refused(spacing, ends, said):
    with pytest.raises(c.InputError, match=said):
        spacing(*ends)


def test_an_axis_is_a_list_or_a_spacing():
    assert read_axis("a", [1, 2]) == (1, 2)
    assert read_axis("a", (x for x in "ab")) == ("a", "b")
    assert read_axis("a", {"linspace": [0, 1, 3]}) == (0.0, 0.5, 1.0)
    assert read_axis("a", {"logspace": [1, 100, 3]}) == (1.0, 10.0, 100.0)
    of_numpy = read_axis("a", np.array([True, False]))
    assert of_numpy == (True, False)
    assert all(type(value) is bool for value in of_numpy)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "the axis a has no values"),
        ("relu", "needs a list of values, linspace or logspace, not 'relu'"),
        ({"relu", "tanh"}, "needs a list"),
        (0.1, "needs a list"),
        ({"linspce": [0, 1, 3]}, "unknown spacing of the axis a 'linspce'; did you mean 'linspace'"),
        ({"linspace": [0, 1]}, r"needs linspace = \[first, last, count\], not \[0, 1\]"),
        ({"linspace": 3}, "needs linspace ="),
        ({"logspace": [0, 1, 3]}, "positive"),
        ({"linspace": ["0", 1, 3]}, "from one finite number to another"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_an_axis_that_cannot_be_read_is_refused(values, said):
    with pytest.raises(c.InputError, match=said):
        read_axis("a", values)


def test_labels():
    assert label(c.GD(0.1)) == "gd(learning_rate=0.1)"
    assert label(c.Adam(0.1, schedule=c.Cosine(5))) == "adam(learning_rate=0.1, schedule=cosine(steps=5))"
    assert label(c.Evenly(3)) == "evenly(count=3)"
    assert label(("relu", x_tanh)) == "(relu, condensation.activations:x_tanh)"
    assert [label(value) for value in (0.1, "0.1", 3, True, None, np.float64(0.5))] == [0.1, "0.1", 3, True, None, 0.5]
    assert label(arrays(0)) == label(arrays(0)) != label(arrays(1))
    assert label(c.Images("digits", n=20)) == "images(name=digits, n=20)"
    assert label(lambda x: x).startswith(f"{__name__}:test_labels.<locals>.<lambda>#")
    with pytest.raises(c.InputError, match="a number, a text, a part or a function, not"):
        label({"kind": "gd"})


# Cells


POOL = {
    STD: [1e-3, 0.1, 1.0],
    RATE: [1e-4, 1e-3],
    WIDTH: [10, 20, 30],
    "network.activation": ["tanh", "relu", x_tanh],
    "init.output": [None, c.Normal(0.1), c.WidthPower(0.5)],
    "batch_size": [None, 8],
    "network.bias": [True, False],
    "test": [None, c.Images("digits", n=20, flat=True)],
    "save": [c.Evenly(4), c.At((5, 7)), c.Every(10)],
    "data": [c.sine_sum(1, 2, 3, dim=5, n=9, low=-1, high=1), arrays(0), arrays(1)],
}


@settings(max_examples=25)
@given(st.data())
def test_cells_are_the_product_of_the_axes(data):
    names = data.draw(st.lists(st.sampled_from([*POOL]), unique=True, max_size=3))
    axes = {n: data.draw(st.lists(st.sampled_from(POOL[n]), min_size=1, unique_by=id)) for n in names}
    sweep = Sweep(BASE, axes)
    assert sweep.shape == tuple(map(len, axes.values()))
    places = list(itertools.product(*axes.values()))
    cells = list(sweep.cells())
    assert len(cells) == len(sweep) == len(places)
    for cell, values in zip(cells, places, strict=True):
        changes = dict(zip(axes, values, strict=True))
        assert cell.experiment == (BASE.replace(**changes) if changes else BASE)
        assert cell.fingerprint == cell.experiment.fingerprint()
        assert cell.coordinates == {name: label(value) for name, value in changes.items()}


def test_a_sweep_without_axes_has_one_cell():
    sweep = Sweep(BASE, {})
    assert len(sweep) == 1
    assert sweep.shape == ()
    assert [(cell.coordinates, cell.experiment) for cell in sweep.cells()] == [({}, BASE)]


def test_formulas_set_fields():
    base = BASE.replace(init=c.Init(c.WidthPower(0.5), c.WidthPower(0.5)))
    fields = {
        "init.hidden.gamma": "(gamma - prime) / 2",
        "init.output.gamma": "(gamma + prime) / 2",
        "network.widths.1": "m",
    }
    sweep = Sweep(base, {"gamma": [1, 2], "prime": (0.5,), "m": logspace(10, 1000, 3)}, fields)
    found = [(e.init.hidden.gamma, e.init.output.gamma, e.network.widths[1]) for e in experiments(sweep)]
    assert found == [((g - 0.5) / 2, (g + 0.5) / 2, m) for g in (1, 2) for m in (10, 100, 1000)]
    assert all(type(m) is int for *_, m in found)
    first = next(sweep.cells()).coordinates
    assert first == {"gamma": 1.0, "prime": 0.5, "m": 10.0}
    assert all(type(value) is float for value in first.values())  # one type in all files of a folder


def test_a_field_can_be_a_variable_too():
    sweep = Sweep(BASE.replace(save=c.Every(1)), {"steps": [100, 200]}, {"save.k": "steps / 4"})
    assert [(e.steps, e.save) for e in experiments(sweep)] == [(100, c.Every(25)), (200, c.Every(50))]


def test_whole_numbers_may_come_as_floats():
    found = experiments(Sweep(BASE, {WIDTH: linspace(10, 30, 3), "steps": [50.0], "batch_size": [None, 8.0]}))
    assert [(e.network.widths[1], e.steps, e.batch_size) for e in found[:2]] == [(10, 50, None), (10, 50, 8)]
    labels = [cell.coordinates[WIDTH] for cell in Sweep(BASE, {WIDTH: linspace(10, 30, 3)}).cells()]
    assert labels == [10, 20, 30]
    assert all(type(value) is int for value in labels)
    stds = [cell.coordinates[STD] for cell in Sweep(BASE, {STD: [1, 2]}).cells()]
    assert all(type(value) is float for value in stds)


def test_parts_may_come_as_tables():
    plain = Sweep(BASE, {"optimizer": [{"kind": "gd", "learning_rate": 1}, {"kind": "adam", "learning_rate": 0.1}]})
    parts = Sweep(BASE, {"optimizer": [c.GD(1.0), c.Adam(0.1)]})
    assert experiments(plain) == experiments(parts)
    assert plain.labels == parts.labels
    activations = Sweep(BASE.replace(network=c.Dense((5, 9, 9, 1))), {"network.activation": ["tanh", ["relu", "tanh"]]})
    assert [e.network.activations for e in experiments(activations)] == [("tanh", "tanh"), ("relu", "tanh")]
    assert activations.labels == {"network.activation": ("tanh", "(relu, tanh)")}


def test_cells_of_one_experiment():
    """A formula that does not move makes cells equal: they share their rows."""
    sweep = Sweep(BASE, {"a": [1, 2], "b": [1, 2]}, {STD: "a + 0 * b"})
    prints = [cell.fingerprint for cell in sweep.cells()]
    assert prints[0] == prints[1] != prints[2] == prints[3]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("axes", "fields", "said"),
    [
        ({"stepz": [1]}, {}, "unknown field or variable of formulas, as an axis: 'stepz'; did you mean 'steps'"),
        ({"activation": ["tanh"]}, {}, "unknown field or variable"),
        ({"optimizer.lr": [1]}, {}, "the axis optimizer.lr cannot be: unknown field of Adam 'lr'; known: learn"),
        ({"steps.more": [1]}, {}, "the field 'more' is looked for in 100, which has no fields"),
        ({"network.widths.3": [1]}, {}, "unknown field of tuple '3'"),
        ({"network.widths.-1": [1]}, {}, "unknown field of tuple '-1'"),
        ({WIDTH: [10, 10.5]}, {}, "network.widths.1 must be a whole number, not 10.5"),
        ({WIDTH: [10, 0]}, {}, "axis network.widths.1 cannot be: network.widths.1 must be a whole number"),
        ({RATE: [0.1, "fast"]}, {}, "learning_rate must be a number, not 'fast'"),
        ({RATE: [True]}, {}, "learning_rate must be a number, not True"),
        ({RATE: [0.1, -1]}, {}, "axis optimizer.learning_rate cannot be: optimizer.learning_rate must be a pos"),
        ({"optimizer": [c.Adam(1.0), c.Normal(1.0)]}, {}, "optimizer must be GD or Momentum or RMSprop or Adam"),
        ({"optimizer": [{"kind": "adm"}]}, {}, "unknown kind of optimizer 'adm'; did you mean 'adam'"),
        ({"network.bias": [1]}, {}, "network.bias must be true or false, not 1"),
        ({"network.activation": ["tanhh"]}, {}, "unknown activation 'tanhh'"),
        ({"network.activation": [eval("lambda x: x")]}, {}, "the source of the function <lambda> cannot be read"),
        ({RATE: [0.1, 0.2, 0.1]}, {}, "each value of the axis optimizer.learning_rate may stand once, but 0.1"),
        ({RATE: [1, 1.0]}, {}, "but 1.0 stands twice"),
        ({"optimizer": [c.GD(1.0), {"kind": "gd", "learning_rate": 1}]}, {}, "stands twice"),
        ({"data": [arrays(0), arrays(0)]}, {}, "stands twice"),
        ({"a": [0.0, -0.0]}, {STD: "1 + a"}, "but 0.0 stands twice"),
        ({"optimizer": [c.GD(1.0)], RATE: [0.1]}, {}, "optimizer.learning_rate is inside optimizer, and both are set"),
        ({"init.hidden": [c.Normal(1)], "a": [1]}, {STD: "a"}, "init.hidden.std is inside init.hidden"),
        ({RATE: [1], "a": [1]}, {RATE: "a"}, "the field optimizer.learning_rate is set by an axis and by a formula"),
        ({"a": [1]}, {STD: "a * b"}, "the formulas use b, which is no axis; the axes are a"),
        ({"a": ["x"]}, {STD: "a"}, "a value of the axis a must be a number, not 'x'"),
        ({"a": [None]}, {STD: "a"}, "a value of the axis a must be a number, not None"),
        ({"batch_size": [8, None]}, {STD: "1 / batch_size"}, "the cell batch_size = None cannot be: the variable"),
        ({"a": [1, 0]}, {STD: "1 / a"}, "the cell a = 0.0 cannot be: the formula '1 / a' for .* gives inf"),
        ({"a": [10, 15]}, {WIDTH: "a / 2"}, "the cell a = 15.0 cannot be: network.widths.1 must be a whole number"),
        ({"a": [1]}, {"init.hiden.std": "a"}, "unknown field of Init 'hiden'; did you mean 'hidden'"),
        ({"a": [1]}, {STD: "a^2"}, r"write \*\* for a power"),
        ({"a": [1]}, {STD: 5}, "a formula must be a text"),
        ([("a", [1])], {}, "axes must be a table by name"),
    ],
)  # fmt: skip
def test_a_sweep_that_cannot_be_is_refused(axes, fields, said):
    with pytest.raises(c.InputError, match=said):
        list(Sweep(BASE, axes, fields).cells())


@pytest.mark.parametrize("name", COLUMNS)
def test_an_axis_has_no_name_of_a_column(name):
    with pytest.raises(c.InputError, match=f"no axis can be called {name}, as tables have a column of that name"):
        Sweep(BASE, {name: [1.0]}, {STD: name})


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"at": "start"}, "unknown moment of measuring 'start'; known: end, initial, saved"),
        ({"backoffs": -1}, "backoffs must be a whole number of at least 0"),
        ({"threshold": 1}, "the threshold is a cosine between 0 and 1, not 1.0"),
        ({"threshold": "0.9"}, "threshold must be a number or left out, not '0.9'"),
        ({"seeds": 0}, "at least one seed"),
        ({"measure": ()}, "a sweep measures something: lines, change, rank, cosine, share, or a function"),
        ({"measure": "line"}, "unknown measure 'line'; did you mean 'lines'"),
        ({"measure": lambda t, s: 1}, "the measure <lambda> names no column: write it with def"),
        ({"measure": 3}, "unknown measure 3; known: lines"),
        ({"experiment": "a.toml"}, "a sweep needs an experiment to start from, not 'a.toml'"),
    ],
)
def test_options_that_cannot_be_are_refused(options, said):
    with pytest.raises(c.InputError, match=said):
        Sweep(**({"experiment": BASE, "axes": {}} | options))


def test_a_sweep_is_changed_as_a_whole():
    sweep = Sweep(BASE, {"m": [10, 20], "data": [arrays(0)]}, {WIDTH: "m"}, measure=one, at="saved")
    more = replace(sweep, seeds=2)
    assert more.seeds == (c.Seed(0, 0), c.Seed(1, 1))
    assert same(replace(more, seeds=1), sweep)


# Keys


def test_the_key_of_what_is_measured_is_pinned():
    """A changed key measures users' sweeps anew: change FORMAT with it."""
    assert Sweep(BASE, {}).measuring.key == "d3774f38385dea2a"


def test_the_key_of_what_is_measured():
    def key(**options):
        return Sweep(BASE, {RATE: [1, 2]}, **options).measuring.key

    assert key(measure=("lines", "change")) == key(measure=["change", "lines", "change"])
    assert Sweep(BASE, {}).measuring.key == Sweep(BASE.replace(steps=7), {STD: [1.0]}, seeds=3).measuring.key
    several = [
        key(),
        key(measure="lines"),
        key(at="initial"),
        key(threshold=0.9),
        key(backoffs=1),
        key(measure=one),
        key(measure=(one, "lines")),
    ]
    assert len(set(several)) == len(several)
    assert key(measure=one) == key(measure=f"{__name__}:one")


def test_fingerprints_do_not_depend_on_the_process(tmp_path):
    sweep = Sweep(BASE, {"network.activation": [x_tanh, "relu"], "data": [arrays(0), arrays(1)]}, seeds=2)
    script = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from pathlib import Path
from condensation._files import read_sealed_json
from condensation.sweeps import Sweep
sweep = Sweep.from_plain(read_sealed_json(Path("sweep.json")))
print(sweep.measuring.key, *(cell.fingerprint for cell in sweep.cells()))
"""
    folder = SweepFolder(tmp_path)
    folder.make(sweep)
    for experiment in experiments(sweep):
        folder.keep_arrays(experiment)
    told = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stdout.split() == [sweep.measuring.key, *(cell.fingerprint for cell in sweep.cells())]


# Files


def same(one, other):
    cells, others = ([(cell.coordinates, cell.fingerprint) for cell in sweep.cells()] for sweep in (one, other))
    assert cells == others
    assert one.measuring.key == other.measuring.key
    assert one.seeds == other.seeds
    return True


@settings(max_examples=20)
@given(st.data())
def test_a_sweep_comes_back_from_json(data):
    names = data.draw(st.lists(st.sampled_from([n for n in POOL if n != "data"]), unique=True, max_size=3))
    axes = {n: data.draw(st.lists(st.sampled_from(POOL[n]), min_size=1, unique_by=id)) for n in names}
    fields = {"data.n": "2 * m"} if data.draw(st.booleans()) else {}
    sweep = Sweep(
        BASE, axes | ({"m": linspace(3, 5, 3)} if fields else {}), fields, [c.Seed(1, 2), 5],
        data.draw(st.sampled_from(["rank", ("lines", one)])), data.draw(st.sampled_from(["end", "saved"])),
        data.draw(st.sampled_from([None, 0.9])), 2,
    )  # fmt: skip
    assert same(Sweep.from_plain(json.loads(json.dumps(sweep.to_plain()))), sweep)


def test_arrays_come_back_with_the_folder(tmp_path):
    base = BASE.replace(data=arrays(0), test=arrays(1, 4))
    np.savez(tmp_path / "own.npz", x=arrays(3).x, y=arrays(3).y)
    values = [arrays(2), c.Arrays.load("own.npz", tmp_path), c.sine_sum(1, 2, 3, dim=5, n=9, low=-1, high=1)]
    sweep = Sweep(base, {"data": values, RATE: [0.1]})
    folder = SweepFolder(tmp_path / "out")
    folder.make(sweep)
    for experiment in experiments(sweep):
        folder.keep_arrays(experiment)
    again = Sweep.from_plain(read_sealed_json(tmp_path / "out" / "sweep.json"), tmp_path / "out")
    assert same(again, sweep)
    with pytest.raises(c.InputError, match="has no finished cell yet"):
        open_sweep(tmp_path / "out")


TOML = """
format = 1
experiment = "parts/base.toml"
seeds = {seeds}
measure = ["lines", "beside:twice"]
at = "saved"

[axes]
{axes}

[fields]
"network.widths.1" = "m"
"""
AXES = """
"init.hidden.std" = {logspace = [1e-3, 1, 4]}
"network.activation" = ["tanh", "condensation.activations:x_tanh"]
optimizer = [{kind = "gd", learning_rate = 1}, {kind = "adam", learning_rate = 1e-3}]
data = [{kind = "arrays", file = "own.npz"}]
m = [10, 20]
"""


def test_a_sweep_is_loaded_from_toml(tmp_path, monkeypatch):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "base.toml").write_text(BASE.to_toml())
    (tmp_path / "beside.py").write_text("def twice(trajectory, step):\n    return 2.0 * step\n")
    np.savez(tmp_path / "own.npz", x=arrays(3).x, y=arrays(3).y)
    (tmp_path / "sweep.toml").write_text(TOML.format(seeds="[3, [1, 2]]", axes=AXES))
    with pytest.raises(c.InputError, match=r"sweep.toml: the function 'beside:twice' cannot be imported"):
        Sweep.load(tmp_path / "sweep.toml")
    monkeypatch.syspath_prepend(tmp_path)
    sweep = Sweep.load(tmp_path / "sweep.toml")
    import beside  # type: ignore[import-not-found]

    expected = Sweep(
        BASE,
        {
            STD: logspace(1e-3, 1, 4), "network.activation": ["tanh", x_tanh], "optimizer": [c.GD(1.0), c.Adam(1e-3)],
            "data": [arrays(3)], "m": [10, 20],
        },
        {WIDTH: "m"}, [c.Seed(3, 3), c.Seed(1, 2)], ("lines", beside.twice), "saved",
    )  # fmt: skip
    assert same(sweep, expected)


def test_names_in_toml_need_no_quotation_marks(tmp_path):
    (tmp_path / "base.toml").write_text(BASE.to_toml())
    text = """
format = 1
experiment = "base.toml"
[axes]
init.hidden.std = [1.0, 2.0]
init.output = [{kind = "zeros"}]
m.linspace = [10, 20, 2]
[fields]
network.widths.1 = "m"
"""
    (tmp_path / "sweep.toml").write_text(text)
    sweep = Sweep.load(tmp_path / "sweep.toml")
    assert sweep.axes == {STD: (1.0, 2.0), "init.output": (c.Zeros(),), "m": (10.0, 20.0)}
    assert sweep.fields == {WIDTH: "m"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("format = 2", "this sweep has format 2, but this version"),
        ("experiment = 'base.toml'", "this sweep names no format"),
        ("format = 1\naxis = 1", "unknown field of a sweep 'axis'; did you mean 'axes'"),
        ("format = 1\n[axes]", "missing in the sweep: experiment"),
        ("format = 1\nexperiment = 'base.toml'", "missing in the sweep: axes"),
        ("format = 1\nexperiment = 'none.toml'\n[axes]", "none.toml cannot be read: No such file"),
        ("format = 1\nexperiment = 3\n[axes]", "an experiment is a table of fields, not int"),
        ("format = 1\nexperiment = 'base.toml'\naxes = [1]", r"axes and fields are tables by name, not \[1\]"),
        ("format = 1\nexperiment = 'base.toml'\nseeds = [[1, 2, 3]]\n[axes]", r"\[data, init\], not \[1, 2, 3\]"),
        ("format = 1\nexperiment = 'base.toml'\nseeds = 'two'\n[axes]", "seeds must be a whole number or a list"),
        ("format = 1\nexperiment = 'base.toml'\nmeasure = ['os:getpid_']\n[axes]", "'os:getpid_' cannot be imported"),
        ("format = 1\nexperiment = 'base.toml'\nthreshold = '1'\n[axes]", "threshold must be a number"),
        ("format = 1\nexperiment = 'base.toml'\n[axes]\nsteps = 3", "the axis steps needs a list"),
        ("format =", "this is not TOML"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("unchecked")
def test_a_file_that_is_no_sweep_is_refused_with_its_name(tmp_path, text, said):
    (tmp_path / "base.toml").write_text(BASE.to_toml())
    (tmp_path / "sweep.toml").write_text(text)
    with pytest.raises(c.InputError, match=rf"sweep\.toml: .*{said}"):
        Sweep.load(tmp_path / "sweep.toml")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(c.InputError, match=r"the sweep file .*none\.toml cannot be read: No such file"):
        Sweep.load(tmp_path / "none.toml")


def test_texts_put_together_from_parts_are_those_of_whole_experiments():
    """What rows and fingerprints are made of; also with a user's arrays, functions and fields that are left out."""
    other = BASE.replace(data=arrays(0), network=c.Dense((5, 4, 1), x_tanh), kept_layers=("dense1",))
    axes = {RATE: [0.1, 0.2], "steps": [3, 5], "batch_size": [None, 2]}
    chosen = [experiment for base in (BASE, other) for experiment in experiments(Sweep(base, axes))]
    texts = ExperimentTexts()
    for experiment in chosen:
        assert texts.fingerprint(experiment) == experiment.fingerprint()
        assert texts.json(experiment) == json.dumps(plain_experiment(experiment))
        plain = experiment.to_plain()
        plain["data"] |= {"file": array_file(experiment.data)} if experiment.arrays() else {}
        assert json.loads(texts.json(experiment)) == json.loads(json.dumps(plain))
    assert len({texts.json(experiment) for experiment in chosen}) == len(chosen) == 16


def test_fields_that_go_together_are_changed_together():
    """Neither schedule fits the base's ten steps."""
    axes = {"steps": [20, 30], "save": [c.At((15,)), c.At((20,))]}
    cells = experiments(Sweep(BASE.replace(steps=10), axes))
    assert [(own.steps, own.save.chosen) for own in cells] == [(20, (15,)), (20, (20,)), (30, (15,)), (30, (20,))]
    with pytest.raises(c.InputError, match=r"the cell steps = 10, save = .*15.* cannot be"):
        experiments(Sweep(BASE.replace(steps=10), axes | {"steps": [20, 10]}))
