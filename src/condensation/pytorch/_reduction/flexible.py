"""Modules whose views follow: where their code asks for ``x.view(-1, 256)``, and x has only 240 left, they take 240.

A run of the model tells which axes of x a number stands for: those whose sizes it is the product of. The module then
gets a class derived from its own, of the same name, whose forward puts the smaller product in its place. The first
axis, that of the samples, is never meant; numbers that cut an axis into several (heads) stay as they are.
"""

import copyreg
import math
import warnings
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import astuple, dataclass
from functools import lru_cache, wraps
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from ...errors import InputError
from .trace import ModelInputs, call
from .views import View, Views, asked_sizes

KEY = "views"  # in the metadata of a file and of a state_dict
LIBRARIES = ("torch.", "condensation.")
Plain = dict[str, list[list[int]]]


@dataclass(frozen=True, order=True)
class Number:
    """A number in the views of a module: the one at ``place`` of ``count`` sizes, of tensors with ``axes`` axes.

    It is ``asked`` for, and means the axes ``first`` to ``last``, the latter left out.
    """

    axes: int
    count: int
    place: int
    asked: int
    first: int
    last: int

    def size(self, tensor: torch.Tensor, sizes: list[Any]) -> int | None:
        """What to ask for instead; nothing where this is another view, or the tensor has what is asked for."""
        if tensor.ndim != self.axes or len(sizes) != self.count:
            return None
        if not isinstance(sizes[self.place], int) or sizes[self.place] != self.asked:
            return None
        joined = math.prod(tensor.shape[self.first : self.last])
        return joined if joined < self.asked else None


Numbers = tuple[Number, ...]


class Following(TorchFunctionMode):
    """Views within a block ask for what the tensor has."""

    def __init__(self, numbers: Numbers) -> None:
        super().__init__()
        self.numbers = numbers

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Put smaller numbers into a view, and go on."""
        called = asked_sizes(func, args, kwargs or {})
        if called is None:
            return func(*args, **(kwargs or {}))
        tensor, sizes = called
        found = ((number.place, number.size(tensor, sizes)) for number in self.numbers)
        smaller = {place: size for place, size in found if size is not None}
        if not smaller:
            return func(*args, **(kwargs or {}))
        return func(tensor, tuple(smaller.get(place, size) for place, size in enumerate(sizes)))


class Flexible(nn.Module):
    """A module whose views follow, of a class derived from the user's; it is copied and pickled like the user's own."""

    _numbers: Numbers
    _plain: type[nn.Module]

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Made again from the class that it is derived from, which can be found by its name."""
        make, made_from, *state = super().__reduce_ex__(protocol)
        if make is getattr(copyreg, "__newobj__") and made_from == (type(self),):  # noqa: B009
            make, made_from = _made, (self._plain, self._numbers)
        return make, made_from, *state

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        about = getattr(destination, "_metadata", {}).get(prefix[:-1], {})
        about[KEY] = [list(astuple(number)) for number in self._numbers]


@lru_cache(maxsize=256)
def _flexible(plain: type[nn.Module], numbers: Numbers) -> type[nn.Module]:
    @wraps(plain.forward)
    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        with Following(numbers):
            return plain.forward(self, *args, **kwargs)

    names = {key: getattr(plain, key) for key in ("__module__", "__qualname__", "__doc__")}
    own = {"forward": forward, "_numbers": numbers, "_plain": plain}
    make: Any = type(plain)
    return make(plain.__name__, (Flexible, plain), names | own)


def _made(plain: type[nn.Module], numbers: Numbers) -> nn.Module:
    """A module without anything in it, as pickle wants it."""
    kind = _flexible(plain, tuple(numbers))
    return kind.__new__(kind)


def numbers_of(module: nn.Module) -> Numbers:
    """The numbers that follow in a module's views."""
    return module._numbers if isinstance(module, Flexible) else ()


def set_numbers(module: nn.Module, numbers: Iterable[Number]) -> None:
    """Let numbers follow in a module's views; without any it gets its own class back."""
    plain, numbers = module._plain if isinstance(module, Flexible) else type(module), tuple(sorted(numbers))
    changed: Any = module
    changed.__class__ = _flexible(plain, numbers) if numbers else plain


def make_flexible(model: nn.Module, inputs: ModelInputs) -> None:
    """Let follow what can, in the model's own modules, which compute what they did."""
    seen = _Owned()
    before = _views(model, inputs, seen)
    if before is None:
        return
    kept = {module: numbers_of(module) for module in seen.numbers}
    for module, numbers in seen.numbers.items():
        alike: dict[tuple[int, ...], set[Number]] = {}
        for number in numbers:
            alike.setdefault(astuple(number)[:4], set()).add(number)
        clear = [number for same in alike.values() if len(same) == 1 for number in same]
        try:
            set_numbers(module, {*kept[module], *clear})
        except TypeError:  # a class that takes no other to be derived from it
            continue
    if any(map(numbers_of, kept)) and not (_views(model, inputs) == before and _survives(model)):
        for module, numbers in kept.items():
            set_numbers(module, numbers)


