"""Initialization: the std of each law, antisymmetric pairs, seeds, and what is refused."""

import numpy as np
import pytest

from condensation import (  # fmt: skip
    GD,
    At,
    Conv,
    Dense,
    Experiment,
    FanOutPower,
    Glorot,
    GradientFlow,
    He,
    Init,
    InputError,
    LeCun,
    Normal,
    PyTorchDefault,
    Seed,
    Uniform,
    WidthPower,
    Zeros,
    sine_sum,
    train,
)


@pytest.mark.parametrize(
    ("law", "hidden", "output", "bias"),
    [
        (Normal(0.005), 0.005, 0.005, 0.005),
        (FanOutPower(1.5), 300**-1.5, 20**-1.5, 300**-1.5),
        (WidthPower(0.7), 300**-0.7, 300**-0.7, 300**-0.7),
        (Glorot(), (2 / 500) ** 0.5, (2 / 320) ** 0.5, 0),
        (He(), (2 / 200) ** 0.5, (2 / 300) ** 0.5, 0),
        (LeCun(), 200**-0.5, 300**-0.5, 0),
        (Glorot(uniform=True), (2 / 500) ** 0.5, (2 / 320) ** 0.5, 0),
        (He(uniform=True), (2 / 200) ** 0.5, (2 / 300) ** 0.5, 0),
        (LeCun(uniform=True), 200**-0.5, 300**-0.5, 0),
        (PyTorchDefault(), 600**-0.5, 900**-0.5, 600**-0.5),
        (Uniform(0.3), 0.3 / 3**0.5, 0.3 / 3**0.5, 0.3 / 3**0.5),
    ],
)
def test_each_law_has_its_std(law, hidden, output, bias):
    drawn = Init(law).draw(Dense((200, 300, 20)), np.random.default_rng(0))
    assert np.std(drawn["dense1.weight"]) == pytest.approx(hidden, rel=0.02)
    assert np.std(drawn["output.weight"]) == pytest.approx(output, rel=0.04)
    assert np.std(drawn["dense1.bias"]) == pytest.approx(bias, rel=0.2)


def test_a_uniform_law_fills_its_interval():
    drawn = Init(Uniform(0.3)).draw(Dense((200, 300, 20)), np.random.default_rng(0))["dense1.weight"]
    assert np.abs(drawn).max() <= 0.3
    counts = np.histogram(drawn, 10, (-0.3, 0.3))[0]
    np.testing.assert_allclose(counts, drawn.size / 10, rtol=0.05)


def test_the_law_of_pytorch_is_that_of_its_layers():
    """The largest weights of many, and zero mean: torch.nn.Linear and Conv2d draw from the same interval."""
    torch = pytest.importorskip("torch")
    conv = Conv((3, 8, 8), channels=(400,), kernel=3, outputs=5, hidden=(100,))
    ours = Init(PyTorchDefault()).draw(conv, np.random.default_rng(0))
    layer = torch.nn.Conv2d(3, 400, 3)
    for name, theirs in (("conv1.weight", layer.weight), ("conv1.bias", layer.bias)):
        theirs = theirs.detach().numpy()
        assert np.abs(ours[name]).max() <= 27**-0.5
        assert np.abs(theirs).max() <= 27**-0.5
        assert np.std(ours[name]) == pytest.approx(np.std(theirs), rel=0.1)


@pytest.mark.parametrize(
    ("law", "theirs"), [(He(uniform=True), "kaiming_uniform_"), (Glorot(uniform=True), "xavier_uniform_")]
)
def test_a_uniform_law_has_the_bound_of_pytorchs(law, theirs):
    torch = pytest.importorskip("torch")
    ours = Init(law).draw(Dense((30, 500, 20)), np.random.default_rng(0))["dense1.weight"]
    options = {"nonlinearity": "relu"} if "kaiming" in theirs else {}
    drawn = getattr(torch.nn.init, theirs)(torch.empty(500, 30), **options).numpy()
    assert np.abs(ours).max() == pytest.approx(np.abs(drawn).max(), rel=0.01)
    assert np.histogram(ours, 5)[0].min() > 0.9 * ours.size / 5


def norms(network, drawn):
    """|w| with the bias, and |a| over outputs and places, of each unit."""
    hidden, output = network.layers
    w = hidden.units(drawn, "filter" if hidden.is_convolution else None)
    a = drawn["output.weight"].reshape(output.weight[0], len(w), -1).transpose(1, 0, 2).reshape(len(w), -1)
    return np.linalg.norm(w, axis=1), np.linalg.norm(a, axis=1)


