"""The rule `environment`: a check for each kind of fault, a result for each variable at fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from preflight import env_table as table
from preflight.facts.host import Host
from preflight.facts.stack import EnvVar
from preflight.judge.environment.devices import devices, files
from preflight.judge.environment.names import early, gone, renamed, unknown
from preflight.judge.environment.recipes import all_of, by_recipe, twice
from preflight.judge.environment.scene import Fault, Found, Scene, scenes
from preflight.judge.environment.values import threads, values
from preflight.judge.results import about, result, undetermined
from preflight.model import Check, Evidence, Missing, Result, Status

#: The last word of a check's id -> what looks for its faults.
_FAULTS: dict[str, Callable[[Scene], Found]] = {
    "unknown": unknown,
    "gone": gone,
    "renamed": renamed,
    "early": early,
    "value": values,
    "threads": threads,
    "devices": devices,
    "files": files,
    "contradictory": all_of(twice, by_recipe("contradictory")),
    **{name: by_recipe(name) for name in ("never", "no_effect", "harmful", "blocking")},
}
_LONGEST = 120
_LISTED = 600


def judge_environment(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of all checks on variables; a site names those it means so: --set ID='[NAME]'."""
    variables = host.environment
    assert not isinstance(variables, Missing), "judge_rule sees to that"
    seen = list(scenes(host, variables))
    return [one for check in checks for one in _judged(host, check, seen, variables)]


def _judged(
    host: Host, check: Check, seen: Sequence[Scene], variables: Sequence[EnvVar]
) -> Iterator[Result]:
    meant = (check.fail_unless or check.warn_unless).get("subset_of", ())
    find = _FAULTS[check.id.rpartition(".")[2]]
    found: dict[tuple[str, str, str], Fault] = {}
    unknown: dict[Missing, list[str]] = {}
    for fault in (fault for scene in seen for fault in find(scene)):
        name = fault.variable.name
        if name in meant:
            continue
        if isinstance(fault, Fault):
            found.setdefault((name, fault.variable.of, fault.reason), fault)
        elif name not in unknown.setdefault(fault.why, []):
            unknown[fault.why].append(name)
    yield from (_result(check, fault) for fault in found.values())
    yield from (_unknown(host, check, why, names) for why, names in unknown.items())
    if not found and not unknown:
        told = _all(check, variables)
        idle = sorted(set(meant) - {one.name for one in variables})
        told += f"; meant so and not set: {', '.join(idle)}" if idle else ""
        yield result(check, host.name, Status.PASS, told, "no such variable")


def _result(check: Check, fault: Fault) -> Result:
    one = fault.variable
    subject = one.name if one.of == "shell" else f"{one.name} ({one.of})"
    status = Status.FAIL if check.fail_unless and not fault.mild else Status.WARN
    return result(
        about(check, one.name), subject, status, f"{one.name}={one.value}"[:_LONGEST],
        fault.expected,
        reason=fault.reason, evidence=(Evidence(one.probe, line=one.line),) if one.probe else (),
    )  # fmt: skip


def _unknown(host: Host, check: Check, why: Missing, names: Sequence[str]) -> Result:
    """Variables that could not be judged, for one reason."""
    told = f"{', '.join(names)[:_LONGEST]}: {why.text}"
    return undetermined(check, host.name, Missing(why.kind, told))


def _all(check: Check, variables: Sequence[EnvVar]) -> str:
    """How many were looked at; they are listed once, with their values."""
    if check.id.endswith(".no_effect"):
        stated = [f"{one.name}={one.value}" for one in variables if _is_default(one)]
        told = f"; as by default: {', '.join(stated)}" if stated else ""
        return f"{len(variables)} set{told}"[:_LISTED]
    if not check.id.endswith(".unknown"):
        return f"{len(variables)} set"
    listed = ", ".join(f"{one.name}={one.value}" for one in variables)
    return f"{listed[:_LISTED]} ..." if len(listed) > _LISTED else listed or "none is set"


def _is_default(one: EnvVar) -> bool:
    row = table.variables().get(one.name)
    return bool(row and row.default and one.value.lower() == row.default.lower())
