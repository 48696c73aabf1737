"""The figure of text: its measures against brute force, on a small task in the place of the downloaded text."""

from dataclasses import replace

import numpy as np
import pytest

import condensation as c
from condensation.papers._claims import judge
from condensation.papers._trainings import untrained
from condensation.papers.attention import AttentionText
from condensation.papers.attention._text_course import TextCourse, best_constant
from condensation.papers.attention.text import LAYERS, MODELS, text

pytestmark = pytest.mark.filterwarnings("ignore:in the initial stage the mean gradient is below")

TASK = c.AnchorFunctions(200, 40, 6, keys=(5, 30))


def short(name):
    """Some steps of a small network of the same kind, of another task."""
    small = {"network": replace(text("quick", name).network, length=6, width=12, vocabulary=40, outputs=40,
                                feed_forward=10)}  # fmt: skip
    small |= {"data": TASK, "test": TASK, "steps": 30, "init": c.Init(c.Normal(0.3)), "batch_size": 50}
    return c.train(text("quick", name).replace(**small, save=c.Evenly(5), record=c.Evenly(5)), 2, progress=False)


@pytest.fixture(scope="module")
def fixed():
    return short("fixed")


@pytest.fixture(scope="module")
def free():
    return short("free")


def course_of(run, loss):
    """A seed whose loss is given in shares of the way from the first loss down to the plateau."""
    level = TextCourse(run, 0).plateau
    return TextCourse(replace(run, curves=run.curves | {"loss": np.array([9 - np.array(loss) * (9 - level)] * 2)}), 0)


def test_the_best_constant_is_where_descent_ends():
    rng = np.random.default_rng(0)
    readout, shares = rng.normal(size=(20, 4)) * 0.01, rng.dirichlet(np.ones(20))
    loss, h = best_constant(readout, shares)
    logits = readout @ h
    assert np.log(np.exp(logits).sum()) - shares @ logits == pytest.approx(loss, abs=1e-9)
    by_descent = np.zeros(4)
    for _ in range(20_000):
        chances = np.exp(readout @ by_descent)
        by_descent -= 2e3 * readout.T @ (chances / chances.sum() - shares)
    np.testing.assert_allclose(h, by_descent, rtol=1e-4)
    entropy = -(shares * np.log(shares)).sum()
    assert entropy < loss < np.log(20)
    assert best_constant(rng.normal(size=(20, 30)), shares)[0] == pytest.approx(entropy, rel=1e-6)


def test_the_plateau_is_what_the_readout_can_give(fixed, free):
    entropy = -sum(share * np.log(share) for share in TextCourse(free, 1).shares if share)
    assert TextCourse(free, 1).plateau == pytest.approx(entropy, rel=1e-12)
    assert entropy + 0.1 < TextCourse(fixed, 1).plateau < np.log(40)
    np.testing.assert_allclose(TextCourse(fixed, 1).shares, fixed.data(1)[1].mean(axis=0))


def test_both_blocks_are_watched(fixed):
    course = TextCourse(fixed, 0)
    assert {*course.outer, *course.attention} == {*LAYERS} == {*course.spectra}
    assert (course.queries, course.values) == (("query1", "query2"), ("value1", "value2"))
    assert not {"output.weight", "embedding.weight"} & fixed.parameters.keys()
    moved, first = (sum(np.sum(np.square(part)) for part in parts) for parts in zip(*(
        (course.weights(layer)[-1] - course.weights(layer)[0], course.weights(layer)[0]) for layer in course.attention
    ), strict=True))  # fmt: skip
    assert course.change(course.attention, 0, -1) == pytest.approx(np.sqrt(moved / first), rel=1e-4)


