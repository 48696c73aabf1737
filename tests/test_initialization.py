"""Initialization: the std of each law, antisymmetric pairs, seeds, and what is refused."""

import numpy as np
import pytest

from condensation import (  # fmt: skip
    GD,
    Conv,
    Dense,
    Experiment,
    FanOutPower,
    Glorot,
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


@pytest.mark.parametrize("law", [He(), LeCun(), PyTorchDefault(), Uniform(0.25)])
def test_a_law_comes_back_from_toml(law):
    data = sine_sum(1, 1, 0, dim=2, n=5, low=-1, high=1)
    experiment = Experiment(Dense((2, 4, 1)), Init(law, output=Zeros()), data, GD(0.1), 1)
    again = Experiment.from_toml(experiment.to_toml())
    assert again == experiment
    assert again.init.hidden == law
    assert again.fingerprint() == experiment.fingerprint()


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
        (lambda: Init(Normal(1.0), antisymmetric=True).draw(Dense((2, 3, 1)), np.random.default_rng(0)), "even width"),
    ],
)
def test_an_initialization_that_cannot_be_is_refused(make, said):
    with pytest.raises(InputError, match=said):
        make()
