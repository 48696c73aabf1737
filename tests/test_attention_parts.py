"""Attention as a part of experiments: files, laws by role, sequences, ensembles, and what is refused."""

import re
import warnings

import numpy as np
import pytest

import condensation as c
from condensation.derivatives import gradient, trained_parameters
from condensation.drawing import draw_network
from condensation.seeds import Seed

TRANSFORMER = c.Attention(
    6, 8, 30, vocabulary=30, positions=True, depth=2, heads=2, feed_forward=5, residual=True, norm="pre", causal=True,
    fixed=("embedding", "output"),
)  # fmt: skip
ANCHORS = c.AnchorFunctions(40, 30, 6, keys=(5, 20))
INIT = c.Init(c.FanInPower(0.5), embedding=c.Normal(1.0), query_key=c.FanInPower(0.8), value=c.FanInPower(1.2))


def anchors(**changes) -> c.Experiment:
    own = c.Experiment(
        TRANSFORMER, INIT, ANCHORS, c.AdamW(1e-2), 4, loss=c.Loss("cross_entropy"), batch_size=20, test=ANCHORS
    )
    return own.replace(**changes)


def regression(**changes) -> c.Experiment:
    network = c.Attention(
        9, 3, 1, heads=3, head_width=1, attention="linear", values=False, projection=False, key_inputs=2
    )
    data = c.InContextRegression(300, (0.7, 0.3), 8, rotated=True, whitened=True)
    return c.Experiment(network, c.Init(c.Normal(0.1)), data, c.GradientFlow(1.0), 5).replace(**changes)


@pytest.mark.parametrize("own", [anchors(), regression()], ids=["anchors", "regression"])
def test_an_experiment_is_the_same_after_its_file_and_a_run_after_its_folder(own, tmp_path):
    again = c.Experiment.from_toml(own.to_toml())
    assert (again, again.fingerprint()) == (own, own.fingerprint())
    run = c.train(own, 2, out=tmp_path)
    opened = c.load_run(next(tmp_path.iterdir()))
    last, first = run.model(own.steps, 1), run.model(0, 1)
    for name, value in last.parameters.items():
        np.testing.assert_array_equal(opened.model(own.steps, 1).parameters[name], value)
        assert np.array_equal(first.parameters[name], value) == (name.split(".")[0] in own.network.fixed)
    last.save(tmp_path / "model.safetensors")
    x, _ = run.data(1)
    np.testing.assert_array_equal(c.Model.load(tmp_path / "model.safetensors")(x), last(x))
    alone = c.train(own, [1]).model(own.steps, 1)
    np.testing.assert_array_equal(alone.parameters["query1.weight"], last.parameters["query1.weight"])
    assert set(trained_parameters(last)) == {n for n in last.parameters if n.split(".")[0] not in own.network.fixed}


@pytest.mark.parametrize(
    "data",
    [c.InContextRegression(4000, (1.0, 0.1), 5, rotated=True), c.Synthetic(((1, 1, 0),), 2, 4000, 0, 1, rotated=True)],
    ids=["context", "points"],
)
def test_held_out_samples_are_turned_as_the_others(data):
    first, held_out = (data.draw(seed)[0][..., :2].reshape(-1, 2) for seed in (Seed(3, 0), Seed(3, 0).held_out()))
    np.testing.assert_allclose(np.cov(first.T), np.cov(held_out.T), atol=0.05)
    np.testing.assert_allclose(first.mean(axis=0), held_out.mean(axis=0), atol=0.05)
    assert not np.array_equal(first[:1], held_out[:1])


def test_one_token_has_attention_that_nothing_moves_and_no_eps_would():
    own = c.Experiment(
        c.Attention(1, 4, 2), c.Init(c.Normal(0.3)), c.Arrays(np.ones((2, 1, 4)), np.eye(2)), c.Adam(1e-3), 2
    )
    assert own.network.describe().startswith("one block of softmax attention on one token of width 4")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = c.train(own, 1)
    assert not run.gradient["query1.weight"].any()


