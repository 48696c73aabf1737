"""Strange input: mutated files, folders and command lines end in success or in one sentence, never otherwise."""

import tomllib
from pathlib import Path

import pytest
from fuzzing import Tally, check_told, mutated, mutated_bytes, refused, stream_of, toml_file, written

import condensation as c
from condensation.sweeps import Sweep

EXAMPLES = Path(__file__).parents[1] / "examples"
pytestmark = pytest.mark.usefixtures("unchecked")


def sizes(quick: int, many: int):
    """A quick number of cases, and a larger one among the trials."""
    return pytest.mark.parametrize("count", [quick, pytest.param(many, marks=pytest.mark.trials)])


def experiments() -> list[dict]:
    """Valid experiments of all kinds of parts."""
    plain = tomllib.loads((EXAMPLES / "tanh.toml").read_text())
    base = plain | {"steps": 20, "save": {"kind": "at", "chosen": [5]}}
    warm = {"kind": "warmup", "steps": 3}
    digits = {"kind": "images", "name": "digits", "n": 20, "classes": [0, 1], "balanced": True}
    formula = {"kind": "expression", "formula": "sin(x1) * x2", "dim": 2, "n": 9, "low": -1, "high": 1}
    conv = {"kind": "conv", "image": [1, 8, 8], "channels": [3], "kernel": 3, "outputs": 2, "hidden": [4]}
    pooled = {"pooling": "sum", "pool_size": "all"}
    changes = [
        {},
        tomllib.loads((EXAMPLES / "flow.toml").read_text()) | {"steps": 20},
        {"optimizer": {"kind": "gd", "learning_rate": 0.1, "weight_decay": 0.1, "schedule": warm}, "batch_size": 10},
        {"optimizer": {"kind": "muon", "learning_rate": 0.1}, "record": {"kind": "geometric", "per_decade": 3}},
        {"optimizer": {"kind": "sign_gd", "learning_rate": 0.1}, "loss": {"name": "mse", "reduction": "sum"}},
        {"network": conv, "data": digits, "loss": {"name": "cross_entropy"}, "dtype": "float32"},
        {"network": {"kind": "dense", "widths": [2, 4, 4, 1], "residual": True}, "data": formula, "test": formula},
        {
            "network": conv | {"hidden": [], "kernel": [3], "stride": 2, "padding": "same", "pooling": "max"},
            **{"data": digits, "loss": {"name": "softmax_mse"}, "label_noise": 0.1},
        },
        {
            "network": {"kind": "conv", "image": [2], "channels": [3], "kernel": 2, "outputs": 2} | pooled,
            "data": {"kind": "points", "rows": [[0.5, 1, 0], [1, 2, 1]]},
            "init": {"hidden": {"kind": "he", "uniform": True}, "balance": "dominated"},
            **{"optimizer": {"kind": "adamw", "learning_rate": 0.1}, "loss": {"name": "cross_entropy"}},
        },
    ]
    return [base | change for change in changes]


def sweeps() -> list[dict]:
    """Valid sweeps, with tables and with the name of a file."""
    formulas = {
        "axes": {"init.hidden.std": {"logspace": [1e-4, 1, 3]}, "m": [5, 9]},
        "fields": {"network.widths.1": "m"},
    }
    lists = {"axes": {"optimizer.learning_rate": [0.1, 0.2], "optimizer.eps": {"linspace": [0.1, 1, 3]}}}
    return [
        {"format": 1, "experiment": experiments()[0], "seeds": 2, "measure": ["lines"], "at": "initial"} | formulas,
        {"format": 1, "experiment": "base.toml", "seeds": [0, [1, 2]], "threshold": 0.9, "backoffs": 1} | lists,
    ]


