"""Attention against PyTorch's own: outputs to 1e-12, and three steps of its optimizers."""

import math
from dataclasses import replace

import jax
import numpy as np
import pytest
import torch
from torch.nn import functional

import condensation as c

ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu, "gelu": functional.gelu}
TOKENS = {"length": 6, "width": 8, "outputs": 3}
NETWORKS = {
    "theory": c.Attention(6, 8, 3, projection=False, hidden=(8,)),
    "heads": c.Attention(**TOKENS, heads=4),
    "narrow": c.Attention(**TOKENS, heads=3, head_width=2, value_width=5, residual=True),
    "merged": c.Attention(**TOKENS, heads=2, merged=True, value_width=3),
    "scale": c.Attention(**TOKENS, heads=2, scale=0.7, norm="post", residual=True),
    "linear": c.Attention(**TOKENS, heads=2, attention="linear"),
    "linear merged": c.Attention(**TOKENS, heads=2, attention="linear", merged=True, projection=False),
    "no values": c.Attention(**TOKENS, heads=3, head_width=1, attention="linear", values=False, key_inputs=7,
                             projection=False),
    "split": c.Attention(**TOKENS, heads=2, head_width=3, value_width=2, key_inputs=5, feed_forward=4),
    "pre": c.Attention(**TOKENS, depth=2, heads=2, norm="pre", residual=True, feed_forward=9, activation="gelu"),
    "causal": c.Attention(**TOKENS, depth=3, heads=2, causal=True, residual=True, feed_forward=9, activation="relu"),
    "linear deep": c.Attention(**TOKENS, depth=2, heads=2, causal=True, attention="linear", residual=True),
    "tokens": c.Attention(**TOKENS, vocabulary=11, positions=True, feed_forward=9, residual=True, hidden=(5, 4)),
    "text": c.Attention(**TOKENS, vocabulary=11, positions=True, depth=2, projection=False, causal=True, residual=True,
                        feed_forward=9, activation="gelu", fixed=("embedding", "positions", "output")),
    "fixed": c.Attention(**TOKENS, vocabulary=11, positions=True, feed_forward=9, fixed=("embedding", "output")),
}  # fmt: skip


def norm(h):
    return functional.layer_norm(h, h.shape[-1:])


