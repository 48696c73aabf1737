"""The anchor task: its parts against brute force, and its verdicts at a few seeds."""

from dataclasses import replace

import numpy as np
import pytest

import condensation as c
from condensation.papers._claims import judge
from condensation.papers._trainings import untrained
from condensation.papers.attention import Anchor
from condensation.papers.attention._anchor_course import OUTER, AnchorCourse, spectrum_of
from condensation.papers.attention.anchor import MODELS, anchor

pytestmark = pytest.mark.filterwarnings("ignore:in the initial stage the mean gradient is below")


@pytest.fixture(scope="module")
def short():
    """Some steps of a small network of the same kind."""
    small = {"network.width": 12, "network.feed_forward": 10, "data.n": 300, "test": None, "steps": 30}
    small |= {"init.hidden.std": 0.3}  # gradients that finite differences can see
    return c.train(anchor("quick", "tanh").replace(**small, save=c.Evenly(4), record=c.Evenly(4)), 2)


@pytest.fixture(scope="module")
def quick():
    return c.train(anchor("quick", "tanh"), 2)


def course_of(short, loss):
    """A seed whose loss is given in shares of the way from the first loss down to the plateau."""
    level = AnchorCourse(short, 0).plateau
    curves = short.curves | {"loss": np.array([4 - np.array(loss) * (4 - level)] * 2)}
    return AnchorCourse(replace(short, curves=curves), 0)


@pytest.mark.parametrize("shape", [(7, 4), (4, 7), (5, 5)])
def test_a_spectrum_is_that_of_the_decomposition(shape):
    matrix = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    values, right = np.linalg.svd(matrix.astype(float))[1:]
    found = spectrum_of(matrix)
    np.testing.assert_allclose(found.values[::-1], values, rtol=1e-6)
    assert abs(found.top @ right[0]) == pytest.approx(1, abs=1e-9)
    assert found.effective_rank == pytest.approx(c.measure.effective_rank(matrix), rel=1e-5)
    assert spectrum_of(np.outer(np.arange(3), np.ones(4))).effective_rank == pytest.approx(1, abs=1e-5)


def test_spectra_of_layers_that_rest_and_that_move(short):
    for run in (short, untrained(short)):
        course = AnchorCourse(run, 1)
        for layer, own in course.spectra.items():
            for weights, found in zip(course.weights(layer), own, strict=True):
                np.testing.assert_array_equal(found.values, spectrum_of(weights).values)


def test_the_paper_scale_is_the_papers():
    experiment = anchor("paper", "tanh")
    network, optimizer = experiment.network, experiment.optimizer
    assert (network.width, network.feed_forward, network.outputs, network.length) == (640, 1280, 201, 10)
    assert network.value_outputs == network.key_outputs == 640
    assert set(network.fixed) == {"embedding", "positions", "output"}
    assert experiment.recorded_steps() == experiment.saved_steps()  # each goes through all sequences
    assert experiment.steps * experiment.batch_size == 30 * experiment.data.n
    assert experiment.init.hidden.std == pytest.approx(640**-0.85, rel=1e-3)
    rates = [float(optimizer.schedule.factor(step)) * optimizer.learning_rate for step in (0, 1400)]
    assert rates == pytest.approx([1e-5, 1.5e-4], rel=0.01)
    assert (optimizer.weight_decay, optimizer.clip, experiment.data.keys) == (0, 1, (5, 100))
    small = anchor("quick", "tanh")
    relative = [(one.init.hidden.std * one.network.width**0.5, one.optimizer.learning_rate / one.init.hidden.std)
                for one in (small, experiment)]  # fmt: skip
    assert relative[0] == pytest.approx(relative[1], rel=0.01)


def test_the_plateau_is_the_loss_of_the_shares(short):
    course = AnchorCourse(short, 0)
    y = short.data(0)[1]
    shares = y.mean(axis=0)
    logits = np.log(np.where(shares > 0, shares, 1e-30))
    assert course.plateau == pytest.approx(-(y @ logits).mean(), rel=1e-12)


