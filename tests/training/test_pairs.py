"""Any pairs of experiment and seed, trained in as few ensembles as can be: each as if it were trained alone."""

import numpy as np
import pytest

from condensation import (  # fmt: skip
    GD,
    Adam,
    Arrays,
    Dense,
    Evenly,
    Experiment,
    Init,
    InputError,
    Normal,
    Seed,
    load_run,
    sine_sum,
    train,
)
from condensation.runs import run_folder
from condensation.training import _train as training
from condensation.training import train_pairs
from condensation.training._train import ensemble_key

BASE = Experiment(
    Dense((2, 6, 1)), Init(Normal(0.3)), sine_sum(1, 2, 1, dim=2, n=8, low=-1, high=1), Adam(1e-2), 12, save=Evenly(3)
)
CLASSES = Arrays(np.linspace(-1, 1, 16).reshape(8, 2), np.eye(2)[[0, 1] * 4])
NUMBERS = Arrays(np.linspace(-1, 1, 16).reshape(8, 2), np.linspace(0, 1, 16).reshape(8, 2))
PAIRS = [
    (BASE, Seed(0, 0)),
    (BASE.replace(**{"network.widths.1": 4}), Seed(0, 0)),
    (BASE.replace(**{"optimizer.learning_rate": 0.1}), Seed(3, 1)),
    (BASE.replace(**{"data.n": 5}), Seed(0, 0)),
    (BASE, Seed(1, 0)),
    (BASE.replace(**{"init.hidden.std": 1.0, "data.high": 2.0}), Seed(0, 5)),
    (BASE.replace(data=CLASSES, **{"network.widths.2": 2}), Seed(0, 0)),
    (BASE.replace(data=NUMBERS, **{"network.widths.2": 2}), Seed(0, 0)),
]


def equal(one, other):
    assert one.experiment == other.experiment
    assert one.seeds == other.seeds
    assert one.diverged == other.diverged
    for name in ("saved", "recorded"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("parameters", "curves"):
        mine, others = getattr(one, name), getattr(other, name)
        assert mine.keys() == others.keys()
        for key in mine:
            np.testing.assert_array_equal(mine[key], others[key], key)
    return True


def test_pairs_are_trained_as_if_alone(monkeypatch):
    ensembles = []

    def counted(pairs, *rest):
        ensembles.append(len(pairs))
        return original(pairs, *rest)

    original = training._run
    monkeypatch.setattr(training, "_run", counted)
    found = train_pairs(PAIRS)
    assert sorted(ensembles) == [1] * 4 + [4]  # what differs in numbers, start, seeds and values of the data is one
    assert [(run.experiment, *run.seeds) for run in found] == PAIRS
    for (experiment, seed), run in zip(PAIRS, found, strict=True):
        assert equal(run, train(experiment, seeds=[seed]))


def test_no_pairs_are_no_runs():
    assert train_pairs([]) == []


def test_pairs_are_kept_and_not_trained_again(tmp_path):
    pairs = PAIRS[:3]
    first = train_pairs(pairs, out=tmp_path)
    for (experiment, seed), run in zip(pairs, first, strict=True):
        kept = load_run(run_folder(tmp_path, experiment))
        assert kept.seeds == (seed,)
        assert equal(kept, run)
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    assert len(written) == 3
    again = train_pairs([*pairs, (BASE, Seed(1, 0))], out=tmp_path)
    assert {path: path.stat().st_mtime_ns for path in written} == written
    assert all(equal(run, same) for run, same in zip(first, again, strict=False))
    assert equal(again[3], train(BASE, seeds=[Seed(1, 0)]))


def test_a_pair_that_diverges_is_told_by_its_run_without_a_warning():
    wild = BASE.replace(optimizer=GD(1e6), network=Dense((2, 6, 1), "relu"))
    tame = wild.replace(**{"optimizer.learning_rate": 1e-3})
    lost, kept = train_pairs([(wild, Seed(0, 0)), (tame, Seed(0, 0))])
    assert lost.diverged.keys() == {Seed(0, 0)}
    assert not kept.diverged
    assert equal(kept, train(tame))


def test_a_pair_that_cannot_be_trained_is_refused():
    with pytest.raises(InputError, match=r"the data has samples of shape \(2,\)"):
        train_pairs([*PAIRS[:1], (BASE.replace(network=Dense((3, 6, 1))), Seed(0, 0))])


@pytest.mark.parametrize(
    ("change", "shared"),
    [
        ({"optimizer.learning_rate": 0.5, "optimizer.eps": 1e-3}, True),
        ({"init.hidden.std": 0.5}, True),
        ({"init": Init(Normal(1.0), antisymmetric=True)}, True),
        ({"data": NUMBERS}, True),
        ({"optimizer.b1": 0.5}, False),
        ({"optimizer": GD(1e-2)}, False),
        ({"network.widths.1": 8}, False),
        ({"network.activation": "relu"}, False),
        ({"steps": 13}, False),
        ({"save": Evenly(4)}, False),
        ({"record": Evenly(4)}, False),
        ({"dtype": "float32"}, False),
        ({"batch_size": 4}, False),
        ({"loss.reduction": "sum"}, False),
        ({"kept_layers": ("dense1",)}, False),
        ({"test": BASE.data}, False),
    ],
)
def test_what_an_ensemble_shares(change, shared):
    one, other = ensemble_key(BASE), ensemble_key(BASE.replace(**change))
    assert (one == other) == (hash(one) == hash(other)) == shared
