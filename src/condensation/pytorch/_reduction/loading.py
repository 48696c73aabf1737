"""Reduced models in files: written as safetensors, and read into a fresh model of the class, which is cut to fit.

What was done need not be known: the shapes of the stored tensors tell the sizes of all layers, and the number of heads.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import ml_dtypes
import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from ..._files import map_tensors
from ..._plain import parse_json
from ..._seals import check_seal
from ..._writing import write_tensors
from ...errors import InputError
from ...weights._attention import Heads, projection
from .attention import COUNTS, WIDTHS, OpenAttention, keep_padding
from .flexible import KEY as VIEWS
from .flexible import plain_numbers, read_numbers
from .given import checked_model
from .graph import is_depthwise
from .matrix import is_conv1d
from .opening import replace_module

ABOUT = "reduced"  # the field of a file's metadata that tells what it is
State = Mapping[str, torch.Tensor]


def write_reduced(model: nn.Module, path: str | Path, about: Mapping[str, Any] | None = None) -> None:
    """Write a model's tensors with its class and what else is to be known, as a sealed safetensors file."""
    arrays = {}
    for name, value in model.state_dict().items():
        if not isinstance(value, torch.Tensor) or value.is_quantized:
            raise InputError(f"{name} of the model is no plain tensor: safetensors has no place for it")
        arrays[name] = _array(value)
    told = {"class": type(model).__qualname__, VIEWS: plain_numbers(model), **(about or {})}
    write_tensors(Path(path), arrays, {ABOUT: json.dumps(told)})


def load_reduced(model: nn.Module, source: str | Path | State) -> nn.Module:
    """A reduced model: a fresh one of the class, cut to the stored sizes, with the stored values.

    Args:
        model: of the class, and made with the arguments, of the one that was reduced; its weights do not matter, and it
            stays as it is.
        source: a file written by ``ReducedModel.save``, or the ``state_dict`` of a reduced model; as it is, where views
            of the model follow (another dictionary of its tensors does not say so).

    >>> make = lambda: nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    >>> small = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 1))
    >>> load_reduced(make(), small.state_dict())[0]
    Linear(in_features=2, out_features=2, bias=True)
    """
    model = checked_model(model)
    if not isinstance(source, str | Path | Mapping):
        raise InputError(f"source is a file or a state_dict of a reduced model, not a {type(source).__name__}")
    if isinstance(source, Mapping):
        state, where = dict(source), "the state"
        views = {name: about[VIEWS] for name, about in getattr(source, "_metadata", {}).items() if VIEWS in about}
        wrong = next((key for key, value in state.items() if not isinstance(value, torch.Tensor)), None)
        if wrong is not None:
            raise InputError(f"a state_dict holds tensors, and {wrong!r} is a {type(state[wrong]).__name__}")
    else:
        state, views, where = *_read(Path(source), type(model).__qualname__), str(source)
    fresh = deepcopy(model)
    read_numbers(fresh, views, where)
    _fit_modules(fresh, state)
    _check_names(fresh, state, where)
    for name, module in fresh.named_modules():
        prefix = f"{name}." if name else ""
        for table in (module._parameters, module._buffers):
            for key, old in table.items():
                value = state.get(prefix + key)
                if value is not None:
                    _check_shape(prefix + key, old, value, where)
                    _put(module, table, key, old, value)
        _resize(module)
    return fresh


def _read(path: Path, wanted: str) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    about, stored = map_tensors(path)
    if ABOUT not in about:
        raise InputError(f"{path} holds no reduced model: it was not written by ReducedModel.save")
    check_seal(path)
    try:
        told = parse_json(about[ABOUT])
        own = told["class"]
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} does not say of which class its model is: {error}") from error
    if own != wanted:
        raise InputError(f"{path} holds a reduced {own}, and the model is a {wanted}: pass a fresh {own}")
    views = told.get(VIEWS, {})
    if not isinstance(views, dict):
        raise InputError(f"{path} does not say which views of its model follow")
    return {name: _tensor(value.load(), value.dtype) for name, value in stored.items()}, views


def _array(value: torch.Tensor) -> np.ndarray:
    value = value.detach().cpu().contiguous()
    name = str(value.dtype).removeprefix("torch.")
    if not hasattr(ml_dtypes, name):
        return value.numpy()
    return value.view(torch.uint8 if value.element_size() == 1 else torch.int16).numpy().view(getattr(ml_dtypes, name))


def _tensor(values: np.ndarray, kind: str) -> torch.Tensor:
    values = np.array(values)  # out of the mapped file
    if not hasattr(ml_dtypes, kind):
        return torch.from_numpy(values)
    raw = values.view(np.uint8 if values.dtype.itemsize == 1 else np.int16)
    return torch.from_numpy(raw).view(getattr(torch, kind))


