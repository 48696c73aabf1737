"""What ``reduce_model`` takes: models in any state, samples in any form, and the sentence where it takes them not."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from torch.utils.data import DataLoader, TensorDataset

from condensation import InputError
from condensation.pytorch import load_reduced, reduce_model

pytestmark = pytest.mark.pytorch


def planted(outputs=3):
    """Eight units of the second layer, each of them twice."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, outputs, bias=False)
    ).eval()
    with torch.no_grad():
        for value in (model[2].weight, model[2].bias):
            value[8:] = value[:8]
    return model


@pytest.mark.filterwarnings("ignore:.*weight_norm.*deprecated")
@pytest.mark.parametrize(
    "change", [nn.utils.weight_norm, lambda layer: prune.l1_unstructured(layer, "weight", amount=0.3)]
)
def test_layers_whose_weight_is_made_by_a_hook_stay_and_the_others_are_reduced(change):
    model = planted()
    change(model[0])
    x = torch.randn(200, 6)
    small = reduce_model(model, x, error=0.01)
    assert small.sizes["2"][1] <= 8
    assert "parametrised" in small.skipped["0"]
    assert not model[0].weight.is_leaf  # it is as it was
    with torch.no_grad():
        assert float((small.model(x) - model(x)).norm() / model(x).norm()) < 0.01
        small.model[0].bias += 1
        nn.init.zeros_(next(value for name, value in small.model[0].named_parameters() if "weight" in name))
        assert not torch.allclose(small.model(x), model(x))  # the weight is made anew


def test_models_without_values_are_refused_in_a_sentence(unchecked):
    x = torch.randn(20, 6)
    with pytest.raises(InputError, match=r"0\.weight is not initialised: the model has to see a batch first"):
        reduce_model(nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(2)), x)


@pytest.mark.filterwarnings("ignore")
def test_quantised_models_are_refused_in_a_sentence(unchecked):
    quantised = torch.ao.quantization.quantize_dynamic(planted(), {nn.Linear})
    with pytest.raises(InputError, match="reduce the model before it is quantised"):
        reduce_model(quantised, torch.randn(20, 6))


class Attended(nn.Module):
    """Of two inputs, with a module that is laid open."""

    def __init__(self):
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 3)

    def forward(self, query, key):
        return self.head(self.attention(query, key, key)[0].mean(1))


def test_a_model_of_two_inputs_says_what_it_lacks_and_takes_them(unchecked):
    torch.manual_seed(0)
    model, x = Attended().eval(), (torch.randn(60, 4, 8), torch.randn(60, 5, 8))
    y = torch.randint(0, 3, (60,))
    with pytest.raises(InputError, match=r"cannot be run on its inputs .* missing 1 required positional argument"):
        reduce_model(model, x, ratio=0.5)
    by_tuple = reduce_model(model, (x, y), ratio=0.5)
    by_name = reduce_model(model, ({"query": x[0], "key": x[1]}, y), ratio=0.5)
    by_batch = reduce_model(model, [(x, y)], ratio=0.5)
    assert by_tuple.accuracy == by_name.accuracy == by_batch.accuracy is not None
    assert by_tuple.relative_error == by_name.relative_error == by_batch.relative_error
    with pytest.raises(InputError, match="as many samples, not 60 and 59"):
        reduce_model(model, (x, y[1:]), ratio=0.5)


def test_a_batch_of_a_loader_is_x_and_y():
    """PyTorch's own loaders give a list."""
    x, y = torch.randn(90, 6), torch.randint(0, 3, (90,))
    batch = next(iter(DataLoader(TensorDataset(x, y), 90)))
    assert isinstance(batch, list)
    small, same = reduce_model(planted(), batch, ratio=0.5), reduce_model(planted(), (x, y), ratio=0.5)
    assert small.accuracy == same.accuracy is not None
    assert reduce_model(planted(), [x[:45], x[45:]], ratio=0.5).accuracy is None
    assert reduce_model(planted(), [x.numpy(), y.numpy()], ratio=0.5).accuracy == same.accuracy