TWO_LAYERS = [Dense((3, 40, 1), "relu"), Dense((3, 40, 2), bias=False), Conv((1, 5, 5), (40,), 3, 2)]


@pytest.mark.parametrize("network", TWO_LAYERS, ids=lambda network: network.describe())
def test_balanced_and_dominated_units(network):
    hidden, output = network.layers
    std = 1e-3 * (hidden.size / output.size) ** 0.5  # so that |a| is like |w|
    plain, balanced, dominated = (
        Init(Normal(1e-3), output=Normal(std), balance=balance).draw(network, np.random.default_rng(0))
        for balance in (None, "balanced", "dominated")
    )
    w, a = norms(network, plain)
    assert ((a < w).any(), (a > w).any()) == (True, True)
    for drawn in (balanced, dominated):
        np.testing.assert_array_equal(drawn["output.weight"] > 0, plain["output.weight"] > 0)  # random signs, as drawn
        assert all((drawn[name] == plain[name]).all() for name in plain if name != "output.weight")
    np.testing.assert_allclose(norms(network, balanced)[1], w, rtol=1e-12)
    np.testing.assert_allclose(norms(network, dominated)[1], np.maximum(a, w), rtol=1e-12)


def test_balance_of_tiny_weights_and_of_pairs():
    init = Init(Normal(1e-200), balance="balanced", antisymmetric=True)
    drawn = init.draw(Dense((2, 6, 1), "relu"), np.random.default_rng(0))
    scaled = {name: 1e200 * value for name, value in drawn.items()}
    np.testing.assert_allclose(*norms(Dense((2, 6, 1)), scaled), rtol=1e-12)
    np.testing.assert_array_equal(drawn["output.weight"][:, 3:], -drawn["output.weight"][:, :3])


@pytest.mark.trials
@pytest.mark.parametrize("balance", ["balanced", "dominated"])
def test_gradient_flow_conserves_the_balance_of_relu(balance):
    """|w_j|^2 - |a_j|^2 of each unit over a whole trajectory, while |w_j| itself changes; with tanh it changes too."""
    data, drifts = sine_sum(1, 2, 0.5, dim=3, n=20, low=-1, high=1), {}
    for activation in ("relu", "tanh"):
        network = Dense((3, 6, 1), activation)
        init = Init(Normal(0.5), output=Normal(0.8), balance=balance)
        run = train(Experiment(network, init, data, GradientFlow(0.1), 60, save=At((0, 5, 20, 60))), 1)
        pairs = [norms(network, run.parameters_at(step, 0)) for step in run.saved.tolist()]
        gaps = np.array([w**2 - a**2 for w, a in pairs])
        assert np.abs(pairs[-1][0] - pairs[0][0]).max() > 0.05
        drifts[activation] = np.abs(gaps - gaps[0]).max()
        if balance == "balanced":
            np.testing.assert_allclose(gaps[0], 0, atol=1e-14)
        else:
            assert gaps[0].max() < 1e-14
    assert drifts["relu"] < 1e-6
    assert drifts["tanh"] > 1e-3


@pytest.mark.parametrize(
    "law", [He(), He(uniform=True), Glorot(uniform=False), LeCun(), PyTorchDefault(), Uniform(0.25)]
)
def test_a_law_comes_back_from_toml(law):
    data = sine_sum(1, 1, 0, dim=2, n=5, low=-1, high=1)
    experiment = Experiment(Dense((2, 4, 1)), Init(law, output=Zeros()), data, GD(0.1), 1)
    again = Experiment.from_toml(experiment.to_toml())
    assert again == experiment
    assert again.init.hidden == law
    assert again.fingerprint() == experiment.fingerprint()


def test_a_balance_comes_back_from_toml_and_is_told():
    data = sine_sum(1, 1, 0, dim=2, n=5, low=-1, high=1)
    plain = Experiment(Dense((2, 4, 1)), Init(Normal(0.1)), data, GD(0.1), 1)
    experiment = plain.replace(**{"init.balance": "dominated"})
    assert Experiment.from_toml(experiment.to_toml()) == experiment
    assert experiment.fingerprint() != plain.fingerprint()
    assert experiment.describe()["initialization"] == ("N(0, 0.1²); output weights raised to |a| ≥ |w|, biases counted")


