"""Reduction of heads, values, feed-forward units, recurrent units; reduced models in files."""

from copy import deepcopy

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional as F

from condensation import InputError
from condensation.pytorch import load_reduced, reduce_model
from condensation.pytorch._reduction.attention import OpenAttention
from condensation.pytorch._reduction.follow import Follower
from condensation.pytorch._reduction.judge import relative_error
from condensation.pytorch._reduction.recurrent import OpenRecurrent

pytestmark = pytest.mark.pytorch

HEAD, HEADS, WIDTH = 4, 4, 16
METHODS = ("merge", "merge_fit", "prune", "prune_fit")


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


def drawn(model, size=0.4):
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(size * torch.randn_like(value))
    return model.eval()


def distance(one, other):
    return float((one - other).detach().abs().max() / one.detach().abs().max())


def copy_rows(value, source, target):
    with torch.no_grad():
        value[target] = value[source].clone()


def gpt2(**options):
    from transformers import GPT2Config, GPT2LMHeadModel

    sizes = {"vocab_size": 40, "n_positions": 12, "n_embd": WIDTH, "n_layer": 2, "n_head": HEADS}
    return drawn(GPT2LMHeadModel(GPT2Config(**sizes, bos_token_id=0, eos_token_id=0, **options)))


def planted_gpt2():
    model = gpt2()
    for block in model.transformer.h:
        rows = torch.arange(3 * WIDTH).reshape(3, HEADS, HEAD)
        for value in (block.attn.c_attn.weight.T, block.attn.c_attn.bias):
            copy_rows(value, rows[:, 0].flatten(), rows[:, 2].flatten())
        for value in (block.mlp.c_fc.weight.T, block.mlp.c_fc.bias):
            copy_rows(value, 3, 7)
    return model


def words(count=2, length=9):
    return torch.randint(0, 40, (count, length))


def test_gpt2_with_copies_is_reduced_exactly():
    model = planted_gpt2()
    reduced = reduce_model(model, inputs={"input_ids": words()})
    heads, units = (HEADS, HEADS - 1), (4 * WIDTH, 4 * WIDTH - 1)
    blocks = [f"transformer.h.{k}" for k in range(2)]
    assert reduced.sizes == {f"{b}.{n}": s for b in blocks for n, s in (("attn", heads), ("mlp.c_fc", units))}
    assert type(reduced.model.transformer.h[0].mlp.c_fc).__name__ == "Conv1D"
    x = words(3, 11)
    with torch.no_grad():
        assert distance(model(x).logits, reduced.model(x).logits) < 1e-6
        wide, small = model.double(), reduced.model.double()
        assert distance(wide(x).logits, small(x).logits) < 1e-6
        given = {"max_new_tokens": 4, "do_sample": False, "attention_mask": torch.ones(3, 5)}
        assert torch.equal(wide.generate(x[:, :5], **given), small.generate(x[:, :5], **given))


def test_gpt2_in_float64_is_exact():
    model = planted_gpt2().double()
    reduced = reduce_model(model, inputs={"input_ids": words()})
    x = words(3, 11)
    with torch.no_grad():
        assert distance(model(x).logits, reduced.model(x).logits) < 1e-12


@pytest.mark.parametrize("method", METHODS)
def test_every_method_reduces_gpt2(method):
    model = gpt2()
    reduced = reduce_model(model, {"input_ids": words(200, 8)}, ratio=0.25, method=method)
    assert all(after == 0.75 * before for before, after in reduced.sizes.values())
    assert reduced.operations[1] < reduced.operations[0]
    assert reduced.relative_error < (0.5 if method.endswith("fit") else float("inf"))


def masked(model, heads, units):
    """The model with the outputs of some heads and feed-forward units set to zero."""
    for block in model.transformer.h:
        columns = [HEAD * head + k for head in heads for k in range(HEAD)]
        with torch.no_grad():
            block.attn.c_proj.weight[columns] = 0
            block.mlp.c_proj.weight[units] = 0
    return model