class Mean(nn.Module):
    """Of the words of a sample, as many as there are."""

    def __init__(self):
        super().__init__()
        self.embed, self.hidden, self.out = nn.Embedding(30, 6), nn.Linear(6, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(self.embed(x))).mean(1))


@pytest.mark.parametrize("method", ["best", "prune_fit"])
def test_batches_of_several_lengths(method):
    """As a collator makes them that pads each batch to its longest sample."""
    torch.manual_seed(0)
    model = Mean().eval()
    with torch.no_grad():
        for value in (model.hidden.weight, model.hidden.bias):
            value[8:] = value[:8]
    small = reduce_model(model, [torch.randint(0, 30, (12, 4 + k % 5)) for k in range(20)], ratio=0.5, method=method)
    assert small.sizes == {"hidden": (16, 8)}
    x = torch.randint(0, 30, (50, 7))
    with torch.no_grad():
        assert float((small.model(x) - model(x)).norm() / model(x).norm()) < 1e-5


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"error": float("inf")}, "an allowed error is a number of at least 0, not inf"),
        ({"units": 0}, "^units must be a whole number of at least 1, not 0"),
        ({"units": {"2": 0}}, "^units of layer 2 must be a whole number of at least 1, not 0"),
        ({"units": {"2": 4, "2.weight": 6}}, "each layer may stand once in units, not 2 and 2.weight"),
        ({"data": (torch.ones(20, 6), ["a"] * 20)}, "labels that are no numbers"),
    ],
)
def test_what_cannot_be_met_is_refused_in_a_sentence(how, words, unchecked):
    with pytest.raises(InputError, match=words):
        reduce_model(planted(), **({"data": torch.randn(20, 6)} | how))


def test_sizes_of_numpy_are_saved(tmp_path, unchecked):
    small = reduce_model(planted(), torch.randn(60, 6), units=np.int64(5))
    assert type(small.sizes["2"][1]) is int
    small.save(tmp_path / "small.safetensors")
    assert load_reduced(planted(), tmp_path / "small.safetensors")[2].out_features == 5


def test_fresh_models_without_values_and_other_sources_are_refused_in_a_sentence(unchecked):
    small = reduce_model(planted(), torch.randn(60, 6), units=5)
    state = small.model.state_dict()
    with torch.device("meta"), pytest.raises(InputError, match="meta device"):
        load_reduced(nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 3)), state)
    with pytest.raises(InputError, match="not initialised"):
        load_reduced(nn.Sequential(nn.LazyLinear(12), nn.Tanh(), nn.LazyLinear(3)), state)
    for source in (None, small, small.model):
        with pytest.raises(InputError, match=f"a file or a state_dict of a reduced .* not a {type(source).__name__}"):
            load_reduced(planted(), source)


@pytest.mark.parametrize("how", [{}, {"error": 0.05}, {"ratio": 0.3, "method": "prune_fit"}])
def test_the_default_device_of_new_tensors_is_the_models_affair(how):
    """A model may make tensors where the user's default is; "meta" stands for a GPU, on it nothing can be computed."""

    class Asks(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.devices = planted(), set()

        def forward(self, x):
            self.devices.add(torch.empty(1).device.type)
            return self.layers(x)

    torch.manual_seed(0)
    model, x = Asks(), torch.randn(200, 6)
    given = {"inputs": x[:2]} if not how else {"data": x, **how}
    usual = reduce_model(model, **given)
    model.devices.clear()
    torch.set_default_device("meta")
    try:
        other = reduce_model(model, **given)
    finally:
        torch.set_default_device(None)
    assert model.devices | other.model.devices == {"meta"}
    assert other.model.layers[0].weight.device.type == "cpu"
    assert other.sizes == usual.sizes
    torch.testing.assert_close(other.model(x), usual.model(x))
