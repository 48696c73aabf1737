r"""Attention with its projections laid open, and the heads of any attention as the units of a set.

A head is the rows of its queries, keys and values and the columns of the output projection that read it; where several
heads share keys and values, they are one unit. ``nn.MultiheadAttention`` has room for no other number of heads than its
width allows, so a reduced one is an ``OpenAttention``: four dense layers, heads of any number, values of any size.
The values of a head are used by $W_O W_V$ only. Where its rank r is below their number, r of them do, exactly, by the
singular value decomposition; their bias is a constant of the output, for the weights of attention add up to one.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Int
from torch import nn

from ...weights._attention import Heads, projection
from .._units import _heads
from .matrix import array, dense, trained

COUNTS = ("num_heads", "num_attention_heads", "n_head", "n_heads", "num_key_value_heads", "num_kv_heads")
WIDTHS = ("split_size", "all_head_size", "inner_dim", "inner_size")  # attributes that count the entries of all heads

Rows = Int[np.ndarray, "heads _"]


class OpenAttention(nn.Module):
    """An ``nn.MultiheadAttention`` with any number of heads and values of any size; it is called in the same way."""

    in_proj_weight = in_proj_bias = bias_k = bias_v = None
    _qkv_same_embed_dim = False  # PyTorch's encoder then takes no short cut past this module

    def __init__(self, module: nn.MultiheadAttention) -> None:
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = module.embed_dim, module.num_heads, module.head_dim
        self.batch_first, self.dropout, self.training = module.batch_first, module.dropout, module.training
        given: Any = (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        weights = given if module.in_proj_weight is None else module.in_proj_weight.chunk(3)
        given = given if module.in_proj_weight is None else [module.in_proj_weight] * 3
        biases = [None] * 3 if module.in_proj_bias is None else module.in_proj_bias.chunk(3)
        self.q_proj, self.k_proj, self.v_proj = (
            dense(weight, bias, *trained(whole, module.in_proj_bias))
            for weight, bias, whole in zip(weights, biases, given, strict=True)
        )
        out = module.out_proj
        self.out_proj = dense(out.weight, out.bias, *trained(out.weight, out.bias))

    def fewer_values(self) -> None:
        """As many values a head as the largest rank of what the output makes of them."""
        heads, width = self.num_heads, self.embed_dim
        values = array(self.v_proj.weight).reshape(heads, self.head_dim, -1)
        reads = np.moveaxis(array(self.out_proj.weight).reshape(width, heads, self.head_dim), 1, 0)
        if not (np.isfinite(values).all() and np.isfinite(reads).all()):
            return
        left, sizes, right = np.linalg.svd(reads @ values, full_matrices=False)
        eps = torch.finfo(self.v_proj.weight.dtype).eps * max(values.shape[1:])
        rank = max(1, int((sizes > eps * sizes.max(initial=0.0)).sum(axis=1).max()))
        if rank >= self.head_dim:
            return
        root = np.sqrt(sizes[:, None, :rank])
        like = self.v_proj.weight
        if self.v_proj.bias is not None and self.out_proj.bias is not None:
            constant = array(self.out_proj.weight) @ array(self.v_proj.bias)
            self.out_proj.bias.data += torch.as_tensor(constant).to(like)
        new_values = (right[:, :rank] * root.swapaxes(1, 2)).reshape(heads * rank, -1)
        new_reads = np.moveaxis(left[:, :, :rank] * root, 0, 1).reshape(width, heads * rank)
        bias = None if self.v_proj.bias is None else torch.zeros(heads * rank).to(like)
        own, out = self.v_proj, self.out_proj
        self.v_proj = dense(torch.as_tensor(new_values).to(like), bias, *trained(own.weight, own.bias))
        self.out_proj = dense(torch.as_tensor(new_reads).to(like), out.bias, *trained(out.weight, out.bias))

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        key_padding_mask: torch.Tensor | None = None,
        need_weights: bool = True,
        attn_mask: torch.Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Output and, where they are wanted, the weights of attention."""
        batched = query.ndim == 3
        if not batched:
            query, key, value = (x.unsqueeze(0) for x in (query, key, value))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        q, k = (
            layer(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for layer, x in ((self.q_proj, query), (self.k_proj, key))
        )
        v = self.v_proj(value).unflatten(-1, (q.shape[1], -1)).transpose(1, 2)
        mask = self._mask(q, attn_mask, key_padding_mask)
        dropout = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)
            weights = torch.softmax(scores if mask is None else scores + mask, dim=-1)
            mixed = nn.functional.dropout(weights, dropout) @ v
            weights = weights.mean(dim=1) if average_attn_weights else weights
        else:
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, mask, dropout)
        answer = self.out_proj(mixed.transpose(1, 2).flatten(-2))
        if not batched:
            return answer.squeeze(0), None if weights is None else weights.squeeze(0)
        return answer if self.batch_first else answer.transpose(0, 1), weights

    def _mask(self, q: torch.Tensor, own: torch.Tensor | None, padding: torch.Tensor | None) -> torch.Tensor | None:
        """What is added to the scores, batch x heads x queries x keys."""
        total = None
        if own is not None and own.ndim == 3:
            given = own.unflatten(0, (q.shape[0], -1))
            if given.shape[1] != q.shape[1]:
                raise ValueError(f"a mask for each of {given.shape[1]} heads, and {q.shape[1]} are left")
            own = given
        for mask in (own, None if padding is None else padding[:, None, None, :]):
            if mask is not None:
                if mask.dtype == torch.bool:
                    mask = torch.zeros_like(mask, dtype=q.dtype).masked_fill(mask, float("-inf"))
                total = mask.to(q.dtype) if total is None else total + mask
        return total

    def folded(self, module: nn.MultiheadAttention) -> nn.Module:
        """The module that it was, where all of it is left; or itself."""
        given = OpenAttention(module).state_dict()
        left = self.state_dict()
        if {key: value.shape for key, value in left.items()} != {key: value.shape for key, value in given.items()}:
            return self
        whole = deepcopy(module)
        biases = [layer.bias for layer in (self.q_proj, self.k_proj, self.v_proj)]
        with torch.no_grad():
            weights = [self.q_proj.weight, self.k_proj.weight, self.v_proj.weight]
            if module.in_proj_weight is not None:
                whole.in_proj_weight.copy_(torch.cat(weights))
            else:
                for name, weight in zip("qkv", weights, strict=True):
                    getattr(whole, f"{name}_proj_weight").copy_(weight)
            if module.in_proj_bias is not None:
                whole.in_proj_bias.copy_(torch.cat(cast(list[torch.Tensor], biases)))
            whole.out_proj.weight.copy_(self.out_proj.weight)
            if self.out_proj.bias is not None:
                whole.out_proj.bias.copy_(self.out_proj.bias)
        return whole


