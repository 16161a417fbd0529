"""Pickles of plain containers, read by a machine that knows nothing else: nothing can be run.

The opcodes are those of pickletools; whatever names, calls or builds something is not among them.
Keys are words and numbers alone: the hash of tuples within tuples may take forever.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from typing import Any

from preflight.errors import ParseError

#: Of one dump: a ring of 20,000 collectives with stacks is some 60 MB, and 4 million opcodes.
MOST_BYTES = 512 << 20
_MOST_OPCODES = 6_000_000
_DAMAGE = (ArithmeticError, AttributeError, EOFError, LookupError, MemoryError, RecursionError,
           TypeError, ValueError)  # fmt: skip
_NOTHING = frozenset(("PROTO", "FRAME", "STOP"))
_VALUES = frozenset(
    ("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING",
     "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINUNICODE",
     "BINBYTES", "SHORT_BINBYTES", "BINBYTES8")
)  # fmt: skip
_MADE: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple,
}  # fmt: skip
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_PUTS = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
_GETS = frozenset(("GET", "BINGET", "LONG_BINGET"))


class _Machine:
    """The stack, the places of marks in it, and what was put aside."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}

    def step(self, name: str, argument: Any) -> bool:
        """Do one opcode; False where it is none of plain data."""
        if name in _VALUES:
            self.stack.append(argument)
        elif name in _GETS:
            self.stack.append(self.memo[int(argument)])
        elif name in _PUTS:
            self.memo[int(argument)] = self.stack[-1]
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = self.stack[-1]
        elif name in _MADE:
            self.stack.append(_MADE[name]())
        elif name in _TUPLES:
            self.stack.append(tuple(self._last(_TUPLES[name])))
        elif name == "MARK":
            self.marks.append(len(self.stack))
        else:
            return name in _NOTHING or self._filled(name)
        return True

    def _filled(self, name: str) -> bool:
        """What takes all since the last mark, or one or two, into a container."""
        if name in ("TUPLE", "LIST", "DICT"):
            items = self._marked()
            made: Any = tuple(items) if name == "TUPLE" else items
            self.stack.append(made if name != "DICT" else self._set({}, items))
        elif name in ("APPEND", "APPENDS"):
            items = self._last(1) if name == "APPEND" else self._marked()
            list.extend(self.stack[-1], items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._last(2) if name == "SETITEM" else self._marked()
            self._set(self.stack[-1], items)
        else:
            return False
        return True

    def _set(self, into: dict[Any, Any], items: list[Any]) -> dict[Any, Any]:
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, (str, int, float, bytes)):
                raise ParseError("it has a key that is neither word nor number")
            dict.__setitem__(into, key, value)
        return into

    def _last(self, count: int) -> list[Any]:
        if len(self.stack) < count:
            raise EOFError("it takes more than there is")
        items = self.stack[-count:]
        del self.stack[-count:]
        return items

    def _marked(self) -> list[Any]:
        begin = self.marks.pop()
        items = self.stack[begin:]
        del self.stack[begin:]
        return items


def loads(data: bytes) -> Any:
    """The containers. ParseError where an opcode does more than to hold data, or at damage."""
    machine = _Machine()
    try:
        for at, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if at > _MOST_OPCODES:
                raise ParseError(f"it holds more than {_MOST_OPCODES:,} things")
            if not machine.step(opcode.name, argument):
                shown = f" {argument!r}"[:80] if argument is not None else ""
                raise ParseError(f"it is no plain dump: {opcode.name}{shown}; nothing was run")
        (whole,) = machine.stack
    except ParseError:
        raise
    except _DAMAGE as error:
        raise ParseError(f"it is damaged or cut: {str(error)[:120]}") from None
    return whole
