"""What is stated of new samples holds on new samples; where samples say nothing of new ones, nothing is left out."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from condensation import InputError
from condensation.pytorch import reduce_model
from condensation.pytorch._reduction.judge import errors_of

pytestmark = pytest.mark.pytorch
DRAWS = 400


@pytest.mark.parametrize("samples", [20, 100])
@pytest.mark.parametrize("kind", ["even", "normal", "lognormal", "student"])
def test_the_worse_of_two_bounds_holds_on_new_samples(kind, samples):
    stream = np.random.default_rng(7)

    def changes(count):
        sizes = {
            "even": lambda: np.ones((count, 1)),
            "normal": lambda: stream.standard_normal((count, 1)),
            "lognormal": lambda: np.exp(stream.standard_normal((count, 1))),
            "student": lambda: stream.standard_t(3, (count, 1)),
        }
        return 0.02 * sizes[kind]() * stream.standard_normal((count, 3))

    true = np.sqrt(np.square(changes(300_000)).mean())  # outputs are normal numbers of deviation 1
    held = 0
    for _ in range(DRAWS):
        outputs = stream.standard_normal((2, samples, 3))
        held += max(errors_of(y, y + changes(samples), 0.02)[1] for y in outputs) >= true
    assert held >= (0.9 if samples == 20 else 0.95) * DRAWS
    y = stream.standard_normal((3000, 3))
    error, most = errors_of(y, y + changes(3000), 0.02)
    assert error < most < 1.5 * error  # many samples say it closely


class Normed(nn.Module):
    """A network whose outputs are of size one and more."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.a, self.b, self.c = nn.Linear(8, 32), nn.Linear(32, 24), nn.Linear(24, 3)
        with torch.no_grad():
            self.b.weight.mul_(torch.rand(24, 1) ** 3)

    def forward(self, x):
        return self.c(torch.tanh(self.b(torch.relu(self.a(x)))))


def drawn(kind, count):
    x = torch.randn(count, 8)
    if kind == "rare":
        return x * (1 + 4 * (torch.rand(count, 1) < 0.05))
    return x * torch.exp(0.5 * torch.randn(count, 1)) if kind == "heavy" else x


@pytest.mark.parametrize("draws", [10, pytest.param(40, marks=pytest.mark.trials)])
@pytest.mark.parametrize("kind", ["normal", "heavy", "rare"])
def test_what_is_stated_holds_on_fresh_samples_over_many_draws(kind, draws):
    held = kept = agreed = smaller = 0
    for seed in range(draws):
        model = Normed(seed).eval()
        reduced = reduce_model(model, drawn(kind, 200), error=0.1)
        new = drawn(kind, 10_000)
        with torch.no_grad():
            y, other = model(new), reduced.model(new)
        error = float((other - y).norm() / (y - y.mean(0)).norm())
        same = float((other.argmax(1) == y.argmax(1)).float().mean())
        assert reduced.most_error <= 0.1
        held += error <= reduced.most_error
        kept += error <= 0.1
        agreed += same >= reduced.least_agreement
        smaller += reduced.parameters[1] < reduced.parameters[0]
    assert min(held, kept, agreed) >= int(0.92 * draws)
    assert smaller >= 0.9 * draws


@pytest.mark.parametrize("samples", [1, 2, 3, 7])
def test_few_samples_leave_out_copies_alone(samples):
    model = Normed(0)
    with torch.no_grad():
        for value in (model.a.weight, model.a.bias):
            value[5] = value[4]
    x = torch.randn(samples, 8)
    for how in ({}, {"error": 0.0}, {"error": 0.001}):
        reduced = reduce_model(model, x, **how)
        assert reduced.sizes == {"a": (32, 31), "b": (24, 24)}
        assert reduced.most_error == reduced.relative_error < 1e-6  # whatever the samples
        assert reduced.notes
    if samples > 1:
        assert reduce_model(model, x, method="prune").sizes == {"a": (32, 32), "b": (24, 24)}
    half = reduce_model(model, x, ratio=0.5)
    assert half.most_error is None
    assert "<=" not in repr(half)


