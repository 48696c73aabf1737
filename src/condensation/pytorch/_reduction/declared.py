"""Sets whose rows are known from the kind of their module: heads of attention, units of recurrent layers.

A unit has several rows here, and a layer may belong to some blocks only. What reads the units is found by ``follow``;
they merge only where all their parameters are equal, and go whole.
"""

import numpy as np
from torch import nn

from .attention import HeadRows, attentions
from .channels import ChannelSet
from .follow import Columns, Follower
from .recurrent import OpenRecurrent
from .trace import ModelInputs, Trace


def declared_sets(model: nn.Module, inputs: ModelInputs, traced: Trace) -> dict[str, ChannelSet]:
    """The declared sets of a model by the name of their module, those that cannot be followed with the reason."""
    heads = [found for found in attentions(model) if all(traced.calls.get(name) for name in found.rows)]
    recurrent = {name: module for name, module in model.named_modules() if isinstance(module, OpenRecurrent)}
    recurrent = {name: module for name, module in recurrent.items() if traced.calls.get(f"{name}.x_l0")}
    if not heads and not recurrent:
        return {}
    follower = Follower(model, inputs)
    sets = [_heads(found, follower) for found in heads]
    sets += [_recurrent(name, module, follower) for name, module in recurrent.items()]
    return {coupled.name: coupled for coupled in sets}


def _heads(found: HeadRows, follower: Follower) -> ChannelSet:
    count = len(next(iter(found.rows.values())))
    attributes = {found.name: found.attributes}
    columns = follower.columns(found.rows) if count > 1 else "it has one head"
    reason = columns if isinstance(columns, str) else ""
    return ChannelSet(
        found.name,
        tuple(found.rows),
        found.rows,
        {} if isinstance(columns, str) else columns,
        np.zeros(count, int),
        reason,
        declared=True,
        attributes=attributes,
    )


def _recurrent(name: str, module: OpenRecurrent, follower: Follower) -> ChannelSet:
    """The units of all layers and directions, which are the blocks."""
    size, blocks = module.hidden_size, len(module.parts)
    channels: dict[str, np.ndarray] = {}
    columns: Columns = {}
    reason = "it has one unit" if size == 1 else ""
    for block, part in enumerate(module.parts):
        own = slice(block * size, (block + 1) * size)
        rows = np.arange(module.gates * size).reshape(module.gates, size).T
        for layer in (f"{name}.x_{part}", f"{name}.h_{part}"):
            channels[layer] = np.full((blocks * size, module.gates), -1)
            channels[layer][own] = rows
        found = follower.columns({f"{name}.states_{part}": np.arange(size)[:, None]})
        if found == "no layer reads it":
            found = {}
        if isinstance(found, str):
            reason = reason or found
            continue
        found |= {f"{name}.h_{part}": np.arange(size)[:, None]}
        for reader, places in found.items():
            table = columns.setdefault(reader, np.full((blocks * size, places.shape[1]), -1))
            if table.shape[1] != places.shape[1]:
                reason = reason or f"its layers meet {reader} in different numbers"
            else:
                table[own] = places
    if not reason and all(key.startswith(f"{name}.") for key in columns):
        reason = "no layer reads it"
    numbers = np.repeat(np.arange(blocks), size)
    attributes = {name: {"hidden_size": 1}}
    return ChannelSet(name, tuple(channels), channels, columns, numbers, reason, declared=True, attributes=attributes)
