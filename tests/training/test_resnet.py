"""The ResNet18-like network, against an independent one in PyTorch."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from condensation import (  # fmt: skip
    Adam,
    Arrays,
    At,
    Evenly,
    Experiment,
    FanOutPower,
    Glorot,
    GradientFlow,
    Init,
    InputError,
    Loss,
    Model,
    ResNet,
    Seed,
    load_run,
    train,
)
from condensation.runs import run_folder
from condensation.training import _chunks as chunks
from condensation.training import _stepwise as stepwise
from condensation.training import _work as work

START = Init(FanOutPower(1.5), convolution=Glorot())
SMALL = ResNet((3, 12, 12), 5, hidden=(16,), channels=(4, 8), depth=1, stem="small")


def images(n, shape, classes, seed=0):
    stream = np.random.default_rng(seed)
    return Arrays(stream.normal(size=(n, *shape)), np.eye(classes)[np.arange(n) % classes])


class Block(nn.Module):
    """Written from the architecture's description, not from our code."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(after)
        self.skip = nn.Identity()
        if stride != 1 or before != after:
            self.skip = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, h):
        return (self.norm2(self.conv2(self.norm1(self.conv1(h)).relu())) + self.skip(h)).relu()


class ResNet18(nn.Module):
    def __init__(self, small=False, channels=(64, 128, 256, 512), depth=2, hidden=(1024, 1024), outputs=10):
        super().__init__()
        first = (
            nn.Conv2d(3, channels[0], 3, 1, 1, bias=False) if small else nn.Conv2d(3, channels[0], 7, 2, 3, bias=False)
        )
        self.stem, self.norm = first, nn.BatchNorm2d(channels[0])
        self.pool = nn.Identity() if small else nn.MaxPool2d(3, 2, 1)
        blocks, before = [], channels[0]
        for stage, after in enumerate(channels):
            for k in range(depth):
                blocks.append(Block(before, after, 2 if stage > 0 and k == 0 else 1))
                before = after
        self.blocks = nn.ModuleList(blocks)
        widths = [channels[-1], *hidden, outputs]
        self.dense = nn.ModuleList(nn.Linear(*pair) for pair in itertools.pairwise(widths))
        self.dense[-1].bias = None

    def forward(self, x):
        h = self.pool(self.norm(self.stem(x)).relu())
        for block in self.blocks:
            h = block(h)
        h = h.mean((2, 3))
        for layer in self.dense[:-1]:
            h = layer(h).tanh()
        return self.dense[-1](h)

    def pairs(self, depth):
        """Our layer names and the modules that stand for them: (name, convolution or linear, batch norm)."""
        yield "stem", self.stem, self.norm
        for k, block in enumerate(self.blocks):
            name = f"stage{k // depth + 1}.block{k % depth + 1}"
            yield f"{name}.conv1", block.conv1, block.norm1
            yield f"{name}.conv2", block.conv2, block.norm2
            if not isinstance(block.skip, nn.Identity):
                yield f"{name}.skip", block.skip[0], block.skip[1]
        for k, layer in enumerate(self.dense[:-1]):
            yield f"dense{k + 1}", layer, None
        yield "output", self.dense[-1], None

    def values(self, depth):
        """Their tensors by our names."""
        found = {}
        for name, layer, norm in self.pairs(depth):
            found[f"{name}.weight"] = layer.weight
            if getattr(layer, "bias", None) is not None:
                found[f"{name}.bias"] = layer.bias
            if isinstance(norm, nn.BatchNorm2d):
                found |= {f"{name}.norm.scale": norm.weight, f"{name}.norm.shift": norm.bias}
                found |= {f"{name}.norm.mean": norm.running_mean, f"{name}.norm.variance": norm.running_var}
        return found


def without_norms(network: ResNet18) -> ResNet18:
    """Each batch norm is gone, and its convolution has a bias."""
    for _, convolution, norm in [*network.pairs(1)]:
        if norm is not None:
            convolution.bias = nn.Parameter(torch.zeros(convolution.out_channels, dtype=torch.float64))
    network.norm = nn.Identity()
    for block in network.blocks:
        block.norm1, block.norm2 = nn.Identity(), nn.Identity()
        if not isinstance(block.skip, nn.Identity):
            block.skip[1] = nn.Identity()
    return network


