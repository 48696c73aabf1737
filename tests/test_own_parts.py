"""Losses, laws and data from plain functions, against the named ones and against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import condensation as c
from condensation.derivatives import gradient, hessian, loss_of, residuals
from condensation.initialization import OwnLaw
from condensation.prediction import predict
from condensation.theory import KernelDynamics, residual_at_zero

OWN = {
    "mse": lambda f, y: jnp.sum((f - y) ** 2) / 2,
    "squared_error": lambda f, y: jnp.sum((f - y) ** 2),
    "softmax_mse": lambda f, y: jnp.sum((jax.nn.softmax(f) - y) ** 2) / 2,
    "cross_entropy": lambda f, y: -jnp.dot(y, jax.nn.log_softmax(f)),
}
CLASSES = np.eye(3)[[0, 1, 2, 0, 1, 2, 2]]
INPUTS = np.random.default_rng(0).normal(size=(7, 2))


def of(**changes):
    network, init = c.Dense((2, 6, 3)), c.Init(c.Normal(1e-3))
    return c.Experiment(network, init, c.Arrays(INPUTS, CLASSES), c.GD(0.1), 5).replace(**changes)


@pytest.mark.trials
@pytest.mark.parametrize(("name", "reduction"), [("mse", "sum"), *((name, "mean") for name in OWN)])
def test_a_named_loss_as_an_own_one_trains_and_differentiates_alike(name, reduction):
    named, own = c.Loss(name, reduction), c.Loss(OWN[name], reduction)
    first, second = (c.train(of(loss=loss), seeds=2) for loss in (named, own))
    np.testing.assert_allclose(second.loss, first.loss, rtol=1e-13)
    np.testing.assert_allclose(second.weights("dense1", 5), first.weights("dense1", 5), rtol=1e-12)
    model = first.model(5, 1)
    for derivative in (loss_of, residuals, hessian):
        one, other = (derivative(model, INPUTS, CLASSES, loss) for loss in (named, own))
        np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-14)
    one, other = (gradient(model, INPUTS, CLASSES, loss) for loss in (named, own))
    np.testing.assert_allclose(other["dense1.weight"], one["dense1.weight"], rtol=1e-11, atol=1e-15)


def test_residuals_at_zero_are_the_closed_forms():
    """Minus the derivative of a sample's loss where the output is zero, K = 3."""
    closed = {"mse": CLASSES, "squared_error": 2 * CLASSES, "softmax_mse": (CLASSES - 1 / 3) / 3}
    closed["cross_entropy"] = CLASSES - 1 / 3
    for name, residual in closed.items():
        for loss in (c.Loss(name), c.Loss(OWN[name])):
            np.testing.assert_allclose(residual_at_zero(CLASSES, loss), residual, atol=1e-15)
    huber = c.Loss(lambda f, y: jnp.sum(jnp.where(jnp.abs(f - y) < 0.5, (f - y) ** 2 / 2, jnp.abs(f - y) / 2 - 1 / 8)))
    y = np.array([[0.2], [-3.0]])
    np.testing.assert_allclose(residual_at_zero(y, huber), [[0.2], [-0.5]])


@pytest.mark.parametrize("name", OWN)
def test_own_losses_are_predicted(name):
    first, second = (predict(of(loss=c.Loss(loss)), 0)["dense1"] for loss in (name, OWN[name]))
    np.testing.assert_allclose(second.residual, first.residual, atol=1e-14)
    np.testing.assert_allclose(second.directions.directions, first.directions.directions, atol=1e-9)
    images = np.random.default_rng(1).normal(size=(7, 1, 4, 4))
    one, other = (KernelDynamics.of(images, CLASSES, 3, c.Loss(loss)).z for loss in (name, OWN[name]))
    np.testing.assert_allclose(other, one, atol=1e-15)