@contextmanager
def layer_by_layer() -> Iterator[None]:
    """Within this block PyTorch's encoders take no short cut past their layers, nor past the padding of samples."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def keep_padding(model: nn.Module) -> None:
    """Let encoders hand on padded samples as they are where an open attention reads them: it takes no nested ones."""
    for module in model.modules():
        if isinstance(module, nn.TransformerEncoder) and any(isinstance(p, OpenAttention) for p in module.modules()):
            module.use_nested_tensor = False


class HeadRows:
    """The rows of the heads of one attention, and the attributes that count them.

    Attributes:
        name: of the attention.
        rows: of each projection, the rows of each unit.
        attributes: of the attention, how much each counts for a unit.
    """

    def __init__(self, name: str, module: nn.Module, rows: dict[str, Rows], queries: int) -> None:
        self.name, self.rows = name, rows
        units = len(next(iter(rows.values())))
        heads = queries // units  # that share keys and values
        numbers = {key: value for key, value in vars(module).items() if type(value) is int and value > 0}
        self.attributes = {
            key: value // units for key, value in numbers.items() if key in COUNTS and value % units == 0
        }
        size = Heads.of(numbers).size
        self.attributes |= {key: heads * size for key in WIDTHS if size and numbers.get(key) == queries * size}


def attentions(model: nn.Module) -> Iterator[HeadRows]:
    """The attentions of a model, told by the names of their projections."""
    for name, module in model.named_modules():
        if isinstance(module, OpenAttention):
            count = module.num_heads
            rows = {
                f"{name}.{key}": np.arange(module.get_submodule(key).out_features).reshape(count, -1)  # pyright: ignore
                for key in ("q_proj", "k_proj", "v_proj")
            }
            yield HeadRows(name, module, rows, count)
            continue
        parts: dict[str, dict[str, np.ndarray]] = {}
        size = 0
        for short, layer in module.named_children():
            if not isinstance(layer, nn.Linear):
                continue
            own = f"{name}.{short}" if name else short
            heads = _heads(model, own)
            told = projection(f"{own}.weight", layer.out_features, layer.in_features, heads)
            if heads.size and told.get("head") and not told.get("head_inputs"):
                size = heads.size
                for kind, places in _places(told, layer.out_features).items():
                    parts.setdefault(kind, {})[own] = places
        if set(parts) == {"q", "k", "v"} and all(len(layers) == 1 for layers in parts.values()):
            flat = {kind: next(iter(layers.items())) for kind, layers in parts.items()}
            units, queries = flat["k"][1].size // size, flat["q"][1].size // size
            if flat["v"][1].size == units * size and units and queries % units == 0:
                rows: dict[str, Rows] = {}
                for layer, places in flat.values():
                    own_rows = places.reshape(units, -1)
                    rows[layer] = np.concatenate([rows[layer], own_rows], axis=1) if layer in rows else own_rows
                yield HeadRows(name, module, rows, queries)


def _places(told: dict[str, Any], count: int) -> dict[str, np.ndarray]:
    """The rows of queries, keys and values in a projection."""
    if "parts" not in told:
        return {told["kind"][0]: np.arange(count)}
    turns, parts = told.get("turns", 1), told["parts"]
    table = np.arange(count).reshape(turns, -1)
    ends = np.cumsum([0, *(size for _, size in parts)])
    return {kind: table[:, ends[k] : ends[k + 1]].reshape(-1) for k, (kind, _) in enumerate(parts)}