def test_units_that_sleep_on_the_samples_may_wake_up_on_new_ones():
    model = Normed(1)
    with torch.no_grad():
        model.a.bias[:8] = -30.0  # never awake
    x = torch.randn(500, 8)
    most = []
    for count in (100, 500):
        reduced = reduce_model(model, x[:count], layers=["a"])
        assert reduced.sizes["a"][1] <= 24
        assert reduced.most_error >= 0.02 * np.sqrt(3 / (count // 5)) * (1 - 1e-6)
        most.append(reduced.most_error)
    assert max(most) <= 0.02
    exact = reduce_model(model, x, layers=["a"], error=0.0)
    assert exact.sizes["a"] == (32, 32)


def test_the_table_shows_the_bounds():
    x = torch.randn(300, 8)
    reduced = reduce_model(Normed(2), x, error=0.2)
    rows = {line.split()[0]: line.split() for line in repr(reduced).splitlines()[1:]}
    assert rows["before"] == ["before", "after", "change", "new", "samples"]
    assert rows["error"][-2:] == ["<=", f"{reduced.most_error:.4g}"]
    assert rows["agreement"][-2:] == [">=", f"{reduced.least_agreement:.4g}"]
    assert reduced.relative_error <= reduced.most_error <= 0.2
    assert reduced.least_agreement <= reduced.agreement


def test_a_goal_that_samples_cannot_show_is_met_by_nothing_but_the_model():
    model, x = Normed(3), torch.randn(100, 8)
    same = reduce_model(model, x, agreement=0.99)  # 20 samples show 88% at most
    assert same.parameters[0] == same.parameters[1]
    assert (same.agreement, same.least_agreement) == (1.0, 1.0)
    assert reduce_model(model, x, agreement=0.6).parameters[1] < same.parameters[1]


class Answers(nn.Module):
    """Outputs of some kind."""

    def __init__(self, kind):
        super().__init__()
        torch.manual_seed(0)
        self.kind, self.hidden, self.one, self.two = kind, nn.Linear(8, 30), nn.Linear(30, 4), nn.Linear(30, 1)

    def forward(self, x):
        h = torch.relu(self.hidden(x))
        one, two = self.one(h), self.two(h)
        kinds = {"tuple": (one, two), "dict": {"one": one, "two": two}, "nested": {"all": (one, [two])}}
        return kinds[self.kind]


@pytest.mark.parametrize("kind", ["tuple", "dict", "nested"])
def test_several_outputs_have_the_worst_bound(kind):
    torch.manual_seed(0)
    x, new = torch.randn(400, 8), torch.randn(5000, 8)
    model = Answers(kind).eval()
    reduced = reduce_model(model, x, error=0.3)
    assert reduced.parameters[1] < reduced.parameters[0]
    answers = []
    with torch.no_grad():
        for each in (model, reduced.model):
            answers.append(tree_leaves(each(new)))
    for y, other in zip(*answers, strict=True):
        assert float((other - y).norm() / (y - y.mean(0)).norm()) <= reduced.most_error <= 0.3


def test_numbers_of_every_precision():
    torch.manual_seed(0)
    x = torch.randn(400, 8)
    sizes = {}
    for kind in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        reduced = reduce_model(Normed(4).to(kind), x.numpy(), error=0.2)
        assert {value.dtype for value in reduced.model.parameters()} == {kind}
        assert reduced.most_error <= 0.2
        sizes[kind] = reduced.parameters[1]
    assert max(sizes.values()) < 1.2 * min(sizes.values())


def test_tokens_and_models_in_training():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(50, 12), nn.Linear(12, 48), nn.GELU(), nn.Dropout(0.5), nn.Linear(48, 5)).train()
    words = torch.randint(0, 50, (300, 7))
    for data in (words, words.numpy(), words.numpy().astype(np.int32)):
        reduced = reduce_model(model, data, error=0.1)
        assert reduced.sizes["1"][1] < 48
        assert reduced.most_error <= 0.1
        assert model.training
        assert reduced.model.training
        assert reduced.model[3].training
    new = torch.randint(0, 50, (3000, 7))
    with torch.no_grad():
        y, other = model.eval()(new), reduced.model.eval()(new)
    assert float((other - y).norm() / (y - y.mean(0)).norm()) <= reduced.most_error


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"error": -0.1}, "at least 0, not -0.1"),
        ({"error": float("nan")}, "at least 0, not nan"),
        ({"ratio": 1}, "below 1, not 1"),
        ({"ratio": -0.5}, "below 1, not -0.5"),
        ({"agreement": 0}, "above 0 and at most 1, not 0"),
        ({"units": 0}, "at least 1, not 0"),
    ],
)
def test_numbers_that_decide_nothing_are_refused(how, sentence):
    with pytest.raises(InputError, match=sentence):
        reduce_model(Normed(0), torch.randn(50, 8), **how)


def test_a_model_without_parameters_is_refused():
    with pytest.raises(InputError, match="ReLU has no parameters"):
        reduce_model(nn.ReLU(), torch.randn(50, 8))


def test_a_single_bad_number_in_the_data_is_found():
    x = torch.randn(200, 8)
    for bad in (torch.nan, torch.inf):
        x[137, 3] = bad
        with pytest.raises(InputError, match="the data holds NaN or Inf"):
            reduce_model(Normed(0), x)