def test_changes_of_a_block_by_hand(fixed):
    course, both = TextCourse(fixed, 1), []
    for layers in (("query2", "key2"), ("value2", "up2", "down2")):
        first, last = (np.concatenate([course.weights(layer)[k].ravel() for layer in layers]) for k in (0, -1))
        both.append(np.linalg.norm(last - first) / np.linalg.norm(first))
    assert course.block_over_outer(2, 0, -1) == pytest.approx(both[0] / both[1], rel=1e-5)
    figure = AttentionText({"fixed": fixed})
    assert "By blocks" in figure.blocks_in_words("fixed")


def test_how_abruptly_a_rank_falls_by_hand(fixed):
    course = course_of(fixed, [0, 0, 0.2, 0.95, 0.96])
    steps = course.run.saved
    assert course.ends == (1, 3, 4)
    course.ranks = lambda layer: np.array([10, 10, 9, 5, 4.0])  # from 0.9 at the third saved step to half at the next
    assert course.abruptness("query2") == pytest.approx((steps[3] - steps[2]) / steps[1])
    course.ranks = lambda layer: np.array([10, 10, 9, 8, 7.0])
    assert np.isnan(course.abruptness("query2"))


def test_condensed_columns_are_on_a_line_in_both_blocks(fixed):
    course = course_of(fixed, [0, 0, 0.2, 0.95, 0.96])
    cosines = []
    for layer in ("value1", "value2"):
        weights = course.weights(layer)[1].astype(float)
        top = np.linalg.svd(weights)[2][0]
        cosines.append(np.median(np.abs(weights @ top) / np.linalg.norm(weights, axis=1)))
    assert course.on_lines == pytest.approx(min(cosines), rel=1e-6)


def test_the_paper_scale_is_the_papers():
    own = text("paper", "fixed")
    network, optimizer = own.network, own.optimizer
    assert (network.depth, network.heads, network.width, network.feed_forward, network.length) == (2, 1, 64, 800, 2048)
    assert (network.activation, network.residual, network.norm) == ("gelu", True, None)
    assert (optimizer.kind, optimizer.learning_rate, own.batch_size, own.steps) == ("adamw", 2e-4, 500, 12_000)
    assert own.init.hidden.std == pytest.approx(64**-1.2, rel=1e-3)
    assert text("paper", "free").network.fixed == ()
    assert (own.data.split, own.test.split) == ("train", "test")


def test_what_was_not_trained_reproduces_nothing(fixed, free):
    figure = AttentionText({"fixed": untrained(fixed), "free": untrained(free)})
    for claim in AttentionText.claims:
        assert judge(claim.measure(figure).holds(claim.rule)) in ("not reproduced", "not decided"), claim.key


def test_the_picture_and_the_words_need_no_stage(fixed, free):
    figure = AttentionText({"fixed": fixed, "free": free})
    drawing = figure.draw()
    assert len(drawing.tables[0].rows) == 4
    assert "none" in figure.stages_in_words("fixed") + str(drawing.tables[0].rows)
    for name in MODELS:
        assert all(layer in figure.ranks_in_words(name) and layer in figure.turns_in_words(name) for layer in LAYERS)
    panels = drawing.pictures[""].axes
    assert len(panels) == 8
    assert len(panels[2].lines) == 2 * len(LAYERS)  # of two seeds
    assert len(panels[3].lines) == 2 * len(LAYERS) + 5  # and the legend's


@pytest.mark.download
def test_outer_weights_come_first_on_the_real_text(monkeypatch, tmp_path):
    monkeypatch.setenv("CONDENSATION_CACHE", str(tmp_path))
    figure = AttentionText({"fixed": c.train(text("quick", "fixed"), 1, progress=False)})
    for key in ("reverse", "monotone", "outer-rank", "condensed", "kept"):
        claim = AttentionText.claim(f"fixed-{key}")
        assert judge(claim.measure(figure).holds(claim.rule)) == "reproduced", key
    [course] = figure.courses["fixed"]
    first, last = (course.block_over_outer(block, 0, course.stage_1) for block in (1, 2))
    assert first < 0.05 < last
