"""Pickles read as data: a stack machine that builds plain values and stand-ins, and imports and calls nothing.

A pickle is a program. Its opcodes that import a name, call it or build an object leave a ``StandIn`` here: the name,
the arguments and the state, as data. Only containers of Python itself are made, from a closed list of names.
"""

import pickletools
import re
from collections.abc import Callable
from math import prod
from typing import Any

from ..._memory import require

PERSISTENT = "persistent id"  # the name of a stand-in for an object that is kept elsewhere
JOBLIB = "joblib.numpy_pickle.NumpyArrayWrapper"
CONTAINERS = {  # names of Python whose call with no arguments, or with one container, is that container
    **dict.fromkeys(("collections.OrderedDict", "builtins.dict", "__builtin__.dict"), dict),
    **dict.fromkeys(("collections.defaultdict", "collections.Counter"), dict),
    **dict.fromkeys(("builtins.list", "__builtin__.list", "builtins.set", "__builtin__.set"), list),
    **dict.fromkeys(("builtins.frozenset", "__builtin__.frozenset", "collections.deque"), list),
    **dict.fromkeys(("builtins.tuple", "__builtin__.tuple", "torch.Size"), tuple),
}
_PLAIN = (str, int, float, bytes, type(None))  # keys; others might take without end to compare
_MANY = 2**19  # values after which memory is looked at again
_OF_VALUE = 200  # bytes of a small value in Python


class StandIn:
    """What a pickle would have imported, called or built.

    Attributes:
        name: of the class or function.
        args: that it would have been called with; None where it is only named.
        state: that the object would have been given.
        items: that would have been appended to it.
        pairs: that it would have been given by key.
    """

    __slots__ = ("args", "items", "name", "pairs", "state")

    def __init__(self, name: str, args: tuple[Any, ...] | None = None) -> None:
        self.name, self.args = name, args
        self.state: Any = None
        self.items: list[Any] = []
        self.pairs: dict[Any, Any] = {}


class Unreadable(ValueError):
    """A pickle that is broken, or of a kind that is not read."""


