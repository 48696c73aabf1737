r"""LSTM, GRU and RNN with their layers laid open, so that their units can be followed, merged and cut.

A layer (of one direction) is two dense layers, of its input and of its state before,
$g_t = W_x x_t + b_x$ and $W_h h_{t-1} + b_h$, and the gates between them. A unit is one entry of the state: the rows of
all its gates in both, its column in $W_h$, and whatever reads the state. All layers of a module have as many units, so
they are the blocks of one set.
"""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import nn

from .matrix import dense, trained

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class OpenRecurrent(nn.Module):
    """An ``nn.LSTM``, ``nn.GRU`` or ``nn.RNN`` as dense layers; it computes the same."""

    def __init__(self, module: nn.RNNBase) -> None:
        super().__init__()
        self.mode, self.gates, self.hidden_size = module.mode, GATES[module.mode], module.hidden_size
        self.num_layers, self.bidirectional = module.num_layers, module.bidirectional
        self.batch_first, self.dropout, self.bias = module.batch_first, module.dropout, module.bias
        self.training = module.training
        self.parts = [
            f"l{layer}{direction}"
            for layer in range(module.num_layers)
            for direction in (("", "_reverse") if module.bidirectional else ("",))
        ]
        for part in self.parts:
            for letter, kind in (("x", "ih"), ("h", "hh")):
                self.add_module(f"{letter}_{part}", _dense(module, kind, part))
            self.add_module(f"states_{part}", nn.Identity())

    def forward(self, given: Any, hx: Any = None) -> tuple[torch.Tensor, Any]:
        """Output and last states, as the module gives them."""
        if not isinstance(given, torch.Tensor):
            raise TypeError("a packed sequence is not followed")
        batched = given.ndim == 3
        values = given if batched else given.unsqueeze(0 if self.batch_first else 1)
        values = values.transpose(0, 1) if self.batch_first else values
        states = [*hx] if isinstance(hx, tuple | list) else [hx] if hx is not None else []
        starts = [state if batched else state.unsqueeze(1) for state in states]
        last: list[tuple[torch.Tensor, ...]] = []
        ways = 2 if self.bidirectional else 1
        for layer in range(self.num_layers):
            outs = []
            for way in range(ways):
                place = layer * ways + way
                out, end = self._run(self.parts[place], values, [state[place] for state in starts], bool(way))
                outs.append(out)
                last.append(end)
            values = torch.cat(outs, dim=-1) if ways > 1 else outs[0]
            if self.dropout and self.training and layer < self.num_layers - 1:
                values = nn.functional.dropout(values, self.dropout)
        ends = tuple(torch.stack(parts) for parts in zip(*last, strict=True))
        output = values.transpose(0, 1) if self.batch_first else values
        if not batched:
            output, ends = output.squeeze(0 if self.batch_first else 1), tuple(end.squeeze(1) for end in ends)
        return output, ends if self.mode == "LSTM" else ends[0]

    def _run(
        self, part: str, values: torch.Tensor, start: list[torch.Tensor], backwards: bool
    ) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        gates = self.get_submodule(f"x_{part}")(values)
        state = cast(nn.Linear, self.get_submodule(f"h_{part}"))
        size = state.in_features
        start = start or [values.new_zeros(values.shape[1], size)] * (2 if self.mode == "LSTM" else 1)
        steps = gates.flip(0) if backwards else gates
        if state._forward_pre_hooks or state._forward_hooks:  # somebody wants to see what it reads, and may change it
            before, _ = cast(tuple[torch.Tensor, torch.Tensor], Recurrence.apply(steps, state, self.mode, *start))
            state(torch.cat([start[0][None], before[:-1]]))
        outputs, cell = cast(tuple[torch.Tensor, torch.Tensor], Recurrence.apply(steps, state, self.mode, *start))
        cells = [cell[None]] if self.mode == "LSTM" else []
        seen = self.get_submodule(f"states_{part}")(torch.cat([outputs, *cells]))
        count = len(outputs)
        sequence, ends = seen[:count], (seen[count - 1], *(seen[count + k] for k in range(len(cells))))
        return sequence.flip(0) if backwards else sequence, ends

    def folded(self) -> nn.RNNBase:
        """The module that it was, with as many units as it has now."""
        kind = {"LSTM": nn.LSTM, "GRU": nn.GRU}.get(self.mode)
        layers = {part: [self.get_submodule(f"{letter}_{part}") for letter in "xh"] for part in self.parts}
        bias = any(layer.bias is not None for pair in layers.values() for layer in pair)
        first = cast(nn.Linear, self.get_submodule("x_l0"))
        options: dict[str, Any] = {
            "num_layers": self.num_layers,
            "bias": bias,
            "batch_first": self.batch_first,
            "dropout": self.dropout,
            "bidirectional": self.bidirectional,
            "device": first.weight.device,
            "dtype": first.weight.dtype,
        }
        if kind is None:
            kind, options["nonlinearity"] = nn.RNN, self.mode.removeprefix("RNN_").lower()
        module = kind(first.in_features, self.hidden_size, **options)
        module.train(self.training)
        with torch.no_grad():
            for part, pair in layers.items():
                for letters, layer in zip(("ih", "hh"), cast(list[nn.Linear], pair), strict=True):
                    for name, value in (("weight", layer.weight), ("bias", layer.bias)):
                        if bias or name == "weight":
                            target = cast(nn.Parameter, getattr(module, f"{name}_{letters}_{part}"))
                            target.copy_(value) if value is not None else target.zero_()
                            target.requires_grad_((layer.weight if value is None else value).requires_grad)
        return module


class Recurrence(torch.autograd.Function):
    """The steps of one layer, as a single operation of the autograd graph; it has no derivative."""

    @staticmethod
    def forward(
        ctx: Any, gates: torch.Tensor, state: nn.Linear, mode: str, *start: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Outputs of all steps, and the last cell (of an LSTM)."""
        step: Callable[..., tuple[torch.Tensor, ...]] = _STEPS[mode]
        now, outputs = tuple(start), []
        for given in gates:
            now = step(given, nn.functional.linear(now[0], state.weight, state.bias), *now)
            outputs.append(now[0])
        return torch.stack(outputs) if outputs else gates.new_zeros(0, *start[0].shape), now[-1].clone()

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> Any:
        """Nobody asks for it."""
        raise NotImplementedError


def _lstm(given: torch.Tensor, own: torch.Tensor, h: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, ...]:
    i, f, g, o = (given + own).chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def _gru(given: torch.Tensor, own: torch.Tensor, h: torch.Tensor) -> tuple[torch.Tensor, ...]:
    (r, z, n), (own_r, own_z, own_n) = given.chunk(3, dim=-1), own.chunk(3, dim=-1)
    z = torch.sigmoid(z + own_z)
    return ((1 - z) * torch.tanh(n + torch.sigmoid(r + own_r) * own_n) + z * h,)


_STEPS: dict[str, Callable[..., tuple[torch.Tensor, ...]]] = {
    "LSTM": _lstm,
    "GRU": _gru,
    "RNN_TANH": lambda given, own, h: (torch.tanh(given + own),),
    "RNN_RELU": lambda given, own, h: (torch.relu(given + own),),
}


def _dense(module: nn.RNNBase, kind: str, part: str) -> nn.Linear:
    weight = cast(nn.Parameter, getattr(module, f"weight_{kind}_{part}"))
    bias = getattr(module, f"bias_{kind}_{part}") if module.bias else None
    return dense(weight, bias, *trained(weight, bias))
