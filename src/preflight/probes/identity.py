"""Who answers: host name, boot, time, user, container, what was granted."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TypeVar

from preflight.errors import ParseError
from preflight.facts.host import Identity
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe

T = TypeVar("T")

#: Variables by which container runtimes and schedulers grant GPUs, nearest to the process first.
ALLOCATION = ("NVIDIA_VISIBLE_DEVICES", "SLURM_STEP_GPUS", "SLURM_JOB_GPUS")

# One `key value` line each. A container is told by the marks its runtime leaves: docker's and
# podman's files, systemd's container= (https://systemd.io/CONTAINER_INTERFACE/), Kubernetes' and
# Apptainer's variables.
_ASK = """\
printf 'hostname '; hostname 2>/dev/null || uname -n
printf 'kernel '; uname -r
printf 'boot_id '; cat /proc/sys/kernel/random/boot_id || echo
printf 'date '; date -u +%Y-%m-%dT%H:%M:%SZ
printf 'uptime '; cat /proc/uptime || echo
printf 'uid '; id -u
for f in /.dockerenv /run/.containerenv /run/systemd/container; do
  if [ -e "$f" ]; then echo "container_file $f"; fi; done
for v in container KUBERNETES_SERVICE_HOST APPTAINER_CONTAINER SINGULARITY_CONTAINER; do
  eval "x=\\${$v-}"; if [ -n "$x" ]; then echo "container_variable $v"; fi; done
for d in /dev/nvidia[0-9]*; do if [ -c "$d" ]; then echo "device_node $d"; fi; done
for v in NVIDIA_VISIBLE_DEVICES SLURM_STEP_GPUS SLURM_JOB_GPUS SLURM_JOB_ID CUDA_VISIBLE_DEVICES; do
  eval "x=\\${$v-unset}"; if [ "$x" != unset ]; then echo "allocation $v $x"; fi; done
:"""

_CONTAINERS = {
    "/.dockerenv": "docker",
    "/run/.containerenv": "podman",
    "KUBERNETES_SERVICE_HOST": "kubernetes",
    "APPTAINER_CONTAINER": "apptainer",
    "SINGULARITY_CONTAINER": "apptainer",
}


#: Field -> the line's name, where that is another.
_SHOWN = {"date_s": "date", "clock_offset_s": "date", "uptime_s": "uptime"}


def locate(text: str, record_line: int, field: str) -> int:
    """The line of a field, which begins with its name."""
    name, lines = _SHOWN.get(field, field), enumerate(text.splitlines(), 1)
    return next((number for number, line in lines if line.startswith(f"{name} ")), record_line)


@probe("identity", ["sh", "-c", _ASK], timeout_s=10, locate=locate)
def identity(text: str) -> Identity:
    """Read the `key value` lines."""
    told: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        told.setdefault(key, []).append(value.strip())
    if not told.get("hostname", [""])[0]:
        raise ParseError("expected a line `hostname NAME`", 1)
    date = _first(told, "date")
    return Identity(
        hostname=told["hostname"][0],
        boot_id=_first(told, "boot_id"),
        date=date,
        date_s=_date_s(date),
        uptime_s=_number(_first(told, "uptime"), float),
        uid=_number(_first(told, "uid"), int),
        kernel=_first(told, "kernel"),
        container=_container(told),
        nvidia_device_nodes=len(told.get("device_node", [])),
        allocation=dict(_pair(entry) for entry in told.get("allocation", [])),
        probe="identity",
    )


def _first(told: dict[str, list[str]], key: str) -> Known[str]:
    value = told.get(key, [""])[0]
    return value or Missing("unreadable", f"the host did not tell its {key}")


def _number(value: Known[str], convert: Callable[[str], T]) -> Known[T]:
    if isinstance(value, Missing):
        return value
    try:
        return convert(value.split()[0])
    except ValueError:
        return Missing("unreadable", f"{value!r} is no number")


def _date_s(date: Known[str]) -> Known[int]:
    if isinstance(date, Missing):
        return date
    try:
        parsed = datetime.strptime(date, "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return Missing("unreadable", f"{date!r} is no date")
    return int(parsed.replace(tzinfo=timezone.utc).timestamp())


def _container(told: dict[str, list[str]]) -> str:
    marks = told.get("container_file", []) + told.get("container_variable", [])
    return next((_CONTAINERS.get(mark, "container") for mark in marks), "none")


def _pair(entry: str) -> tuple[str, str]:
    name, _, value = entry.partition(" ")
    return name, value


def granted(identity: Identity) -> Known[int]:
    """How many GPUs the allocation grants, where one limits the view; NOT_IN_INPUT where none does.

    `all` limits nothing. `void` and the like leave it to the container's runtime (CDI): the device
    nodes tell then, as they do in a container without a list. A MIG list names no whole GPUs.
    """
    unknown = Missing("not-applicable", "what was granted cannot be read")
    for name in ALLOCATION[:3]:
        value = identity.allocation.get(name, "")
        if "MIG-" in value:
            return unknown
        if value and value not in _NO_LIST:
            return len(_indices(value))
    if identity.container != "none":
        return identity.nvidia_device_nodes or unknown
    # A job whose scheduler hides devices without a word: its cgroup cannot be read from here.
    return unknown if identity.allocation.get("SLURM_JOB_ID") else NOT_IN_INPUT


#: Values that are no list of GPUs.
_NO_LIST = frozenset({"all", "void", "none", "NoDevFiles", "-1"})


def _indices(value: str) -> set[str]:
    """'0-3,5' is five; '0:0,0:1', two MIG slices of one GPU, is one."""
    found: set[str] = set()
    for part in filter(None, (each.strip() for each in value.split(","))):
        span = re.fullmatch(r"(\d{1,4})-(\d{1,4})", part)
        if span:
            found.update(map(str, range(int(span[1]), int(span[2]) + 1)))
        else:
            found.add(part.partition(":")[0])
    return found
