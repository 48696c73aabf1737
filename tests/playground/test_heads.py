"""The page's numbers of attention against the library's own."""

from itertools import product

import numpy as np
import pytest

from condensation import (  # fmt: skip
    GD,
    AnchorFunctions,
    Arrays,
    Attention,
    Experiment,
    Init,
    Loss,
    Normal,
    Seed,
    train,
)
from condensation.measure import effective_rank
from condensation.papers.attention._data import two_top
from condensation.playground import _recorder
from condensation.playground._forecast import no_forecast
from condensation.playground._heads import MOST_SIDE, TOP, Heads
from condensation.playground._runs import LiveRun, SavedRun
from condensation.playground._session import Session
from condensation.playground._settings import Settings
from condensation.prediction import predict
from condensation.theory import context_loss, context_losses, context_weights

SMALL = {"data": "sequences", "n": "20", "width": "6", "layers": "tanh", "optimizer": "gd", "rate": "0.5",
         "std_w": "0.1", "std_a": "0.1", "seed": "3"}  # fmt: skip
CONTEXT = {"data": "context", "n": "60", "tokens": "9", "eigenvalues": "0.2,0.7,0.1", "heads": "3", "std_w": "0.1",
           "std_a": "0.1", "optimizer": "gd", "rate": "0.1"}  # fmt: skip
CLOSE = {"rtol": 2e-6, "atol": 1e-9}


def shown(texts, step, layer="value1"):
    """The layer's message and the frame at a step."""
    session = Session()
    session.open(texts)
    described = session.choose_layer(layer)
    while (found := session.frame({"at": step, "settled": True}, float("inf")))[0]["step"] < step:
        pass
    return session, described, found


@pytest.mark.trials
def test_matrices_and_singular_values_are_the_librarys():
    settings = Settings.from_text(SMALL)
    session, (header, _), (_, frame) = shown(SMALL, 40)
    trajectory = train(settings.experiment(steps=40), seeds=[settings.seeds])
    about = header["attention"]
    assert (about["heads"], about["softmax"], about["mark"], about["levels"]) == (1, True, "predicted", [])
    assert [one["name"] for one in about["values"]] == ["query", "key", "value", "product"]
    weights = {name: trajectory.weights(f"{name}1", 40)[0] for name in ("query", "key", "value")}
    for name, known in weights.items():
        np.testing.assert_allclose(frame[f"head_{name}"][0], known, **CLOSE)
        assert frame[f"head_rank_{name}"][0] == pytest.approx(effective_rank(known), rel=1e-6)
        top = np.linalg.svd(known)[2][0]
        assert abs(frame[f"head_top_{name}"][0] @ top) == pytest.approx(1, abs=1e-6)
    model = trajectory.model(40, settings.seeds)
    pattern = model.network.assemble(model.parameters).patterns(trajectory.data(settings.seeds)[0][:1])[0][0]
    np.testing.assert_allclose(frame["head_pattern"], pattern, rtol=1e-5)
    _, arrays = session.choose_layer("value1")
    matrices = [*weights.values(), weights["query"].T @ weights["key"]]
    values = np.concatenate([np.linalg.svd(matrix, compute_uv=False) for matrix in matrices])
    np.testing.assert_allclose(arrays["spectra"][-1], [40, *values], rtol=1e-5, atol=1e-7)
    assert len(arrays["spectra"]) == len(arrays["curve"]) == len(session.run.recording)


def test_new_rows_of_singular_values_come_with_the_frames():
    session = Session()
    session.open(SMALL)
    session.choose_layer("query1")
    first = session.frame({"steps": 5}, float("inf"))[1]["spectra"]
    second = session.frame({"steps": 5}, float("inf"))[1]["spectra"]
    assert [first[-1, 0], second[-1, 0]] == [5, 10]
    assert session.frame({"steps": 0}, float("inf"))[1]["spectra"].size == 0
    _, arrays = session.choose_layer("query1")
    np.testing.assert_array_equal(arrays["spectra"][[1, 2]], [first[-1], second[-1]])