CASES = {
    "resnet18": (  # all its layers, narrower
        ResNet((3, 32, 32), 10, (32, 24), channels=(8, 16, 24, 32)),
        ResNet18(False, (8, 16, 24, 32), 2, (32, 24)).double(),
        2,
        6,
    ),
    "small": (SMALL, ResNet18(True, (4, 8), 1, (16,), 5).double(), 1, 12),
    "no-norms": (replace(SMALL, batch_norm=False), without_norms(ResNet18(True, (4, 8), 1, (16,), 5).double()), 1, 12),
}


@pytest.mark.filterwarnings("ignore::condensation.training._train.GradientBelowEps")
@pytest.mark.parametrize(
    "case", [pytest.param("resnet18", marks=pytest.mark.trials), "small", "no-norms"]
)  # the large one is slow
def test_it_is_pytorchs_layer_by_layer(case):
    """Three Adam steps: the running statistics tell each layer's output, the weights each layer's gradient."""
    network, theirs, depth, n = CASES[case]
    data = images(n, network.image, network.outputs)
    # Glorot for all, so that gradients are far above Adam's eps and every layer matters
    experiment = Experiment(
        network, Init(Glorot()), data, Adam(1e-3), 3, Loss("cross_entropy"), save=At((1, 3)), record=Evenly(4)
    )
    trajectory = train(experiment, 1)
    values = theirs.values(depth)
    with torch.no_grad():
        for name, value in trajectory.parameters_at(0, 0).items():
            values[name].copy_(torch.tensor(value))
    x, y = (torch.tensor(part) for part in trajectory.data(0))
    optimizer = torch.optim.Adam(theirs.parameters(), 1e-3)
    for step in range(4):
        theirs.eval()
        loss = torch.nn.functional.cross_entropy(theirs(x), y).item()
        assert trajectory.loss[0, step] == pytest.approx(loss, rel=1e-9)
        if step in (1, 3):
            ours = trajectory.parameters_at(step, 0)
            assert ours.keys() == values.keys()
            for name, value in values.items():
                np.testing.assert_allclose(ours[name], value.detach().numpy(), rtol=1e-6, atol=1e-9, err_msg=name)
            np.testing.assert_allclose(
                trajectory.output(x.numpy(), step, 0), theirs(x).detach().numpy(), rtol=1e-7, atol=1e-9
            )
        theirs.train()
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(theirs(x), y).backward()
        if step == 0:
            for name, size in trajectory.gradient.items():
                assert size[0, 0] == pytest.approx(values[name].grad.abs().mean().item(), rel=1e-6), name
        optimizer.step()


def experiment(**changes):
    base = Experiment(
        SMALL, START, images(40, SMALL.image, 5), Adam(1e-3), 30, Loss("cross_entropy"), dtype="float32", batch_size=8,
        save=Evenly(4), record=Evenly(4), test=images(17, SMALL.image, 5, seed=1),
    )  # fmt: skip
    return base.replace(**changes)


def score(loss, f, y):
    each = -(y * torch.log_softmax(torch.tensor(np.asarray(f, float)), 1).numpy()).sum(1)
    return each.mean() if loss.reduction == "mean" else each.sum(), (f.argmax(1) == y.argmax(1)).mean()


@pytest.mark.trials
@pytest.mark.filterwarnings("ignore::condensation.training._train.GradientBelowEps")
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_what_is_recorded_is_the_network_after_training_on_all_samples(reduction, monkeypatch):
    monkeypatch.setattr(stepwise, "EVALUATED", 7)  # in parts that do not divide the samples
    run = experiment(loss=Loss("cross_entropy", reduction))
    trajectory = train(run, 1)
    for prefix, (x, y) in {"": trajectory.data(0), "test_": run.test.draw(Seed(0, 0).held_out())}.items():
        for k, step in enumerate(trajectory.saved.tolist()):
            loss, accuracy = score(run.loss, trajectory.output(x, step, 0), y)
            at = list(trajectory.recorded).index(step)
            assert trajectory.curves[f"{prefix}loss"][0, at] == pytest.approx(loss, rel=1e-5), k
            assert trajectory.curves[f"{prefix}accuracy"][0, at] == pytest.approx(accuracy)


