"""Pickles read as data: their opcodes are followed on a small stack, and whatever they would call
is only written down. No name is looked up, nothing is imported, nothing is called."""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable
from typing import Any, NamedTuple

from .window import DamagedError

#: So much of a pickle is read; that of a checkpoint holds names and shapes, and no numbers.
MOST_BYTES = 64 << 20
_MOST_OPCODES = 20_000_000
#: What following a pickle that is no longer one comes to.
_BROKEN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
#: Of an argument that ends with its line: numbers and names are shorter.
_LONGEST_LINE = 1 << 16
#: Tuples within tuples, of a key: its hash is taken by recursion.
_DEEPEST_KEY = 20


class Named:
    """A global that the pickle names: a class or a function, not looked up."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Made:
    """What would come of calling `of`; `items` and `entries` are what was put into it after."""

    __slots__ = ("args", "entries", "items", "of", "state")

    def __init__(self, of: Any, args: Any) -> None:
        self.of = of
        self.args = args
        self.state: Any = None
        # Most have neither: a description of a large checkpoint makes millions.
        self.items: dict[Any, Any] | None = None
        self.entries: list[Any] | None = None

    @property
    def name(self) -> str:
        """Of the global that makes it; "" where that is none."""
        return self.of.name if isinstance(self.of, Named) else ""


class Stored:
    """A persistent id: of torch the storage that holds a tensor's values."""

    __slots__ = ("id",)

    def __init__(self, id_: Any) -> None:
        self.id = id_


class Read(NamedTuple):
    """What a pickle holds, the globals that it names in order, and how many bytes it took."""

    value: Any
    names: tuple[str, ...]
    size: int


class _Lines(io.BytesIO):
    """Lines of a length that a number or a name has."""

    def readline(self, size: int | None = -1, /) -> bytes:
        return super().readline(_LONGEST_LINE)


def read(data: bytes) -> Read:
    """The first pickle in the data. DamagedError where it is none, is cut short, or is larger than
    what is taken."""
    source = _Lines(data)
    machine = _Machine()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(source)):
            if count > _MOST_OPCODES:
                raise DamagedError("hostile", f"a pickle of more than {count:,} opcodes")
            machine.step(opcode.name, argument)
    except DamagedError as error:
        raise _refused(error.kind, error.text, machine) from None
    except _BROKEN as error:
        text = f"its pickle cannot be followed: {error}"
        raise _refused("pickle", text, machine, source.tell()) from None
    if not machine.stack:
        raise _refused("pickle", "its pickle holds nothing", machine, source.tell())
    return Read(machine.stack[-1], tuple(machine.names), source.tell())


def _refused(kind: str, text: str, machine: _Machine, offset: int | None = None) -> DamagedError:
    return DamagedError(kind, text, offset, tuple(machine.names))