def test_marks_are_the_lines_predicted_and_cosines_are_with_them():
    settings = Settings.from_text(SMALL)
    known = predict(settings.experiment(), settings.seeds)
    _, (_, arrays), (_, frame) = shown(SMALL, 0)
    for name in ("query", "key", "value"):
        lines = known[f"{name}1"].directions
        line = lines.directions[lines.attracts]
        assert np.abs(arrays[f"mark_{name}"] @ line.T) == pytest.approx(1, abs=1e-6)
        top = np.linalg.svd(frame[f"head_{name}"][0])[2][0]
        np.testing.assert_allclose(frame[f"head_cos_{name}"], np.abs(top @ line.T)[None], atol=1e-5)
        assert frame[f"head_top_{name}"][0] @ arrays[f"mark_{name}"][0] > 0  # the sign in which they are alike


@pytest.mark.parametrize("layer", ["query1", "key1", "value1"])
def test_lines_of_the_layer_shown_are_those_predicted(layer):
    settings = Settings.from_text(SMALL)
    _, (header, arrays), (frame, _) = shown(SMALL, 0, layer)
    known = predict(settings.experiment(), settings.seeds)[layer].directions
    assert (header["forecast"], header["count"]) == ("sphere", known.attracts.sum())
    np.testing.assert_allclose(arrays["lines"], known.directions, atol=1e-6)
    assert frame["valid"] is None


def test_other_attention_has_the_sentence_why_nothing_is_predicted():
    for texts, said in (
        (SMALL | {"heads": "2"}, "one head of softmax attention"),
        (SMALL | {"optimizer": "adam"}, "for gradient flow, not for Adam"),
        (SMALL | {"layers": "x_tanh"}, "multiplicity 1"),
        (CONTEXT, "softmax attention"),
    ):
        _, (header, arrays), _ = shown(texts, 0, "query1")
        assert said in header["why"]
        assert header["count"] is None
        assert texts is CONTEXT or not any(name.startswith("mark_") for name in arrays)
    assert "values, queries and keys" in shown(SMALL, 0, "dense1")[1][0]["why"]


def test_values_have_their_mark_where_a_space_draws_queries_and_keys():
    x, y = two_top(np.random.default_rng(0))
    network = Attention(5, 8, 1, projection=False)
    experiment = Experiment(network, Init(Normal(1e-3)), Arrays(x, y), GD(0.1), 5, Loss("exponential"))
    session = Session()
    session.show(LiveRun(experiment, Seed(1, 1)), "", None)
    for layer, count in (("value1", 1), ("query1", 0)):
        header, arrays = session.choose_layer(layer)
        assert (header["forecast"], header["count"]) == ("sphere", count)
        assert [name for name in arrays if name.startswith("mark_")] == ["mark_value"]
        assert "head_cos_value" in session.frame({"at": 0, "settled": True}, float("inf"))[1]


@pytest.mark.parametrize("merged", ["0", "1"])
def test_regression_in_context_is_marked_by_its_eigenvectors_and_levels(merged):
    texts = CONTEXT | {"merged": merged}
    settings, layer = Settings.from_text(texts), "key_query1" if merged == "1" else "query1"
    _, (header, arrays), (_, frame) = shown(texts, 3, layer)
    data = settings.experiment().data
    axes = data.axes(settings.seeds)[[1, 0, 2]]  # the largest eigenvalue first
    name = layer[:-1]
    np.testing.assert_allclose(arrays[f"mark_{name}"], axes, atol=1e-6)
    levels = context_losses(data.eigenvalues, data.context)[-1 if merged == "1" else 1 :]  # merged: it falls once
    np.testing.assert_allclose(header["attention"]["levels"], levels)
    assert header["attention"]["mark"] == "eigenvector"
    assert frame[f"head_{name}"].shape == (3, 3 if merged == "1" else 1, 3)
    tops = np.linalg.svd(frame[f"head_{name}"])[2][:, 0]
    np.testing.assert_allclose(frame[f"head_cos_{name}"], np.abs(tops @ axes.T), atol=1e-5)
    assert frame["head_pattern"].shape == (3, 1, 10)


