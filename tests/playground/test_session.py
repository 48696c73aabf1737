"""A session's answers against the library's own numbers."""

import io
import time
from contextlib import redirect_stdout

import numpy as np
import pytest

from condensation import (  # fmt: skip
    AdamW,
    At,
    Conv,
    Experiment,
    Init,
    InputError,
    Loss,
    Normal,
    Points,
    Seed,
    find_lines,
    reduce,
    sweep,
    train,
)
from condensation.measure import cosine_similarity
from condensation.measure._similarity import norms
from condensation.networks import Model
from condensation.playground._library import Library
from condensation.playground._session import Session
from condensation.playground._settings import Settings
from condensation.prediction import predict

NOTHING_LONG = float("inf")


def opened(**settings):
    session = Session()
    header, arrays = session.open(settings)
    return session, header, arrays


def frame(session, **request):
    header, arrays = session.frame(request, NOTHING_LONG)
    return header, arrays


def reach(session, step, **request):
    """The frame at a step, asked for until training is there."""
    while (found := frame(session, at=step, **request))[0]["step"] < step:
        pass
    return found


@pytest.fixture(scope="module")
def pair():
    settings = Settings(width=30, seed=4)
    experiment = settings.experiment(steps=60).replace(**{"save.count": 7})
    return settings, train(experiment, seeds=[4])


def test_a_frame_is_what_train_and_the_measures_give(pair):
    settings, trajectory = pair
    session, header, arrays = opened(**settings.to_text())
    assert header["fingerprint"] == settings.experiment().fingerprint()
    np.testing.assert_allclose(arrays["x"], trajectory.data(4)[0], rtol=1e-6)
    for step in (0, 10, 60):
        seen, drawn = reach(session, step, settled=True)
        weights, model = trajectory.weights(1, step, 4), trajectory.model(step, 4)
        np.testing.assert_allclose(drawn["w"], weights, rtol=1e-6)
        np.testing.assert_allclose(drawn["a"], model.parameters["output.weight"][0], rtol=1e-6)
        np.testing.assert_allclose(drawn["amplitude"], norms(weights), rtol=1e-6)
        lines = find_lines(weights)
        assert (seen["lines"]["count"], seen["lines"]["condensed"]) == (lines.count, lines.condensed)
        assert seen["lines"]["k_eff"] == pytest.approx(lines.k_eff)
        np.testing.assert_array_equal(drawn["label"], lines.labels)
        np.testing.assert_allclose(drawn["cos"] / 127, cosine_similarity(weights), atol=0.5 / 127 + 1e-9)
        loss = trajectory.loss[0, list(trajectory.recorded).index(step)]
        assert seen["loss"] == pytest.approx(loss, rel=1e-12)
        assert seen["ratio"] == pytest.approx(loss / trajectory.loss[0, 0])


def test_lines_and_fates_are_those_predicted(pair):
    settings, trajectory = pair
    session, _, _ = opened(**settings.to_text())
    header, arrays = session.choose_layer("dense1")
    known = predict(trajectory.experiment, 4)["dense1"]
    assert header["count"] == known.directions.attracts.sum() == 2
    np.testing.assert_allclose(arrays["lines"], known.directions.directions, atol=1e-6)
    np.testing.assert_array_equal(arrays["fate"], known.fates.lines)
    np.testing.assert_array_equal(arrays["fate_sign"], known.fates.signs)
    session.prepare()
    seen, _ = reach(session, 400, settled=True)
    assert seen["agree"] > 0.95
    assert seen["reduced"]["after"] == 2
    assert seen["reduced"]["error"] < 0.05


def test_the_reduced_network_is_the_librarys(pair):
    settings, _ = pair
    session, _, opening = opened(**settings.to_text())
    seen, arrays = frame(session, steps=0, settled=True, reduce=3)
    experiment, seed = settings.experiment(), Seed(4, 4)
    model = Model(experiment.network, experiment.init.draw(experiment.network, seed.init_stream()))
    small = reduce(model, experiment.data.draw(seed)[0], units=3)
    assert (seen["reduced"]["after"], seen["reduced"]["error"]) == (3, pytest.approx(small.centred_error))
    grid = np.asarray(opening["grid"], float)[:, None]
    np.testing.assert_allclose(arrays["reduced"], small.model(grid)[:, 0], rtol=1e-3, atol=1e-9)