def drop_unneeded(model: nn.Module, inputs: ModelInputs) -> None:
    """Leave the numbers to follow without which the model does not run as it does; the other modules are as before."""
    owners = {module: numbers for module in model.modules() if (numbers := numbers_of(module))}
    if not owners or (wanted := _views(model, inputs)) is None:
        return
    for module in owners:
        set_numbers(module, ())
    if _views(model, inputs) == wanted:
        return
    for module, numbers in owners.items():
        set_numbers(module, numbers)
    for module, numbers in owners.items():
        for number in numbers:
            needed = numbers_of(module)
            set_numbers(module, [other for other in needed if other != number])
            if _views(model, inputs) != wanted:
                set_numbers(module, needed)


def plain_numbers(model: nn.Module) -> Plain:
    """The numbers that follow, by the names of their modules, for a file."""
    named = {name: numbers_of(module) for name, module in model.named_modules()}
    return {name: [list(astuple(number)) for number in numbers] for name, numbers in named.items() if numbers}


def read_numbers(model: nn.Module, told: Mapping[str, Any], where: str) -> None:
    """Let follow in a fresh model what a file or a state says."""
    modules = dict(model.named_modules())
    for name, rows in told.items():
        numbers = {Number(*row) for row in rows if _is_number(row)} if isinstance(rows, list) else set()
        if name not in modules or not numbers or len(numbers) != len(rows):
            raise InputError(f"{where} tells of views in {name!r} that no {type(model).__name__} can have")
        set_numbers(modules[name], numbers)


def _is_number(row: Any) -> bool:
    if not isinstance(row, list) or [type(value) for value in row] != [int] * 6:
        return False
    axes, count, place, asked, first, last = row
    return 0 <= place < count and asked > 1 and 0 < first < last <= axes


class _Owned(Views):
    """Writes down the numbers of views, by the module in whose forward they stand."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[nn.Module] = []
        self.numbers: dict[nn.Module, set[Number]] = {}

    def enter(self, module: nn.Module, _: Any) -> None:
        """A module begins to run."""
        self.running.append(module)

    def leave(self, *_: Any) -> None:
        """It has run."""
        self.running.pop()

    def note(self, view: View) -> None:
        """Write down a view, and the numbers in it."""
        super().note(view)
        if self.running and _takes_class(self.running[-1]) and (numbers := _numbers(view)):
            self.numbers.setdefault(self.running[-1], set()).update(numbers)


def _takes_class(module: nn.Module) -> bool:
    """Whether a module is of the user's code, and its class says what its forward is."""
    library = f"{type(module).forward.__module__}.".startswith(LIBRARIES)
    made = isinstance(module, torch.fx.GraphModule | torch.jit.ScriptModule)  # and makes its copies in its own way
    return not library and not made and "forward" not in vars(module)


def _numbers(view: View) -> set[Number]:
    """The sizes of a view that join axes behind the first."""
    before, ahead = [1], [1]
    for row, sizes in ((before, view.shape), (ahead, view.given)):
        for size in sizes:
            row.append(int(row[-1] * size))
    found, axes = set(), range(len(before))
    for place, asked in enumerate(view.asked):
        first = max((axis for axis in axes if before[axis] == ahead[place]), default=0)
        last = [axis for axis in axes if axis > first and before[axis] == ahead[place + 1]]
        if asked > 1 and first > 0 and last:
            found.add(Number(len(view.shape), len(view.asked), place, asked, first, last[0]))
    return found


def _views(model: nn.Module, inputs: ModelInputs, views: Views | None = None) -> list[View] | None:
    """The views of a run, or nothing where it fails."""
    views = views or Views()
    with ExitStack() as stack:
        if isinstance(views, _Owned):
            for module in model.modules():
                stack.enter_context(module.register_forward_pre_hook(views.enter))
                stack.enter_context(module.register_forward_hook(views.leave))
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        stack.enter_context(torch.no_grad())
        stack.enter_context(views)
        torch.manual_seed(0)
        try:
            call(model, inputs)
        except Exception:  # what fails, and why, is said where the model is run for its outputs
            return None
    return views.seen


def _survives(model: nn.Module) -> bool:
    """Whether copies of the model, which may copy itself in a way of its own, follow as well."""
    try:
        return plain_numbers(deepcopy(model)) == plain_numbers(model)
    except Exception:  # its own copies want its own class
        return False
