"""Where a reduction looks for its size: as good as bisection, in fewer trials; and images laid out by pixels."""

import numpy as np
import pytest
import torch
from torch import nn

from condensation.pytorch import reduce_model
from condensation.pytorch._reduction.guess import Search

pytestmark = pytest.mark.pytorch


def test_a_search_ends_where_the_goal_is_just_met_in_fewer_trials_than_bisection():
    trials = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        costs = np.sort(rng.exponential(size=1000) ** rng.uniform(1, 3))
        meets = int(rng.integers(5, 950))  # by brute force
        summed = np.concatenate([[0], np.cumsum(costs)])
        excess = (summed / (summed[meets] + summed[meets + 1]) * 2) ** rng.uniform(0.3, 2)
        search = Search(costs, 7, None, 1.0)
        while not search.done:
            removed = search.next()
            assert search.low < removed < search.high
            search.tried(removed, float(excess[removed]))
        assert meets - 7 <= search.low <= meets < search.high
        trials.append(search.steps)
    assert np.mean(trials) < 5.5  # bisection takes seven or eight


def test_a_search_that_measures_nothing_bisects():
    for bad in (np.inf, np.nan):
        search = Search(np.zeros(100), 1, None, 1.0)
        while not search.done:
            removed = search.next()
            search.tried(removed, 0.0 if removed <= 40 else bad)
        assert (search.low, search.high) == (40, 41)
    assert Search(np.zeros(0), 1, None, 1.0).done


class Viewed(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.out = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Linear(64, 5)
        self.views = True

    def forward(self, x):
        h = torch.relu(self.norm(self.conv(x))).mean(2)
        return self.out(h.view(len(h), -1) if self.views else h.reshape(len(h), -1))


def test_a_model_whose_code_wants_rows_of_pixels_gets_them():
    torch.manual_seed(0)
    model, x = Viewed().eval(), torch.randn(300, 3, 8, 8)
    found = []
    for views in (True, False):
        model.views = views
        found.append(reduce_model(model, x, ratio=0.25))
        small = found[-1].model
        assert small.conv.weight.is_contiguous()
        assert small(x[:4]).is_contiguous()
    assert found[0].sizes == found[1].sizes
    assert found[0].relative_error == pytest.approx(found[1].relative_error, rel=1e-3)
