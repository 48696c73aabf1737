"""The table of a sweep: which rows of a folder it has, and its arrays and maps against loops over the rows."""

import itertools
import json
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from condensation import GD, Adam, Arrays, Dense, Evenly, Experiment, Init, InputError, Normal, Seed, sine_sum
from condensation.sweeps import Local, Sweep, SweepTable, linspace, logspace, open_sweep, run_sweep
from condensation.sweeps._axes import COLUMNS, label
from condensation.sweeps._folder import SweepFolder, write_parquet

BASE = Experiment(
    Dense((2, 6, 1)), Init(Normal(0.1)), sine_sum(1, 2, 1, dim=2, n=8, low=-1, high=1), Adam(1e-2), 8, save=Evenly(3)
)
RATE, STD, WIDTH = "optimizer.learning_rate", "init.hidden.std", "network.widths.1"


def rows_of(sweep, steps=(8,), value=lambda cell, seed, step: 0.0, **more):
    """The rows that tasks would commit for all cells."""
    return [
        cell.coordinates
        | {"seed_data": seed.data, "seed_init": seed.init, "fingerprint": cell.fingerprint, "experiment": "{}"}
        | {"diverged": -1, "step": step, "loss": 0.5, "dense1.k_eff": float(value(number, seed, step))}
        | {"measured": sweep.measuring.key, "host": "here"}
        | more
        for number, cell in enumerate(sweep.cells())
        for seed in sweep.seeds
        for step in steps
    ]


def folder_of(path, *files):
    """A folder with files of such rows."""
    folder = SweepFolder(path)
    folder.cells.mkdir(parents=True, exist_ok=True)
    for number, rows in enumerate(files):
        write_parquet(folder.cells / f"{len(rows)}-{number:02d}.parquet", pa.Table.from_pylist(rows))
    return folder


