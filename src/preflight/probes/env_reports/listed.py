"""Lists of packages: `pip freeze`, `pip list`, `conda list`, and what uv and mamba print alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

import msgspec

from preflight.errors import ParseError
from preflight.facts.setup import Package
from preflight.facts.stack import EnvReport
from preflight.model import Missing
from preflight.probes.env_reports.told import (
    Found,
    bundled_nccl,
    first_of_each,
    name_of_pip,
    of_build,
    of_conda_build,
    package_name,
    report,
)
from preflight.probes.spec import probe

_NAME = r"[A-Za-z0-9](?:[\w.-]{0,79})"
_VERSION = r"v?\d[\w.+!-]{0,80}"
#: `torch==2.5.1+cu124`, with extras before and a marker or hashes after it.
_PIN = re.compile(rf"({_NAME})(?:\[[\w,. -]{{0,80}}\])?={{2,3}}({_VERSION})(?:[ \t;\\#].*)?", re.A)
_PLACE = re.compile(rf"({_NAME})(?:\[[\w,. -]{{0,80}}\])? @ (\S+).*", re.ASCII)
_EDITABLE = re.compile(rf"-e \S*?[#&]egg=({_NAME}).*", re.ASCII)
_COMMENT = re.compile(rf"# Editable [^(]{{0,80}}\(({_NAME})==({_VERSION})\).*", re.ASCII)
_WHEEL = re.compile(rf"[^\s?#]*/({_NAME}?)-({_VERSION}?)-[^/]{{1,120}}\.whl(?:[?#].*)?", re.ASCII)
#: A row of `pip list`, and of the pip before version 9.
_ROW = re.compile(rf"({_NAME})[ \t]{{1,200}}({_VERSION})(?:[ \t]+[/A-Za-z~].*)?", re.ASCII)
_OLD_ROW = re.compile(rf"({_NAME}) \(({_VERSION})(?:, [^)]{{0,300}})?\)", re.ASCII)
#: A row of `conda list`: name, version, build, channel; and of `conda list --export`.
_CONDA_NAME = r"[A-Za-z0-9_][\w.-]{0,79}"
_CONDA_ROW = re.compile(
    rf"({_CONDA_NAME})[ \t]{{1,200}}(\d\S{{0,80}})(?:[ \t]{{1,200}}(\S{{1,80}}))?(?:[ \t]+\S+)*?",
    re.ASCII,
)
_EXPORT = re.compile(rf"({_CONDA_NAME})=(\d[^\s=]{{0,80}})=(\S{{1,80}})", re.ASCII)
_OBJECT = re.compile(r"\{[^{}]{1,4000}\}")
_END = re.compile(r"\}\s{0,99}\]")
_UNTOLD = Missing("not-in-input", "the list tells where it came from, and no version")
#: Packages of conda that are no Python packages -> the field that they tell.
#: NCCL is not among them: the builds of pytorch's own channel bring theirs within torch.
_CONDA_FIELDS = {"python": "python", "cudnn": "cudnn", "cuda-nvcc": "toolkit"}


class _Entry(msgspec.Struct):
    """An entry of a list in JSON."""

    name: str
    version: str
    build_string: str = ""


@probe("pip-freeze", ["python3", "-m", "pip", "freeze"], timeout_s=60)
def pip_freeze(text: str) -> EnvReport:
    """`name==version`, `name @ address` and `-e address#egg=name` lines."""
    return _of_pip("pip-freeze", _frozen(text.split("\n")), "`torch==2.5.1+cu124`")


@probe("pip-list", ["python3", "-m", "pip", "list"], timeout_s=60)
def pip_list(text: str) -> EnvReport:
    """Two columns below a heading, or JSON."""
    if text.lstrip().startswith("["):
        each: Iterator[Package] = (
            Package(package_name(entry.name), entry.version, line, "pip-list")
            for entry, line in _entries(text)
        )
    else:
        each = _rows(text.split("\n"))
    return _of_pip("pip-list", each, "`torch  2.5.1+cu124`")


@probe("conda-list", ["conda", "list"], timeout_s=60)
def conda_list(text: str) -> EnvReport:
    """Name, version, build and channel; the build tells what pytorch was built with."""
    told = list(_conda(text))
    if not told:
        raise ParseError("expected lines such as `pytorch  2.5.1  py3.12_cuda12.4_cudnn9.1.0_0`", 1)
    found: Found = {}
    for name, version, _, line in told:
        if name in _CONDA_FIELDS:
            found.setdefault(_CONDA_FIELDS[name], (version, line))
    found |= _torch([one for one in told if name_of_pip(one[0]) == "torch"])
    packages = first_of_each(Package(name_of_pip(n), v, at, "conda-list") for n, v, _, at in told)
    return report("conda-list", found | bundled_nccl(packages), packages=packages)


def _torch(told: Sequence[tuple[str, str, str, int]]) -> Found:
    """The torch of conda, or of pip within it; of both only the one that was last written is
    there, and nobody knows which."""
    versions = dict.fromkeys(version for _, version, _, _ in told)
    if len(versions) > 1:
        several = f"several are installed over each other: {', '.join(versions)}"[:200]
        return {"torch": (Missing("unreadable", several), told[0][3])}
    if not told:
        return {}
    _, version, build, line = told[0]
    return {"torch": (version, line), **(of_build(version, line) or of_conda_build(build, line))}


def _of_pip(probe_name: str, each: Iterator[Package], form: str) -> EnvReport:
    packages = first_of_each(each)
    if not packages:
        raise ParseError(f"expected lines such as {form}", 1)
    torch = next((one for one in packages if one.name == "torch"), None)
    found = bundled_nccl(packages)
    if torch:
        found |= {"torch": (torch.version, torch.line), **of_build(torch.version, torch.line)}
    return report(probe_name, found, packages=packages)


def _frozen(lines: Sequence[str]) -> Iterator[Package]:
    for number, line in enumerate(lines, 1):
        said = line.strip()
        if match := _PIN.fullmatch(said) or _COMMENT.fullmatch(said):
            yield Package(package_name(match[1]), match[2], number, "pip-freeze")
        elif match := _PLACE.fullmatch(said):
            # The address may hold a password: only the name of a wheel is looked at.
            wheel = _WHEEL.fullmatch(unquote(match[2]))
            told = wheel[2] if wheel and package_name(wheel[1]) == package_name(match[1]) else None
            yield Package(package_name(match[1]), told or _UNTOLD, number, "pip-freeze")
        elif match := _EDITABLE.fullmatch(said):
            yield Package(package_name(match[1]), _UNTOLD, number, "pip-freeze")


def _rows(lines: Sequence[str]) -> Iterator[Package]:
    for number, line in enumerate(lines, 1):
        if match := _ROW.fullmatch(line.strip()) or _OLD_ROW.fullmatch(line.strip()):
            yield Package(package_name(match[1]), match[2], number, "pip-list")


def _conda(text: str) -> Iterator[tuple[str, str, str, int]]:
    """Name, version, build and line of each package."""
    if text.lstrip().startswith("["):
        for entry, line in _entries(text):
            yield entry.name, entry.version, entry.build_string, line
        return
    for number, row in enumerate(text.split("\n"), 1):
        said = row.strip()
        if match := _EXPORT.fullmatch(said) or _CONDA_ROW.fullmatch(said):
            yield match[1], match[2], match[3] or "", number


def _entries(text: str) -> Iterator[tuple[_Entry, int]]:
    """The entries of a list in JSON, each with its line; raises ParseError where it is cut."""
    if not _END.search(text):
        raise ParseError("the list is cut short: no closing `]`", text.count("\n") + 1)
    line, at = 1, 0
    for match in _OBJECT.finditer(text):
        line, at = line + text.count("\n", at, match.start()), match.start()
        try:
            yield msgspec.json.decode(match[0].encode(), type=_Entry), line
        except (msgspec.DecodeError, UnicodeEncodeError):
            continue
