"""Every parameter is listed: its units, cut as the model computes with them, or the reason why it has none."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from transformers import (
    BertConfig,
    BertModel,
    FalconConfig,
    FalconModel,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXModel,
    LlamaConfig,
    LlamaModel,
    MixtralConfig,
    MixtralModel,
    Phi3Config,
    Phi3Model,
    T5Config,
    T5Model,
)

from condensation import Adam, Conv, Dense, Experiment, Init, InputError, Normal, find_lines, sine_sum, train
from condensation.data import Images
from condensation.pytorch import units
from condensation.weights import measure_listed, units_of_arrays

pytestmark = pytest.mark.pytorch

SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 60}
MODELS = {
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=60, n_positions=16, bos_token_id=0, eos_token_id=0)
    ),
    "bert": lambda: BertModel(BertConfig(**SMALL)),
    "llama": lambda: LlamaModel(LlamaConfig(**SMALL, num_key_value_heads=2)),
    "neox": lambda: GPTNeoXModel(GPTNeoXConfig(**SMALL)),
    "phi3": lambda: Phi3Model(Phi3Config(**SMALL, num_key_value_heads=2, pad_token_id=0)),
    "falcon": lambda: FalconModel(
        FalconConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=4, vocab_size=60)
    ),
    "falcon-new": lambda: FalconModel(
        FalconConfig(
            hidden_size=32, num_hidden_layers=1, num_attention_heads=4, num_kv_heads=2, vocab_size=60,
            new_decoder_architecture=True,
        )
    ),
    "t5": lambda: T5Model(T5Config(d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4, vocab_size=60)),
    "mixtral": lambda: MixtralModel(MixtralConfig(**SMALL, num_key_value_heads=2, num_local_experts=3)),
}  # fmt: skip


def by_name(model, **options):
    return {one.name: one for one in units(model, **options)}


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_skipped_silently(name):
    model = MODELS[name]()
    listed = units(model)
    assert len({one.name for one in listed}) == len(listed)
    covered = {one.parameter for one in listed}
    entries = 0
    for one in listed:
        assert bool(one.reason) != bool(one.units)
        if not one.reason:
            assert one.weights().shape == (one.units, one.inputs)
            entries += one.weights().size
    for parameter, value in model.named_parameters():
        bias = parameter.endswith("bias") and value.ndim == 1
        assert parameter in covered or (bias and parameter.removesuffix("bias") + "weight" in covered), parameter
    matrices = sum(value.numel() for value in model.parameters() if value.ndim > 1)
    assert entries >= matrices  # every entry is some unit's input, biases come on top


@pytest.mark.parametrize("name", ["gpt2", "llama", "neox", "phi3", "falcon", "falcon-new"])
def test_heads_are_those_that_the_model_computes(name):
    """Zeroing the value of one head, as we cut it, silences just the inputs of that head in the output projection."""
    model = MODELS[name]().eval()
    listed = by_name(model)
    values = {k: one for k, one in listed.items() if one.kind == "value"}
    outputs = {k: one for k, one in listed.items() if one.kind == "attention output"}
    first = next(iter(outputs.values())).parameter.removesuffix(".weight")
    own = [k for k in values if k.split(".")[:3] == first.split(".")[:3] or k.startswith(first.rsplit(".", 1)[0])]
    assert own
    target = own[-1]
    number = int(target.rstrip("]").split("head ")[1]) if "head" in target else 0
    size = values[target].units
    layer = model.get_submodule(values[target].parameter.removesuffix(".weight"))
    weights = values[target].weights()
    with torch.no_grad():  # find our rows inside the parameter and silence them
        stored = layer.weight if layer.weight.shape[1] == model.config.hidden_size else layer.weight.T
        if name == "gpt2":
            stored = layer.weight.T
        rows = [int(((stored - torch.tensor(row[: stored.shape[1]])).abs().sum(1)).argmin()) for row in weights]
        assert len(set(rows)) == size
        for row in rows:
            stored[row] = 0
            if layer.bias is not None:
                layer.bias[row] = 0
    seen = []
    handle = model.get_submodule(first).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach()))
    model(torch.arange(10)[None])
    handle.remove()
    silent = (seen[0].reshape(-1, seen[0].shape[-1]) == 0).all(0)
    share = model.config.num_attention_heads * size // sum(values[k].units for k in own)
    expected = torch.zeros_like(silent)
    expected[number * share * size : (number + 1) * share * size] = True
    assert torch.equal(silent, expected)


def test_pytorchs_own_attention_is_split_as_it_computes():
    torch.manual_seed(0)
    layer = nn.MultiheadAttention(16, 4, batch_first=True)
    listed = by_name(layer)
    x = torch.randn(2, 5, 16)
    heads = []
    for number in range(4):
        own = {part: torch.tensor(listed[f"in_proj_weight[{part}, head {number}]"].weights()) for part in "qkv"}
        q, v = (F.linear(x, own[part][:, :-1], own[part][:, -1]) for part in "qv")
        k = F.linear(x, own["k"])  # the softmax cancels a bias of keys, so that they are without it
        mixed = F.scaled_dot_product_attention(q, k, v)
        heads.append(mixed @ torch.tensor(listed[f"out_proj.weight[head {number}]"].weights()).T)
    expected = layer(x, x, x, need_weights=False)[0]
    torch.testing.assert_close(sum(heads) + layer.out_proj.bias, expected)


def test_unequal_inputs_of_attention_share_one_bias():
    layer = nn.MultiheadAttention(16, 4, kdim=8, vdim=6)
    nn.init.normal_(layer.in_proj_bias)
    listed = by_name(layer, heads=False)
    bias = layer.in_proj_bias.detach().numpy()
    for k, (name, inputs) in enumerate({"q_proj_weight": 17, "k_proj_weight": 8, "v_proj_weight": 7}.items()):
        assert listed[name].inputs == inputs
        if listed[name].kind == "key":  # the softmax cancels a bias of keys
            continue
        np.testing.assert_array_equal(listed[name].weights()[:, -1], bias[16 * k : 16 * (k + 1)])


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_gates_are_those_of_the_recurrent_layer(kind):
    torch.manual_seed(1)
    layer = kind(3, 5, batch_first=True)
    listed = by_name(layer)
    x, h = torch.randn(1, 1, 3), torch.randn(1, 1, 5)

    def gate(name):
        ih, hh = (torch.tensor(listed[f"weight_{part}_l0[{name}]"].weights()) for part in ("ih", "hh"))
        return F.linear(x, ih[:, :-1], ih[:, -1]), F.linear(h, hh[:, :-1], hh[:, -1])

    if kind is nn.LSTM:
        c = torch.randn(1, 1, 5)
        i, f, g, o = (sum(gate(name)) for name in ("input", "forget", "cell", "output"))
        cell = f.sigmoid() * c + i.sigmoid() * g.tanh()
        torch.testing.assert_close(layer(x, (h, c))[0], o.sigmoid() * cell.tanh())
    else:
        r, z = (sum(gate(name)).sigmoid() for name in ("reset", "update"))
        mine, own = gate("new")
        torch.testing.assert_close(layer(x, h)[0], (1 - z) * (mine + r * own).tanh() + z * h)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_filters_of_convolutions_and_their_groups(dim, groups):
    torch.manual_seed(2)
    plain = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[dim](4, 8, 3, groups=groups)
    turned = {1: nn.ConvTranspose1d, 2: nn.ConvTranspose2d, 3: nn.ConvTranspose3d}[dim](4, 8, 3, groups=groups)
    x = torch.randn(1, 4, *[3] * dim)
    # the middle of a transposed convolution's output sees the flipped kernel: compare by its own definition
    for layer in (plain, turned):
        listed = units(layer)
        rows = np.concatenate([one.weights() for one in listed])
        assert rows.shape == (8, 4 // groups * 3**dim + 1)
        assert [one.name for one in listed] == (
            ["weight"] if groups == 1 else [f"weight[group {k}]" for k in range(groups)]
        )
        inputs = x[0].reshape(4, -1)
        if layer is turned:
            inputs = inputs.flip(1)
        inputs = inputs.reshape(groups, -1).repeat_interleave(8 // groups, 0)
        mine = (torch.tensor(rows[:, :-1]) * inputs).sum(1) + torch.tensor(rows[:, -1])
        middle = layer(x)[0].reshape(8, -1)
        torch.testing.assert_close(mine, middle[:, middle.shape[1] // 2], rtol=1e-4, atol=1e-5)


def test_kernels_are_channel_pairs():
    layer = nn.Conv2d(3, 8, 5)
    (one,) = units(layer, view="kernel")
    assert (one.kind, one.units, one.inputs) == ("kernel", 24, 25)
    np.testing.assert_array_equal(one.weights()[4], layer.weight[1, 1].detach().flatten())
    with pytest.raises(InputError, match="filter, kernel"):
        units(layer, view="kernels")


def test_depthwise_filters_are_compared_with_each_other():
    (one,) = units(nn.Conv2d(6, 6, 3, groups=6))
    assert (one.kind, one.units, one.inputs) == ("depthwise filter", 6, 10)


def test_a_parametrized_weight_is_read_as_it_is_now_and_left_as_it_is():
    torch.manual_seed(3)
    normed = nn.utils.parametrizations.spectral_norm(nn.Linear(6, 5))
    normed.train()
    before = {name: value.clone() for name, value in normed.state_dict().items()}
    (one,) = (one for one in units(normed) if not one.reason)
    first = one.weights()
    for name, value in normed.state_dict().items():
        assert torch.equal(value, before[name]), name  # a look in training mode would take a power iteration
    assert all(part.training for part in normed.modules())
    with torch.no_grad():
        normed.parametrizations.weight.original.mul_(torch.arange(1.0, 6)[:, None])
    assert not np.allclose(one.weights(), first)
    reasons = {u.name: u.reason for u in units(normed) if u.reason}
    assert list(reasons) == ["parametrizations.weight.original"]
    assert "listed under its own name" in reasons["parametrizations.weight.original"]


def test_reasons():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(torch.tensor(1.0))
            self.packed = nn.Parameter(torch.zeros(4, 4, dtype=torch.uint8), requires_grad=False)
            self.waves = nn.Parameter(torch.zeros(4, 4, dtype=torch.complex64))
            self.lazy = nn.LazyLinear(3)
            self.norm = nn.BatchNorm1d(4)
            self.first = nn.Linear(4, 4, bias=False)
            self.second = nn.Linear(4, 4, bias=False)
            self.second.weight = self.first.weight
            self.ghost = nn.Linear(3, 3, bias=False, device="meta")

    reasons = {one.name: one.reason for one in units(Odd())}
    assert reasons["scale"] == "a single number"
    assert reasons["packed"].startswith("quantised or packed as uint8")
    assert "complex" in reasons["waves"]
    assert reasons["lazy.weight"].startswith("not initialised")
    assert reasons["norm.weight"].startswith("a norm's scale")
    assert reasons["second.weight"] == "tied: it is first.weight"
    assert "meta device" in reasons["ghost.weight"]
    assert reasons["first.weight"] == ""
    with pytest.raises(InputError, match="no parameters"):
        units(nn.ReLU())


def test_what_is_no_model_is_refused(unchecked):
    with pytest.raises(InputError, match=r"torch\.nn\.Module, not dict"):
        units({})  # pyright: ignore[reportArgumentType]


@pytest.mark.filterwarnings("ignore")  # PyTorch is about to remove this kind of quantisation
def test_quantised_and_half_precision_models_are_read():
    torch.manual_seed(4)
    half = nn.Linear(6, 5).to(torch.bfloat16)
    assert units(half)[0].weights().dtype == np.float32
    model = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4))
    small = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    listed = by_name(small)
    exact = model[0].weight.detach().numpy()
    np.testing.assert_allclose(listed["0.weight"].weights()[:, :-1], exact, atol=2 * np.abs(exact).max() / 127)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # of torch.compile's own imports
def test_wrappers_are_looked_through():
    model = nn.Sequential(nn.Linear(3, 4))
    plain = [one.name for one in units(model)]
    assert [one.name for one in units(torch.compile(model))] == plain
    assert [one.name for one in units(nn.DataParallel(model))] == plain
    model[0] = torch.compile(model[0])
    assert [one.name for one in units(model)] == plain


@pytest.mark.parametrize("name", MODELS)
def test_names_alone_tell_the_same_as_the_model(name):
    """A checkpoint of arrays with its configuration has the units of the model it came from."""
    model = MODELS[name]()
    arrays = {key: value.detach().numpy() for key, value in model.named_parameters()}
    told = {one.name: one for one in units_of_arrays(arrays, model.config.to_dict())}
    known = {one.name: one for one in units(model) if not one.reason.startswith("tied")}
    assert told.keys() == known.keys()
    for key, one in known.items():
        assert (one.kind, one.units, one.inputs, one.reason) == (
            told[key].kind, told[key].units, told[key].inputs, told[key].reason,
        ), key  # fmt: skip
        if not one.reason:
            np.testing.assert_array_equal(one.weights(), told[key].weights())


def test_our_networks_and_the_same_weights_in_pytorch_measure_the_same():
    network = Dense((5, 50, 20, 1), "tanh")
    experiment = Experiment(
        network, Init(Normal(std=0.005)), sine_sum(3.5, 5, 1, dim=5, n=80, low=-4, high=2), Adam(1e-3), steps=100
    )
    trajectory = train(experiment, seeds=2)
    theirs = nn.Sequential(nn.Linear(5, 50), nn.Tanh(), nn.Linear(50, 20), nn.Tanh(), nn.Linear(20, 1, bias=False))
    for seed in range(2):
        for layer, module in {"dense1": theirs[0], "dense2": theirs[2]}.items():
            ours = trajectory.parameters_at(100, seed)
            with torch.no_grad():
                module.weight.copy_(torch.tensor(ours[f"{layer}.weight"]))
                module.bias.copy_(torch.tensor(ours[f"{layer}.bias"]))
        rows = {row.layer: row for row in measure_listed(units(theirs.double()), with_null=False)}
        for layer, name in {"dense1": "0.weight", "dense2": "2.weight"}.items():
            lines, row = find_lines(trajectory.weights(layer, 100, seed)), rows[name]
            assert (row.lines, row.orientations, row.condensed) == (lines.count, lines.orientations, lines.condensed)
            np.testing.assert_allclose([row.cover, row.k_eff], [lines.cover, lines.k_eff], rtol=1e-6)
        theirs.float()


def test_our_convolutional_network_in_pytorch_measures_the_same_in_both_views():
    network = Conv(channels=(16, 8), kernel=3, hidden=(10,), outputs=10, image=(1, 8, 8))
    data = Images("digits", n=100)
    trajectory = train(Experiment(network, Init(Normal(std=0.01)), data, Adam(1e-3), steps=30), seeds=1)
    theirs = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 8, 3))
    ours = trajectory.parameters_at(30, 0)
    with torch.no_grad():
        for layer, module in {"conv1": theirs[0], "conv2": theirs[2]}.items():
            module.weight.copy_(torch.tensor(ours[f"{layer}.weight"]))
            module.bias.copy_(torch.tensor(ours[f"{layer}.bias"]))
    for view in ("filter", "kernel"):
        listed = by_name(theirs.double(), view=view)
        for layer, name in {"conv1": "0.weight", "conv2": "2.weight"}.items():
            np.testing.assert_allclose(listed[name].weights(), trajectory.weights(layer, 30, 0, view=view), rtol=1e-6)


def test_a_replaced_module_is_seen():
    model = nn.Sequential(nn.Linear(5, 20))
    (one,) = units(model)
    model[0] = nn.Linear(5, 20)
    nn.init.ones_(model[0].weight)
    np.testing.assert_array_equal(one.weights()[:, :-1], np.ones((20, 5)))


def test_depthwise_transposed_filters_are_compared_with_each_other():
    layer = nn.ConvTranspose2d(4, 4, 3, groups=4)
    (one,) = units(layer)
    assert (one.units, one.inputs) == (4, 10)
    np.testing.assert_array_equal(one.weights()[2, :-1], layer.weight[2, 0].detach().flatten())


@pytest.mark.filterwarnings("ignore:.*weight_norm.*is deprecated:FutureWarning")
@pytest.mark.parametrize("kind", ["pruned", "weight norm", "spectral norm"])
def test_weights_made_by_hooks_are_those_the_model_computes_with(kind):
    torch.manual_seed(5)
    layer = nn.Linear(6, 9).train()
    if kind == "pruned":
        nn.utils.prune.random_unstructured(layer, "weight", amount=0.4)
    else:
        made = {"weight norm": nn.utils.weight_norm, "spectral norm": nn.utils.spectral_norm}[kind]
        layer = made(layer)
    layer(torch.randn(3, 6))
    with torch.no_grad():  # an optimizer's step, after which the attribute of the layer is stale
        for parameter in layer.parameters():
            parameter.mul_(torch.rand_like(parameter) + 0.5)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    listed = by_name(layer)
    seen = listed["weight"].weights()
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    x = torch.randn(4, 6)
    torch.testing.assert_close(layer.eval()(x), F.linear(x, torch.tensor(seen[:, :-1]), torch.tensor(seen[:, -1])))
    assert all("listed under its own name" in one.reason for name, one in listed.items() if name != "weight")


def test_looking_at_a_weight_that_is_drawn_draws_nothing():
    class Noisy(nn.Module):
        def forward(self, weight):
            return weight + 0.1 * torch.randn_like(weight)

    layer = nn.Linear(5, 4)
    nn.utils.parametrize.register_parametrization(layer, "weight", Noisy())
    before = torch.get_rng_state()
    by_name(layer)["weight"].weights()
    assert torch.equal(torch.get_rng_state(), before)


def test_looking_within_a_cache_of_parametrizations_keeps_gradients():
    layer = nn.utils.parametrizations.orthogonal(nn.Linear(4, 4))
    with nn.utils.parametrize.cached():
        units(layer)[0].weights()
        layer(torch.randn(2, 4)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None


def test_names_that_begin_like_attention_are_none():
    model = nn.ModuleDict({"attic": nn.ModuleDict({"v": nn.Linear(4, 4), "proj": nn.Linear(4, 4)})})
    assert [one.kind for one in units(model)] == ["neuron", "neuron"]
