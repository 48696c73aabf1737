"""Samples that are no fresh ones, outputs beside logits, models that draw: what is stated holds in an own loop."""

import itertools

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from condensation.pytorch import reduce_model
from condensation.pytorch._reduction.distinct import distinct_batches, distinct_samples

pytestmark = pytest.mark.pytorch


def far(one, two):
    return float((one - two).norm() / (one - one.mean(0)).norm())


@pytest.mark.parametrize("again", ["cycle", "repeat", "batches"])
def test_samples_that_are_given_again_are_no_fresh_ones(again):
    """Copies of a sample that is fitted to judged it: an error of 0.3 was promised to be at most 0.1."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(10, 40), nn.ReLU(), nn.Linear(40, 3))
    x, fresh = torch.randn(60, 10), torch.randn(4000, 10)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:, 0]), 20, shuffle=True)
    data = {
        "cycle": itertools.islice(itertools.cycle(loader), 60),
        "repeat": x.repeat(20, 1),
        "batches": [{"input": x.clone()}] * 20,
    }[again]
    reduced = reduce_model(model, data, error=0.1, method="prune_fit")
    with torch.no_grad():
        assert far(model(fresh), reduced.model(fresh)) <= (reduced.most_error or 0) <= 0.1
    assert "1140 of 1200 samples were given before and are left out" in reduced.notes


def test_samples_are_the_same_where_all_their_numbers_are():
    random = np.random.default_rng(0)
    one, two = random.integers(0, 2, (400, 4)), random.integers(0, 2, (400, 1, 3)).astype(bool)
    rows = [(*a, *b) for a, b in zip(one.tolist(), two.reshape(400, 3).tolist(), strict=True)]
    wanted = [k for k, row in enumerate(rows) if row not in rows[:k]]
    assert 100 < len(wanted) < 129
    assert distinct_samples({"one": torch.tensor(one), "two": [torch.tensor(two), "more"]}) == wanted
    long = torch.randn(3, 2, 1000).to(torch.bfloat16).repeat(2, 1, 1)
    long[4, 1, 777] += 1
    assert distinct_samples(long) == [0, 1, 2, 4]
    batches = [torch.ones(2, 3), torch.ones(3, 2), (torch.ones(2, 3), torch.tensor(1.0)), torch.ones(2, 3)]
    assert distinct_batches(batches) == [0, 1, 2]


class Boxes(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 24), nn.Linear(6, 24)
        self.classes, self.boxes = nn.Linear(24, 3), nn.Linear(24, 4)

    def forward(self, x):
        return {"pred_boxes": self.boxes(F.relu(self.b(x))), "logits": self.classes(F.relu(self.a(x)))}


def test_what_stands_beside_logits_is_judged_as_well():
    """The boxes of a detector were ruined beside an error of 0."""
    torch.manual_seed(0)
    model, x, fresh = Boxes(), torch.randn(1000, 6), torch.randn(4000, 6)
    reduced = reduce_model(model, x, units={"b": 6}, method="prune_fit")
    with torch.no_grad():
        before, after = model(fresh), reduced.model(fresh)
    assert reduced.relative_error == pytest.approx(far(before["pred_boxes"], after["pred_boxes"]), rel=0.2)
    assert far(before["pred_boxes"], after["pred_boxes"]) <= (reduced.most_error or 0)
    assert reduced.agreement == 1  # of the classes
    reduced = reduce_model(model, x, units={"a": 6}, method="merge_fit")
    with torch.no_grad():
        before, after = model(fresh)["logits"], reduced.model(fresh)["logits"]
    assert reduced.relative_error == pytest.approx(far(before, after), rel=0.2)
    assert reduced.agreement == pytest.approx(float((before.argmax(1) == after.argmax(1)).double().mean()), abs=0.1)


class Drawing(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.a, self.b = nn.Linear(6, 4), nn.Linear(4, 24), nn.Linear(24, 6)

    def forward(self, x):
        mean = self.mean(x)
        return self.b(F.relu(self.a(mean + torch.randn_like(mean))))


def test_a_model_that_draws_is_held_against_the_same_draws():
    torch.manual_seed(0)
    model, x, fresh = Drawing(), torch.randn(2000, 6), torch.randn(4000, 6)
    assert reduce_model(model, x, units=24, method="prune").relative_error == 0
    reduced = reduce_model(model, x, error=0.1, method="prune_fit")
    answers = []
    for one in (model, reduced.model):
        torch.manual_seed(5)
        answers.append(one(fresh).detach())
    assert far(*answers) <= (reduced.most_error or 0) <= 0.1
    assert reduced.sizes["a"][1] < 24


class Steps(nn.Module):
    def __init__(self, batch_first):
        super().__init__()
        self.recurrent, self.a, self.b = nn.RNN(5, 6, batch_first=batch_first), nn.Linear(6, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.b(F.relu(self.a(self.recurrent(x)[0])))


def test_where_the_first_axis_is_time_that_is_told():
    torch.manual_seed(0)
    for batch_first in (False, True):
        reduced = reduce_model(Steps(batch_first), torch.randn(20, 4, 5), units={"a": 4}, method="prune")
        assert any("first axis" in note for note in reduced.notes) is not batch_first
    plain = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))
    assert not any(
        "first axis" in note for note in reduce_model(plain.half(), torch.randn(20, 5).half(), units=4).notes
    )
