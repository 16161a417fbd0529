"""Thresholds that the user or a profile states: --set ID=VALUE, ID.warn=, ID.fail=."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from msgspec.structs import replace

from preflight import strict_yaml
from preflight.errors import UsageError
from preflight.judge import paths
from preflight.judge.operators import OPERATORS
from preflight.model import LEVELS, Check, Level, Override

#: Operators whose argument is what the fact itself may be.
_VALUES = ("equals", "not", "one_of")
_SIDES = {".warn": "warn_unless", ".fail": "fail_unless"}


def parse(text: str) -> Override:
    """'gpu.count=8' -> its id and value; the value is one YAML value: 8, true, [0, 2]."""
    identifier, equals, value = text.partition("=")
    if not equals or not identifier or not value:
        raise UsageError(f"--set {text!r}: expected ID=VALUE", "for example --set gpu.count=8")
    return Override(identifier, strict_yaml.load(value, f"--set {text}"), "--set")


def apply(checks: Sequence[Check], overrides: Iterable[Override]) -> list[Check]:
    """The checks with the stated thresholds. UsageError for an id or a value that does not fit."""
    by_id = {check.id: check for check in checks}
    for override in overrides:
        identifier, side = _split(override.id, by_id)
        by_id[identifier] = _changed(by_id[identifier], side, override)
    return [by_id[check.id] for check in checks]


def _split(text: str, by_id: dict[str, Check]) -> tuple[str, str]:
    stem, suffix = text[:-5], text[-5:]
    if suffix in _SIDES and stem in by_id:
        return stem, _SIDES[suffix]
    if text in by_id:
        return text, ""
    what = f"{text!r} is not the id of a check that this command judges"
    for check in by_id.values():
        if any(_is_bound(one, text) for one in (check.fail_unless, check.warn_unless)):
            raise UsageError(f"{what}, but a bound of one", f"--set {check.id}=VALUE")
    raise UsageError(what, _nearest(text, by_id))


def _is_bound(declared: dict[str, Any], name: str) -> bool:
    return any(isinstance(one, dict) and one.get("bound") == name for one in declared.values())


def _nearest(text: str, ids: Iterable[str]) -> str:
    import difflib  # for mistakes only

    near = difflib.get_close_matches(text, list(ids), 3)
    return f"nearest: {', '.join(near)}" if near else "preflight explain lists the checks"


def _changed(check: Check, side: str, override: Override) -> Check:
    both = [name for name in ("fail_unless", "warn_unless") if getattr(check, name)]
    if not both:
        raise UsageError(f"{check.id} has no threshold to set", f"preflight explain {check.id}")
    if not side and len(both) == 2:
        hint = f"--set {check.id}.warn=VALUE or --set {check.id}.fail=VALUE"
        raise UsageError(f"{check.id} has a threshold to warn and one to fail", hint)
    side = side or both[0]
    if side not in both:
        raise UsageError(f"{check.id} has no {side}", f"it has {both[0]}")
    ((name, built_in),) = getattr(check, side).items()
    value = _like(name, override.value, check.fact)
    stated = name == "uniform" and not isinstance(value, dict)
    if stated:  # in place of what most have
        value = {**(built_in if isinstance(built_in, dict) else {}), "value": value}
    if not OPERATORS[name].accepts(value):
        raise UsageError(f"{override.id}={override.value!r}: {name} takes {OPERATORS[name].wants}")
    if name == "subset_of" and "NAME" in value:
        hint = f"--set {check.id}='[NCCL_ALGO]'"
        raise UsageError(f"{override.id}: NAME stands for a name that is meant so", hint)
    if name in _VALUES or stated:
        _hold(check, override, value["value"] if stated else value)
    row = {**check.row, "stated": True}
    return replace(check, **{side: {name: value}}, row=row)


def _hold(check: Check, override: Override, value: Any) -> None:
    """UsageError for a value that the fact never has."""
    each = value if isinstance(value, list) else [value]
    path = paths.parse(check.fact)
    if all(paths.accepts(path, one) for one in each):
        return
    hint = ""
    if all(paths.accepts(path, str(one)) for one in each):
        hint = f"""it is a text, quoted where it looks like a number: --set "{check.id}='1.10'\""""
    raise UsageError(f"{override.id}={override.value!r}: {check.fact} never has such a value", hint)


def _like(name: str, value: Any, fact: str) -> Any:
    """The value in the operator's form; yes and no, as reports print them, for true and false."""
    said = {"yes": True, "no": False}.get(value) if isinstance(value, str) else None
    if (
        name in (*_VALUES, "uniform")
        and said is not None
        and paths.accepts(paths.parse(fact), said)
    ):
        return said
    return [value] if name in ("one_of", "subset_of") and not isinstance(value, list) else value


def select(
    checks: Sequence[Check], *, only: Sequence[str] = (), skip: Sequence[str] = (),
    level: Level = "full",
) -> list[Check]:  # fmt: skip
    """The checks of this level whose id fits a glob of `only` (all where none is given) and none
    of `skip`. UsageError for a glob that fits nothing: a typing error would pass unseen."""
    for glob in (*only, *skip):
        if not any(fnmatchcase(check.id, glob) for check in checks):
            raise UsageError(
                f"no check that this command judges is called {glob!r}",
                _nearest(glob, (check.id for check in checks)),
            )
    return [
        check
        for check in checks
        if LEVELS.index(check.level) <= LEVELS.index(level)
        and (not only or any(fnmatchcase(check.id, glob) for glob in only))
        and not any(fnmatchcase(check.id, glob) for glob in skip)
    ]


def mark(checks: Sequence[Check], names: Iterable[str], **marks: bool) -> list[Check]:
    """Tell the checks that these names or globs fit what the user asked about or stated."""
    globs = tuple(names)
    return [
        replace(check, row={**check.row, **marks})
        if any(fnmatchcase(check.id, glob) for glob in globs)
        else check
        for check in checks
    ]