def test_rewinding_keeps_the_start_and_playing_again_the_way():
    session, _, _ = opened(width="20")
    first = frame(session, steps=0)[1]["w"]
    forth = [frame(session, steps=7)[1]["w"] for _ in range(5)]
    header, back = frame(session, at=0)
    assert (header["step"], header["end"]) == (0, 35)
    np.testing.assert_array_equal(back["w"], first)
    for before in forth:
        np.testing.assert_array_equal(frame(session, steps=7)[1]["w"], before)
    assert frame(session, steps=7)[0]["step"] == 42


def test_curves_come_once_each():
    session, _, arrays = opened(width="20")
    steps = arrays["curve"][:, 0].tolist()
    for request in ({"steps": 5}, {"steps": 5}, {"at": 0}, {"steps": 5}, {"steps": 20}, {"at": 25}):
        steps += frame(session, **request)[1]["curve"][:, 0].tolist()
    assert steps == [0, 5, 10, 25]  # what was seen before is gone through again, and not told again
    _, layer = session.choose_layer("dense1")
    np.testing.assert_array_equal(layer["curve"][:, 0], steps)


def test_divergence_is_told_and_the_session_lives():
    session, _, _ = opened(optimizer="gd", rate="100", std_w="1", std_a="1", width="50", formula="100*x", layers="relu")
    for _ in range(100):
        header, arrays = frame(session, steps=50)
        if header["diverged"] is not None:
            break
    assert "diverged" in header["message"]
    assert np.isfinite(arrays["w"]).all()
    assert session.open({"width": "5"})[0]["kind"] == "opened"
    assert frame(session, steps=3)[0]["message"] == ""


@pytest.mark.parametrize(
    "request_",
    [
        *({"steps": -1}, {"steps": 10**9}, {"steps": "3"}, {"at": -5}, {"at": 1.5}, {"at": "x"}),
        *({"reduce": "z"}, {"reduce": float("inf")}, {"reduce": 0}),
    ],
)
def test_bad_requests_are_refused(request_):
    session, _, _ = opened(width="5")
    with pytest.raises(InputError):
        session.frame(request_, NOTHING_LONG)
    assert frame(session, steps=1)[0]["step"] == 1


def test_nothing_is_shown_before_something_is_opened():
    with pytest.raises(InputError, match="nothing is opened"):
        Session().frame({"steps": 1}, 1.0)


@pytest.mark.trials
@pytest.mark.parametrize(
    "settings",
    [
        {"formula": "1e200*x"},
        {
            "formula": "100*x",
            "low": "-900",
            "high": "900",
            "layers": "relu",
            "std_w": "10",
            "std_a": "10",
            "rate": "100",
        },
    ],
)
def test_no_frame_takes_long_whatever_is_asked(settings):
    """Targets beyond measure are refused; a flow that would take for ever has diverged."""
    session = Session()
    asked = {"optimizer": "flow", "width": "100", "n": "400", **settings}
    if "1e200" in settings["formula"]:
        with pytest.raises(InputError, match="targets reach"):
            session.open(asked)
        return
    session.open(asked)
    session.prepare()
    took = []
    for _ in range(3):
        began = time.thread_time()
        header, _ = session.frame({"steps": 1000}, 0.02)
        took.append(time.thread_time() - began)
    assert max(took) < 60  # of the processor; a flow without a bound takes for ever
    assert header["diverged"] is None or "diverged" in header["message"]


@pytest.mark.trials
def test_neurons_with_a_single_input_are_shown_without_lines(tmp_path):
    base = Settings(width=6).experiment(steps=4)
    table = sweep(base, {"network.bias": [True, False]}, "change", out=tmp_path / "single")
    session = Session(Library([tmp_path / "single"]))
    header, arrays = session.map("single")
    assert (header["ys"], arrays["values"].shape, len(table)) == ([""], (1, 2), 2)
    session.open_cell("single", 1)
    assert session.choose_layer("dense1")[0]["inputs"] == 1
    seen, drawn = frame(session, steps=2, settled=True)
    assert seen["lines"] is None
    assert drawn["xy"].shape == (6, 2)