@pytest.mark.trials
@pytest.mark.filterwarnings("ignore::condensation.training._train.GradientBelowEps")
def test_only_the_layers_that_are_kept(tmp_path):
    run = experiment(kept_layers=("dense1",))
    trajectory = train(run, 1, out=tmp_path)
    assert trajectory.layers == ("dense1",)
    np.testing.assert_array_equal(trajectory.history("dense1"), train(experiment(), 1).history("dense1"))
    np.testing.assert_array_equal(load_run(run_folder(tmp_path, run)).history("dense1"), trajectory.history("dense1"))
    with pytest.raises(InputError, match="only the layers dense1 were kept, not a whole network"):
        trajectory.output(run.data.x, 0, 0)
    with pytest.raises(InputError, match="the layer stem was not kept"):
        trajectory.history("stem")
    with pytest.raises(InputError, match="unknown kept layer 'dense7'"):
        experiment(kept_layers=("dense7",))


def test_what_cannot_be_is_said():
    with pytest.raises(InputError, match="gradient flow has no batch norm"):
        experiment(optimizer=GradientFlow(0.1), batch_size=None)
    with pytest.raises(InputError, match="unknown stem 'huge'; known: large, small"):
        ResNet((3, 32, 32), 10, stem="huge")
    with pytest.raises(InputError, match="at least one stage"):
        ResNet((3, 32, 32), 10, channels=())
    with pytest.raises(InputError, match="dropout is for dense hidden layers"):
        ResNet((3, 32, 32), 10, hidden=(), dropout=0.5)


@pytest.mark.trials
@pytest.mark.filterwarnings("ignore::condensation.training._train.GradientBelowEps")
def test_a_model_is_saved_and_loaded_whole(tmp_path):
    trajectory = train(experiment(), 1)
    model = trajectory.model(30, 0)
    model.save(tmp_path / "model.safetensors")
    again = Model.load(tmp_path / "model.safetensors")
    assert again.network == model.network
    x = trajectory.data(0)[0]
    np.testing.assert_array_equal(again(x), model(x))
    np.testing.assert_array_equal(again.weights("dense1"), trajectory.weights("dense1", 30, 0))
    changed = dict(model.parameters)
    del changed["stem.norm.mean"]
    with pytest.raises(InputError, match=r"the parameter stem\.norm\.mean is missing"):
        Model(model.network, changed)
    with pytest.raises(InputError, match=r"must have the shape \(4,\), not \(3,\)"):
        Model(model.network, changed | {"stem.norm.mean": np.zeros(3)})
    with pytest.raises(InputError, match="unknown parameter 'more'"):
        Model(model.network, model.parameters | {"more": np.zeros(3)})


@pytest.mark.filterwarnings("ignore::condensation.training._train.GradientBelowEps")
def test_an_interrupted_run_goes_on_with_its_statistics(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "SECONDS_PER_CALL", 0.01)
    monkeypatch.setattr(work, "KEEP_SECONDS", 0.0)
    monkeypatch.setattr(work, "KEEP_SHARE", 1e9)

    def stop(progress):
        if progress.done > 13:
            raise KeyboardInterrupt

    run = experiment(dtype="tf32")
    with pytest.raises(KeyboardInterrupt):
        train(run, 1, out=tmp_path, progress=stop)
    again, whole = train(run, 1, out=tmp_path), train(run, 1)
    for name, value in whole.parameters.items():
        np.testing.assert_array_equal(again.parameters[name], value)
        assert value.dtype == np.float32
    for name, curve in whole.curves.items():
        np.testing.assert_array_equal(again.curves[name], curve)
    assert run.fingerprint() != experiment().fingerprint()