def test_laws_go_by_the_role_of_a_layer():
    stds = {layer.name: layer for layer in TRANSFORMER.layers}
    drawn = [INIT.draw(TRANSFORMER, np.random.default_rng(k)) for k in range(200)]
    expected = {"embedding": 1, "positions": 1, "query1": 8**-0.8, "key2": 8**-0.8, "value1": 8**-1.2,
                "projection2": 8**-1.2, "up1": 8**-0.5, "down2": 5**-0.5, "output": 8**-0.5}  # fmt: skip
    for name, std in expected.items():
        found = np.std([own[f"{stds[name].name}.weight"] for own in drawn])
        assert found == pytest.approx(std, rel=0.05), name
    phrase = INIT.describe(TRANSFORMER)
    assert "embeddings N(0, 1²)" in phrase
    assert "queries and keys N(0, σ²) with σ = m_in^-0.8" in phrase
    assert "values and projections" in phrase


def test_a_sweep_over_fields_of_the_network(tmp_path):
    grid = {"network.heads": [1, 2], "init.hidden.std": [0.1, 0.2]}
    table = c.sweep(regression(steps=2), grid, "change", out=tmp_path, n_jobs=1)
    assert not table.failed
    assert (table.column("query1.change") > 0).sum() == 4


@pytest.mark.parametrize("side", ["after", "before"])
def test_targets_of_anchor_functions_by_hand(side):
    data = c.AnchorFunctions(
        500, 120, 9, ((1, 5), (2, 1), (3, -2), (4, -8)), (20, 99), count=2, side=side, own_shifts=((3, 4, -6),)
    )
    x, y = data.draw(Seed(3, 0))
    assert y.shape == (500, 120)
    for row, target in zip(x.astype(int), y.argmax(axis=1), strict=True):
        (place,) = np.flatnonzero((row[:-1] < 5) & (row[1:] < 5))
        group = tuple(row[place : place + 2])
        key = row[place + 2] if side == "after" else row[place - 1]
        shift = -6 if group == (3, 4) else sum({1: 5, 2: 1, 3: -2, 4: -8}[anchor] for anchor in group)
        assert target == key + shift
        assert (np.delete(row, [place, place + 1]) >= 20).all()
    assert len({tuple(row[row < 5]) for row in x}) == 16
    only = c.AnchorFunctions(200, count=2, length=9, only=((1, 2), (2, 1)))
    assert {tuple(row[row < 5]) for row in only.draw(Seed(0, 0))[0]} == {(1, 2), (2, 1)}


@pytest.mark.parametrize("places", ["trained", "held_out"])
@pytest.mark.parametrize("side", ["after", "before"])
def test_keys_are_held_out_by_their_place(places, side):
    data = c.AnchorFunctions(2000, 120, 9, keys=(20, 99), count=2, side=side, places=places)
    x, y = data.draw(Seed(3, 0))
    begin = (x < 20).argmax(axis=1) - (side == "before")
    keys = x[np.arange(2000), begin + (2 if side == "after" else 0)]
    assert (((keys % 7) == begin) == (places == "held_out")).all()
    assert {*begin} == {*range(7)}
    assert {*keys} == {*range(20, 100)}
    assert ((y.argmax(axis=1) - keys) <= 2).all()
    assert data.describe().endswith("keys x with x mod 7 = place")


def test_regression_in_context_has_its_covariances():
    data = c.InContextRegression(4000, (0.7, 0.3), 8, rotated=True, whitened=True)
    x, y = data.draw(Seed(4, 0))
    inputs, axes = x[..., :2], data.axes(Seed(4, 0))
    np.testing.assert_allclose(np.cov(inputs.reshape(-1, 2).T), axes.T @ np.diag([0.7, 0.3]) @ axes, atol=0.02)
    w = np.array([np.linalg.lstsq(own[:-1, :2], own[:-1, 2], rcond=None)[0] for own in x])
    np.testing.assert_allclose(w.T @ w / len(w), np.eye(2), atol=1e-9)
    np.testing.assert_allclose((x[:, -1, :2] * w).sum(1), y[:, 0], atol=1e-9)
    assert not x[:, -1, 2].any()