@pytest.mark.parametrize(("heads", "rank"), [(1, 1), (2, 1), (1, 2), (1, 3), (2, 2)])
def test_levels_are_those_that_so_many_heads_can_learn(heads, rank):
    """The last one is the least expected loss of matrices of their rank: best of all where eigenvectors decouple it."""
    experiment = Settings.from_text(CONTEXT).experiment()
    changed = experiment.replace(**{"network.heads": heads, "network.head_width": rank})
    levels, data = Heads.of(LiveRun(changed, Seed(1, 1)), "query1", {}).levels(), experiment.data
    best = context_weights(data.eigenvalues, data.context)
    sets = [kept for kept in product((0, 1), repeat=3) if sum(kept) <= heads * rank]
    losses = [context_loss(np.diag(best * kept), data.eigenvalues, data.context) for kept in sets]
    assert levels[-1] == pytest.approx(min(losses))
    assert len(levels) == max(map(sum, sets))


@pytest.mark.parametrize(
    "changes",
    [
        {"key_inputs": None},
        {"feed_forward": 4},
        {"hidden": (4,)},
        {"positions": True},
        {"fixed": ("query1",)},
        {"attention": "softmax"},
        {"projection": True, "residual": True},
    ],
)
def test_levels_are_those_of_the_network_of_theory_alone(changes):
    experiment = Settings.from_text(CONTEXT).experiment()
    assert Heads.of(LiveRun(experiment, Seed(1, 1)), "query1", {}).levels()
    other = LiveRun(experiment.replace(**{f"network.{name}": value for name, value in changes.items()}), Seed(1, 1))
    assert Heads.of(other, "query1", {}).levels() == []


def test_a_dense_network_has_no_heads():
    _, (header, arrays), (_, frame) = shown({"width": "9"}, 0, "dense1")
    assert header["attention"] is None
    assert not any(name.startswith(("head", "mark", "spectra")) for name in {**arrays, **frame})