@pytest.mark.trials
@pytest.mark.parametrize("optimizer", ["adam", "normalised_gd"])
def test_what_is_exported_trains_to_the_same_weights(optimizer):
    session, _, _ = opened(width="12", layers="tanh,relu", optimizer=optimizer, seed="7")
    shown = reach(session, 25)[1]
    header, _ = session.export()
    experiment = Experiment.from_toml(header["toml"])
    weights = train(experiment, seeds=[7]).weights("dense1", 25, 7)
    np.testing.assert_allclose(shown["w"], weights, rtol=1e-6)
    names: dict = {}
    with redirect_stdout(io.StringIO()) as printed:
        exec(header["python"], names)
    np.testing.assert_array_equal(names["trajectory"].weights("dense1", 25)[0], weights)
    assert names["experiment"] == experiment
    assert "k_eff" in printed.getvalue()


@pytest.mark.trials
@pytest.mark.parametrize(
    ("settings", "layer", "view", "kind"),
    [
        ({"layers": "tanh", "optimizer": "adam"}, "dense1", None, "cube"),
        ({"layers": "sigmoid", "optimizer": "adam"}, "dense1", None, "cube"),
        ({"layers": "softplus", "optimizer": "flow"}, "dense1", None, "sphere"),
        ({"layers": "relu", "optimizer": "flow"}, "dense1", None, "orientations"),
        ({"layers": "relu", "optimizer": "adam"}, "dense1", None, None),
        ({"layers": "tanh,x_tanh,tanh", "residual": "1"}, "dense2", None, "sphere"),
        ({"inputs": "2", "formula": "x1*x2", "n": "50", "spacing": "random"}, "dense1", None, "sphere"),
        ({"data": "digits", "n": "40", "layers": "tanh"}, "conv1", "filter", "kernels"),
        ({"data": "digits", "n": "40", "layers": "tanh"}, "conv1", "kernel", "kernels"),
        ({"data": "digits", "n": "40", "layers": "relu"}, "conv1", None, None),
    ],
)
def test_every_kind_of_layer_is_shown(settings, layer, view, kind):
    session, _, _ = opened(width="10", **settings)
    told, arrays = session.choose_layer(layer, view)
    assert told["forecast"] == kind
    assert bool(told["why"]) == (kind is None)
    np.testing.assert_allclose(arrays["basis"] @ arrays["basis"].T, np.eye(2), atol=1e-6)
    seen, drawn = frame(session, steps=3, settled=True)
    assert seen["step"] == 3
    assert drawn["xy"].shape == (told["units"], 2)
    assert sorted(drawn["order"].tolist()) == list(range(told["units"]))
    with pytest.raises(InputError, match="unknown layer"):
        session.choose_layer("nowhere")


@pytest.mark.parametrize(("optimizer", "on_the_cube"), [("gd", False), ("adam", True)])
def test_filters_have_the_lines_of_their_optimizer(optimizer, on_the_cube):
    session, _, _ = opened(data="digits", n="40", layers="tanh", width="10", optimizer=optimizer)
    _, arrays = session.choose_layer("conv1", "filter")
    lines = arrays["lines"]
    same_size = np.abs(lines).max(axis=1) < np.abs(lines)[np.abs(lines) > 1e-6].min() * 1.001
    assert same_size.all() == on_the_cube


