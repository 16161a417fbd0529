"""Resource limits that systemd gives services, drop-ins and defaults included."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.errors import ParseError
from preflight.facts.system import Limit
from preflight.model import Known, Missing
from preflight.probes.limits.limits import amount
from preflight.probes.spec import probe

_PROBE = "service-limits"

#: From whose limits those of the jobs come, directly or by a container's runtime.
_SERVICES = (
    "slurmd", "containerd", "crio", "docker", "kubelet", "pbs", "k3s", "k3s-agent", "rke2-server",
    "rke2-agent", "ssh", "sshd",
)  # fmt: skip
_RESOURCES = ("nofile", "memlock", "nproc", "stack")
_PROPERTIES = ",".join(
    f"Limit{resource.upper()}{soft}" for resource in _RESOURCES for soft in ("", "Soft")
)
_DEFAULTS = ",".join(f"Default{name}" for name in _PROPERTIES.split(","))
_ASK = f"""\
if [ -d /run/systemd/system ] && command -v systemctl >/dev/null 2>&1; then
  systemctl show --no-pager -p {_DEFAULTS}
  echo
  systemctl show --no-pager -p Id,LoadState,ActiveState,{_PROPERTIES} \
    {" ".join(f"{name}.service" for name in _SERVICES)} || echo "failed $?"
else echo none; fi
echo end"""

#: Those that a job's processes descend from; k3s and rke2 start a containerd of their own.
_OF_JOBS = frozenset(
    f"{name}.service" for name in ("slurmd", "pbs", "k3s", "k3s-agent", "rke2-server", "rke2-agent")
)
#: A pod's do from these, and nobody can state a limit for a pod: a container that somebody starts
#: by hand gets its limits by options.
_OF_PODS = frozenset({"containerd.service", "crio.service"})


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10)
def service_limits(text: str) -> Known[tuple[Limit, ...]]:
    """Blocks of `Key=value` lines, one for each service, of those that run."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the limits of services are cut short: no closing `end`", len(lines))
    if lines[0] == "none":
        return Missing("not-applicable", "no systemd runs here")
    blocks = list(_blocks(lines[:-1]))
    if not blocks:
        failed = next((line for line in lines if line.startswith("failed ")), "")
        if failed:
            return Missing("exited", f"systemctl show exited with {failed[7:17]}")
        raise ParseError("expected lines `Id=slurmd.service` of systemctl show", 1)
    active = {told["Id"]: (at, told) for at, told in blocks if told.get("ActiveState") == "active"}
    pods = "kubelet.service" in active
    found = tuple(limit for at, told in active.values() for limit in _limits(told, at, pods))
    return found or Missing("not-applicable", "none of the services that start jobs runs here")


def _blocks(lines: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """(line of its begin, keys and values) of each service."""
    told: dict[str, str] = {}
    first = 1
    for number, line in enumerate([*lines, ""], 1):
        key, equals, value = line.partition("=")
        if equals and re.fullmatch(r"\w+", key):
            if not told:
                first = number
            told[key] = value
        elif told:
            if "DefaultLimitNOFILE" in told:  # what a service gets that states nothing
                told = {key.removeprefix("Default"): value for key, value in told.items()}
                told |= {"Id": "systemd's default", "ActiveState": "active"}
            if "Id" in told:
                yield first, told
            told = {}


def _limits(told: dict[str, str], line: int, pods: bool) -> Iterator[Limit]:
    of = told["Id"][:60]
    for resource in _RESOURCES:
        hard = told.get(f"Limit{resource.upper()}")
        if hard is None:
            continue
        soft = told.get(f"Limit{resource.upper()}Soft")
        old = Missing("not-applicable", "this version of systemd does not tell the soft limit")
        yield Limit(
            f"{resource} ({of})", resource, of, old if soft is None else amount(soft), amount(hard),
            lifted=False, for_jobs=of in _OF_JOBS or (pods and of in _OF_PODS),
            line=line, probe=_PROBE,
        )  # fmt: skip
