"""Warnings, completions with an error, and calls that gave back one."""

from __future__ import annotations

import re

from msgspec import Struct, field
from msgspec.structs import replace

from preflight.facts.nccl import NcclCompletion, NcclReturn, NcclWarning
from preflight.logs.nccl.lines import Line
from preflight.model import NOT_IN_INPUT

#: Different ones that are kept.
KEPT_MAX = 2_000
_TEXT_MAX = 400
#: with error 12, ... vendor err 129 (Recv); later with status=12; status=IBV_WC_RETRY_EXC_ERR(12)
_COMPLETION = re.compile(
    r"Got completion from peer (?P<peer>[^\s<]{1,80})(?:<\d+>)? with "
    r"(?:error |status ?=? ?)(?:[A-Z_]{1,40}\()?(?P<status>\d{1,3})"
)
_VENDOR = re.compile(r"vendor[_ ]err[ =]{0,3}(?P<vendor>\d{1,6})(?: \((?P<way>\w{1,16})\))?")
_HCA = re.compile(r"\bhca (?P<hca>\w{1,40})")
_RETURN = re.compile(r"(?P<place>[\w/.-]{1,80}:\d{1,6}) -> (?P<code>\d{1,2})\b")
#: What differs from process to process in a text that is one: addresses, ports, numbers in hex.
_VARIES = re.compile(r"0x[\da-f]+|<\d+>|\b\d{1,3}(?:\.\d{1,3}){3}\b|\d{5,}")


class Troubles(Struct):
    """What went wrong in all processes, each kind once for a process."""

    warnings: dict[tuple[str, str], NcclWarning] = field(default_factory=dict)
    completions: dict[tuple[object, ...], NcclCompletion] = field(default_factory=dict)
    returns: dict[tuple[str, str], NcclReturn] = field(default_factory=dict)

    def warned(self, line: Line) -> None:
        """One line of level WARN."""
        if told := _COMPLETION.search(line.text):
            self._completion(line, told)
            return
        key = (line.subject if line.host else "", _VARIES.sub("", line.text))
        known = self.warnings.get(key)
        if known:
            self.warnings[key] = replace(known, count=known.count + 1)
        elif len(self.warnings) < KEPT_MAX:
            text = line.text[:_TEXT_MAX]
            self.warnings[key] = NcclWarning(line.subject, line.host, text, 1, line.number,
                                             line.probe)  # fmt: skip

    def returned(self, line: Line) -> None:
        """One line of level INFO that tells where an error went."""
        told = _RETURN.match(line.text)
        if told is None or told["code"] in ("0", "7"):  # success; in progress
            return
        key = (line.subject if line.host else "", told["code"])
        known = self.returns.get(key)
        if known:
            self.returns[key] = replace(known, count=known.count + 1)
        elif len(self.returns) < KEPT_MAX:
            self.returns[key] = NcclReturn(
                line.subject, line.host, told["place"], int(told["code"]), 1, line.number,
                line.probe,
            )  # fmt: skip

    def _completion(self, line: Line, told: re.Match[str]) -> None:
        vendor, hca = _VENDOR.search(line.text), _HCA.search(line.text)
        key = (line.subject if line.host else "", told["peer"], told["status"])
        known = self.completions.get(key)
        if known:
            self.completions[key] = replace(known, count=known.count + 1)
        elif len(self.completions) < KEPT_MAX:
            self.completions[key] = NcclCompletion(
                line.subject, line.host, told["peer"], int(told["status"]),
                int(vendor["vendor"]) if vendor else NOT_IN_INPUT,
                (vendor["way"] or "") if vendor else "",
                hca["hca"] if hca else NOT_IN_INPUT, 1, line.number, line.probe,
            )  # fmt: skip
