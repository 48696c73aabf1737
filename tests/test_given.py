"""Training from given weights: arrays, a model, models by seed, a file, a step of a run; scaled and with noise."""

import shutil

import numpy as np
import pytest

import condensation as c
from condensation._writing import write_tensors
from condensation.runs import run_folder

NETWORK = c.Dense((2, 4, 1), "tanh", output_bias=True)
DATA = c.Expression("x1 * x2", dim=2, n=12, low=-1, high=1)
BASE = c.Experiment(NETWORK, c.Init(c.Normal(0.3)), DATA, c.GD(0.1), 6, save=c.Every(3))
STREAM = np.random.default_rng(0)
PARAMETERS = {name: STREAM.normal(size=s) for layer in NETWORK.layers for name, s in layer.parameters.items()}
MODEL = c.Model(NETWORK, PARAMETERS)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return c.train(BASE, 3, out=folder), run_folder(folder, BASE)


def descend(parameters, x, y, rate, steps):
    """Gradient descent of a tanh network by hand."""
    w, b, a, o = (
        np.array(parameters[f"{n}"]) for n in ("dense1.weight", "dense1.bias", "output.weight", "output.bias")
    )
    for _ in range(steps):
        h = np.tanh(x @ w.T + b)
        error = (h @ a.T + o - y) / len(x)
        back = (error @ a) * (1 - h**2)
        a, o, w, b = a - rate * error.T @ h, o - rate * error.sum(0), w - rate * back.T @ x, b - rate * back.sum(0)
    return {"dense1.weight": w, "dense1.bias": b, "output.weight": a, "output.bias": o}


def test_training_starts_from_the_given_weights_and_goes_on_as_by_hand():
    trajectory = c.train(BASE.replace(init=c.Given(MODEL)), 2)
    for seed in (0, 1):
        np.testing.assert_array_equal(trajectory.weights("dense1", 0, seed), MODEL.weights("dense1"))
        by_hand = descend(PARAMETERS, *trajectory.data(seed), 0.1, 6)
        for name, value in trajectory.parameters_at(6, seed).items():
            np.testing.assert_allclose(value, by_hand[name], atol=1e-14)


def test_each_seed_goes_on_from_its_own_weights_whatever_changes_midway(run):
    first, _ = run
    changed = BASE.replace(init=c.Given(first.models(3)), optimizer=c.Adam(1e-2), loss=c.Loss(reduction="sum"))
    trajectory = c.train(changed, 3)
    for seed in range(3):
        np.testing.assert_array_equal(trajectory.weights("dense1", 0, seed), first.weights("dense1", 3, seed))
    plain = c.train(BASE.replace(init=c.Given(first.models(3)), steps=3), 3)  # descent has no memory
    np.testing.assert_array_equal(plain.weights("dense1", 3), first.weights("dense1", 6))
    with pytest.raises(c.InputError, match=r"weights are of the seeds '0, 1, 2', and there are none for Seed\(data=7"):
        c.train(changed, [7])


def test_weights_are_scaled_and_drawn_ones_added():
    noise = c.Init((c.Zeros(),), output=c.Normal(0.01))
    drawn = c.Given(MODEL, scale=(0.5, 2), drawn=noise).draw(NETWORK, np.random.default_rng(3))
    np.testing.assert_array_equal(drawn["dense1.weight"], 0.5 * PARAMETERS["dense1.weight"])
    np.testing.assert_array_equal(drawn["dense1.bias"], 0.5 * PARAMETERS["dense1.bias"])
    alone = noise.draw(NETWORK, np.random.default_rng(3))
    np.testing.assert_array_equal(drawn["output.weight"], 2 * PARAMETERS["output.weight"] + alone["output.weight"])
    assert np.any(alone["output.weight"])


def test_layers_that_are_missing_are_drawn():
    head = {name: value for name, value in PARAMETERS.items() if name.startswith("dense1")}
    three = c.Dense((2, 4, 3))
    given = c.Given(head, drawn=c.Init(c.Zeros(), output=c.Normal(0.1)))
    experiment = c.Experiment(three, given, c.Arrays(np.ones((5, 2)), np.ones((5, 3))), c.GD(0.1), 1)
    start = experiment.initial_model(2)
    np.testing.assert_array_equal(start.weights("dense1"), MODEL.weights("dense1"))
    assert start.parameters["output.weight"].shape == (3, 4)
    assert np.any(start.parameters["output.weight"] != experiment.initial_model(3).parameters["output.weight"])


def test_a_split_unit_is_trained_as_the_network_it_came_from():
    wide = c.embed(MODEL, "dense1", 1, shares=(0.3, 0.7))
    experiment = c.Experiment(wide.network, c.Given(wide), DATA, c.GradientFlow(0.1), 2)
    x, y = DATA.draw(c.Seed(0, 0))
    np.testing.assert_allclose(c.train(experiment).loss[0, 0], c.derivatives.loss_of(MODEL, x, y), rtol=1e-12)


def test_a_network_with_batch_norms_keeps_its_statistics():
    data = c.Arrays(STREAM.normal(size=(6, 1, 8, 8)), np.eye(2)[[0, 1] * 3])
    experiment = c.Experiment(
        c.ResNet((1, 8, 8), 2, hidden=(3,), channels=(2,), depth=1, stem="small"),
        c.Init(c.He()),
        data,
        c.GD(0.1),
        2,
        c.Loss("cross_entropy"),
    )
    first = c.train(experiment)
    again = experiment.replace(init=c.Given(first.models(2), scale=0.5)).initial_model(0)
    for norm in experiment.network.norms:
        for name in norm.parameters | norm.statistics:
            np.testing.assert_array_equal(again.parameters[name], first.model(2, 0).parameters[name])


