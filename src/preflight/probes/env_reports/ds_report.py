"""`ds_report`: what DeepSpeed compiles, and with which torch and CUDA it was built.

The layouts are those of deepspeed/env_report.py from 0.3 on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from preflight.errors import ParseError
from preflight.facts.stack import DeepSpeedOp, EnvReport
from preflight.model import Known, Missing
from preflight.probes.env_reports.told import Found, built_with, of_build, report, version
from preflight.probes.spec import probe

_PROBE = "ds-report"

#: `torch version .................... 1.8.1+cu111`
_KEY = re.compile(r"([a-z][\w ()/.]{0,50}?) \.{2,80} ?(.*)")
#: `cpu_adam ............... [YES] ...... [OKAY]`; a long name has no dots behind it.
_OP = re.compile(r"(\w{1,60})[ .]{1,80}\[([A-Z]{2,8})\][ .]{1,80}\[([A-Z]{2,8})\]")
#: On other accelerators torch stands alone.
_WHEEL = re.compile(r"torch ([^\s,]{1,40})(?:, (?:cuda|hip) (\S{1,40}))?")
_NO_RUNTIME = "No CUDA runtime is found"
#: What a wheel says that was built where there was no torch.
_NOWHERE = "0.0"
_STATES = {"YES": True, "OKAY": True, "NO": False}


def _nvcc(text: str) -> Known[str]:
    """Without nvcc there is a sentence, in colour: [FAIL] cannot find CUDA_HOME."""
    if text.lstrip().startswith("["):
        return Missing("not-in-input", f"ds_report says: {text.strip()[:60]}")
    return version(text)


_FIELDS: dict[str, tuple[str, Callable[[str], Known[str]]]] = {
    "torch version": ("torch", version),
    "torch cuda version": ("torch_cuda", built_with),
    "torch hip version": ("torch_hip", built_with),
    "nvcc version": ("toolkit", _nvcc),
    "deepspeed info": ("deepspeed", lambda text: version(text.partition(",")[0])),
}


@probe(_PROBE, ["ds_report"], timeout_s=120)
def ds_report(text: str) -> EnvReport:
    """A table of operators, then `name ... value` lines; other programs may speak between them."""
    lines = [line.strip() for line in text.split("\n")]
    found: Found = {}
    for number, line in enumerate(lines, 1):
        for field, value in _told(line).items():
            found.setdefault(field, (value, number))
    ops = tuple(_ops(lines))
    if not found and not ops:
        raise ParseError("expected lines such as `torch version .... 2.5.1+cu124`", 1)
    torch, line_of_torch = found.get("torch", ("", 0))
    found = {**of_build(torch, line_of_torch), **found}
    return report(_PROBE, found, deepspeed_ops=ops)


def _told(line: str) -> dict[str, Known[str] | Known[bool]]:
    """The fields that one line tells."""
    if line.startswith(_NO_RUNTIME):
        return {"cuda_runtime_found": False}
    match = _KEY.fullmatch(line)
    if not match:
        return {}
    if match[1] == "deepspeed wheel compiled w.":
        return _wheel(match[2])
    field, read = _FIELDS.get(match[1], ("", version))
    return {field: read(match[2])} if field else {}


def _wheel(text: str) -> dict[str, Known[str] | Known[bool]]:
    """`torch 1.9, cuda 10.2`; 0.0 where nothing was compiled with the wheel."""
    match = _WHEEL.match(text)
    torch, platform = match.groups(_NOWHERE) if match else (text, text)
    nothing = Missing("not-in-input", f"ds_report says: compiled with {text.strip()[:60]}")
    return {
        "deepspeed_torch": nothing if torch == _NOWHERE else version(torch),
        "deepspeed_cuda": nothing if platform == _NOWHERE else version(platform),
    }


def _ops(lines: Sequence[str]) -> Iterator[DeepSpeedOp]:
    for number, line in enumerate(lines, 1):
        if match := _OP.fullmatch(line):
            yield DeepSpeedOp(match[1], _state(match[2]), _state(match[3]), number, _PROBE)


def _state(text: str) -> Known[bool]:
    return _STATES.get(text, Missing("unreadable", f"ds_report says [{text}]"))