def test_stds_by_layer_and_by_group():
    network = Dense((50, 60, 70, 80))
    drawn = Init((Normal(0.1), Normal(0.2)), output=Normal(3.0)).draw(network, np.random.default_rng(0))
    stds = [np.std(drawn[f"{layer.name}.weight"]) for layer in network.layers]
    np.testing.assert_allclose(stds, [0.1, 0.2, 3.0], rtol=0.05)


@pytest.mark.parametrize(
    "network", [Dense((5, 50, 1), "sigmoid", output_bias=True), Dense((5, 8, 8, 8, 1), residual=True)]
)
def test_an_antisymmetric_initialization_has_output_zero(network):
    experiment = Experiment(
        network, Init(Normal(1.0), antisymmetric=True), sine_sum(1, 1, 0, dim=5, n=8, low=-1, high=1), GD(0.1), 1
    )
    trajectory = train(experiment, 1)
    x = np.random.default_rng(0).normal(size=(30, 5))
    assert np.abs(trajectory.output(x, 0, 0)).max() < 1e-12
    assert np.abs(trajectory.output(x, 1, 0)).max() > 1e-3


def test_data_and_init_seeds_are_apart():
    experiment = Experiment(
        Dense((2, 4, 1)), Init(Normal(0.1)), sine_sum(1, 1, 0, dim=2, n=5, low=-1, high=1), GD(0.1), 1
    )
    one, other = (train(experiment, [Seed(data=0, init=k)]) for k in (0, 1))
    np.testing.assert_array_equal(one.data(Seed(0, 0))[0], other.data(Seed(0, 1))[0])
    assert not np.array_equal(one.weights(1, 0), other.weights(1, 0))


def test_an_output_layer_of_zeros_and_a_law_for_each_convolution():
    network = Conv((1, 8, 8), (4, 4), 3, 2)
    init = Init(Zeros(), convolution=(Normal(1.0), Normal(1e-3)))
    drawn = init.draw(network, np.random.default_rng(0))
    assert not drawn["output.weight"].any()
    assert 0.5 < drawn["conv1.weight"].std() < 2
    assert drawn["conv2.weight"].std() == pytest.approx(1e-3, rel=0.3)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Normal(0), "std must be a positive finite number, not 0"),
        (lambda: Normal(float("nan")), "std must be a positive finite number, not nan"),
        (
            lambda: Init(0.005),
            "or He or LeCun or PyTorchDefault or ChannelPower or Zeros or OwnLaw or a function or a list",
        ),
        (lambda: Uniform(-1.0), "high must be a positive finite number, not -1.0"),
        (lambda: WidthPower(float("nan")), "gamma must be a finite number"),
        (lambda: Init(WidthPower(400)).draw(Dense((2, 90, 1)), np.random.default_rng(0)), "the std of dense1"),
        (lambda: Init((Normal(1.0),) * 3).laws(Dense((2, 2, 1))), "laws for 3 hidden layers, the network has 1"),
        (lambda: Init(Zeros()).laws(Dense((2, 2, 1))), "only the output layer can be zero"),
        (
            lambda: Init(Normal(1.0), convolution=(Normal(1.0),) * 2).laws(Conv((1, 8, 8), (4,), 3, 2)),
            "laws for 2 convolution layers, the network has 1",
        ),
        (lambda: Init(Normal(1.0), balance="equal"), "unknown balance 'equal'; known: balanced, dominated"),
        (
            lambda: Init(Normal(1.0), balance="balanced").laws(Dense((2, 2, 2, 1))),
            "a balanced initialization is for one hidden layer, and this network has 2",
        ),
        (
            lambda: Init(Normal(1.0), output=Zeros(), balance="dominated").laws(Dense((2, 2, 1))),
            "a dominated initialization scales weights, and those of zero cannot be scaled",
        ),
        (
            lambda: Init(Zeros(), output=Normal(1.0), balance="balanced").laws(Dense((2, 2, 1)), zeros=True),
            "a balanced initialization scales weights, and those of zero cannot be scaled",
        ),
        (lambda: Init(Normal(1.0), antisymmetric=True).draw(Dense((2, 3, 1)), np.random.default_rng(0)), "even width"),
    ],
)
def test_an_initialization_that_cannot_be_is_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()