AXES = {
    STD: logspace(0.01, 1, 3),
    WIDTH: [4, 6],
    "optimizer": [GD(0.1), Adam(0.1)],
    "batch_size": [None, 4],
    "network.activation": ["tanh", "relu"],
    "network.bias": [True, False],
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("sweep")


@settings(max_examples=20)
@given(st.data())
def test_arrays_and_maps_are_those_of_a_loop_over_the_rows(path, data):
    names = data.draw(st.lists(st.sampled_from([*AXES]), unique=True, min_size=1, max_size=3))
    seeds = data.draw(st.sampled_from([1, (0, Seed(1, 2), Seed(2, 1))]))
    at = data.draw(st.sampled_from(["end", "saved"]))
    sweep = Sweep(BASE, {name: AXES[name] for name in names}, seeds=seeds, at=at)
    steps = (0, 4, 8) if at == "saved" else (8,)
    chance = random.Random(data.draw(st.integers(0, 99)))
    rows = rows_of(sweep, steps, lambda *_: chance.random())
    chance.shuffle(rows)
    rows = rows[: data.draw(st.sampled_from([len(rows), len(rows) // 2 + 1]))]
    for old in SweepFolder(path).files():
        old.unlink()
    table = SweepTable.read(sweep, folder_of(path, rows[::2], rows[1::2] or rows[:1]))
    assert len(table) == len(rows)
    there = {(row["fingerprint"], row["seed_data"], row["seed_init"]) for row in rows}
    assert table.complete == (len(there) == len(sweep) * len(sweep.seeds))

    found = table.array("dense1.k_eff")
    assert found.shape == (*sweep.shape, len(sweep.seeds), *([len(table.steps)] if at == "saved" else []))
    dimensions = [*names, "seed", *(["step"] if at == "saved" else [])]
    expected = np.full(found.shape, np.nan)
    places = {name: [label(value) for value in AXES[name]] for name in names}
    places |= {"seed": list(sweep.seeds), "step": table.steps.tolist()}
    for row in table.rows.to_pylist():
        here = row | {"seed": Seed(row["seed_data"], row["seed_init"])}
        expected[tuple(places[name].index(here[name]) for name in dimensions)] = row["dense1.k_eff"]
    np.testing.assert_array_equal(found, expected)

    free = [name for name in dimensions if name != "seed"]
    for x, y in itertools.permutations(free, 2):
        others = [name for name in free if name not in (x, y)]
        fixed = {name: data.draw(st.sampled_from(places[name])) for name in others if data.draw(st.booleans())}
        values, across, up = table.map("dense1.k_eff", x, y, at=fixed, over=np.nanmax)
        assert (across.tolist(), up.tolist()) == (places[x], places[y])
        for i, j in np.ndindex(values.shape):
            where = fixed | {x: places[x][j], y: places[y][i]}
            own = [
                row["dense1.k_eff"]
                for row in table.rows.to_pylist()
                if all(row[name] == value for name, value in where.items())
            ]
            without_rows = [
                seed
                for cell in sweep.cells()
                if all(cell.coordinates.get(name, value) == value for name, value in where.items())
                for seed in sweep.seeds
                if (cell.fingerprint, seed.data, seed.init) not in there
            ]
            assert values[i, j] == max(own) if own and not without_rows else np.isnan(values[i, j])


def test_rows_are_in_the_order_of_the_grid(tmp_path):
    sweep = Sweep(BASE, {STD: [1.0, 0.1], RATE: [0.2, 0.1]}, seeds=[5, 3], at="saved")
    rows = rows_of(sweep, (0, 8))
    shuffled = random.Random(0).sample(rows, len(rows))
    table = SweepTable.read(sweep, folder_of(tmp_path, shuffled))
    keys = (STD, RATE, "seed_data", "step")
    found, expected = ([tuple(row[key] for key in keys) for row in each] for each in (table.rows.to_pylist(), rows))
    assert found == expected
    assert table.rows.column_names[:2] == [STD, RATE]
    assert table.places.tolist() == [[cell, seed] for cell in range(4) for seed in (0, 1) for _ in (0, 8)]
    assert table.column(STD).tolist() == [row[STD] for row in rows]


def test_cells_of_one_experiment_share_their_rows(tmp_path):
    sweep = Sweep(BASE, {"a": [1, 2], "b": [3, 4, 5]}, {STD: "a + 0 * b"}, seeds=2)
    number = itertools.count()
    once = {row["fingerprint"] + str(row["seed_data"]): row for row in rows_of(sweep, value=lambda *_: next(number))}
    assert len(once) == 4
    table = SweepTable.read(sweep, folder_of(tmp_path, list(once.values())))
    assert table.complete
    assert len(table) == 12
    found = table.array("dense1.k_eff")
    assert (found == found[:, :1]).all()
    assert table.column("b").tolist() == [3, 3, 4, 4, 5, 5] * 2


def test_a_folder_has_rows_of_other_sweeps(tmp_path):
    """Other grids, other measures, other seeds, and rows twice: a sweep has its own rows, each once."""
    sweep = Sweep(BASE, {STD: [0.1, 1.0]}, seeds=2)
    wider = Sweep(BASE, {STD: [0.01, 0.1], RATE: [1e-2, 1e-1]}, seeds=3)  # BASE's own rate among them
    others = Sweep(BASE, {STD: [0.1, 1.0]}, measure="rank", seeds=2)
    named = Sweep(BASE, {"x": [1, 2]}, {STD: "x"})
    folder = folder_of(
        tmp_path,
        rows_of(others, value=lambda *_: -1) + rows_of(sweep, value=lambda *_: -1, measured="some other"),
        [row | {"of_others": 1.0, "label": "text"} for row in rows_of(wider, value=lambda *_: 2)],
        [row for row in rows_of(sweep, value=lambda *_: 1) if row[STD] == 1.0],
        rows_of(sweep, value=lambda *_: 3),
        [row for row in rows_of(named, value=lambda *_: 4) if row["x"] == 2],
    )
    table = SweepTable.read(sweep, folder)
    assert table.complete
    np.testing.assert_array_equal(table.array("dense1.k_eff"), [[2, 2], [1, 1]])
    assert RATE not in table.rows.column_names  # of the wider sweep
    assert "x" not in table.rows.column_names
    both = SweepTable.read(Sweep(BASE, {"x": [1, 2]}, {STD: "x"}), folder)
    np.testing.assert_array_equal(both.array("dense1.k_eff"), [[1], [4]])
    assert both.rows.column_names[0] == "x"
    assert STD not in both.rows.column_names


def test_none_of_its_rows_is_there_yet(tmp_path):
    folder = folder_of(tmp_path, rows_of(Sweep(BASE, {STD: [0.1]})))
    sweep = Sweep(BASE, {STD: [0.2, 0.3]}, seeds=2)
    table = SweepTable.read(sweep, folder, {"a cell": "why"})
    assert len(table) == 0
    assert not table.complete
    assert table.failed == {"a cell": "why"}
    assert np.isnan(table.array("loss")).all()
    assert table.array("loss").shape == (2, 2)
    assert table.column("step").tolist() == table.steps.tolist() == []
    assert len(table.untrained()) == 0
    assert np.isnan(table.array("dense1.k_eff")).all()
    with pytest.raises(InputError, match="has no finished cell yet"):
        SweepTable.read(sweep, folder_of(tmp_path / "empty"))


def test_a_sweep_without_axes(tmp_path):
    sweep = Sweep(BASE, {}, seeds=3)
    table = SweepTable.read(sweep, folder_of(tmp_path, rows_of(sweep, value=lambda _, seed, __: seed.data)))
    assert table.complete
    assert table.array("dense1.k_eff").tolist() == [0, 1, 2]


def test_cells_may_have_saved_steps_of_their_own(tmp_path):
    sweep = Sweep(BASE, {"steps": [8, 10]}, at="saved")
    rows = rows_of(sweep, (0, 4, 5, 8, 10), lambda _, __, step: step)
    own = {8: (0, 4, 8), 10: (0, 5, 10)}
    table = SweepTable.read(sweep, folder_of(tmp_path, [row for row in rows if row["step"] in own[row["steps"]]]))
    assert table.steps.tolist() == [0, 4, 5, 8, 10]
    nan = np.nan
    np.testing.assert_array_equal(table.array("dense1.k_eff")[:, 0], [[0, 4, nan, 8, nan], [0, nan, 5, nan, 10]])
    values, x, y = table.map("dense1.k_eff", "step", "steps")
    np.testing.assert_array_equal(values, [[0, 4, nan, 8, nan], [0, nan, 5, nan, 10]])
    assert (x.tolist(), y.tolist()) == ([0, 4, 5, 8, 10], [8, 10])


def test_types_that_differ_from_file_to_file(tmp_path):
    """Whatever stands in the files, a sweep's coordinates have one type each."""
    axes = [{STD: [1, 2]}, {STD: [1.5]}, {"batch_size": [None]}, {"batch_size": [4, 8]}, {"init.output": [None]},
            {"init.output": [Normal(1.0)]}, {WIDTH: linspace(4, 6, 3)}, {"network.bias": [True]}]  # fmt: skip
    sweeps = [Sweep(BASE, one) for one in axes] + [Sweep(BASE, {"m": m}, {WIDTH: "2 * m"}) for m in ([1, 2], [1.5])]
    files = [rows_of(sweep) for sweep in sweeps]
    files.append([files[0][0] | {"loss": 1}])
    folder = folder_of(tmp_path, *files)
    for sweep in sweeps:
        table = SweepTable.read(sweep, folder)
        assert table.complete
        for name, labels in sweep.labels.items():
            assert [row[name] for row in table.rows.to_pylist()] == list(labels)
    types = folder.rows().schema
    assert [types.field(name).type for name in (STD, "batch_size", "init.output", WIDTH, "network.bias", "m")] == [
        pa.float64(), pa.int64(), pa.string(), pa.int64(), pa.bool_(), pa.float64(),
    ]  # fmt: skip


def test_a_map_at_values_of_other_axes(tmp_path):
    sweep = Sweep(BASE, {STD: [0.1, 1.0], WIDTH: [4, 6, 8], "optimizer": [GD(0.1), Adam(0.1)]}, seeds=2)
    rows = rows_of(sweep, value=lambda cell, seed, _: cell + seed.data / 2)
    table = SweepTable.read(sweep, folder_of(tmp_path, rows))
    cells = np.arange(12).reshape(2, 3, 2)
    for optimizer in (Adam(0.1), "adam(learning_rate=0.1)"):
        values, x, y = table.map("dense1.k_eff", STD, WIDTH, at={"optimizer": optimizer})
        np.testing.assert_array_equal(values, cells[:, :, 1].T + 0.25)
        assert (x.tolist(), y.tolist()) == ([0.1, 1.0], [4, 6, 8])
    values, x, _ = table.map("dense1.k_eff", "optimizer", STD, at={WIDTH: np.int64(6)}, over=np.min)
    np.testing.assert_array_equal(values, cells[:, 1])
    assert x.tolist() == ["gd(learning_rate=0.1)", "adam(learning_rate=0.1)"]
    np.testing.assert_array_equal(table.map("dense1.k_eff", WIDTH, STD, over=np.mean)[0], cells.mean(axis=2) + 0.25)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("dense1.keff", STD, RATE), "unknown column 'dense1.keff'; did you mean 'dense1.k_eff'"),
        (("host", STD, RATE), "the column host holds texts, no numbers"),
        (("loss", STD, "step"), "unknown axis 'step'"),
        (("loss", STD, "seed"), "unknown axis 'seed'"),
        (("loss", STD, STD), f"{STD} stands twice"),
        (("loss", STD, RATE, {STD: 0.1}), f"{STD} stands twice"),
        (("loss", STD, RATE, {WIDTH: 5}), "unknown value of network.widths.1 5; known: 4, 6"),
    ],
)
def test_a_map_that_cannot_be_is_refused(tmp_path, asked, said):
    sweep = Sweep(BASE, {STD: [0.1, 1.0], RATE: [0.1], WIDTH: [4, 6]})
    table = SweepTable.read(sweep, folder_of(tmp_path, rows_of(sweep)))
    quantity, x, y, *at = asked
    with pytest.raises(InputError, match=said):
        table.map(quantity, x, y, at=at[0] if at else None)


def test_a_cell_without_any_value_is_nan(tmp_path):
    sweep = Sweep(BASE, {STD: [0.1, 1.0], RATE: [0.1]})
    rows = rows_of(sweep, value=lambda cell, *_: np.nan if cell else 1)
    table = SweepTable.read(sweep, folder_of(tmp_path, rows))
    np.testing.assert_array_equal(table.map("dense1.k_eff", STD, RATE)[0], [[1, np.nan]])


def test_untrained_has_the_first_step_everywhere(tmp_path):
    sweep = Sweep(BASE, {STD: [0.1, 1.0]}, seeds=2, at="saved")
    rows = rows_of(sweep, (0, 4, 8), lambda cell, seed, step: 100 * cell + 10 * seed.data + step)
    table = SweepTable.read(sweep, folder_of(tmp_path, rows)).untrained()
    expected = np.array([[0, 10], [100, 110]])[..., None] + np.zeros(3)
    np.testing.assert_array_equal(table.array("dense1.k_eff"), expected)
    assert table.steps.tolist() == [0, 4, 8]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A real sweep, and its folder."""
    out = tmp_path_factory.mktemp("trained")
    x = np.random.default_rng(0).normal(size=(6, 2))
    axes = {STD: [0.1, 1.0], "data": [Arrays(x, x[:, 0]), Arrays(x[:4], x[:4, 1])]}
    sweep = Sweep(BASE, axes, seeds=2, measure=["lines", "change", "rank", "cosine", "share"], at="saved")
    return run_sweep(sweep, out, Local(1)), out


def test_a_trained_sweep(trained):
    table, out = trained
    assert table.complete
    assert not table.failed
    assert table.array("dense1.change").shape == (2, 2, 2, 3)
    assert (table.array("dense1.change")[..., 0] == 0).all()
    assert (table.array("dense1.change")[..., 2] > 0).all()
    assert np.isnan(table.array("diverged")).all()
    again = open_sweep(out)
    for rows in (again.rows, parquet.read_table(out / "table.parquet")):
        assert rows.schema == table.rows.schema
        assert rows.drop_columns("diverged").equals(table.rows.drop_columns("diverged"))  # NaN equals no NaN


def test_the_columns_of_every_table_are_known(trained):
    """An axis or a measure of such a name would stand in place of the column."""
    table, out = trained
    own = {*table.sweep.axes} | {name for name in table.rows.column_names if name.startswith("dense1.")}
    assert {*table.rows.column_names} - own <= {*COLUMNS}
    assert {"seed_data", "seed_init", "step", "loss", "experiment", "fingerprint"} <= {*table.rows.column_names}
    for text, expected in zip(table.column("experiment"), table.column("fingerprint"), strict=True):
        assert Experiment.from_plain(json.loads(text), out).fingerprint() == expected
