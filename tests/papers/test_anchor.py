"""The figure of reasoning against memorising: its measures by hand, and that untrained networks answer nothing."""

from dataclasses import replace

import numpy as np
import pytest

import condensation as c
from condensation.papers._registry import FIGURES
from condensation.papers.anchor import _measured, _task
from condensation.papers.anchor._task import OWN, PAIRS, SHIFTS, TRAINED, UNSEEN, transformer
from condensation.seeds import Seed

TASK = transformer("quick").data


def answering(shift):
    """A model that answers by a rule of its own: the key, with a shift of its pair."""

    def model(x):
        rows, first = np.arange(len(x)), (x < 5).argmax(axis=1)
        pairs = zip(x[rows, first].astype(int), x[rows, first + 1].astype(int), strict=True)
        return np.eye(56)[(x[rows, first - 1] + [shift(*pair) for pair in pairs]).astype(int)]

    return model


def composed(a, b):
    return dict(SHIFTS)[a] + dict(SHIFTS)[b]


RULES = {
    "reasoning": (lambda a, b: OWN if (a, b) == (3, 4) else composed(a, b), (1, 0, 1)),
    "symmetric": (lambda a, b: OWN if {a, b} == {3, 4} else composed(a, b), (0, 1, 1)),
    "always the sum": (composed, (1, 0, 1 - 1 / 15)),
    "the key": (lambda a, b: 0, (0, 0, 0)),
}


@pytest.mark.parametrize("name", RULES)
def test_answers_of_known_rules(name):
    assert isinstance(TASK, c.AnchorFunctions)
    rule, (reasoning, symmetric, unseen) = RULES[name]
    found = _measured.shares(answering(rule), TASK, Seed(0, 0))
    assert (found["reasoning"], found["symmetric"]) == (reasoning, symmetric)
    assert found["unseen"] == pytest.approx(unseen, abs=0.03)
    assert len(PAIRS) == len(TRAINED) + 1 == 16


def test_the_unseen_pair_is_never_trained_and_tested_keys_never_stood_there():
    assert isinstance(TASK, c.AnchorFunctions)
    data = replace(TASK, n=3000)
    x, y = data.draw(Seed(0, 0))
    first = (x < 5).argmax(axis=1)
    pairs = {tuple(x[k, first[k] : first[k] + 2].astype(int)) for k in range(len(x))}
    assert pairs == set(TRAINED)
    assert UNSEEN not in pairs
    keys = x[np.arange(len(x)), first - 1]
    assert (keys % 3 != first - 1).all()
    own = [k for k in range(len(x)) if tuple(x[k, first[k] : first[k] + 2]) == (3, 4)]
    assert (y.argmax(axis=1)[own] == keys[own] + OWN).all()


@pytest.mark.trials
def test_untrained_networks_answer_nothing(tmp_path, monkeypatch):
    few = replace(_task.SIZES["quick"], steps=4, saved=(2,), sequences=300)
    monkeypatch.setitem(_task.SIZES, "quick", few)
    (section,) = c.papers.reproduce(["anchor-phases"], out=tmp_path, n_jobs=1)
    assert section.status == "done"
    told = {claim["id"].removeprefix("anchor-phases-"): claim for claim in section.claims}
    assert set(told) == {claim.key for claim in FIGURES["anchor-phases"].claims}
    assert {told[key]["verdict"] for key in ("rate", "decay", "depth3-more")} == {"not run"}
    assert told["depth2-reasoning"]["verdict"] == told["neither"]["verdict"] == "not decided"
    for claim in told.values():
        assert "untrained" not in claim or not any(claim["untrained"]["holds"])


def test_the_size_of_the_paper():
    own = transformer("paper", 2, 0.8)
    sizes = {layer.name: layer.weight for layer in own.network.layers}
    assert sizes["query1"] == (200, 400)
    assert sizes["up2"] == (1200, 400)
    assert sum(a * b for a, b in sizes.values()) == 2_732_201 - 201 - 8 * 400 - 11 * 400  # biases, norms, 20 places
    own.check_data()