def transformer(**changed):
    parts = {"vocabulary": 30, "positions": True, "depth": 2, "heads": 2, "feed_forward": 5, "residual": True} | changed
    network = Attention(4, 8, 30, norm="pre", **parts)
    data = AnchorFunctions(25, 30, 4, keys=(5, 20))
    return Experiment(network, Init(Normal(0.1)), data, GD(0.1), 6, Loss("cross_entropy"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("live", [True, False])
def test_each_layer_of_a_transformer_shows_its_block(live):
    experiment, seed = transformer(), Seed(1, 1)
    run = LiveRun(experiment, seed) if live else SavedRun(train(experiment, seeds=[seed]), seed)
    session = Session()
    session.show(run, "", None)
    for name in run.layers:
        header, arrays = session.choose_layer(name)
        header, block = header["attention"], 2 if name.endswith("2") else 1
        assert (header["block"], header["blocks"], header["heads"]) == (block, 2, 2)
        _, frame = session.frame({"at": 0, "settled": True}, 1.0)
        np.testing.assert_allclose(
            frame["head_query"].reshape(8, 8), run.first.parameters[f"query{block}.weight"], rtol=1e-6
        )
        assert frame["head_pattern"].shape == (2, 4 if block == 1 else 1, 4)
        np.testing.assert_allclose(frame["head_pattern"].sum(axis=-1), 1, rtol=1e-5)
        assert arrays["spectra"].shape[1] == 1 + 2 * 4 * 4  # heads, matrices, values: the product has rank 4


@pytest.mark.trials
def test_of_a_run_that_kept_some_layers_their_matrices_are_shown():
    experiment = transformer().replace(kept_layers=("query1", "value2"))
    run = SavedRun(train(experiment, seeds=1), Seed(0, 0))
    session = Session()
    session.show(run, "", None)
    for layer, names in (("query1", ["query"]), ("value2", ["value"])):
        header, _ = session.choose_layer(layer)
        assert [one["name"] for one in header["attention"]["values"]] == names
        assert "head_pattern" not in session.frame({"at": 6, "settled": True}, 1.0)[1]
    only = SavedRun(train(transformer().replace(kept_layers=("up1",)), seeds=1), Seed(0, 0))
    assert Heads.of(only, "up1", {}) is None


def test_of_large_matrices_some_rows_and_columns_are_drawn_and_all_singular_values():
    data = Arrays(np.random.default_rng(0).normal(size=(5, 3, 200)), np.ones(5))
    wide = Attention(3, 200, 1, heads=2, head_width=70)
    experiment = Experiment(wide, Init(Normal(0.1)), data, GD(0.1), 2)
    run = LiveRun(experiment, Seed(0, 0))
    heads = Heads.of(run, "query1", no_forecast(run.weights(run.first, "query1", None)).marks)
    drawn, matrices = heads.drawn(run.first), heads.matrices(run.first)
    assert drawn["head_query"].shape == (2, MOST_SIDE, MOST_SIDE)
    np.testing.assert_allclose(drawn["head_query"][1][-1, -1], matrices["query"][1][-1, -1], rtol=1e-6)
    product = matrices["query"][1].T @ matrices["key"][1]
    known = np.linalg.svd(product, compute_uv=False)[:TOP]
    np.testing.assert_allclose(heads.spectra(run.first)["product"][1], known, rtol=1e-9)
    assert heads.describe()[0]["matrices"][0] == {"name": "query", "rows": 70, "columns": 200}


def test_weights_of_zero_have_rank_zero_and_break_nothing():
    experiment = Settings.from_text(SMALL).experiment()
    run = LiveRun(experiment, Seed(0, 0))
    for name in ("query1.weight", "key1.weight"):
        run.first.parameters[name] = np.zeros((6, 6))
    heads = Heads.of(run, "query1", {})
    assert heads.measured(run.first, run.model(run.first))["head_rank_query"].tolist() == [0]
    assert heads.curve([run.first])[0, 1:7].tolist() == [0] * 6


def test_a_recording_keeps_the_block_once_for_all_its_layers(monkeypatch):
    from recordings import Opened

    for name, value in (("LEAST", 12), ("MOST", 12), ("MOMENTS", 4)):
        monkeypatch.setattr(_recorder, name, value)
    recorder = _recorder.Recorder()
    recorder.training("small", Settings.from_text(SMALL))
    recording = Opened(recorder.text(tour=False))
    (entry,) = recording.hello["recorded"]
    assert len({layer["heads"] for layer in entry["layers"]}) == 1
    settings = Settings.from_text(SMALL)
    trajectory = train(settings.experiment(steps=12), seeds=[settings.seeds])
    for number, layer in enumerate(entry["layers"]):
        frames = recording.frames(entry, number)
        assert [header["step"] for header, _ in frames] == [0, 4, 8, 12]
        for header, arrays in frames:
            known = trajectory.weights(layer["name"], header["step"])[0] if header["step"] in (0, 12) else None
            if known is not None:
                np.testing.assert_allclose(arrays["w"], known, rtol=2.0**-14)
            assert {"head_query", "head_key", "head_value", "head_pattern", "head_cos_value"} <= arrays.keys()
    spectra, last = recording.spectra(entry), trajectory.weights("query1", 12)[0]
    assert spectra[:, 0].tolist() == [0, 4, 8, 12]
    np.testing.assert_allclose(spectra[-1, 1:7], np.linalg.svd(last, compute_uv=False), rtol=2.0**-14)
