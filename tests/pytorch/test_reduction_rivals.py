"""What the reduction is compared with in benchmarks/reduction does what its paper says, where the answer is known."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

pytestmark = pytest.mark.pytorch
FOLDER = Path(__file__).parents[2] / "benchmarks" / "reduction"
if not FOLDER.exists():
    pytest.skip("the benchmarks are not beside the tests", allow_module_level=True)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that imports a module of the benchmark."""
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("chains", "networks", "rivals", "training"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return import_module


def dense(factors: list[float]) -> nn.Module:
    """Ten inputs, 3 units with copies scaled by the factors, 2 outputs."""
    torch.manual_seed(0)
    whole = torch.randn(3, 11)
    base, bias = (whole / whole.abs().sum(1, keepdim=True)).split([10, 1], 1)
    network = nn.Sequential(nn.Linear(10, 3 * len(factors)), nn.ReLU(), nn.Linear(3 * len(factors), 2))
    network[0].weight.data = torch.cat([factor * base for factor in factors])
    network[0].bias.data = torch.cat([factor * bias[:, 0] for factor in factors])
    return network


def normed(sizes: list[float], scales: list[float]) -> nn.Module:
    """Lots of the same 4 channels: convolutions of different sizes, whose batch norm undoes that and scales anew."""
    torch.manual_seed(0)
    size, scale = (torch.tensor(each).repeat_interleave(4) for each in (sizes, scales))
    base = torch.randn(4, 3, 3, 3)
    base /= base.abs().sum((1, 2, 3), keepdim=True)
    lots, channels = len(sizes), 4 * len(sizes)
    norm = nn.BatchNorm2d(channels, eps=1e-12)
    network = nn.Sequential(nn.Conv2d(3, channels, 3, bias=False), norm, nn.ReLU(), nn.Conv2d(channels, 5, 3))
    network[0].weight.data = base.repeat(lots, 1, 1, 1) * size[:, None, None, None]
    norm.running_var, norm.running_mean = (
        (torch.rand(4) + 0.5).repeat(lots) * size**2,
        torch.randn(4).repeat(lots) * size,
    )
    norm.weight.data, norm.bias.data = (torch.rand(4) + 0.5).repeat(lots) * scale, torch.randn(4).repeat(lots) * scale
    return network.eval()


def same(a: nn.Module, b: nn.Module, x: Any) -> bool:
    with torch.no_grad():
        return torch.allclose(a(x), b(x), atol=1e-5)


def test_neuron_merging_is_exact_on_proportional_units(bench: Any) -> None:
    network, link = dense([1, 0.5, 0.1]), bench("chains").Link("0", "", "2")
    x = torch.randn(50, 10)
    assert same(bench("rivals").neuron_merging(network, [link], {"0": 3}), network, x)
    assert not same(bench("rivals").prune(network, [link], {"0": 3}), network, x)
    network, link = normed([1, 0.5], [1, 3]), bench("chains").Link("0", "1", "3")
    small = bench("rivals").neuron_merging(network, [link], {"0": 4}, threshold=0.1)
    assert small[0].out_channels == 4
    assert same(small, network, torch.randn(5, 3, 8, 8))


def test_neuron_merging_loses_units_below_the_threshold(bench: Any) -> None:
    network, link = dense([1]), bench("chains").Link("0", "", "2")
    a, b = (work(network, [link], {"0": 1}) for work in (bench("rivals").neuron_merging, bench("rivals").prune))
    assert same(a, b, torch.randn(50, 10))  # three random units in ten dimensions: no cosine reaches .45


def test_folding_is_exact_on_copies_and_takes_means(bench: Any) -> None:
    network, link = dense([1, 1, 1]), bench("chains").Link("0", "", "2")
    assert same(bench("rivals").folding(network, [link], {"0": 3}), network, torch.randn(50, 10))
    network, link = normed([1, 2, 0.1], [1, 1, 1]), bench("chains").Link("0", "1", "3")
    small = bench("rivals").folding(network, [link], {"0": 4})
    assert small[0].out_channels == 4
    assert same(small, network, torch.randn(5, 3, 8, 8))
    network, link = dense([1, 1.5]), bench("chains").Link("0", "", "2")
    rows = bench("rivals").folding(network, [link], {"0": 3})[0].weight
    means = network[0].weight[:3] * 1.25
    assert all(bool((row - means).norm(dim=1).min() < 1e-5) for row in rows)


def test_least_squares_finds_units_that_others_make_up(bench: Any) -> None:
    network, link = dense([1, 0.5, 0.1]), bench("chains").Link("0", "", "2")
    x = torch.randn(200, 10)
    assert same(bench("rivals").prune_least_squares(network, [link], {"0": 3}, x, ridge=1e-9), network, x)


@pytest.mark.parametrize("name", ["lenet", "cnn", "resnet56"])
def test_all_rivals_have_equal_operations(bench: Any, name: str) -> None:
    network = bench("networks").make(name, 0).eval()
    x = torch.randn(20, *((3, 32, 32) if name == "resnet56" else (1, 28, 28)))
    y = torch.arange(20) % 10
    chains = bench("chains")
    counts = chains.counts(network, chains.links(name, network), 0.5)
    rivals = bench("rivals")
    made = [
        rivals.make_rival(rival, name, network, counts, x, y)
        for rival in rivals.RIVALS
        if name == "resnet56" or "BN" not in rival
    ]
    assert len({(chains.operations(small, x), chains.parameters(small)) for small in made}) == 1
    assert chains.operations(made[0], x) < 0.6 * chains.operations(network, x)


def test_recalibration_gives_the_statistics_of_the_images(bench: Any) -> None:
    network, x = normed([1], [1]), torch.randn(40, 3, 8, 8)
    bench("chains").recalibrate(network, x, batch=40)
    seen = network[0](x)
    assert torch.allclose(network[1].running_mean, seen.mean((0, 2, 3)), atol=1e-5)
    assert torch.allclose(network[1].running_var, seen.var((0, 2, 3)), atol=1e-4)


def test_crops_are_shifts_and_flips_of_the_image(bench: Any) -> None:
    x = torch.arange(64.0).reshape(1, 1, 8, 8) + 1
    stream = torch.Generator().manual_seed(0)
    seen = bench("training").crop_and_flip(x.expand(200, -1, -1, -1), stream, pad=2)
    padded = nn.functional.pad(x, (2,) * 4)[0, 0]
    every = [padded[i : i + 8, j : j + 8] for i in range(5) for j in range(5)]
    every += [part.flip(1) for part in every]
    found = {next(k for k, part in enumerate(every) if torch.equal(part, image[0])) for image in seen}
    assert len(found) > 30
