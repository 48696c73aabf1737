"""What FC says in its running text of relu, of training beyond the initial stage, and of different starts."""

import numpy as np
import pytest

from condensation.papers._counts import in_stage, relative_loss
from condensation.papers._trainings import untrained
from condensation.papers._variant import NotRun
from condensation.papers.fc.experiments import fig3, one_input
from condensation.papers.fc.fig5 import POINTS
from condensation.papers.fc.growth import LEFT, MOMENTS, Growth, order_needed, rises
from condensation.papers.fc.relu import NEAR, Relu, leaky_half, share_near
from condensation.papers.fc.reset import Reset, Snapshot, column_last_above, distances
from condensation.saving import Geometric
from condensation.seeds import as_seed
from condensation.theory import extremal_directions
from condensation.theory._fate import kink_slopes
from condensation.training import train


@pytest.fixture(scope="module")
def short_run():
    """Fig. 3's network in two seeds, of which one comes to 70% of its loss and none to 30%."""
    return train(fig3("tanh").replace(steps=500, save=Geometric(12), record=Geometric(12)), 2)


def attracting_by_grid(x, y, slope, points=200_000):
    """Local maxima of positive value of F and of -F on a fine grid of the circle."""
    angles = np.linspace(-np.pi, np.pi, points, endpoint=False)
    count = 0
    for sign in (1, -1):
        z = np.outer(np.cos(angles), x) + np.sin(angles)[:, None]
        f = sign * np.where(z > 0, z, slope * z) @ y
        count += np.sum((f > np.roll(f, 1)) & (f > np.roll(f, -1)) & (f > 1e-9))
    return count


@pytest.mark.parametrize("slope", [0.0, 0.01, 0.5])
@pytest.mark.parametrize("seed", [0, 4])
def test_the_orientations_that_attract_at_one_input_are_the_maxima_on_a_grid(seed, slope):
    x, y = one_input("tanh").data.draw(as_seed(seed))
    predicted = extremal_directions(np.c_[x, np.ones(len(x))], y[:, 0], slope)
    assert predicted.attracts.sum() == attracting_by_grid(x[:, 0], y[:, 0], slope, 50_000)


def test_the_share_near_a_predicted_orientation_neuron_by_neuron():
    stream = np.random.default_rng(0)
    x = np.c_[stream.normal(size=(20, 2)), np.ones(20)]
    predicted = extremal_directions(x, stream.normal(size=20))
    weights, outputs = stream.normal(size=(60, 3)), stream.normal(size=60)
    weights[:30] = predicted.directions[stream.integers(predicted.count, size=30)] + 0.05 * weights[:30]
    near, seen = 0, 0
    for w, a in zip(weights, outputs, strict=True):
        if not any(w @ point > 0 for point in x):
            continue
        seen += 1
        serving = predicted.attracts_positive if a > 0 else predicted.attracts_negative
        near += any(w @ u / np.linalg.norm(w) >= NEAR for u in predicted.directions[serving])
    assert 0 < near < seen
    assert share_near(weights, outputs, predicted, x) == pytest.approx(near / seen)


def test_neurons_that_see_no_sample_are_left_out():
    x = np.array([[1.0, 1.0], [2.0, 1.0]])
    predicted = extremal_directions(x, np.array([1.0, 1.0]))
    along, dead = predicted.directions[0], np.array([-1.0, -1.0])
    assert share_near(np.stack([along, dead]), np.array([1.0, 1.0]), predicted, x) == 1
    assert share_near(np.stack([along, along]), np.array([1.0, -1.0]), predicted, x) == 0.5
    assert np.isnan(share_near(dead[None], np.array([1.0]), predicted, x))


def test_half_way_from_relu_to_linear():
    assert kink_slopes(leaky_half) == (1.0, 0.5)
    names = Relu.experiments("quick")
    assert names["5d-half"].network.activations == (leaky_half,)
    assert names["5d-relu"].replace(network=fig3("tanh").network) == fig3("tanh")


def test_polynomials_need_their_own_order():
    assert [order_needed(np.polyval(c, POINTS)) for c in ([2.0, 1.0], [1.0, 0, 0, 0])] == [1, 3]
    assert np.isnan(order_needed(np.sin(200 * POINTS)))


def test_rank_correlations_against_their_definition():
    values = np.array([[2.0, 1.0, 4.0, 3.0], [1.0, np.nan, 2.0, 9.0], [1.0, np.nan, np.nan, 2.0]])
    squares = sum((rank - k) ** 2 for k, rank in enumerate([1, 0, 3, 2]))
    assert rises(values)[:2] == pytest.approx([1 - 6 * squares / (4 * 15), 1])
    assert np.isnan(rises(values)[2])


