"""Pickles of plain containers, read without running anything: every name of a class is refused."""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from typing import Any, NoReturn

from preflight.errors import ParseError

#: What a dump is made of. Whatever names, calls or builds something is not among them.
_PLAIN = frozenset(
    re.findall(
        r"\w+",
        """
        PROTO FRAME STOP MARK POP POP_MARK DUP NONE NEWTRUE NEWFALSE INT BININT BININT1 BININT2 LONG
        LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE BINUNICODE8
        SHORT_BINUNICODE BINBYTES SHORT_BINBYTES BINBYTES8 EMPTY_LIST APPEND APPENDS LIST
        EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3 EMPTY_DICT DICT SETITEM SETITEMS EMPTY_SET ADDITEMS
        FROZENSET GET BINGET LONG_BINGET PUT BINPUT LONG_BINPUT MEMOIZE
        """,
    )
)
#: Of one dump: a ring of 20,000 collectives with stacks is some 60 MB.
MOST_BYTES = 512 << 20
_MOST_OPCODES = 50_000_000
_DAMAGE = (pickle.UnpicklingError, ArithmeticError, AttributeError, EOFError, LookupError,
           MemoryError, TypeError, ValueError)  # fmt: skip


class _Plain(pickle.Unpickler):
    """Refuses what the walk over the opcodes has refused already."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise ParseError(f"it names {module}.{name}, which is not loaded")

    def persistent_load(self, pid: object) -> NoReturn:
        raise ParseError("it refers to something outside, which is not loaded")


def loads(data: bytes) -> Any:
    """The containers. ParseError where an opcode does more than to hold data, or at damage."""
    try:
        for at, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if opcode.name not in _PLAIN:
                shown = f" {argument!r}"[:80] if argument is not None else ""
                raise ParseError(f"it is no plain dump: {opcode.name}{shown}; nothing was run")
            if at > _MOST_OPCODES:
                raise ParseError("it is too large")
        return _Plain(io.BytesIO(data)).load()
    except ParseError:
        raise
    except RecursionError:
        raise ParseError("it is nested too deeply") from None
    except _DAMAGE as error:
        raise ParseError(f"it is damaged or cut: {str(error)[:120]}") from None