REFUSED = {
    "a token that is not there": (
        lambda: c.train(anchors(data=c.Arrays(np.full((20, 6), 30.0), np.eye(30)[:20]), test=None), 1),
        "whole numbers from 0 to 29, but sample 0 has 30",
    ),
    "a derivative there": (
        lambda: gradient(anchors().initial_model(), np.full((1, 6), 30.0), np.eye(30)[:1]), "sample 0 has 30",
    ),
    "half a token": (lambda: anchors().initial_model()(np.full((1, 6), 0.5)), "sample 0 has 0.5"),
    "a fixed layer that is not there": (lambda: c.Attention(3, 4, 1, fixed=("embeding",)), "embeding"),
    "a fixed layer twice": (lambda: c.Attention(3, 4, 1, fixed=("value1", "value1")), "stand once"),
    "every layer": (
        lambda: c.Attention(3, 4, 1, projection=False, fixed=("query1", "key1", "value1", "output")), "every layer",
    ),
    "residual of another width": (lambda: c.Attention(3, 4, 1, heads=3, projection=False, residual=True), "projection"),
    "no values left": (lambda: c.Attention(3, 4, 1, key_inputs=4), "leaves nothing"),
    "more heads than width": (lambda: c.Attention(3, 4, 1, heads=5), "head_width"),
    "merged with a rank": (lambda: c.Attention(3, 4, 1, merged=True, head_width=2), "no head_width"),
    "a law for nothing": (lambda: regression(init=c.Init(c.Normal(1), embedding=c.Normal(1))), "embeddings"),
    "pairs": (lambda: regression(init=c.Init(c.Normal(1), antisymmetric=True)), "antisymmetric"),
    "pairs beside given weights": (
        lambda: regression(init=c.Given(regression().initial_model(), drawn=c.Init(c.Normal(1), antisymmetric=True))),
        "attention has no antisymmetric",
    ),
    "a balance beside given weights": (
        lambda: c.Init(c.Normal(1), balance="balanced").laws(
            c.Attention(3, 4, 1, merged=True, values=False, projection=False)
        ),
        "attention has no balanced",
    ),
    "descent by neurons": (lambda: regression(optimizer=c.NormalisedGD(0.1)), "neuron-normalised"),
    "a reduction": (
        lambda: c.reduce(regression().initial_model(), np.ones((2, 9, 3))), "not a network of attention",
    ),
    "anchors among keys": (lambda: c.AnchorFunctions(5, keys=(3, 9)), "apart from the keys"),
    "an anchor with two shifts": (lambda: c.AnchorFunctions(5, shifts=((1, 1), (1, 2))), "anchor 1 has more than one"),
    "a group with two shifts": (
        lambda: c.AnchorFunctions(5, own_shifts=((1, 5), (1, 7))), "group (1,) has more than one",
    ),
    "a picture of neurons": (lambda: draw_network(regression().initial_model()), "whose layers are dense"),
    "targets out of the vocabulary": (lambda: c.AnchorFunctions(5, 101), "from 1 to 101 do not fit"),
    "an unknown group": (lambda: c.AnchorFunctions(5, count=2, only=((1, 9),)), "not a group"),
    "one place to hold out": (
        lambda: c.AnchorFunctions(5, length=3, count=2, places="held_out"), "at least two places",
    ),
    "too short": (lambda: c.AnchorFunctions(5, length=2, count=2), "no place"),
    "too few to whiten": (lambda: c.InContextRegression(2, (1.0, 1.0), 3, whitened=True), "whitened"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_in_a_sentence(name):
    call, words = REFUSED[name]
    with pytest.raises(c.InputError, match=re.escape(words)):
        call()