def test_moments_by_the_loss_step_by_step(short_run):
    figure, loss = Growth({"5d-tanh": short_run}), relative_loss(short_run)
    k_eff, found = figure.counts["5d-tanh"].history.k_eff, figure.columns["5d-tanh"]
    for k in range(len(loss)):
        staying = [j for j in range(loss.shape[1]) if loss[k, j] <= 0.99 and in_stage(short_run)[k, j]]
        expected = [min(staying, key=lambda j: (k_eff[k, j], j))]
        for left in LEFT:
            expected.append(next((j for j in range(loss.shape[1]) if loss[k, j] <= left), -1))
        expected.append(loss.shape[1] - 1 if expected[1] >= 0 else -1)
        assert found[k].tolist() == expected
    assert (found[:, 1] >= 0).any()
    assert (found[:, 2] < 0).all()
    values = figure.at_moments("5d-tanh", k_eff)
    assert values.shape == (2, len(MOMENTS))
    assert (np.isnan(values) == (found < 0)).all()


def test_orientations_grow_while_condensed(short_run):
    figure = Growth({"5d-tanh": short_run})
    history, first = figure.counts["5d-tanh"].history, figure.columns["5d-tanh"][:, 0]
    grown = figure.more_orientations("5d-tanh")
    for k, start in enumerate(first):
        last = max(j for j in range(history.lines.shape[1]) if history.condensed[k, j])
        assert grown.values[k] == history.orientations[k, last] - history.orientations[k, start]
    still = Growth({"5d-tanh": untrained(short_run)}).more_orientations("5d-tanh")
    assert still.holds(Growth.claim("5d-tanh-orientations").rule) == (None, None)


def test_relative_distances_pair_by_pair():
    one, other = np.random.default_rng(0).normal(size=(2, 3, 7))
    expected = [[np.sqrt(((f - g) ** 2).sum() / ((f**2).sum() / 2 + (g**2).sum() / 2)) for g in other] for f in one]
    assert distances(one, other) == pytest.approx(np.array(expected))
    assert distances(one, -one).diagonal() == pytest.approx(2)


def test_the_last_step_above_a_loss(short_run):
    loss = relative_loss(short_run)
    for left in (0.95, 0.0, 1.5):
        expected = [next((j for j in range(loss.shape[1]) if row[j] < left), loss.shape[1]) - 1 for row in loss]
        assert column_last_above(short_run, left).tolist() == expected


def test_a_snapshot_has_the_leading_line_and_the_outputs(short_run):
    shown = Snapshot.of(short_run, 3)
    for k, seed in enumerate(short_run.seeds):
        weights = short_run.weights(1, int(short_run.saved[3]), seed)
        assert abs(np.linalg.eigh(weights.T @ weights)[1][:, -1] @ shown.lines[k]) == pytest.approx(1)
    x = short_run.data(short_run.seeds[0])[0]
    assert shown.outputs[1] == pytest.approx(short_run.output(x, int(short_run.saved[3]), short_run.seeds[1])[:, 0])


def test_all_starts_see_the_same_data():
    experiments = Reset.experiments("quick")
    draws = [each.data.draw(as_seed(seed))[0] for each in experiments.values() for seed in (0, 3)]
    assert all(np.array_equal(draw, fig3("tanh").data.draw(as_seed(0))[0]) for draw in draws)


def test_a_single_seed_has_no_pairs():
    few = {"steps": 60, "save": Geometric(2), "record": Geometric(2)}
    captioned = train(Reset.experiments("quick")["captioned"].replace(**few), 1)
    with pytest.raises(NotRun, match="two are needed"):
        Reset({"captioned": captioned}).measured("simple-captioned")


@pytest.mark.trials
@pytest.mark.parametrize(
    "key",
    [
        "fc-relu/isolated-1d", "fc-relu/flow-1d", "fc-growth/5d-tanh-more", "fc-growth/5d-tanh-gradual",
        "fc-growth/1d-tanh-output", "fc-growth/1d-x_tanh-gradual", "fc-reset/simple-captioned", "fc-reset/functions",
        "fc-reset/directions", "fc-reset/common",
    ],
)  # fmt: skip
def test_what_the_text_says_and_holds(share_of, key):
    assert share_of(*key.split("/")) >= 0.8


@pytest.mark.trials
@pytest.mark.parametrize(
    "key",
    [
        "fc-relu/attract-1d", "fc-relu/most-1d-relu", "fc-relu/small-5d", "fc-growth/1d-tanh-gradual",
        "fc-growth/control", "fc-reset/higher", "fc-reset/larger",
    ],
)  # fmt: skip
def test_what_does_not_hold(share_of, key):
    assert share_of(*key.split("/")) <= 0.2
