"""fio's JSON, of any version from 2.1 on."""

from __future__ import annotations

import re

from preflight.errors import ParseError
from preflight.facts.fio import Fio, FioJob, FioRun
from preflight.probes.fio.documents import runs
from preflight.probes.fio.jobs import run_of
from preflight.probes.spec import probe

TOOL = "fio"
#: What fio says of errors, on standard error mostly.
_ERROR = re.compile(
    r"^[ \t]*fio: (?:pid=\d+, err=(?P<code>\d+)/[^\n]*?error=(?P<why>[^\n]{1,200})"
    r"|(?P<said>io_u error on file [^\n]{1,300})"
    r"|(?P<start>(?:terminating on signal|failed parsing|job \S+ dropped|engine \S+ not loadable"
    r"|failed to [a-z]"
    r"|looks like your file system does not support direct|destination does not support O_DIRECT"
    r"|failed setting up|unable to [a-z]|unrecognized|bad option"
    r"|\S+ is not a directory)[^\n]{0,300}))",
    re.MULTILINE,
)
#: The last words of an error of one request are where in the file it was.
_PLACE = re.compile(r": (?:read|write|sync|trim) offset=\d+, buflen=\d+$")
_MOST = 20


@probe(TOOL, [TOOL], timeout_s=60, with_stderr=True)
def fio(text: str) -> Fio:
    """A run for each report; of a run with --status-interval the last one. Raises ParseError where
    there is none, nor anything that fio said of why."""
    errors = errors_in(text)
    found = [run_of(one, errors) for one in runs(text)]
    if not found and not errors:
        raise ParseError('expected the JSON of fio: {"fio version": ...', 1)
    found = found or [_never(errors[0])]
    return Fio(tuple(found), found[0].line, TOOL)


def errors_in(text: str) -> list[str]:
    """What fio says of errors, each once."""
    return list(dict.fromkeys(filter(None, map(_said, _ERROR.finditer(text)))))[:_MOST]


def _said(match: re.Match[str]) -> str:
    if match["why"]:
        return match["why"]
    return _PLACE.sub("", match["said"] or match["start"])


def _never(error: str) -> FioRun:
    """It ended before its first report."""
    return FioRun("", (FioJob("fio", "0", ended=False, trouble=error, line=1),))