def test_files_runs_and_models_give_the_same_experiment(run, tmp_path):
    first, folder = run
    first.model(6, 1).save(tmp_path / "model.safetensors")
    np.savez(tmp_path / "model.npz", **first.model(6, 1).parameters)
    one = [
        c.Given(first.model(6, 1)),
        c.Given(str(tmp_path / "model.safetensors")),
        c.Given(tmp_path / "model.npz"),
        c.Given(c.Weights.of_run(folder, 6, 1)),
    ]
    every = [c.Given(first.models(6)), c.Given(c.Weights.of_run(folder, 6))]
    for same in (one, every):
        assert len({BASE.replace(init=given).fingerprint() for given in same}) == 1
        assert len({BASE.replace(init=given) for given in same}) == 1
    for given in (*one[1:], every[1]):
        experiment = BASE.replace(init=given)
        assert c.Experiment.from_toml(experiment.to_toml()) == experiment
    with pytest.raises(c.InputError, match=r"those of init\.weights are in no file: write them .* Weights\.load"):
        BASE.replace(init=one[0]).to_toml()


def test_a_run_keeps_its_given_weights_and_a_sweep_too(run, tmp_path):
    first, _ = run
    experiment = BASE.replace(init=c.Given(first.models(6)))
    trained = c.train(experiment, 2, out=tmp_path)
    loaded = c.load_run(run_folder(tmp_path, experiment))
    assert loaded.experiment == experiment
    np.testing.assert_array_equal(loaded.weights("dense1", 6), trained.weights("dense1", 6))
    table = c.sweep(experiment, {"init.scale": (1.0, 0.5)}, seeds=2, out=tmp_path / "sweep")
    rows = table.rows.to_pylist()
    assert [row["loss"] for row in rows if row["init.scale"] == 1.0] == trained.loss[:, -1].tolist()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"dense1.weight": np.zeros((4, 2))}, "do not fit the network: the parameter dense1.bias is missing"),
        (PARAMETERS | {"dense1.weight": np.zeros((4, 3))}, r"must have the shape \(4, 2\), not \(4, 3\)"),
        (PARAMETERS | {"dense2.weight": np.zeros(3)}, "unknown parameter 'dense2.weight'; did you mean"),
        (PARAMETERS | {"dense1.bias": np.full(4, np.nan)}, "of 'dense1.bias' must be finite real numbers"),
        (PARAMETERS | {"dense1.bias": "wide"}, "of 'dense1.bias' must be an array of numbers"),
        ({}, "weights are arrays by name, a Model, or models by seed, not {}"),
        ("nothing.npz", "there is no file nothing.npz"),
        (7, "weights are arrays by name, a Model, or models by seed, not 7"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights, said):
    with pytest.raises(c.InputError, match=said):
        BASE.replace(init=c.Given(weights))


def test_steps_seeds_and_folders_that_are_not_there_are_refused(run, tmp_path):
    _, folder = run
    for step, seed, said in (
        (5, None, r"step 5 was not saved in .*; saved are \(0, 3, 6\)"),
        (6, 9, "no finished Seed"),
    ):
        with pytest.raises(c.InputError, match=said):
            c.Weights.of_run(folder, step, seed)
    with pytest.raises(c.InputError, match="there is no file"):
        c.Weights.of_run(tmp_path, 6)
    with pytest.raises(c.InputError, match="3 scales are given, and the network has 2 layers"):
        BASE.replace(init=c.Given(MODEL, scale=(1, 1, 1)))
    changed = BASE.replace(init=c.Given(c.Weights.of_run(folder, 6))).to_toml().replace('sha256 = "', 'sha256 = "0')
    with pytest.raises(c.InputError, match=r"the weights of init\.weights are not those that this experiment used"):
        c.Experiment.from_toml(changed)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("{}", "was not written by condensation"),
        ('{"format": 1, "fingerprint": "F", "seeds": 3}', "is not the file of a seed: its field seeds is 3"),
        ("[1, 2]", "was not written by condensation"),
    ],
)
def test_a_strangers_file_of_seeds_gets_a_sentence(run, tmp_path, header, said):
    first, folder = run
    copy = shutil.copytree(folder, tmp_path / "copy")
    for file in copy.glob("*.safetensors"):
        write_tensors(file, {}, {"condensation": header.replace('"F"', f'"{first.experiment.fingerprint()}"')})
    with pytest.raises(c.InputError, match=said):
        c.Weights.of_run(copy, 6)


def test_opening_a_strangers_run_reads_no_weights_from_elsewhere(run, tmp_path):
    first, _ = run
    experiment = BASE.replace(init=c.Given(first.models(6)))
    plain = experiment.to_plain_at(lambda arrays: {"file": "../outside.safetensors"})
    from condensation._functions import opening

    with opening(trust=False), pytest.raises(c.InputError, match="not in the folder that is opened"):
        c.Experiment.from_plain(plain, tmp_path)
    elsewhere = experiment.to_plain_at(lambda arrays: {"run": str(tmp_path), "step": 6})
    with opening(trust=False), pytest.raises(c.InputError, match="outside of the folder that is opened"):
        c.Experiment.from_plain(elsewhere, tmp_path)