def test_the_squared_error_is_numpys():
    """A step of descent on (1/n) sum |f - y|^2, by hand: a network without hidden bias from known weights."""
    x, y = np.array([[1.0], [2.0]]), np.array([[1.0], [-1.0]])
    own = c.Experiment(
        c.Dense((1, 2, 1), "linear", bias=False), c.Init(c.Normal(0.5)), c.Arrays(x, y), c.GD(0.1), 1,
        loss=c.Loss("squared_error"),
    )  # fmt: skip
    run = c.train(own)
    w, a = (run.parameters[name][0, 0] for name in ("dense1.weight", "output.weight"))
    error = x @ w.T @ a.T - y
    np.testing.assert_allclose(run.loss[0, 0], np.mean(error**2))
    np.testing.assert_allclose(run.parameters["dense1.weight"][0, 1], w - 0.1 * 2 * np.mean(error * x) * a.T)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda f, y: (f - y) ** 2, r"must give one real number, not an array of float32 of shape \(3,\)"),
        (lambda f, y: jnp.sum((f - y) ** 2, axis=1), "failed: ValueError"),
        (lambda f: f[0], "failed: TypeError"),
        (lambda f, y: float(f[0]), "failed: ConcretizationTypeError"),
        (lambda f, y: None, "must give one number, not None"),
        (lambda f, y: jnp.argmax(f), "must give one real number, not an array of int32"),
        (lambda f, y: 1 / 0, "failed: ZeroDivisionError"),
    ],
)
def test_a_loss_that_is_none_is_refused_before_training(function, said):
    with pytest.raises(c.InputError, match=rf"the loss <lambda> of one sample \(of two vectors of 3: .* {said}"):
        c.train(of(loss=c.Loss(function)))


def test_own_losses_take_any_targets():
    """Shares of classes are for the named losses that need them."""
    own = of(**{"loss.name": OWN["cross_entropy"], "network.widths": (2, 6, 1)}, data=c.Arrays(INPUTS, INPUTS[:, 0]))
    own.check_data()
    with pytest.raises(c.InputError, match="the loss cross_entropy needs a network with an output for each"):
        own.replace(**{"loss.name": "cross_entropy"}).check_data()


def test_an_own_law_draws_each_weight_by_the_seed():
    def spread(shape, rng):
        return np.zeros(shape) if len(shape) == 1 else rng.laplace(size=shape)

    network, stream = c.Dense((3, 4, 2), output_bias=True), np.random.default_rng([5, 1])
    drawn = c.Init(spread).draw(network, c.Seed(0, 5).init_stream())
    np.testing.assert_array_equal(drawn["dense1.weight"], stream.laplace(size=(4, 3)))
    np.testing.assert_array_equal(drawn["output.weight"], stream.laplace(size=(2, 4)))
    assert not drawn["dense1.bias"].any()
    assert not drawn["output.bias"].any()
    mixed = c.Init((spread, c.Normal(0.1)), output=spread)
    assert mixed.hidden == (OwnLaw(spread), c.Normal(0.1))
    assert mixed.describe(c.Dense((3, 4, 4, 2))) == "dense1, output own law spread; dense2 N(0, 0.1²)"
    assert c.Init(spread, output=c.Zeros(), convolution=spread).convolution == OwnLaw(spread)


@pytest.mark.parametrize(
    ("law", "said"),
    [
        (lambda shape, rng: np.zeros(3), r"must give an array .* of the shape \(6, 2\), not one of shape \(3,\)"),
        (lambda shape, rng: np.full(shape, np.nan), "must give finite numbers"),
        (lambda shape, rng: "weights", r"must give an array .*, not 'weights'"),
        (lambda shape, rng: np.random.normal(size=shape), "gives other weights each time: it must draw from the gen"),  # noqa: NPY002
        (lambda shape: np.zeros(shape), "failed: TypeError"),
    ],
)
def test_a_law_that_is_none_is_refused(law, said):
    with pytest.raises(c.InputError, match=f"the initialization law <lambda> {said}"):
        c.train(of(init=c.Init(law)))


def ring(rng):
    x = rng.normal(size=(20, 2))
    return x, np.stack([np.hypot(*x.T), x[:, 0], x[:, 1]], axis=1)


def test_own_data_are_drawn_by_each_seed_and_held_out():
    own = of(data=c.Drawn(ring), test=c.Drawn(ring))
    run = c.train(own, seeds=[c.Seed(0, 0), c.Seed(1, 0)])
    np.testing.assert_array_equal(run.data(c.Seed(1, 0))[0], ring(np.random.default_rng([1, 0]))[0])
    assert len({*run.loss[:, 0]}) == 2
    held = ring(np.random.default_rng([2**32, 0]))
    model = run.model(5, c.Seed(0, 0))
    np.testing.assert_allclose(run.curves["test_loss"][0, -1], loss_of(model, *held), rtol=1e-12)
    assert (own.data.input_shape, own.data.outputs, own.data.most_samples) == ((2,), 3, 20)
    assert own.describe()["data"] == "20 samples of 2 inputs and 3 targets, drawn by own function ring"
    with pytest.raises(c.InputError, match="the data has samples of shape"):
        own.replace(network=c.Dense((3, 6, 1))).check_data()