def read_pickle(file: Any) -> tuple[Any, list[str]]:
    """The value of the pickle that begins where a file stands, and the names that it would have imported."""
    machine = _Machine(file)
    try:
        for opcode, argument, _ in pickletools.genops(file):
            machine.spend(1)
            if opcode.name == "STOP":
                return machine.pop(), list(machine.names)
            machine.step(opcode.name, argument)
    except (IndexError, KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise Unreadable(f"its pickle is broken: {error}") from error
    raise Unreadable("its pickle has no end")


class _Machine:
    def __init__(self, file: Any) -> None:
        self.file = file
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []
        self.memo: dict[int, Any] = {}
        self.names: dict[str, None] = {}
        self.values = 0  # that were made since memory was looked at

    def spend(self, values: int) -> None:
        """Count values that are made, and refuse more than memory holds."""
        self.values += values
        if self.values >= _MANY:
            require(self.values * _OF_VALUE, "the values of a pickle", "a smaller file would fit")
            self.values = 0

    def step(self, opcode: str, argument: Any) -> None:
        own = getattr(self, f"do_{opcode}", None)  # names of opcodes come from a closed table of pickletools
        if own is not None:
            own(argument)
        elif opcode in _CONSTANTS:
            self.stack.append(_CONSTANTS[opcode]())
        elif opcode in _VALUES:
            self.stack.append(argument)
        elif opcode in _TUPLES:
            count = _TUPLES[opcode]
            values = [self.pop() for _ in range(count)]
            self.stack.append(tuple(reversed(values)))
        elif opcode in ("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.memo[len(self.memo) if opcode == "MEMOIZE" else argument] = self.stack[-1]
        elif opcode in ("GET", "BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[argument])
        elif opcode not in ("PROTO", "FRAME"):
            raise Unreadable(f"its pickle has the opcode {opcode}, which is not read")

    def pop(self) -> Any:
        return self.stack.pop()

    def marked(self) -> list[Any]:
        """What stands above the last mark."""
        values, self.stack = self.stack, self.marks.pop()
        return values

    def named(self, module: str, name: str) -> StandIn:
        full = f"{module}.{name}"
        self.names.setdefault(full)
        return StandIn(full)

    def called(self, function: Any, args: Any) -> Any:
        """What a call leaves: a container of Python where it would make one, else a stand-in."""
        args = args if isinstance(args, tuple) else (args,)
        name = function.name if isinstance(function, StandIn) else type(function).__name__
        if isinstance(function, StandIn) and function.args is None:
            if name in CONTAINERS:
                self.spend(sum(len(part) for part in args if isinstance(part, list | tuple | dict)))
                return _container(CONTAINERS[name], args)
            if name == "_codecs.encode" and args[1:] == ("latin1",) and isinstance(args[0], str):
                return args[0].encode("latin1")  # bytes in old protocols
        return StandIn(name, args)

    def do_MARK(self, _: Any) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def do_POP(self, _: Any) -> None:
        if self.stack:
            self.stack.pop()
        else:
            self.marked()

    def do_POP_MARK(self, _: Any) -> None:
        self.marked()

    def do_DUP(self, _: Any) -> None:
        self.stack.append(self.stack[-1])

    def do_LIST(self, _: Any) -> None:
        self._push(self.marked())

    def do_TUPLE(self, _: Any) -> None:
        self._push(tuple(self.marked()))

    def do_DICT(self, _: Any) -> None:
        self._push(dict(_pairs(self.marked())))

    def do_FROZENSET(self, _: Any) -> None:
        self._push(self.marked())

    def _push(self, value: Any) -> None:
        self.stack.append(value)

    def do_APPEND(self, _: Any) -> None:
        self._extend([self.pop()])

    def do_APPENDS(self, _: Any) -> None:
        self._extend(self.marked())

    def do_ADDITEMS(self, _: Any) -> None:
        self._extend(self.marked())

    def _extend(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, StandIn):
            target.items.extend(values)
        elif isinstance(target, list):
            target.extend(values)
        else:
            raise Unreadable("its pickle appends to what is no list")

    def do_SETITEM(self, _: Any) -> None:
        value = self.pop()
        self._update([self.pop(), value])

    def do_SETITEMS(self, _: Any) -> None:
        self._update(self.marked())

    def _update(self, values: list[Any]) -> None:
        target = self.stack[-1]
        if isinstance(target, StandIn):
            target.pairs.update(_pairs(values))
        elif isinstance(target, dict):
            target.update(_pairs(values))
        else:
            raise Unreadable("its pickle sets items of what is no dictionary")

    def do_GLOBAL(self, argument: str) -> None:
        module, _, name = argument.partition(" ")
        self._push(self.named(module, name))

    def do_STACK_GLOBAL(self, _: Any) -> None:
        name, module = self.pop(), self.pop()
        if not isinstance(name, str) or not isinstance(module, str):
            raise Unreadable("its pickle names what is no text")
        self._push(self.named(module, name))

    def do_INST(self, argument: str) -> None:
        module, _, name = argument.partition(" ")
        args = tuple(self.marked())
        self._push(self.called(self.named(module, name), args))

    def do_OBJ(self, _: Any) -> None:
        function, *args = self.marked()
        self._push(self.called(function, tuple(args)))

    def do_REDUCE(self, _: Any) -> None:
        args = self.pop()
        self._push(self.called(self.pop(), args))

    do_NEWOBJ = do_REDUCE

    def do_NEWOBJ_EX(self, _: Any) -> None:
        words, args = self.pop(), self.pop()
        made = self.called(self.pop(), args)
        if isinstance(made, StandIn) and isinstance(words, dict):
            made.pairs.update(words)
        self._push(made)

    def do_BUILD(self, _: Any) -> None:
        state = self.pop()
        if isinstance(self.stack[-1], StandIn):  # a container's own attributes say nothing of weights
            self.stack[-1].state = state
            if self.stack[-1].name == JOBLIB and isinstance(state, dict):
                self._read_behind(self.stack[-1], state)

    def _read_behind(self, array: StandIn, state: dict[Any, Any]) -> None:
        """The bytes of an array that joblib has written behind its description, in the midst of the pickle."""
        shape, padded = state.get("shape"), state.get("numpy_array_alignment_bytes")
        code = getattr(state.get("dtype"), "args", None) or ("",)
        width = re.fullmatch(r"[<>=|]?[fiucb](\d{1,2})", str(code[0]))
        if width is None or not isinstance(shape, tuple) or not all(type(size) is int and size >= 0 for size in shape):
            raise Unreadable("its pickle has an array of joblib of another kind than plain numbers")
        if padded is not None:
            self.file.read(self.file.read(1)[0])
        array.items = [self.file.read(prod(shape) * int(width[1]))]

    def do_EXT1(self, argument: int) -> None:
        self._push(self.named("copyreg", f"extension {argument}"))

    do_EXT2 = do_EXT4 = do_EXT1

    def do_PERSID(self, argument: Any) -> None:
        self._push(StandIn(PERSISTENT, (argument,)))

    def do_BINPERSID(self, _: Any) -> None:
        self._push(StandIn(PERSISTENT, (self.pop(),)))


def _pairs(values: list[Any]) -> list[tuple[Any, Any]]:
    """Keys and values in turn; a key that may be long to compare is told apart by what it is, not by its value."""
    if len(values) % 2:
        raise Unreadable("its pickle has a key without a value")
    return [(_key(key), value) for key, value in zip(values[::2], values[1::2], strict=True)]


def _key(value: Any) -> Any:
    if isinstance(value, _PLAIN) or (isinstance(value, tuple) and all(isinstance(part, _PLAIN) for part in value)):
        return value
    return value if isinstance(value, StandIn) else StandIn("key", (value,))


def _container(kind: type, args: tuple[Any, ...]) -> Any:
    inside = args[-1] if args else None
    if kind is dict:
        entries = inside.items() if isinstance(inside, dict) else inside if isinstance(inside, list) else ()
        return dict(_pairs([part for pair in entries if len(pair) == 2 for part in pair]))
    return kind(inside) if isinstance(inside, list | tuple) else kind()


_CONSTANTS: dict[str, Callable[[], Any]] = {
    **{"NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False},
    **{"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_SET": list, "EMPTY_TUPLE": tuple},
}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_VALUES = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING"),
    *("SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "UNICODE", "BINUNICODE"),
    *("SHORT_BINUNICODE", "BINUNICODE8"),
}
