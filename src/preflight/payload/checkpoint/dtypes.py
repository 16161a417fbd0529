"""The types of values: their size, and which bits say that a value is no number."""

from __future__ import annotations

from typing import NamedTuple

#: By torch's names.
BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1,
    "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
    "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint64": 8, "uint32": 4, "uint16": 2,
    "uint8": 1, "bool": 1, "complex32": 4, "complex64": 8, "complex128": 16, "qint8": 1,
    "quint8": 1, "qint32": 4, "quint4x2": 1, "quint2x4": 1, "untyped": 1,
}  # fmt: skip


class Float(NamedTuple):
    """`bytes` of a value; without its sign, as an unsigned number, it is infinite if it equals
    `inf`, and not a number if it is above. -1: it has no infinity."""

    bytes: int
    inf: int
    least_nan: int


#: IEEE 754; bfloat16 is the upper half of a float32; float8 as in OCP's 8-bit specification:
#: E5M2 like IEEE, E4M3 without infinity and with one NaN.
FLOATS = {
    "float64": Float(8, 0x7FF0000000000000, 0x7FF0000000000001),
    "float32": Float(4, 0x7F800000, 0x7F800001),
    "float16": Float(2, 0x7C00, 0x7C01),
    "bfloat16": Float(2, 0x7F80, 0x7F81),
    "float8_e4m3fn": Float(1, -1, 0x7F),
    "float8_e5m2": Float(1, 0x7C, 0x7D),
    # Complex numbers are two of these, one after the other.
    "complex64": Float(4, 0x7F800000, 0x7F800001),
    "complex128": Float(8, 0x7FF0000000000000, 0x7FF0000000000001),
}
#: By the names of safetensors.
SAFETENSORS = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu",
    "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8", "U64": "uint64",
    "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool", "C64": "complex64",
}  # fmt: skip
#: Those of safetensors with less than a byte: bits of a value.
SAFETENSORS_BITS = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}