def torch_outputs(net: c.Attention, w: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """The whole sequence through every block, by scaled_dot_product_attention where there is a softmax."""
    h = w["embedding.weight"][x.long()] if net.vocabulary else x
    h = h + w["positions.weight"] if net.positions else h
    n, s = h.shape[:2]
    split = net.key_inputs
    for block in range(1, net.depth + 1):
        seen = norm(h) if net.norm == "pre" else h
        read, valued = (seen, seen) if split is None else (seen[..., :split], seen[..., split:])

        def heads(values, name, block=block):
            return functional.linear(values, w[f"{name}{block}.weight"]).reshape(n, s, net.heads, -1).transpose(1, 2)

        if net.merged:
            q, k = read[:, None].expand(-1, net.heads, -1, -1), heads(read, "key_query")
        else:
            q, k = heads(read, "query"), heads(read, "key")
        v = heads(valued, "value") if net.values else valued[:, None].expand(-1, net.heads, -1, -1)
        if net.attention == "softmax":
            a = functional.scaled_dot_product_attention(q, k, v, is_causal=net.causal, scale=net.scale)
        else:
            scores = q @ k.transpose(2, 3) * (net.scale or 1 / s)
            a = (scores.tril() if net.causal else scores) @ v
        a = a.transpose(1, 2).reshape(n, s, -1)
        a = functional.linear(a, w[f"projection{block}.weight"]) if net.projection else a
        h = h + a if net.residual else a
        h = norm(h) if net.norm == "post" else h
        if net.feed_forward:
            inner = ACTIVATIONS[net.activation](
                functional.linear(norm(h) if net.norm == "pre" else h, w[f"up{block}.weight"])
            )
            inner = functional.linear(inner, w[f"down{block}.weight"])
            h = h + inner if net.residual else inner
            h = norm(h) if net.norm == "post" else h
    h = norm(h)[:, -1] if net.norm == "pre" else h[:, -1]
    for k in range(len(net.hidden)):
        h = ACTIVATIONS[net.activation](functional.linear(h, w[f"dense{k + 1}.weight"]))
    return functional.linear(h, w["output.weight"])


def data_of(net: c.Attention, n: int = 7) -> c.Arrays:
    stream = np.random.default_rng(5)
    x = stream.integers(11, size=(n, 6)) if net.vocabulary else stream.normal(size=(n, 6, 8))
    return c.Arrays(x, np.eye(3)[stream.integers(3, size=n)])


def experiment(name: str, optimizer, steps: int = 3, **options) -> c.Experiment:
    net = NETWORKS[name]
    return c.Experiment(net, c.Init(c.Normal(0.25)), data_of(net), optimizer, steps, **options)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_are_those_of_pytorch(name):
    net, data = NETWORKS[name], data_of(NETWORKS[name])
    model = experiment(name, c.GD(0.1)).initial_model()
    weights = {key: torch.tensor(value) for key, value in model.parameters.items()}
    expected = torch_outputs(net, weights, torch.tensor(data.x)).numpy()
    assert np.abs(expected).max() > 1e-3
    np.testing.assert_allclose(model(data.x), expected, rtol=0, atol=1e-12)
    arranged = net.assemble(model.parameters)(net.arrange(data.x.astype(np.float32)))
    np.testing.assert_allclose(arranged, expected, rtol=1e-4, atol=1e-5)


def test_outputs_are_those_of_multihead_attention():
    net = c.Attention(5, 8, 8, heads=4)
    model = c.Experiment(
        net, c.Init(c.Normal(0.4)), c.Arrays(np.ones((1, 5, 8)), np.ones((1, 8))), c.GD(1), 1
    ).initial_model()
    w = {key: torch.tensor(value) for key, value in model.parameters.items()}
    own = torch.nn.MultiheadAttention(8, 4, bias=False, batch_first=True, dtype=torch.float64)
    own.in_proj_weight.data = torch.cat([w[f"{part}1.weight"] for part in ("query", "key", "value")])
    own.out_proj.weight.data = w["projection1.weight"]
    x = torch.tensor(np.random.default_rng(1).normal(size=(3, 5, 8)))
    expected = functional.linear(own(x, x, x)[0][:, -1], w["output.weight"]).detach().numpy()
    np.testing.assert_allclose(model(x.numpy()), expected, rtol=0, atol=1e-12)
    patterns = own(x, x, x, average_attn_weights=False)[1][:, :, -1:].detach().numpy()
    np.testing.assert_allclose(net.assemble(model.parameters).patterns(x.numpy())[0], patterns, rtol=0, atol=1e-6)


def test_tokens_and_patterns_of_a_block_give_what_its_heads_pass_on():
    net = c.Attention(5, 8, 3, depth=2, heads=2, head_width=3, norm="pre", residual=True)
    model = c.Experiment(
        net, c.Init(c.Normal(0.4)), c.Arrays(np.ones((1, 5, 8)), np.ones((1, 3))), c.GD(1), 1
    ).initial_model()
    x, w = np.random.default_rng(2).normal(size=(4, 5, 8)), model.parameters
    own = net.assemble(w)
    tokens, patterns = own.tokens(x), own.patterns(x)
    h = x
    for k in (1, 2):
        values = np.einsum("njk,hrk->nhjr", tokens[k - 1], w[f"value{k}.weight"].reshape(2, 3, 8))
        passed = np.einsum("nhij,nhjr->nihr", patterns[k - 1], values)
        h = h[:, -passed.shape[1] :] + passed.reshape(*passed.shape[:2], -1) @ w[f"projection{k}.weight"].T
    last = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(model(x), last[:, -1] @ w["output.weight"].T, rtol=0, atol=1e-5)


def torch_steps(own: c.Experiment, start, x, y, steps):
    weights = {name: torch.tensor(value, requires_grad=True) for name, value in start.items()}
    moved = [value for name, value in weights.items() if name.split(".")[0] not in own.network.fixed]
    rate = own.optimizer.learning_rate
    optimizer = (
        torch.optim.AdamW(moved, rate) if isinstance(own.optimizer, c.AdamW)
        else torch.optim.Adam(moved, rate) if isinstance(own.optimizer, c.Adam) else torch.optim.SGD(moved, rate)
    )  # fmt: skip
    inputs, targets = torch.tensor(x), torch.tensor(y)
    for _ in range(steps):
        optimizer.zero_grad()
        f = torch_outputs(own.network, weights, inputs)
        loss = {
            "cross_entropy": lambda f=f: functional.cross_entropy(f, targets),
            "mse": lambda f=f: (f - targets).square().sum(1).mean() / 2,
            "exponential": lambda f=f: torch.exp(-targets * f).sum(1).mean(),
        }[own.loss.name]()
        loss.backward()
        optimizer.step()
    return {name: value.detach().numpy() for name, value in weights.items()}


STEPS = [(c.GD(1e-3), "exponential"), (c.AdamW(1e-2), "cross_entropy"), (c.Adam(1e-2), "mse")]


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("name", "optimizer", "loss"), [(name, *STEPS[k % 3]) for k, name in enumerate(NETWORKS)], ids=[*NETWORKS]
)
def test_three_steps_are_those_of_pytorch(name, optimizer, loss):
    own = experiment(name, optimizer, loss=c.Loss(loss))
    run = c.train(own, 1)
    theirs = torch_steps(own, run.parameters_at(0, 0), *run.data(0), 3)
    for key, value in theirs.items():
        start, end = run.parameters_at(0, 0)[key], run.parameters_at(3, 0)[key]
        np.testing.assert_allclose(end, value, rtol=0, atol=1e-11, err_msg=key)
        assert (np.abs(end - start).max() > 1e-7) == (key.split(".")[0] not in own.network.fixed), key