def test_a_saved_run_is_scrubbed(tmp_path):
    experiment = Settings(width=8).experiment(steps=20).replace(**{"save.count": 5})
    trajectory = train(experiment, seeds=2, out=tmp_path / "runs")
    session = Session(Library([tmp_path / "runs"]))
    (name,) = [entry["name"] for entry in session.library.listed()]
    header, arrays = session.open_run(name, 1)
    assert (header["live"], header["last"], header["steps"]) == (False, 20, [0, 5, 10, 15, 20])
    assert arrays["curve"][:, 0].tolist() == [0, 5, 10, 15, 20]
    for request, step in (({"at": 11}, 10), ({"steps": 5}, 15), ({"steps": 1}, 20), ({"steps": 1}, 20)):
        seen, drawn = frame(session, **request)
        assert seen["step"] == step
        np.testing.assert_allclose(drawn["w"], trajectory.weights(1, step, 1), rtol=1e-6)
    assert seen["ended"]
    assert session.choose_layer("dense1")[0]["count"] == 2
    with pytest.raises(InputError, match="seeds 0 to 1"):
        session.open_run(name, 2)
    with pytest.raises(InputError, match="unknown run"):
        session.open_run("../../etc")


def test_kernels_of_one_dimension_are_shown_or_a_sentence_says_why_not(tmp_path):
    """With labels, label noise, AdamW and a balance: the run, its export and, where there is one, its prediction."""
    rows = tuple((*map(float, x), float(k % 2)) for k, x in enumerate(np.random.default_rng(0).normal(size=(8, 5))))
    made = Experiment(
        Conv((5,), (6,), 3, 2, pooling="sum", pool_size="all"), Init(Normal(0.1), balance="balanced"), Points(rows),
        AdamW(1e-3), 4, Loss("cross_entropy"), save=At((0, 4)), label_noise=0.1,
    )  # fmt: skip
    for pooling, why in (("sum", ""), ("max", "there is no matrix Z behind max pooling, which is not linear")):
        run = train(made.replace(**{"network.pooling": pooling}), 1, out=tmp_path / pooling)
        session = Session(Library([tmp_path / pooling]))
        (name,) = [entry["name"] for entry in session.library.listed()]
        header, arrays = session.open_run(name, 0)
        assert (header["classes"], arrays["y"].shape) == (True, (8, 2))
        told, _ = session.choose_layer("conv1", "kernel")
        assert (told["image"], told["forecast"]) == ([1, 3, 1], None if why else "kernels")
        assert told["why"].startswith(why)
        assert bool(told["why"]) == bool(why)
        seen, drawn = frame(session, at=4)
        assert seen["step"] == 4
        np.testing.assert_allclose(drawn["w"], run.weights("conv1", 4, 0), rtol=1e-6)
        names: dict = {}
        with redirect_stdout(io.StringIO()):
            exec(session.export()[0]["python"], names)
        assert names["experiment"] == run.experiment


@pytest.mark.trials
def test_a_sweep_is_a_map_whose_cells_can_be_opened(tmp_path):
    experiment = Settings(width=8).experiment(steps=10)
    axes = {"init.hidden.std": [1e-3, 1e-2, 1e-1], "optimizer.learning_rate": [1e-3, 2e-3]}
    table = sweep(experiment, axes, "lines", seeds=2, out=tmp_path / "swept")
    session = Session(Library([tmp_path / "swept"]))
    header, arrays = session.map("swept")
    assert (header["x"], header["y"], header["x_log"]) == (*axes, True)
    known, xs, ys = table.map(header["quantity"], *axes)
    np.testing.assert_allclose(arrays["values"], known, rtol=1e-6)
    assert (header["xs"], header["ys"]) == (xs.tolist(), ys.tolist())
    _, other = session.map("swept", "dense1.k_eff", x="optimizer.learning_rate", y="init.hidden.std")
    np.testing.assert_array_equal(other["cells"], arrays["cells"].T)
    cell = int(arrays["cells"][1, 2])  # second rate, third std
    opening, _ = session.open_cell("swept", cell, 1)
    assert opening["live"]
    assert opening["fingerprint"] == list(table.sweep.cells())[cell].fingerprint
    weights = train(list(table.sweep.cells())[cell].experiment, seeds=[1]).weights(1, 10, 1)
    np.testing.assert_allclose(frame(session, at=10)[1]["w"], weights, rtol=1e-6)
    with pytest.raises(InputError, match="cells 0 to 5"):
        session.open_cell("swept", 6)
    with pytest.raises(InputError, match="unknown quantity"):
        session.map("swept", "nothing")


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(InputError, match="neither a run nor a sweep"):
        Library([tmp_path])
