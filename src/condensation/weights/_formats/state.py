"""Which arrays of a saved value are a model's weights: a state dict, one inside a checkpoint, or a whole module."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from ..._files import Stored
from ...errors import InputError
from .._beside import no_weights
from .opened import without_values
from .pickles import StandIn
from .tensors import Storages, objects_of

_OF_A_MODEL = (  # keys under which a model is saved, the surest first
    *("state_dict", "model_state_dict", "model_state", "model", "module", "net", "network", "weights"),
    *("params", "parameters"),
)
_OF_MODULES = ("_parameters", "_buffers", "_modules")  # where a module of PyTorch keeps what it has
_OF_SCIKIT_LEARN = ("coefs_", "intercepts_")  # weights and biases of a network; its best ones so far stand beside them
_PACKED = "_packed_params"  # weight and bias of a quantised layer
_SHOWN = 5  # keys that a note names
_DEEPEST = 150  # values in values
_MOST = 300_000  # arrays
_LOOKED = 100_000  # values that are looked into


def weights_of(content: Any, lone: str) -> tuple[dict[str, Stored], tuple[str, ...], list[str]]:
    """The weights of a saved value by name, notes on where they were found, and the keys of arrays that are left out.

    In a value that is more than a state dict, the dictionary is taken that is called as a model is, else all that hold
    weights, each with its key before the names. ``lone`` names an array that is all there is.
    """
    if isinstance(content, Stored):
        return {lone: content}, (), []
    for axes in (2, 0) if _holds_arrays(content) else ():  # a file may be of vectors alone, as a shard may be
        for tried in _tries(content):
            arrays, places = _state_dict(tried, "", axes, count(), 0)
            if arrays:
                left = list(_left_out(tried, "", places)) if isinstance(tried, Mapping) else []
                notes = [f"the weights are those under {_some(places)}"] if places != [""] else []
                notes += [f"other tensors of the file are left out: {_some(left)}"] if left else []
                return arrays, tuple(notes), left
    return {}, (), list(_left_out(content, "", [])) if isinstance(content, Mapping) else []


def _tries(content: Any) -> Iterator[Any]:
    """A value as it is, and then with its lists as dictionaries."""
    yield content
    yield _numbered(content, 0, count())


def named_values(value: Any, storages: Storages) -> Any:
    """A value of a pickle with its tensors and arrays as ``Stored``, and its objects as the dictionaries they hold."""
    return _Plain(storages).of(value, 0)


class _Plain:
    """Turns stand-ins into plain values, each once."""

    def __init__(self, storages: Storages) -> None:
        self.storages = storages
        self.made: dict[int, Any] = {}

    def of(self, value: Any, depth: int) -> Any:
        if not isinstance(value, StandIn | dict | list | tuple):
            return None if isinstance(value, bytes | bytearray) else value
        if id(value) in self.made or depth > _DEEPEST:
            return self.made.get(id(value))
        self.made[id(value)] = None  # until it is known: a value may hold itself
        self.made[id(value)] = made = self._new(value, depth + 1)
        return made

    def _new(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            if _is_module(value):
                return _flat([self.of(value.get(part), depth) for part in _OF_MODULES])
            return {key: self.of(inner, depth) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return tuple(self.of(inner, depth) for inner in value)
        try:
            array = self.storages.array(value)
        except InputError as error:
            return without_values((), "float32", str(error))
        if array is not None:
            return array
        entries = objects_of(value)
        if entries is not None:
            return self.of(entries[0] if len(entries) == 1 else entries, depth)
        return self._object(value, depth)

    def _object(self, value: StandIn, depth: int) -> Any:
        """An object as a dictionary of what it holds; a module of PyTorch as its state dict."""
        state = value.state
        if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):  # of a class with __slots__
            state = state[1] | (state[0] if isinstance(state[0], dict) else {})
        if "PackedParams" in value.name and isinstance(state, tuple):
            return self.of(state, depth)
        held = (dict(state) if isinstance(state, dict) else {}) | value.pairs
        if _is_module(held):
            return _flat([self.of(held.get(part), depth) for part in _OF_MODULES])
        if value.name.startswith("__torch__."):  # TorchScript
            return _flat([{key: self.of(inner, depth) for key, inner in held.items()}])
        if all(isinstance(held.get(part), list) for part in _OF_SCIKIT_LEARN):
            held = {f"{part}.{k}": own for part in _OF_SCIKIT_LEARN for k, own in enumerate(held[part])}
        plain = {key: self.of(inner, depth) for key, inner in held.items()}
        more = [*(value.args or ()), *value.items, *(state if isinstance(state, list | tuple) else ())]
        inner = [part for part in (self.of(part, depth) for part in more) if isinstance(part, dict | tuple | Stored)]
        if not plain and len(inner) == 1:  # a wrapper of one value
            return inner[0]
        return plain | {f"#{k}": part for k, part in enumerate(inner)}


def _is_module(held: dict[Any, Any]) -> bool:
    """Whether this is what a module of PyTorch holds."""
    return isinstance(held.get("_parameters"), dict) and isinstance(held.get("_modules"), dict)


def _flat(parts: list[Any]) -> dict[str, Any]:
    """The arrays of a module and of the modules inside it, by names as in its state dict."""
    flat: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items() if isinstance(part, dict) else ():
            if isinstance(value, Stored) or (str(key).endswith(_PACKED) and isinstance(value, tuple)):
                flat[str(key)] = value
            elif isinstance(value, dict):
                flat |= {f"{key}.{name}": inner for name, inner in value.items()}
            if len(flat) > _MOST:
                raise InputError(f"it holds more than {_MOST:,} arrays")
    return flat


def _numbered(content: Any, depth: int, seen: Iterator[int]) -> Any:
    """Lists as dictionaries by number, for a value whose weights stand in lists."""
    if not isinstance(content, tuple | Mapping) or depth > _DEEPEST:
        return content
    if next(seen) > _LOOKED:
        raise InputError(f"it holds more than {_LOOKED:,} lists in each other")
    pairs = content.items() if isinstance(content, Mapping) else ((str(k), own) for k, own in enumerate(content))
    return {key: _numbered(inner, depth + 1, seen) for key, inner in pairs}


def _some(names: list[str]) -> str:
    more = [f"{len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*(name or "the top" for name in names[:_SHOWN]), *more])


def _state_dict(
    content: Any, place: str, axes: int, seen: Iterator[int], depth: int
) -> tuple[dict[str, Stored], list[str]]:
    """The weights in a dictionary by name, and the keys that lead to them.

    Only a dictionary with an array of so many axes has weights: others hold steps, losses and the like.
    """
    if not isinstance(content, Mapping) or depth > _DEEPEST:
        return {}, []
    if next(seen) > _LOOKED:
        raise InputError(f"it holds more than {_LOOKED:,} dictionaries in each other")
    own = _arrays(content)
    inside = {
        key: _state_dict(value, f"{place}.{key}" if place else key, axes, seen, depth + 1)
        for key, value in content.items()
        if isinstance(key, str) and isinstance(value, Mapping) and not no_weights(key)
    }
    inside = {key: state for key, state in inside.items() if state[0]}
    called = next((key for key in _OF_A_MODEL if key in inside), None)
    if called is not None:
        return inside[called]
    has_own = any(len(stored.shape) >= axes for stored in own.values())
    if not has_own and len(inside) == 1:
        return next(iter(inside.values()))
    arrays, places = (own, [place]) if has_own else ({}, [])
    for key, (more, where) in inside.items():
        arrays |= {f"{key}.{name}": stored for name, stored in more.items()}
        places += where
    return arrays, places


def _left_out(content: Mapping[Any, Any], place: str, places: list[str], depth: int = 0) -> Iterator[str]:
    """The keys of arrays that are under none of some places."""
    for key, value in content.items():
        where = f"{place}.{key}" if place else str(key)
        if isinstance(value, Mapping) and any(f"{taken}.".startswith(f"{where}.") for taken in places):
            if depth < _DEEPEST:
                yield from _left_out(value, where, places, depth + 1)
        elif isinstance(value, Stored) or where.endswith(_PACKED):
            if place not in places and (not isinstance(value, Stored) or len(value.shape) > 1):
                yield where
        elif _holds_arrays(value):
            yield where


def _holds_arrays(value: Any) -> bool:
    waiting, seen = [value], set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, Stored):
            return True
        if isinstance(value, Mapping | tuple) and id(value) not in seen:
            seen.add(id(value))
            waiting += value.values() if isinstance(value, Mapping) else value
    return False


def _arrays(content: Mapping[Any, Any]) -> dict[str, Stored]:
    """The arrays of a dictionary by name."""
    arrays: dict[str, Stored] = {}
    for key, value in content.items():
        if not isinstance(key, str):
            continue
        if isinstance(value, Stored):
            arrays[key] = value
        elif key.endswith(_PACKED) and isinstance(value, tuple):
            layer = ".".join(part for part in key.split(".") if part != _PACKED)
            parts = [part for part in _leaves(value, 0) if part.shape]
            for own, part in zip(("weight", "bias"), parts[-2:] if len(parts) > 1 else parts, strict=False):
                arrays[f"{layer}.{own}" if layer else own] = part
    return arrays


def _leaves(value: Any, depth: int) -> Iterator[Stored]:
    if isinstance(value, Stored):
        yield value
    elif isinstance(value, tuple) and depth < _SHOWN:
        for inner in value[:_SHOWN]:
            yield from _leaves(inner, depth + 1)