def test_pruning_is_zeroing_what_is_left_out():
    model = gpt2()
    for block in model.transformer.h:  # these are the smallest, by far
        with torch.no_grad():
            for value in (block.attn.c_attn.weight.T, block.attn.c_attn.bias):
                value[[WIDTH * part + HEAD * 1 + k for part in range(3) for k in range(HEAD)]] *= 0.01
            block.mlp.c_fc.weight[:, [2, 9, 11]] *= 0.01
            block.mlp.c_fc.bias[[2, 9, 11]] *= 0.01
    left = {f"transformer.h.{k}.{n}": s for k in range(2) for n, s in (("attn", 3), ("mlp.c_fc", 4 * WIDTH - 3))}
    reduced = reduce_model(model, {"input_ids": words(40, 8)}, units=left, method="prune")
    x = words(3, 11)
    with torch.no_grad():
        assert distance(masked(model, [1], [2, 9, 11])(x).logits, reduced.model(x).logits) < 1e-5


class Encoder(nn.Module):
    def __init__(self, norm_first=True, activation="gelu"):
        super().__init__()
        self.embed = nn.Linear(5, WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, 24, batch_first=True, norm_first=norm_first, activation=activation
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x)).mean(1))


@pytest.mark.parametrize("norm_first", [True, False])
def test_heads_and_values_of_an_encoder_are_reduced_exactly(norm_first):
    model = drawn(Encoder(norm_first)).double()
    first, second = (layer.self_attn for layer in model.encoder.layers)
    rows = torch.arange(3 * WIDTH).reshape(3, HEADS, HEAD)
    for value in (first.in_proj_weight, first.in_proj_bias):
        copy_rows(value, rows[:, 0].flatten(), rows[:, 3].flatten())
    with torch.no_grad():
        for head in rows[2]:  # the values of each head span two dimensions
            second.in_proj_weight[head] = torch.randn(HEAD, 2).double() @ torch.randn(2, WIDTH).double()
    reduced = reduce_model(model, inputs=torch.randn(2, 7, 5).double())
    small = [layer.self_attn for layer in reduced.model.encoder.layers]
    assert reduced.sizes["encoder.layers.0.self_attn"] == (HEADS, HEADS - 1)
    assert small[0].q_proj.out_features == (HEADS - 1) * HEAD
    assert small[1].v_proj.out_features == HEADS * 2
    saved = HEAD * (4 * WIDTH + 3) + 2 * HEADS * (2 * WIDTH + 1)
    assert reduced.parameters[0] - reduced.parameters[1] == saved
    x = torch.randn(6, 9, 5).double()
    with torch.no_grad():
        assert distance(model(x), reduced.model(x)) < 1e-12


def test_an_encoder_without_copies_keeps_its_modules():
    model = drawn(Encoder())
    reduced = reduce_model(model, inputs=torch.randn(2, 7, 5))
    assert reduced.parameters[0] == reduced.parameters[1]
    assert all(type(layer.self_attn) is nn.MultiheadAttention for layer in reduced.model.encoder.layers)
    small = reduce_model(model, torch.randn(300, 7, 5), ratio=0.25)
    assert all(isinstance(layer.self_attn, OpenAttention) for layer in small.model.encoder.layers)
    assert small.relative_error < 0.5


