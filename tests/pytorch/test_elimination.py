"""Backward elimination against direct least squares, the refit of layers, and the statistics of batch norms."""

import numpy as np
import pytest
import torch
from torch import nn

from condensation.pytorch._reduction import rows
from condensation.pytorch._reduction.elimination import Reader, eliminate, regression
from condensation.pytorch._reduction.least_squares import FOLDS, change

pytestmark = pytest.mark.pytorch


def reader(h, b):
    return Reader(h.T @ h, b.T @ b, 10**9)  # so many samples that the ridge is next to nothing


def refitted_error(h, b, kept):
    """The squared error of the best B' of some units, directly."""
    y = h @ b.T
    return np.square(y - h[:, kept] @ np.linalg.lstsq(h[:, kept], y, rcond=None)[0]).sum()


@pytest.mark.parametrize("seed", range(5))
def test_each_step_is_the_best_by_direct_refits(seed):
    rng = np.random.default_rng(seed)
    h = rng.normal(size=(200, 8)) @ (np.eye(8) + 0.5 * rng.normal(size=(8, 8)))
    b = rng.normal(size=(3, 8)) * np.geomspace(0.05, 1, 8)
    found = eliminate([reader(h, b)], [np.arange(8)])
    energy, left, before = np.square(h @ b.T).sum(), list(range(8)), 0.0
    for unit, cost in zip(found.order[:, 0], found.costs, strict=True):
        errors = {k: refitted_error(h, b, [j for j in left if j != k]) for k in left}
        assert unit == min(errors, key=errors.get)
        assert cost == pytest.approx((errors[unit] - before) / energy, rel=1e-3, abs=1e-6)
        left.remove(unit)
        before = errors[unit]


def test_several_readers_count_by_their_relative_errors_and_blocks_lose_as_many():
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(2, 100, 6))
    b, c = rng.normal(size=(2, 2, 6))
    found = eliminate([reader(first, b), reader(1000 * second, c)], [np.arange(3), np.arange(3, 6)])
    assert {*found.order[:, 0]} == {0, 1, 2}
    assert {*found.order[:, 1]} == {3, 4, 5}

    def cost(unit):
        pairs = ((first, b), (second, c))
        return sum(
            refitted_error(h, w, [k for k in range(6) if k != unit]) / np.square(h @ w.T).sum() for h, w in pairs
        )

    assert found.order[0, 0] == min(range(3), key=cost)
    assert found.order[0, 1] == min(range(3, 6), key=cost)
    np.testing.assert_array_equal(found.kept(1), np.sort(found.order[-1]))


def test_dead_and_duplicate_units_cost_nothing_with_fewer_samples_than_units():
    rng = np.random.default_rng(0)
    h = rng.normal(size=(10, 30))
    h[:, 3], h[:, 5] = 0, h[:, 7]
    b = rng.normal(size=(4, 30))
    b[:, 9] = 0
    found = eliminate([Reader(h.T @ h, b.T @ b, 10)], [np.arange(30)])
    assert np.isfinite(found.costs).all()
    assert {3, 9} <= {*found.order[:10, 0]}
    assert len({*found.order[:, 0]}) == 30
    combine = regression(Reader(h.T @ h, b.T @ b, 10), np.array([0, 7]))
    assert combine[5, 1] == pytest.approx(1, abs=0.1)
    assert not combine[3].any()


def test_units_that_do_not_vary_cost_nothing_that_is_infinite():
    """What is left of their Gram matrix is rounding, which need not be positive."""
    rng = np.random.default_rng(0)
    noise, b = 1e-16 * rng.normal(size=(20, 20)), rng.normal(size=(4, 20))
    gram = noise + noise.T
    gram *= np.sign(np.trace(gram))
    with np.errstate(over="raise"):
        found = eliminate([Reader(gram, b.T @ b, 60)], [np.arange(20)])
    assert np.isfinite(found.costs).all()
    assert len({*found.order[:, 0]}) == 20