def test_stages_by_the_way_to_the_plateau(short):
    course = course_of(short, [0, 0, 0.05, 0.3])
    assert (course.stage_1, course.on_plateau, course.has_stages) == (2, None, False)
    course = course_of(short, [0, 0.01, 0.95, 0.96])
    assert course.ends == (1, 2, 3)
    assert course_of(short, [0, 0, 0, 0]).stage_1 is None
    assert course_of(short, [0, 0.02, 0.95, 1.5]).on_plateau is None  # left at once


@pytest.mark.trials
def test_the_mean_token_and_f_are_gradients(short):
    """The mean token by its definition, F by finite differences of an own loss."""
    course = AnchorCourse(short, 1)
    values = {name: np.array(value, float) for name, value in course.parameters(0).items()}
    x, y = short.data(short.seeds[1])
    tokens = x.astype(int)
    mean = values["embedding.weight"][tokens].mean(axis=1) + values["positions.weight"].mean(axis=0)
    read = mean.T @ (y - 1 / y.shape[1]) @ values["output.weight"]
    assert abs(np.linalg.svd(read)[0][:, 0] @ course.mean_token) == pytest.approx(1, abs=1e-9)

    matrix = course.query_key_matrix(0)
    h = values["embedding.weight"][tokens] + values["positions.weight"]

    def loss(product):
        scores = np.einsum("na,ab,njb->nj", h[:, -1], product, h) / np.sqrt(12)
        weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        passed = np.einsum("nj,njk->nk", weights, h) @ values["value1.weight"].T
        f = np.tanh(passed @ values["up1.weight"].T) @ values["down1.weight"].T @ values["output.weight"].T
        return -(y * (f - np.log(np.exp(f).sum(axis=1, keepdims=True)))).sum(axis=1).mean()

    for a, b in ((0, 0), (3, 7)):
        step = np.zeros((12, 12))
        step[a, b] = 1e-2
        slope = -(loss(step) - loss(-step)) / 2e-2
        assert matrix[a, b] == pytest.approx(slope, rel=1e-3, abs=1e-4 * np.abs(matrix).max())


def test_relative_changes_by_hand(short):
    course = AnchorCourse(short, 0)
    first, last = (np.concatenate([course.weights(part)[k].ravel() for part in OUTER]) for k in (0, -1))
    by_hand = np.linalg.norm(last - first) / np.linalg.norm(first)
    assert course.change(OUTER, 0, -1) == pytest.approx(by_hand, rel=1e-5)
    still = AnchorCourse(untrained(short), 0)
    assert np.isnan(still.over_outer(0, -1))
    assert still.turns(OUTER) == pytest.approx(np.ones(3))


@pytest.mark.trials
def test_what_was_not_trained_reproduces_nothing(short):
    control = untrained(c.train(anchor("quick", "tanh").replace(steps=20, save=c.Evenly(4), record=c.Evenly(4)), 2))
    figure = Anchor(dict.fromkeys(MODELS, control))
    for claim in Anchor.claims:
        assert judge(claim.measure(figure).holds(claim.rule)) in ("not reproduced", "not decided"), claim.key
    assert "eps of 1e-8" in figure.gradients_in_words()


@pytest.mark.trials
def test_outer_weights_come_first_and_then_queries_and_keys(quick):
    figure = Anchor({"tanh": quick})
    for key in ("still", "reverse", "monotone", "outer-rank", "query-kept", "query-rank", "condensed", "kept", "rank"):
        claim = Anchor.claim(f"tanh-{key}")
        assert judge(claim.measure(figure).holds(claim.rule)) == "reproduced", key
    assert "The best answer that reads nothing" in figure.accuracy_in_words("tanh")
    whole = Anchor(dict.fromkeys(MODELS, quick))
    assert len(whole.draw().tables[0].rows) == 6
    assert "cosines" in whole.signs_in_words("linear")
    assert "effective rank of W_Q from" in whole.matrix_in_words("linear")


@pytest.mark.trials
def test_a_small_eps_moves_queries_and_keys_from_the_first_step_on():
    figure = Anchor({"eps": c.train(anchor("quick", "eps"), 2)})
    assert min(figure.measured("eps-still").values) > 0.5