class Padded(nn.Module):
    """An encoder that is told where its samples end, so that PyTorch nests them in evaluation."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, WIDTH, padding_idx=0)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(WIDTH, HEADS, 24, batch_first=True), 2)
        self.head = nn.Linear(WIDTH, 3)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x), src_key_padding_mask=x == 0)[:, 0])


def padded(count):
    x = torch.randint(1, 20, (count, 7))
    x[torch.arange(7) >= torch.randint(2, 8, (count, 1))] = 0
    x[0] = 1  # one sample has the full length
    return x


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("cut", [0, 1])
def test_an_encoder_of_padded_samples_is_reduced_and_runs_on_them(cut, tmp_path):
    """Whichever layer has fewer heads; PyTorch's short cut neither hides layers nor hands nested tensors on to them."""
    model, x = drawn(Padded()), padded(200)
    for layer in model.encoder.layers:  # the first and the last head are copies, and so are six neurons
        rows = torch.arange(3 * WIDTH).reshape(3, HEADS, HEAD)
        for value in (layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias):
            copy_rows(value, rows[:, 0].flatten(), rows[:, 3].flatten())
        for value in (layer.linear1.weight, layer.linear1.bias):
            copy_rows(value, torch.arange(6), torch.arange(6, 12))
    attention, neurons = f"encoder.layers.{cut}.self_attn", "encoder.layers.0.linear1"
    left = {attention: HEADS - 1, neurons: 18}
    small = reduce_model(model, x, units=left, method="merge")
    assert {name: small.sizes[name] for name in left} == {attention: (HEADS, HEADS - 1), neurons: (24, 18)}
    assert small.operations[0] > 7 * 2 * WIDTH * (4 * WIDTH + 2 * 24)  # the layers were counted
    assert torch.backends.mha.get_fastpath_enabled()
    small.save(tmp_path / "small.safetensors")
    again = load_reduced(Padded().eval(), tmp_path / "small.safetensors")
    others = padded(30)
    for grad in (False, True):
        for value in small.model.parameters():
            value.requires_grad_(False)
        with torch.set_grad_enabled(grad):
            assert distance(model(others), small.model(others)) < 1e-5
            assert distance(again(others), small.model(others)) < 1e-5


class Between(nn.Module):
    """An attention between two dense layers, nothing else: all that it reads and gives can be left out."""

    def __init__(self):
        super().__init__()
        self.before, self.after = nn.Linear(6, WIDTH), nn.Linear(WIDTH, 3)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, x):
        x = self.before(x)
        return self.after(self.attention(x, x, x)[0].mean(1))


@pytest.mark.parametrize("how", [{"error": 0.1}, {"ratio": 0.5}])
def test_channels_that_an_attention_reads_and_gives_are_left_out(how, tmp_path):
    for seed in range(3):
        torch.manual_seed(seed)
        model = Between().eval()
        small = reduce_model(model, torch.randn(300, 7, 6), **how)
        before, after = small.sizes["before"]
        assert after < before
        assert isinstance(small.model.attention, OpenAttention)
        small.save(tmp_path / "small.safetensors")
        x = torch.randn(300, 7, 6)
        with torch.no_grad():
            again = load_reduced(Between(), tmp_path / "small.safetensors")
            assert torch.equal(again(x), small.model(x))
            assert relative_error(model(x).numpy(), small.model(x).numpy()) <= small.most_error


@pytest.mark.parametrize("kept", ["bias", "weight", "out_proj"])
def test_what_is_not_trained_stays_so(kept):
    """Where only biases are trained, or all but some projections."""
    models = [Between(), gpt2(), Sequence(nn.LSTM)]
    for model, x in zip(models, (torch.randn(60, 7, 6), {"input_ids": words(60)}, torch.randn(60, 6, 5)), strict=True):
        for name, value in model.named_parameters():
            value.requires_grad_(kept in name)
        with torch.no_grad():  # also where gradients are off
            small = reduce_model(model.eval(), x, ratio=0.5)
        for name, value in small.model.named_parameters():
            given = name.replace("attention.q_proj.", "attention.in_proj_")
            if given in dict(model.named_parameters()):
                assert value.requires_grad == (kept in given), name


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("sizes", [{}, {"kdim": 5, "vdim": 7}])
def test_open_attention_computes_the_same(batch_first, bias, sizes):
    module = drawn(nn.MultiheadAttention(8, 2, bias=bias, batch_first=batch_first, **sizes)).double()
    ours = OpenAttention(module)
    shape = (3, 4) if batch_first else (4, 3)
    q, k, v = (torch.randn(*shape, size).double() for size in (8, sizes.get("kdim", 8), sizes.get("vdim", 8)))
    padding = torch.tensor([[False, False, False, True]] * 3)
    causal = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
    every = torch.randn(6, 4, 4).double()
    for options in (
        {},
        {"need_weights": False},
        {"key_padding_mask": padding},
        {"attn_mask": causal},
        {"attn_mask": every},
    ):
        for average in (True, False):
            one, other = (part(q, k, v, average_attn_weights=average, **options) for part in (module, ours))
            assert torch.allclose(one[0], other[0])
            assert (one[1] is None) == (other[1] is None)
            assert one[1] is None or torch.allclose(one[1], other[1])
    assert torch.allclose(module(q[0], k[0], v[0])[0], ours(q[0], k[0], v[0])[0])
    again = ours.folded(module)
    assert type(again) is nn.MultiheadAttention
    assert torch.equal(again(q, k, v)[0], module(q, k, v)[0])


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(6, 12), nn.Linear(6, 12), nn.Linear(12, 6)
        self.norm, self.out = nn.LayerNorm(6), nn.Linear(6, 2)

    def forward(self, x):
        return self.out(self.norm(x + self.down(F.silu(self.gate(x)) * self.up(x))))


