"""Which parameters are projections of an attention layer, told by their names, and how q, k, v and heads lie there."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SEPARATE = {
    "query": r"q|q_proj|q_lin|to_q|wq|query|query_proj|linear_q",
    "key": r"k|k_proj|k_lin|to_k|wk|key|key_proj|linear_k",
    "value": r"v|v_proj|v_lin|to_v|wv|value|value_proj|linear_v",
}
_OUTPUT = re.compile(r"o|o_proj|out_proj|out_lin|c_proj|proj|dense|wo|to_out|out")
_FUSED = re.compile(r"c_attn|qkv|qkv_proj|wqkv|in_proj|to_qkv|query_key_value", re.IGNORECASE)
_OUT_OF = re.compile(rf"({_OUTPUT.pattern})(\.0)?\.weight")
_IN_TURN = "query_key_value"  # q, k and v of a head (of a group of heads) stand together
_ATTENTION = re.compile(r"attn|attention|^(att|mha)$", re.IGNORECASE)


@dataclass(frozen=True)
class Heads:
    """The sizes of a model's attention: of one head, and how many heads have keys and values (0: not known)."""

    size: int = 0
    with_keys: int = 0

    @staticmethod
    def of(config: Mapping[str, Any]) -> "Heads":
        """The sizes that a configuration tells, under the names that are in use.

        >>> Heads.of({"n_embd": 768, "n_head": 12})
        Heads(size=64, with_keys=0)
        """
        number = _first(config, "num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads")
        width = _first(config, "hidden_size", "n_embd", "d_model", "embed_dim", "dim")
        size = _first(config, "head_dim", "attention_head_size", "d_kv", "key_value_proj_dim")
        if not size and number and width and width % number == 0:
            size = width // number
        keys = _first(config, "num_key_value_heads", "n_head_kv", "num_kv_heads")
        if config.get("multi_query") and not config.get("new_decoder_architecture"):
            keys = 1
        return Heads(size, keys)


def _first(config: Mapping[str, Any], *names: str) -> int:
    values = (config.get(name) for name in names)
    return next((v for v in values if isinstance(v, int) and not isinstance(v, bool) and v > 0), 0)


def queries_of(name: str, shapes: Mapping[str, tuple[int, ...]]) -> int:
    """How many queries a fused projection has: what the output projection beside it reads; 0 where that is not told.

    >>> queries_of("attn.qkv_proj.weight", {"attn.qkv_proj.weight": (96, 64), "attn.o_proj.weight": (64, 64)})
    64
    """
    *above, own, _ = name.split(".") if name.count(".") > 1 else ("", "", "")
    path = ".".join([*above, ""])
    if not _FUSED.fullmatch(own) or any(f"{path}{query}.weight" in shapes for query in ("q_attn", "q_proj")):
        return 0
    beside = (
        shape for other, shape in shapes.items() if other.startswith(path) and _OUT_OF.fullmatch(other[len(path) :])
    )
    return next((shape[1] for shape in beside if len(shape) == 2), 0)


def projection(
    name: str, units: int, inputs: int, heads: Heads, within: bool = False, queries: int = 0
) -> dict[str, Any]:
    """What a ``Layout`` has to say of a parameter that is an attention's projection; empty where it is none.

    ``within``: it is known to belong to an attention, whatever the names above it are; ``queries``: how many of its
    units, if that is known.

    >>> projection("h.0.attn.c_attn.weight", 2304, 768, Heads(64))["parts"]
    (('q', 768), ('k', 768), ('v', 768))
    """
    path = name.split(".")
    own = path[-2] if path[-1] in ("weight", "original1") and len(path) > 1 else path[-1].removesuffix("_weight")
    own = path[-3] if own.isdigit() and len(path) > 2 else own  # to_out.0
    within = within or any(_ATTENTION.search(part) for part in path)
    if _FUSED.fullmatch(own) and (within or own != "in_proj"):
        return _fused(own.lower() == _IN_TURN, units, inputs, heads, queries)
    for kind, names in _SEPARATE.items():
        if re.fullmatch(names, own) and (within or own.endswith("_proj")):
            return {"kind": kind, "head": heads.size if heads.size and units % heads.size == 0 else 0}
    if _OUTPUT.fullmatch(own) and (within or own == "o_proj"):
        head = heads.size if heads.size and inputs % heads.size == 0 else 0
        return {"kind": "attention output", "head": head, "head_inputs": True}
    return {}


def _fused(in_turn: bool, units: int, inputs: int, heads: Heads, known: int) -> dict[str, Any]:
    """Parts of a fused projection: thirds, fewer keys and values than queries, or (of cross-attention) no queries."""
    keys = heads.with_keys * heads.size
    if 0 < known < units and (units - known) % 2 == 0:
        keys = (units - known) // 2
    elif not keys or units <= 2 * keys:
        if units == 2 * inputs:
            head = heads.size if heads.size and inputs % heads.size == 0 else 0
            return {"parts": (("k", inputs), ("v", inputs)), "head": head}
        keys = units // 3 if units % 3 == 0 else (units - inputs) // 2
    queries = units - 2 * keys
    if keys <= 0 or queries <= 0:
        return {}
    head = heads.size if heads.size and keys % heads.size == 0 and queries % heads.size == 0 else 0
    if not in_turn:
        return {"parts": (("q", queries), ("k", keys), ("v", keys)), "head": head}
    if not head or queries % (keys // head):
        return {}  # without the size of a head nothing tells them apart
    turns = keys // head
    return {"parts": (("q", queries // turns), ("k", head), ("v", head)), "turns": turns, "head": head}