class _Machine:
    """The stack, its marks and the memo."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.names: dict[str, None] = {}

    def step(self, name: str, argument: Any) -> None:
        """One opcode. KeyError for one that is not taken."""
        if name in _PUSHES:
            self.stack.append(argument)
        else:
            _STEPS[name](self, argument)

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def above_mark(self) -> list[Any]:
        """What stands above the last mark, taken away together with it."""
        mark = self.marks.pop()
        taken = self.stack[mark:]
        del self.stack[mark:]
        return taken

    def drop_to_mark(self) -> None:
        self.above_mark()

    def named(self, name: str) -> Named:
        self.names[name] = None
        return Named(name)


def _key(key: Any) -> Any:
    """The key, where it can be hashed without running deep."""
    level: list[Any] = [key]
    for _ in range(_DEEPEST_KEY):
        level = [inner for one in level if isinstance(one, tuple) for inner in one][:100_000]
        if not level:
            return key
    raise DamagedError("hostile", "a key of tuples in tuples")


def _set_items(machine: _Machine, flat: list[Any]) -> None:
    target = machine.stack[-1]
    into = target
    if isinstance(target, Made):
        into = target.items = {} if target.items is None else target.items
    for at in range(0, len(flat) - 1, 2):
        into[_key(flat[at])] = flat[at + 1]


def _append(machine: _Machine, values: list[Any]) -> None:
    target = machine.stack[-1]
    if isinstance(target, set):
        target.update(map(_key, values))
    elif isinstance(target, Made):
        target.entries = [] if target.entries is None else target.entries
        target.entries.extend(values)
    else:
        target.extend(values)


def _set_item(machine: _Machine, _: Any) -> None:
    value, key = machine.stack.pop(), machine.stack.pop()
    _set_items(machine, [key, value])


def _dict(machine: _Machine, _: Any) -> None:
    flat = machine.above_mark()
    machine.push({})
    _set_items(machine, flat)


def _global(machine: _Machine, argument: str) -> None:
    machine.push(machine.named(argument.replace(" ", ".", 1)))


def _stack_global(machine: _Machine, _: Any) -> None:
    name, module = machine.stack.pop(), machine.stack.pop()
    machine.push(machine.named(f"{module}.{name}" if isinstance(module, str) else "?"))


def _reduce(machine: _Machine, _: Any) -> None:
    args, of = machine.stack.pop(), machine.stack.pop()
    machine.push(Made(of, args))


def _new_with_words(machine: _Machine, _: Any) -> None:
    words, args, of = machine.stack.pop(), machine.stack.pop(), machine.stack.pop()
    machine.push(Made(of, (args, words)))


def _inst(machine: _Machine, argument: str) -> None:
    args = tuple(machine.above_mark())
    machine.push(Made(machine.named(argument.replace(" ", ".", 1)), args))


def _obj(machine: _Machine, _: Any) -> None:
    of, *args = machine.above_mark()
    machine.push(Made(of, tuple(args)))


def _build(machine: _Machine, _: Any) -> None:
    state = machine.stack.pop()
    target = machine.stack[-1]
    if isinstance(target, Made):
        target.state = state


def _pop(machine: _Machine, _: Any) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
    else:
        machine.stack.pop()


def _tuple(count: int) -> Callable[[_Machine, Any], None]:
    def make(machine: _Machine, _: Any) -> None:
        values = tuple(machine.stack[-count:])
        if len(values) < count:
            raise IndexError("a tuple of more than there is")
        del machine.stack[-count:]
        machine.push(values)

    return make


def _put(machine: _Machine, at: int) -> None:
    machine.memo[at] = machine.stack[-1]


#: The argument itself is what is pushed.
_PUSHES = frozenset({
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING",
    "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
    "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8",
})  # fmt: skip
#: EXT1 and its like, and buffers out of band, are missing: they name what is not in the file.
_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": lambda machine, _: None,
    "FRAME": lambda machine, _: None,
    "STOP": lambda machine, _: None,
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "EMPTY_LIST": lambda machine, _: machine.push([]),
    "EMPTY_TUPLE": lambda machine, _: machine.push(()),
    "EMPTY_SET": lambda machine, _: machine.push(set()),
    "MARK": lambda machine, _: machine.marks.append(len(machine.stack)),
    "POP": _pop,
    "POP_MARK": lambda machine, _: machine.drop_to_mark(),
    "DUP": lambda machine, _: machine.push(machine.stack[-1]),
    "TUPLE": lambda machine, _: machine.push(tuple(machine.above_mark())),
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    "LIST": lambda machine, _: machine.push(machine.above_mark()),
    "DICT": _dict,
    "FROZENSET": lambda machine, _: machine.push(frozenset(map(_key, machine.above_mark()))),
    "APPEND": lambda machine, _: _append(machine, [machine.stack.pop()]),
    "APPENDS": lambda machine, _: _append(machine, machine.above_mark()),
    "ADDITEMS": lambda machine, _: _append(machine, machine.above_mark()),
    "SETITEM": _set_item,
    "SETITEMS": lambda machine, _: _set_items(machine, machine.above_mark()),
    "PUT": _put,
    "BINPUT": _put,
    "LONG_BINPUT": _put,
    "MEMOIZE": lambda machine, _: _put(machine, len(machine.memo)),
    "GET": lambda machine, at: machine.push(machine.memo[at]),
    "BINGET": lambda machine, at: machine.push(machine.memo[at]),
    "LONG_BINGET": lambda machine, at: machine.push(machine.memo[at]),
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "REDUCE": _reduce,
    "NEWOBJ": _reduce,
    "NEWOBJ_EX": _new_with_words,
    "INST": _inst,
    "OBJ": _obj,
    "BUILD": _build,
    "PERSID": lambda machine, id_: machine.push(Stored(id_)),
    "BINPERSID": lambda machine, _: machine.push(Stored(machine.stack.pop())),
}