def test_gated_units_are_one_only_where_both_rows_are():
    model = drawn(Gated()).double()
    for layer in (model.gate, model.up):
        for value in (layer.weight, layer.bias):
            copy_rows(value, 1, 4)
    copy_rows(model.gate.weight, 2, 5)
    copy_rows(model.gate.bias, 2, 5)
    reduced = reduce_model(model, inputs=torch.randn(3, 6).double())
    assert reduced.sizes == {"gate": (12, 11)}
    x = torch.randn(9, 6).double()
    assert distance(model(x), reduced.model(x)) < 1e-12


class Sequence(nn.Module):
    def __init__(self, kind=nn.LSTM, last=False, **options):
        super().__init__()
        self.embed = nn.Linear(5, 7)
        self.rnn = kind(7, 10, batch_first=True, **options)
        self.head = nn.Linear(20 if options.get("bidirectional") else 10, 3)
        self.last = last

    def forward(self, x):
        y, state = self.rnn(torch.tanh(self.embed(x)))
        if not self.last:
            return self.head(y[:, -1])
        return self.head((state[0] if isinstance(state, tuple) else state)[-1])


def plant_units(rnn, source, target):
    for name, value in rnn.named_parameters():
        gates = torch.arange(len(value)).reshape(-1, rnn.hidden_size)
        if not name.startswith("weight_hr"):
            copy_rows(value, gates[:, source], gates[:, target])


