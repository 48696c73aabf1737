"""Experiments as TOML: there and back, and what is said of a file that does not fit."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import condensation as c
from condensation.activations import ACTIVATIONS, x_tanh
from condensation.schedules import Constant
from condensation.sweeps import Sweep

EXAMPLES = Path(__file__).parents[1] / "examples"

sizes = st.integers(1, 60)
positive = st.floats(1e-30, 1e6)
share = st.floats(0, 0.95)
activations = st.sampled_from([*ACTIVATIONS, x_tanh])
schedules = st.one_of(
    st.builds(c.At, st.lists(st.integers(0, 40)).map(tuple)),
    st.builds(c.Every, sizes),
    st.builds(c.Evenly, st.integers(2, 99)),
    st.builds(c.Geometric, sizes),
)
courses = st.one_of(
    st.builds(c.Cosine, sizes, share),
    st.builds(c.StepDecay, st.lists(sizes).map(tuple), positive),
    st.builds(c.Warmup, sizes),
)
rates = st.one_of(st.just(Constant()), courses, st.builds(c.Product, st.lists(courses, max_size=3).map(tuple)))
optimizers = st.one_of(
    st.builds(c.GD, positive, share, rates), st.builds(c.Adam, positive, share, share, positive, share, rates),
    st.builds(c.NormalisedGD, positive, rates), st.builds(c.SignGD, positive, rates),
    st.builds(c.Momentum, positive, share, st.booleans(), share, rates),
    st.builds(c.RMSprop, positive, share, positive, share, rates),
    st.builds(c.Muon, positive, share, st.booleans(), positive, rates),
)  # fmt: skip
laws = st.one_of(
    st.builds(c.Normal, positive),
    st.just(c.FanOutPower(1.5)),
    st.builds(c.WidthPower, st.floats(-3, 3)),
    st.sampled_from([c.Glorot(), c.He(), c.LeCun(), c.PyTorchDefault()]),
)
finite = st.floats(-1e6, 1e6)
datas = st.builds(
    c.Synthetic, st.lists(st.tuples(finite, finite, finite), min_size=1, max_size=3).map(tuple), sizes, sizes,
    st.floats(-9, 0), st.floats(1, 9), st.sampled_from(["sin", "relu"]),
)  # fmt: skip


@st.composite
def experiments(draw):
    if draw(st.booleans()):
        depth = draw(st.integers(1, 4))
        residual = draw(st.booleans())
        hidden = [draw(sizes)] * depth if residual else draw(st.lists(sizes, min_size=depth, max_size=depth))
        names = st.one_of(activations, st.lists(activations, min_size=depth, max_size=depth).map(tuple))
        network = c.Dense(
            (draw(sizes), *hidden, draw(sizes)),
            draw(names),
            residual,
            draw(st.booleans()),
            draw(st.booleans()),
            draw(share),
        )
        given_laws = st.one_of(laws, st.lists(laws, min_size=depth, max_size=depth).map(tuple))
        start = c.Init(draw(given_laws), draw(st.none() | laws), None, draw(st.booleans()))
    else:
        channels = draw(st.lists(sizes, min_size=1, max_size=2).map(tuple))
        hidden = draw(st.lists(sizes, max_size=2).map(tuple))
        network = c.Conv(
            (draw(sizes), 9, 9), channels, draw(st.integers(1, 5)), draw(sizes), hidden, draw(activations),
            draw(activations), draw(st.integers(0, 2)), draw(st.booleans()), draw(share) if hidden else 0.0,
        )  # fmt: skip
        start = c.Init(draw(laws), draw(st.none() | laws), draw(st.none() | st.builds(c.ChannelPower, st.floats(0, 4))))
    flow = st.builds(c.GradientFlow, positive, st.none() | st.floats(0.01, 0.99), positive, positive)
    may_flow = draw(st.booleans()) and not network.dropout
    return c.Experiment(
        network, start, draw(datas), draw(flow if may_flow else optimizers), draw(st.integers(40, 10**6)),
        c.Loss(draw(st.sampled_from(["mse", "softmax_mse", "cross_entropy"])), draw(st.sampled_from(["mean", "sum"]))),
        draw(schedules), draw(schedules), draw(st.sampled_from(["float32", "float64"])),
        None if may_flow else draw(st.none() | sizes),
    )  # fmt: skip


@pytest.mark.trials
@pytest.mark.filterwarnings("ignore:Do not use the `random` module")  # beartype does, checking a long list
@settings(max_examples=60)
@given(experiments())
def test_any_experiment_comes_back_equal_with_its_fingerprint(experiment):
    again = c.Experiment.from_toml(experiment.to_toml())
    assert again == experiment
    assert again.fingerprint() == experiment.fingerprint()
    assert c.Experiment.from_plain(experiment.to_plain()) == experiment


@pytest.mark.parametrize("suffix", ["npz", "safetensors"])
def test_an_experiment_with_arrays_names_its_file(tmp_path, suffix):
    from safetensors.numpy import save_file

    x, y = np.random.default_rng(0).normal(size=(2, 8, 3))
    file = tmp_path / f"own.{suffix}"
    save_file({"x": x, "y": y}, file) if suffix == "safetensors" else np.savez(file, x=x, y=y)
    experiment = c.Experiment(
        c.Dense((3, 4, 3)), c.Init(c.Normal(0.1)), c.Arrays.load(file.name, tmp_path), c.GD(0.1), 5
    )
    (tmp_path / "e.toml").write_text(experiment.to_toml())
    again = c.Experiment.load(tmp_path / "e.toml")
    assert again == experiment
    assert again.fingerprint() == experiment.fingerprint()
    np.savez(tmp_path / "own.npz", x=x + 1, y=y)
    if suffix == "npz":
        with pytest.raises(c.InputError, match="is not the one this experiment used: its x_sha256 differs"):
            c.Experiment.load(tmp_path / "e.toml")
    with pytest.raises(c.InputError, match=r"use Arrays.load\(file\)"):
        experiment.replace(data=c.Arrays(x, y)).to_toml()


def test_the_examples_are_the_same_in_toml_and_in_python():
    sys.path.insert(0, str(EXAMPLES))
    try:
        import tanh
    finally:
        sys.path.remove(str(EXAMPLES))
    assert c.Experiment.load(EXAMPLES / "tanh.toml") == tanh.experiment
    for path in EXAMPLES.glob("*.toml"):
        (Sweep if path.stem == "sweep" else c.Experiment).load(path)


GOOD = (EXAMPLES / "tanh.toml").read_text()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("steps = 500", "stepz = 500", "unknown field of an experiment 'stepz'; did you mean 'steps'"),
        ("steps = 500", "", "missing of an experiment: steps"),
        ("steps = 500", 'steps = "many"', "steps must be a whole number, not 'many'"),
        ("steps = 500", "steps = 5.5", "steps must be a whole number, not 5.5"),
        ("format = 1", "format = 2", "this experiment has format 2, but this version of condensation knows up to 1"),
        ("format = 1", "", "names no format"),
        ("learning_rate = 1e-3", "lr = 1e-3", "unknown field in optimizer 'lr'"),
        ("learning_rate = 1e-3", "", "missing in optimizer: learning_rate"),
        ("learning_rate = 1e-3", "learning_rate = -1", "optimizer.learning_rate must be a positive finite number"),
        ('kind = "adam"', 'kind = "adan"', "unknown kind of optimizer 'adan'; did you mean 'adam'"),
        (
            'kind = "adam"',
            "",
            "optimizer has no kind; one of gd, momentum, rmsprop, adam, adamw, normalised_gd, sign_gd, muon, ",
        ),
        ('"tanh"', '"tahn"', "network: unknown activation 'tahn'; did you mean 'tanh'"),
        ('"tanh"', '"no.such:thing"', "the function 'no.such:thing' cannot be imported: ModuleNotFoundError"),
        ("[5, 50, 1]", "[5, 50.5, 1]", r"network.widths\[1\] must be a whole number, not 50.5"),
        ("[5, 50, 1]", "7", "network.widths must be a list, not 7"),
        ("[[3.5, 5, 1]]", "[[3.5, 5]]", r"terms\[0\] must be a list of 3, not of 2"),
        ("std = 0.005", 'std = "small"', "init.hidden.std must be a number, not 'small'"),
        ("steps = 500", "steps = = 500", "this is not TOML"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place(old, new, said, tmp_path):
    assert old in GOOD
    (tmp_path / "bad.toml").write_text(GOOD.replace(old, new, 1))
    with pytest.raises(c.InputError, match=said) as caught:
        c.Experiment.load(tmp_path / "bad.toml")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "bad.toml") in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(c.InputError, match="cannot be read: No such file"):
        c.Experiment.load(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(c.InputError, match="cannot be read"):
        c.Experiment.load(tmp_path / "binary.toml")