def _fit_modules(model: nn.Module, state: State) -> None:
    """Put other modules where the state is of such: open attention, recurrent layers of other sizes or with a bias."""
    for name, module in list(model.named_modules()):
        if isinstance(module, nn.MultiheadAttention) and f"{name}.q_proj.weight" in state:
            replace_module(model, name, OpenAttention(module))
        elif isinstance(module, nn.RNNBase) and not module.proj_size and f"{name}.weight_hh_l0" in state:
            hidden, given = state[f"{name}.weight_hh_l0"], state.get(f"{name}.weight_ih_l0")
            bias = f"{name}.bias_hh_l0" in state
            if given is not None and hidden.ndim == given.ndim == 2 and _is_smaller(module, given, hidden, bias):
                replace_module(model, name, _recurrent(module, given.shape[1], hidden.shape[1], bias))
    keep_padding(model)
    for name, module in model.named_modules():
        counts = [key for key in (*COUNTS, *WIDTHS) if type(vars(module).get(key)) is int]
        share = _left_heads(name, module, state) if counts else 1.0
        for key in counts if share != 1 else ():
            number = vars(module)[key] * share
            if number == int(number) > 0:
                setattr(module, key, int(number))


def _is_smaller(module: nn.RNNBase, given: torch.Tensor, hidden: torch.Tensor, bias: bool) -> bool:
    sizes = given.shape[1], hidden.shape[1]
    fits = sizes[0] <= module.input_size and sizes[1] <= module.hidden_size
    return fits and (*sizes, bias) != (module.input_size, module.hidden_size, module.bias)


def _recurrent(module: nn.RNNBase, given: int, hidden: int, bias: bool) -> nn.RNNBase:
    options: dict[str, Any] = {
        key: getattr(module, key) for key in ("num_layers", "batch_first", "dropout", "bidirectional")
    }
    if isinstance(module, nn.RNN):
        options["nonlinearity"] = module.nonlinearity
    kind = next(kind for kind in (nn.LSTM, nn.GRU, nn.RNN) if isinstance(module, kind))
    weight = cast(torch.Tensor, module.weight_ih_l0)
    return kind(given, hidden, bias=bias, device=weight.device, dtype=weight.dtype, **options).train(module.training)


def _left_heads(name: str, module: nn.Module, state: State) -> float:
    """The share of an attention's heads that are left, by the rows of its projections."""
    for short, layer in module.named_children():
        own = f"{name}.{short}.weight" if name else f"{short}.weight"
        weight = layer._parameters.get("weight")
        if own in state and weight is not None and weight.ndim == state[own].ndim == 2:
            axis = 1 if is_conv1d(layer) else 0
            told = projection(
                own, weight.shape[axis], weight.shape[1 - axis], Heads(1), isinstance(module, OpenAttention)
            )
            if told and not told.get("head_inputs"):
                return state[own].shape[axis] / weight.shape[axis]
    return 1.0


def _check_names(model: nn.Module, state: State, where: str) -> None:
    own = type(model).__name__
    modules = dict(model.named_modules())
    there = model.state_dict().keys()
    for name in state:
        above, _, key = name.rpartition(".")
        if name not in there and not (above in modules and key == "bias" and key in modules[above]._parameters):
            raise InputError(f"{where} holds {name!r}, and this {own} has nothing of that name")
    for name in there:
        if name not in state:
            raise InputError(f"{where} holds no {name!r}, which this {own} has")


def _check_shape(name: str, old: torch.Tensor | None, value: torch.Tensor, where: str) -> None:
    if old is None:
        return
    same = old.ndim == value.ndim and old.shape[2:] == value.shape[2:]
    if not same or any(new > full for new, full in zip(value.shape, old.shape, strict=True)):
        here, there = (" x ".join(map(str, shape)) or "a number" for shape in (old.shape, value.shape))
        raise InputError(
            f"{name} is {there} in {where} and {here} in the model, which must be made as the one that was reduced"
        )


def _put(module: nn.Module, table: dict[str, Any], key: str, old: torch.Tensor | None, value: torch.Tensor) -> None:
    if old is None:
        like = cast(nn.Parameter, module.weight)
        table[key] = nn.Parameter(value.to(like.device), like.requires_grad)
    else:
        old.data = value.to(old.device).clone()


def _resize(module: nn.Module) -> None:
    """The sizes that a module notes, by its tensors."""
    weight = module._parameters.get("weight")
    if isinstance(module, nn.Linear) and weight is not None:
        module.out_features, module.in_features = weight.shape
    elif is_conv1d(module) and weight is not None:
        vars(module).update(nx=weight.shape[0], nf=weight.shape[1])
    elif isinstance(module, _ConvNd) and weight is not None:
        first, second = weight.shape[:2]
        module.groups = first if is_depthwise(module) else module.groups
        inputs, outputs = second * module.groups, first
        module.in_channels, module.out_channels = (first, inputs) if module.transposed else (inputs, outputs)
    elif isinstance(module, _BatchNorm) and (value := module.running_mean if weight is None else weight) is not None:
        module.num_features = len(value)
    elif isinstance(module, nn.PReLU) and weight is not None:
        module.num_parameters = len(weight)