def test_own_data_may_have_labels():
    def labelled(rng):
        x = rng.normal(size=(20, 2))
        return x, np.arange(20) % 3

    def one_hot(rng):
        x, labels = labelled(rng)
        return x, np.eye(3)[labels]

    first, second = (c.train(of(data=c.Drawn(f), loss=c.Loss("cross_entropy"))) for f in (labelled, one_hot))
    np.testing.assert_array_equal(first.loss, second.loss)


def growing(rng):
    n = int(rng.integers(5, 10**6))
    return np.zeros((n, 2)), np.zeros((n, 3))


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda rng: np.zeros((5, 2)), "must give a pair, samples x and targets y, not a value of type ndarray"),
        (lambda rng: (np.zeros((5, 2)), np.zeros((4, 3))), "cannot be used: x must be samples x inputs"),
        (lambda rng: (np.full((5, 2), np.inf), np.zeros((5, 3))), "cannot be used: x holds NaN or Inf"),
        (lambda rng: (np.random.normal(size=(5, 2)), np.zeros((5, 3))), "gives other samples each time"),  # noqa: NPY002
        (lambda: 3, "failed: TypeError"),
        (growing, r"must draw the same shapes for each seed, not x and y of"),
    ],
)
def test_data_that_are_none_are_refused(draw, said):
    with pytest.raises(c.InputError, match=rf"the data function (<lambda>|growing) {said}"):
        c.train(of(data=c.Drawn(draw)), seeds=3)


@pytest.mark.usefixtures("unchecked")
def test_names_of_modules_are_accepted_wherever_a_name_is(tmp_path, monkeypatch):
    """In Python as in a file: activation, loss, law, data, measure, and a field of a sweep."""
    (tmp_path / "own_parts.py").write_text(
        "import jax.numpy as jnp\n"
        "def act(x):\n    return jnp.sin(x)\n"
        "def loss(f, y):\n    return jnp.sum((f - y) ** 4)\n"
        "def law(shape, rng):\n    return 0.1 * rng.normal(size=shape)\n"
        "def data(rng):\n    x = rng.normal(size=(6, 1))\n    return x, x\n"
        "def last(run, step):\n    return step\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import own_parts  # type: ignore[import-not-found]

    named = c.Experiment(
        c.Dense((1, 4, 1), "own_parts:act"), c.Init("own_parts:law"), "own_parts:data", c.GD(0.1), 3, "own_parts:loss"
    )
    given = c.Experiment(
        c.Dense((1, 4, 1), own_parts.act), c.Init(own_parts.law), c.Drawn(own_parts.data), c.GD(0.1), 3,
        c.Loss(own_parts.loss),
    )  # fmt: skip
    assert named == given
    assert named.fingerprint() == given.fingerprint()
    assert c.Experiment.from_toml(given.to_toml()) == given
    text = 'format = 1\nsteps = 3\nloss = "own_parts:loss"\ndata = "own_parts:data"\n[init]\nhidden = "own_parts:law"\n'
    text += '[network]\nkind = "dense"\nwidths = [1, 4, 1]\nactivation = "own_parts:act"\n'
    assert c.Experiment.from_toml(text + '[optimizer]\nkind = "gd"\nlearning_rate = 0.1\n') == given
    assert c.multiplicity("own_parts:act") == 1
    sweep = c.sweeps.Sweep(named, {"init.hidden": ["own_parts:law", c.Normal(0.1)]}, measure="own_parts:last")
    assert sweep.measure == (own_parts.last,)
    assert [cell.experiment.init.hidden for cell in sweep.cells()] == [given.init.hidden, c.Normal(0.1)]
    for bad in ("own_parts:nothing", "no_such_module:f", "own_parts:", ":f"):
        with pytest.raises(c.InputError, match=r"cannot be imported|is no function"):
            c.Dense((1, 4, 1), bad)


@pytest.mark.usefixtures("unchecked")
def test_a_class_is_no_law_and_no_data():
    with pytest.raises(c.InputError, match="hidden must be Normal or"):
        c.Init(c.Glorot)  # type: ignore[arg-type]