STACKS = [{}, {"num_layers": 2}, {"num_layers": 2, "bidirectional": True}, {"bias": False}]


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("options", STACKS)
@pytest.mark.parametrize("exact", [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_copies_of_recurrent_units_are_merged_exactly(kind, options, exact):
    dtype, near = exact
    model = drawn(Sequence(kind, **options)).to(dtype)
    plant_units(model.rnn, 2, 5)
    plant_units(model.rnn, 2, 7)
    reduced = reduce_model(model, inputs=torch.randn(2, 6, 5).to(dtype))
    blocks = len([name for name, _ in model.rnn.named_parameters() if name.startswith("weight_hh")])
    assert reduced.sizes["rnn"] == (10 * blocks, 8 * blocks)
    assert type(reduced.model.rnn) is kind
    assert reduced.model.rnn.hidden_size == 8
    x = torch.randn(9, 6, 5).to(dtype)
    with torch.no_grad():
        assert distance(model(x), reduced.model(x)) < near


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("last", [True, False])
def test_every_method_reduces_a_recurrent_layer(method, last):
    model = drawn(Sequence(nn.LSTM, last))
    reduced = reduce_model(model, torch.randn(400, 6, 5), units={"rnn": 8}, method=method)
    assert reduced.sizes["rnn"] == (10, 8)
    assert reduced.model(torch.randn(2, 6, 5)).shape == (2, 3)
    if method.endswith("fit"):
        assert reduced.relative_error < 0.5


def test_pruning_a_recurrent_unit_is_zeroing_what_reads_it():
    model = drawn(Sequence(nn.GRU)).double()
    with torch.no_grad():
        model.head.weight[:, [3, 6]] *= 1e-3
        model.rnn.weight_hh_l0[:, [3, 6]] *= 1e-3
    reduced = reduce_model(model, torch.randn(60, 6, 5).double(), units={"rnn": 8}, method="prune")
    with torch.no_grad():
        model.head.weight[:, [3, 6]] = 0
        model.rnn.weight_hh_l0[:, [3, 6]] = 0
    x = torch.randn(9, 6, 5).double()
    assert distance(model(x), reduced.model(x)) < 1e-12


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("options", STACKS)
def test_open_recurrent_layers_compute_the_same(kind, options):
    module = kind(4, 6, **options).double()
    ours, x = OpenRecurrent(module), torch.randn(5, 3, 4).double()
    blocks = len(ours.parts)
    start = torch.randn(blocks, 3, 6).double()
    starts = (start, -start) if kind is nn.LSTM else start
    for given in ((x,), (x, starts), (x[:, 0],)):
        wanted, seen = module(*given), ours(*given)
        pairs = [(wanted[0], seen[0]), *zip(wanted[1], seen[1], strict=True)]
        assert all(one.shape == other.shape and torch.allclose(one, other) for one, other in pairs)
    assert torch.equal(ours.folded()(x)[0], module(x)[0])


class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x):
        packed = nn.utils.rnn.pack_padded_sequence(x, torch.full((len(x),), x.shape[1]), batch_first=True)
        return self.head(self.rnn(packed)[1][0][-1])


class Stateful(Packed):
    def forward(self, x):
        start = torch.zeros(1, len(x), 4)
        return self.head(self.rnn(x, (start, start))[0][:, -1])


class Answering(Packed):
    def forward(self, x):
        return self.rnn(x)[0]


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Packed(), "packed sequence"),
        (Stateful(), "does not run with fewer"),
        (Answering(), "part of the model's output"),
        (Sequence(nn.LSTM, proj_size=3), "projects its states"),
    ],
)
def test_recurrent_layers_that_are_not_reduced_are_named(model, words):
    if isinstance(model, Sequence):
        model.head = nn.Linear(3, 3)
    size = 5 if isinstance(model, Sequence) else 3
    reduced = reduce_model(model.eval(), inputs=torch.randn(2, 4, size))
    assert words in reduced.skipped["rnn"]
    assert type(reduced.model.rnn) is nn.LSTM


class Viewed(nn.Module):
    def __init__(self, view):
        super().__init__()
        self.conv, self.head, self.view = nn.Conv2d(1, 16, 3), nn.Linear(256, 3), view

    def forward(self, x):
        return self.head(self.view(F.relu(self.conv(x))))


CASES = {
    "gpt2": (planted_gpt2, {"input_ids": words()}),
    "encoder": (lambda: drawn(Encoder()), torch.randn(300, 7, 5)),
    "lstm": (lambda: drawn(Sequence(nn.LSTM, num_layers=2, bidirectional=True)), torch.randn(300, 6, 5)),
    "gru": (lambda: drawn(Sequence(nn.GRU, bias=False)), torch.randn(300, 6, 5)),
    "conv": (lambda: drawn(Viewed(lambda x: x.flatten(1))), torch.randn(300, 1, 6, 6)),
}