@pytest.fixture
def untrained(monkeypatch) -> list[int]:
    """Trainings stop when all their input is checked, before anything is compiled; how many came so far."""
    reached = []

    def stop(*_, **__):
        reached.append(1)
        raise c.InputError("stopped")

    monkeypatch.setattr("condensation.training._train.run", stop)
    monkeypatch.setattr("condensation.sweeps._run._Driver.run", stop)
    return reached


@sizes(250, 4000)
def test_mutated_experiments_and_sweeps(count, tmp_path, untrained, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "base.toml", toml_file(experiments()[0]))
    stream, tally = stream_of(count), Tally()
    for _ in range(count):
        is_sweep = bool(stream.integers(2))
        known = sweeps() if is_sweep else experiments()
        plain = known[stream.integers(len(known))]
        text = toml_file(mutated(plain, stream)) if stream.integers(4) else mutated_bytes(toml_file(plain), stream)
        path = written(tmp_path / "case.toml", text)
        with tally.case(text):
            if is_sweep and stream.integers(2):
                end = refused(lambda path=path: [*Sweep.load(path).cells()])
            elif is_sweep:
                end = check_told("sweep", path, "--n-jobs", 1, "--out", tmp_path / "sweep")
            elif stream.integers(2):
                end = refused(lambda path=path: c.Experiment.load(path))
            else:
                end = check_told("train", path, "--seeds", 1, "--out", tmp_path / "runs")
            tally.ends[is_sweep, end] += 1
    tally.check()
    assert len(untrained) > count / 20
    assert all(tally.ends[kind, end] > count / 40 for kind in (True, False) for end in (True, False))


def test_the_bases_of_the_mutations_are_valid(tmp_path):
    written(tmp_path / "base.toml", toml_file(experiments()[0]))
    for plain in (*experiments(), *sweeps()):
        path = written(tmp_path / "case.toml", toml_file(plain))
        (Sweep if "axes" in plain else c.Experiment).load(path)


DEEP = 10_000
KEYS = ["a", '"a b" '] * 100_000  # the parser of TOML takes quadratic time for them
GOOD = (EXAMPLES / "tanh.toml").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"format = 1\nx = {'[' * DEEP}{']' * DEEP}", "nested deeper than 64 levels"),
        (f"format = 1\n{'.'.join(KEYS)} = 1", "nested deeper than 64 levels"),
        (f"format = 1\nx = {'{a = ' * DEEP}1{'}' * DEEP}", "nested deeper than 64 levels"),
        (f"format = 1\n[{'.'.join(KEYS)}]", "nested deeper than 64 levels"),
        (GOOD.replace("500", "1" * 100_000), "more than 64 bits"),
        (GOOD.replace("0.005", "1" * 4_000), "more than 64 bits"),
        (GOOD.replace("5, 50,", f"5, {2**63},"), "more than 64 bits"),
        (GOOD.replace("5, 50,", f"5, {2**63 - 1},"), r"network.widths\[1\] must be below 2\^31"),
        (GOOD.replace("n = 80", f"n = {2**31}"), r"data.n must be below 2\^31"),
        (GOOD.replace('"tanh"', '"\\u0000:a"'), "a NUL"),
    ],
)
def test_what_no_parser_and_no_array_takes_is_named(text, said, tmp_path):
    path = written(tmp_path / "case.toml", text.encode())
    for load in (c.Experiment.load, Sweep.load):
        with pytest.raises(c.InputError, match=said if load == c.Experiment.load else None) as caught:
            load(path)
        assert len(str(caught.value)) < 500
    assert check_told("train", path, "--seeds", 1) == check_told("sweep", path) == 2


def test_numbers_that_python_passes_are_bounded_too(tmp_path):
    for call in (
        lambda: c.Dense((5, 10**5000, 1)), lambda: c.Normal(10**5000), lambda: c.Seed(0, 0) and c.train([], 10**18),
        lambda: Sweep(c.Experiment.from_toml(GOOD), {}, seeds=[2**63]), lambda: c.Experiment.load("/dev/zero"),
    ):  # fmt: skip
        assert refused(call)