def test_gradient_flow_is_the_limit_of_small_steps_and_leaves_fixed_layers():
    flow = c.train(experiment("fixed", c.GradientFlow(1e-3), steps=20), 1).parameters_at(20, 0)
    steps = c.train(experiment("fixed", c.GD(1e-5), steps=2000), 1)
    start, end = steps.parameters_at(0, 0), steps.parameters_at(2000, 0)
    for name, value in end.items():
        np.testing.assert_allclose(flow[name], value, rtol=0, atol=2e-3 * np.abs(value - start[name]).max() + 1e-15)
    assert np.array_equal(flow["embedding.weight"], start["embedding.weight"])


@pytest.mark.sampled(9)
@pytest.mark.parametrize("chunk", [1, 2, 4])
@pytest.mark.parametrize("name", ["causal", "linear deep", "text"])
def test_a_long_sequence_is_read_in_parts(monkeypatch, name, chunk):
    monkeypatch.setattr("condensation.networks._attention.CHUNK", chunk)
    net, data = NETWORKS[name], data_of(NETWORKS[name])
    values = experiment(name, c.GD(0.1)).initial_model().parameters
    weights = {key: torch.tensor(value, requires_grad=True) for key, value in values.items()}
    with jax.enable_x64(True):
        outputs, slopes = jax.value_and_grad(lambda v: (net.assemble(v)(data.x) ** 2).sum())(values)
    expected = (torch_outputs(net, weights, torch.tensor(data.x)) ** 2).sum()
    expected.backward()
    assert float(outputs) == pytest.approx(expected.item(), rel=1e-12)
    for key, value in weights.items():
        if value.grad is not None:
            np.testing.assert_allclose(slopes[key], value.grad.numpy(), rtol=1e-9, atol=1e-12)


def products(jaxpr) -> int:
    """The numbers that all products of matrices of a program give."""
    given = [getattr(part, "jaxpr", part) for step in jaxpr.eqns for part in step.params.values()]
    inner = [part for part in given if hasattr(part, "eqns")]
    own = [step.outvars[0].aval.shape for step in jaxpr.eqns if step.primitive.name == "dot_general"]
    return sum(map(math.prod, own)) + sum(map(products, inner))


@pytest.mark.parametrize("name", NETWORKS)
def test_what_layers_pass_on_is_what_their_products_give(name):
    """The readout and the last block are of one token: by the length, a text's vocabulary would fill the memory."""
    for net in (replace(NETWORKS[name], **change) for change in ({}, {"length": 40}, {"outputs": 300})):
        values = c.Init(c.Normal(0.1)).draw(net, np.random.default_rng(0))
        x = np.zeros((1, *net.input_shape), np.float32)
        counted = products(jax.make_jaxpr(lambda v, x, net=net: net.assemble(v)(x))(values, x).jaxpr)
        assert counted <= net.passed_on <= counted + 3 * net.length * net.width