def fresh(name):
    return CASES[name][0]()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_fresh_model_takes_what_was_saved(name, dtype, tmp_path):
    make, x = CASES[name]
    reduced = reduce_model(make(), inputs=x) if name == "gpt2" else reduce_model(make(), x, ratio=0.25)
    reduced.model.to(dtype)
    reduced.save(tmp_path / "small.safetensors")
    given = x["input_ids"] if name == "gpt2" else x[:4].to(dtype)
    for source in (tmp_path / "small.safetensors", reduced.model.state_dict()):
        model = fresh(name)
        sizes = [value.shape for value in model.parameters()]
        loaded = load_reduced(model, source).eval()
        assert sizes == [value.shape for value in model.parameters()]
        assert str(loaded) == str(reduced.model)
        with torch.no_grad():
            one, other = ((part(given).logits if name == "gpt2" else part(given)) for part in (loaded, reduced.model))
        assert torch.equal(one, other)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
def test_a_model_with_projected_states_takes_what_was_saved(tmp_path):
    model = drawn(Sequence(nn.LSTM, proj_size=6))
    model.head = nn.Linear(6, 3)
    reduce_model(model, torch.randn(60, 6, 5), ratio=0.25).save(tmp_path / "small.safetensors")
    again = load_reduced(deepcopy(model), tmp_path / "small.safetensors")
    x = torch.randn(4, 6, 5)
    with torch.no_grad():
        assert torch.equal(again(x), model(x))  # it has no layer that can be reduced


def test_other_files_and_classes_are_refused_in_a_sentence(tmp_path):
    path = tmp_path / "small.safetensors"
    reduce_model(fresh("conv"), inputs=torch.randn(2, 1, 6, 6)).save(path)
    with pytest.raises(InputError, match="holds a reduced Viewed, and the model is a Sequence"):
        load_reduced(Sequence(), path)
    with pytest.raises(InputError, match="there is no file"):
        load_reduced(fresh("conv"), tmp_path / "none.safetensors")
    save_file({"a": torch.ones(2)}, tmp_path / "other.safetensors")
    with pytest.raises(InputError, match=r"not written by ReducedModel\.save"):
        load_reduced(fresh("conv"), tmp_path / "other.safetensors")
    narrow = fresh("conv")
    narrow.conv = nn.Conv2d(1, 12, 3)
    with pytest.raises(InputError, match=r"conv\.weight is 16 x 1 x 3 x 3 in .* and 12 x 1 x 3 x 3 in the model"):
        load_reduced(narrow, path)
    extra = fresh("conv")
    extra.more = nn.Linear(2, 2)
    with pytest.raises(InputError, match=r"holds no 'more\.weight'"):
        load_reduced(extra, path)
    with pytest.raises(InputError, match="nothing of that name"):
        load_reduced(fresh("conv"), extra.state_dict())
    content = path.read_bytes()
    for broken in (content[:-5], content[:50], b"", content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]):
        path.write_bytes(broken)
        with pytest.raises(InputError, match=r"damaged|cannot be read"):
            load_reduced(fresh("conv"), path)


def test_what_moves_is_found():
    model = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Unflatten(1, (2, 3)), nn.Flatten(), nn.Linear(6, 2))
    found = Follower(model, torch.randn(4, 3)).columns({"0": torch.arange(6).reshape(6, 1).numpy()})
    assert found["4"].tolist() == [[k] for k in range(6)]
    mixed = nn.Sequential(nn.Linear(3, 6), nn.Softmax(-1), nn.Linear(6, 2))
    assert "mixed" in Follower(mixed, torch.randn(4, 3)).columns({"0": torch.arange(6).reshape(6, 1).numpy()})


@pytest.mark.filterwarnings("ignore:.*jit.*deprecated")
def test_wrapped_compiled_and_quantised_models_get_a_sentence():
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    with pytest.raises(InputError, match="TorchScript"):
        load_reduced(torch.jit.trace(model, torch.randn(1, 4)), model.state_dict())
    normed = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 6)), nn.ReLU(), nn.Linear(6, 2))
    assert "parametrised" in reduce_model(normed, inputs=torch.randn(2, 4)).skipped["0"]
    model[2].weight = nn.Parameter(torch.randn(6, 6))
    model[2].bias = model[0].bias
    assert "shared" in reduce_model(model, inputs=torch.randn(2, 4)).skipped["0"]
