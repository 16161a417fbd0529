"""The catalogue of checks: read from YAML, held against the vocabulary, all errors at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from preflight import datafiles, model, strict_yaml
from preflight.errors import UsageError
from preflight.judge.check_faults import faults
from preflight.kept import kept
from preflight.model import Action, Check, Command

#: Tables whose rows are checks, by the domain they belong to.
TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    "gpu": (("xid", "data/xid.yaml"), ("sxid", "data/sxid.yaml")),
    "fabric": (("kernel-events", "data/fabric_events.yaml"),),
    "kernel": (("kernel-events", "data/kernel_events.yaml"),),
    "chassis": (("sel", "data/sel_events.yaml"),),
    "versions": (("known-bad", "data/known_bad.yaml"),),
}
DOMAINS = (
    "gpu", "pcie", "fabric", "topology", "network", "nccl", "collectives", "chassis", "dcgm",
    "live", "kernel", "storage", "io", "objects", "shard", "system", "parameters", "versions",
    "environment",
    "stress", "training", "fleet",
)  # fmt: skip

#: What makes checks out of YAML.
_HERE = Path(__file__).parent
_READERS = [
    *(_HERE / name for name in ("load.py", "sel.py", "kernel_log/log.py", "kernel_log/rows.py")),
    _HERE / "stack" / "known_bad.py",
    Path(model.__file__),
]


class Catalogue(Struct):
    """The checks to be judged and the questions that a site declares."""

    checks: list[Check] = field(default_factory=list)
    probes: list[Command] = field(default_factory=list)


class Problems(Struct):
    """Everything found wrong, so that all of it can be told at once."""

    found: list[str] = field(default_factory=list)

    def add(self, where: str, what: str) -> None:
        self.found.append(f"{where}: {what}")

    def raise_if_any(self) -> None:
        if self.found:
            raise UsageError(
                "the checks cannot be loaded:\n  " + "\n  ".join(self.found),
                "CONTRIBUTING.md shows how a check reads",
            )


def load(
    domains: Sequence[str] = DOMAINS, site: Sequence[Path] = (), *, hold: bool = False
) -> Catalogue:
    """The shipped domains asked for, and every *.yaml of the site's directories or files.

    A site's files are held against the vocabulary; the shipped ones only with `hold`, as a test
    does, for every start would pay for it.
    """
    root, problems, catalogue = datafiles.root() / "checks", Problems(), Catalogue()
    for domain in domains:
        catalogue.checks += _shipped(root, domain, problems) if hold else _kept(root, domain)
    for path in _site_files(site):
        _file(path, path.stem, str(path), catalogue, problems, True)
    _repeated(catalogue.checks, problems)
    problems.raise_if_any()
    return catalogue


def _kept(root: Path, domain: str) -> list[Check]:
    """The domain's checks, from an earlier reading if nothing has changed since."""

    def read() -> list[Check]:
        problems = Problems()
        checks = _shipped(root, domain, problems, hold=False)
        problems.raise_if_any()
        return checks

    tables = [root / name for _, name in TABLES.get(domain, ())]
    sources = [root / f"{domain}.yaml", *tables, *_READERS]
    return kept(root / "__pycache__" / f"{domain}.msgpack", list[Check], sources, read)


def _shipped(root: Path, domain: str, problems: Problems, *, hold: bool = True) -> list[Check]:
    into = Catalogue()
    _file(root / f"{domain}.yaml", domain, f"checks/{domain}.yaml", into, problems, hold)
    for kind, name in TABLES.get(domain, ()):
        into.checks += table(root / name, kind, domain)
    return into.checks


@cache
def _table(path: Path, kind: str) -> tuple[Check, ...]:
    document = strict_yaml.load(_read(path), f"checks/data/{path.name}")
    source = f"checks/data/{path.name}"
    if kind == "sel":
        from preflight.judge import sel

        return tuple(sel.sel_checks(document["rows"], source))
    if kind == "known-bad":
        from preflight.judge.stack.known_bad import known_bad_checks

        return tuple(known_bad_checks(document["rows"], source))
    from preflight.judge.kernel_log.log import table_checks

    return tuple(table_checks(kind, document["rows"], source))


def table(path: Path, kind: str, domain: str) -> list[Check]:
    """The checks that the rows of a table are."""
    from msgspec.structs import replace

    return [replace(check, domain=domain) for check in _table(path, kind)]


def _site_files(site: Iterable[Path]) -> Iterator[Path]:
    for given in site:
        if given.is_dir():
            found = sorted(given.glob("*.yaml"))
            if not found:
                raise UsageError(f"--checks {given}: no *.yaml in it")
            yield from found
        else:
            yield given


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}", "--checks takes a directory of *.yaml") from None


def _file(
    path: Path, domain: str, name: str, into: Catalogue, problems: Problems, hold: bool
) -> None:
    document = strict_yaml.load(_read(path), name)
    entries = {"checks": document} if isinstance(document, list) else document
    if not isinstance(entries, dict) or not set(entries) <= {"checks", "probes"}:
        problems.add(f"{name}:1", "expected a list of checks, or `checks:` and `probes:`")
        return
    for entry in entries.get("probes") or []:
        into.probes += _probe(entry, name, problems)
    for entry in entries.get("checks") or []:
        into.checks += _check(entry, domain, name, problems, hold)


def _probe(entry: Any, name: str, problems: Problems) -> list[Command]:
    where = f"{name}:{getattr(entry, 'line', 1)}"
    identifier = entry.get("id") if isinstance(entry, dict) else None
    if not isinstance(identifier, str) or not identifier.startswith("site."):
        problems.add(where, "a site's probe is {id: site.NAME, argv: [...], timeout_s: N}")
        return []
    argv, timeout_s = entry.get("argv"), entry.get("timeout_s", 10)
    if not (isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv)):
        problems.add(where, f"{identifier}: argv is a list of words, never a shell line")
    elif not isinstance(timeout_s, int) or not 1 <= timeout_s <= 3600:
        problems.add(where, f"{identifier}: timeout_s is a number of seconds, 1 to 3600")
    elif unknown := set(entry) - {"id", "argv", "timeout_s", "needs_root"}:
        problems.add(where, f"{identifier}: unknown key {sorted(unknown)[0]!r}")
    else:
        root = entry.get("needs_root") is True
        return [Command(identifier, tuple(argv), timeout_s=timeout_s, needs_root=root)]
    return []


def _check(entry: Any, domain: str, name: str, problems: Problems, hold: bool) -> list[Check]:
    where = f"{name}:{getattr(entry, 'line', 1)}"
    if not isinstance(entry, dict):
        problems.add(where, "a check is a mapping with id, title, fact ...")
        return []
    label = f"check {entry.get('id')!r}"
    wrong = list(faults(entry)) if hold else []
    for fault in wrong:
        problems.add(where, f"{label}: {fault}")
    if wrong:
        return []
    values = {**entry, "action": Action(entry["action"])}
    values |= {key: tuple(entry[key]) for key in ("fix", "like", "learn") if key in entry}
    return [Check(**values, domain=domain, source=where)]


def _repeated(checks: Sequence[Check], problems: Problems) -> None:
    first: dict[str, str] = {}
    for check in checks:
        if check.id in first:
            problems.add(check.source, f"check {check.id!r} stands already at {first[check.id]}")
        first[check.id] = check.source