def test_a_wide_set_loses_several_units_at_a_time_and_nearly_the_best():
    rng = np.random.default_rng(0)
    h = rng.normal(size=(2000, 40)) @ rng.normal(size=(40, 600)) + 0.1 * rng.normal(size=(2000, 600))
    b = rng.normal(size=(5, 600))
    found = eliminate([reader(h, b)], [np.arange(600)])
    assert sorted(found.order[:, 0]) == list(range(600))
    kept = found.kept(100)
    assert found.costs[:500].sum() == pytest.approx(refitted_error(h, b, kept) / np.square(h @ b.T).sum(), rel=0.2)
    assert found.costs[:500].sum() < 0.01


LAYERS = {
    "dense": (nn.Linear(5, 4), (7, 3, 5)),
    "conv": (nn.Conv2d(3, 4, 3, stride=2, padding=1), (6, 3, 9, 8)),
    "dilated and grouped": (nn.Conv2d(4, 6, (3, 2), padding="same", dilation=2, groups=2), (5, 4, 9, 8)),
    "circular": (nn.Conv1d(3, 4, 3, padding=1, padding_mode="circular"), (6, 3, 9)),
    "depthwise": (nn.Conv2d(4, 4, 3, groups=4), (5, 4, 6, 6)),
    "three axes": (nn.Conv3d(2, 3, 2), (4, 2, 4, 4, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_dense_in_what_it_sees(name):
    layer, shape = LAYERS[name]
    x = torch.randn(shape)
    with torch.no_grad():
        y = layer(x)
        places = rows.drawn(name, 0, 1, rows.entries_of(layer, y), 2)[::3]
        seen, given = rows.seen(layer, x, places), rows.given(layer, y, places)
        weight = rows.matrix(layer)
        made = (seen @ weight.mT).movedim(0, 1).reshape(len(places), -1) + layer.bias
    torch.testing.assert_close(made, given, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("samples", "columns"), [(60, 12), (20, 50)])
def test_the_refit_is_ridge_regression(samples, columns):
    """The ridge that every fifth sample chooses, then all samples; for few rows by the dual equations."""
    rng = np.random.default_rng(samples)
    x, y = rng.normal(size=(samples, columns)) + 1, rng.normal(size=(samples, 2))
    y += x[:, :2]
    held = np.arange(samples) % FOLDS == FOLDS - 1
    added, shift = change(torch.as_tensor(x)[None], torch.as_tensor(y)[None], torch.as_tensor(held), constant=True)

    def fitted(rows_, ridge):
        centred, target = x[rows_] - x[rows_].mean(0), y[rows_] - y[rows_].mean(0)
        size = np.square(centred).sum() / columns
        w = np.linalg.solve(centred.T @ centred + ridge * size * np.eye(columns), centred.T @ target)
        return w, y[rows_].mean(0) - x[rows_].mean(0) @ w

    def loss(ridge):
        w, b = fitted(~held, ridge)
        return np.square(y[held] - x[held] @ w - b).sum()

    best = min((1e-6, 1e-4, 1e-2, 1.0), key=loss)
    w, b = fitted(np.ones(samples, bool), best)
    if loss(best) < np.square(y[held]).sum():
        np.testing.assert_allclose(added[0], w, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(shift[0], b, rtol=1e-6, atol=1e-6)
    else:
        assert not added.any()


def test_batch_norm_gives_the_moments_it_gave():
    from condensation.pytorch import reduce_model

    torch.manual_seed(0)
    model = nn.Sequential(
        *(nn.Conv2d(3, 12, 3, bias=False), nn.BatchNorm2d(12), nn.ReLU()),
        *(nn.Conv2d(12, 10, 3, bias=False), nn.BatchNorm2d(10), nn.ReLU(), nn.Conv2d(10, 4, 3)),
    )
    x = torch.randn(400, 3, 8, 8)
    with torch.no_grad():
        for _ in range(30):
            model(x)
    model.eval()
    moments = {}
    for recalibrate in (True, False):
        small = reduce_model(model, x, units={"0": 6}, method="prune", recalibrate=recalibrate).model
        with torch.no_grad():
            a, b = model[:5](x), small[:5](x)
        moments[recalibrate] = (
            float((a.mean((0, 2, 3)) - b.mean((0, 2, 3))).abs().max()),
            float((a.std((0, 2, 3)) / b.std((0, 2, 3)) - 1).abs().max()),
        )
    assert moments[True][0] < 0.02 < moments[False][0]
    assert moments[True][1] < 0.05 < moments[False][1]
