"""The words of a report: what a value, a verdict and an action read like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from preflight.model import Action, Evidence, Finding, HostReport, Report, Result, Scalar, Status
from preflight.nodesets import fold
from preflight.reports.question import unanswered
from preflight.reports.silent import answered, machines, untrained, unverified
from preflight.reports.split import lacking
from preflight.units import number

ACTIONS: dict[Action, str] = {
    Action.NONE: "",
    Action.WATCH: "watch it; no hurry",
    Action.RESTART_JOB: "restart the job",
    Action.FIX_CONFIG: "fix the configuration",
    Action.RESTART_SERVICE: "restart the service",
    Action.RESET_GPU: "reset the GPU",
    Action.REBOOT: "reboot the host",
    Action.DRAIN: "drain the host",
    Action.INSPECT: "inspect cable, seat, optics, cooling, power",
    Action.REPLACE: "replace the part",
}
MILDEST_FIRST = tuple(ACTIONS)

#: The first part of a check's id, as a person names it.
DOMAINS = {
    "gpu": "GPUs",
    "pcie": "PCIe",
    "nvlink": "NVLink",
    "chassis": "Chassis",
    "dcgm": "DCGM",
    "live": "Watched",
    "topo": "Topology",
    "topology": "Topology",
    "numa": "NUMA",
    "nic": "NICs",
    "ib": "InfiniBand",
    "fabric": "Fabric",
    "network": "Network",
    "nccl": "NCCL",
    "collectives": "Collectives",
    "rdma": "RDMA",
    "wire": "Links",
    "bench": "Benchmarks",
    "io": "Storage as measured",
    "shard": "Data as it is decoded",
    "objects": "Object stores",
    "storage": "Storage",
    "fs": "File systems",
    "kernel": "Kernel",
    "host": "Host",
    "cpu": "CPUs",
    "memory": "Memory",
    "system": "System",
    "versions": "Versions",
    "stress": "Under load",
    "training": "Training",
    "fleet": "Across hosts",
    "site": "Site checks",
}

#: So much of a reason stands in the last line; all of it stands where it is skipped.
_REASON_CHARACTERS = 200
#: Names that mean nothing to a shell: a mount, a service, a process, a disk, a variable.
_PASTED = re.compile(
    r"/[\w./@-]*|[\w.@-]+\.service|pid [0-9]+|(?:md|nvme|sd)[a-z0-9]{1,12}"
    r"|(?:HF|TRITON|TORCHINDUCTOR)_[A-Z_]{2,30}|TMPDIR",
    re.ASCII,
)
#: A subject; of DCGM: "GPU Memory gpu3"; of a stress run: "gpu3 bf16", "gpu3 walking ones".
_OF_GPU = r" (?:fp\d{1,2}|tf32|bf16|address|walking \w{4,5}|random(?: inverted)?)"
_GPU = re.compile(rf"(?:.{{1,60}} )?gpu(\d+)(?:{_OF_GPU})?")
_PORT = re.compile(r"([\w.-]+)/(\d{1,3})", re.ASCII)  # mlx5_0/1
_PCI = re.compile(r"[0-9a-f:.]+")
#: A GPU whose number is not known is called by its address, which `nvidia-smi -i` takes too.
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")


def domain(check: str) -> str:
    """The domain of a check's id, as a person names it."""
    prefix = check.partition(".")[0]
    return DOMAINS.get(prefix, prefix)


def value(measured: Scalar, unit: str = "", *, unlike: str = "") -> str:
    """`65 pages`, `yes`, `-`. `unlike`: more digits until it differs from every number in there."""
    if measured is None:
        return "-"
    if isinstance(measured, bool):
        return "yes" if measured else "no"
    if isinstance(measured, str):
        text = measured
    else:
        # 0.8497 against "at least 0.85" must not read as 0.85.
        taken = _NUMBER.findall(unlike)
        text = next((t for d in (3, 4, 5) if (t := number(measured, d)) not in taken), None) or (
            number(measured, 6)
        )
    if measured == 1 and unit.endswith("s") and len(unit) > 1 and not unit.endswith("/s"):
        unit = unit[:-1]
    return f"{text} {unit}" if unit else text


def typed(step: str, subjects: Sequence[str], devices: Sequence[str]) -> str:
    """Advice with the GPUs it is about in place of INDEX and BUS_ID, an adapter's port in place of
    NIC and PORT, a mount, a service or a process in place of NAME or PID, so that it can be
    pasted."""
    indices = [
        found[1] if (found := _GPU.fullmatch(subject)) else subject
        for subject in subjects
        if _GPU.fullmatch(subject) or _ADDRESS.fullmatch(subject)
    ]
    if indices and len(indices) == len(subjects):
        step = step.replace("INDEX", ",".join(dict.fromkeys(indices)))
    if len(set(devices)) == 1 and _PCI.fullmatch(devices[0]):
        step = step.replace("BUS_ID", devices[0])
    if len(set(subjects)) == 1 and (port := _PORT.fullmatch(subjects[0])):
        step = re.sub(r"\bPORT\b", port[2], re.sub(r"\bNIC\b", port[1], step))
    if len(set(subjects)) == 1 and _PASTED.fullmatch(subjects[0]):
        name = subjects[0].removeprefix("pid ")
        step = re.sub(r"\bPID\b" if name != subjects[0] else r"\bNAME\b", name, step)
    return step


def against(result: Result) -> str:
    """`65 pages, expected at most 60`; empty where nothing was measured or expected."""
    if result.measured is None and (not result.expected or result.status is Status.ERROR):
        return ""
    unlike = "" if result.status is Status.PASS else result.expected
    text = value(result.measured, result.unit, unlike=unlike)
    return f"{text}, expected {result.expected}" if result.expected else text


def weight(finding: Finding) -> str:
    """`share 41 %, confidence high`."""
    share = "" if finding.share is None else f"share {number(finding.share * 100)} %"
    share += "" if finding.seconds is None else f", {number(finding.seconds * 1e3)} ms a step"
    confidence = f"confidence {finding.confidence}" if finding.confidence else ""
    return ", ".join(part for part in (share, confidence) if part)


def source(evidence: Evidence, *, short: bool = False) -> str:
    """`nvidia-smi:212`: where a person finds the line; `short`: of a path only the file's name."""
    line = f":{evidence.line}" if evidence.line else ""
    name = evidence.source or evidence.probe
    return f"{PurePath(name).name or name if short else name}{line}"


def _named(hosts: Sequence[str]) -> str:
    folded = fold(hosts)
    return folded if len(folded) <= 60 else plural(len(hosts), "host")


def explain(status: Status, checks: Sequence[str], runbook: str) -> str:
    """What to type to read more.

    Of an undetermined check only its own page: its runbook is for a fault that nobody has seen.
    """
    if status is Status.ERROR:
        return f"preflight explain {checks[0]}" if len(checks) == 1 else ""
    return f"preflight explain {runbook or checks[0]}"


def plural(count: int, noun: str) -> str:
    """`1 check`, `31 checks`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def some(names: Sequence[str], most: int, *, more: str = "-v lists them") -> str:
    """The first names of a list, and how many more there are and where."""
    if len(names) <= most + 1:
        return ", ".join(names)
    where = f" ({more})" if more else ""
    return f"{', '.join(names[:most])} and {len(names) - most:,} more{where}"


def when(started_at: str) -> str:
    """`2026-01-02 03:04:05 UTC`, or the time as it is told."""
    found = re.fullmatch(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?Z", started_at)
    return f"{found[1]} {found[2]} UTC" if found else started_at


def _lacking(hosts: Sequence[HostReport], unseen: Sequence[str]) -> list[str]:
    """`nothing of gpu, pcie was verified on node07`, for those that are judged in other domains."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for host, domains in lacking(hosts).items():
        if host not in unseen:
            alike.setdefault(tuple(sorted(domains)), []).append(host)
    return [
        f"nothing of {some(domains, 3, more='')} was verified on {_named(names)}"
        for domains, names in alike.items()
    ]


def _untrained(hosts: Sequence[HostReport]) -> list[str]:
    """`training was not run: /usr/bin/python3 has no torch`; of several hosts on which of them."""
    return [
        f"training was not run{f' on {_named(names)}' if len(hosts) > 1 else ''}: "
        f"{cut(reason, _REASON_CHARACTERS)}"
        for reason, names in untrained(hosts).items()
    ]


def cut(text: str, most: int) -> str:
    """The text, or its beginning up to a space and three dots."""
    return text if len(text) <= most else f"{text[:most].rpartition(' ')[0] or text[:most]} ..."


def _of_findings(report: Report) -> str:
    """Of a report that concludes and checks nothing: `FAIL: 1 finding failed, 1 warned`."""
    words = (
        (Status.FAIL, "failed"), (Status.WARN, "warned"), (Status.ERROR, "undetermined"),
        (Status.PASS, "passed"),
    )  # fmt: skip
    told: list[str] = []
    for status, word in words:
        count = sum(1 for one in report.findings if one.status is status)
        if count:
            told.append(f"{plural(count, 'finding')} {word}" if not told else f"{count:,} {word}")
    return f"{report.verdict.value}: {', '.join(told)}"


def verdict(report: Report) -> str:
    """The last line: `FAIL: 1 failed, 2 warned, 41 passed, 3 skipped, 0 undetermined`."""
    counts = report.counts
    if report.findings and not report.hosts and not report.fleet:
        return _of_findings(report)
    if report.verdict is Status.SKIP:
        text = "SKIP: nothing was verified"
        text += f", {counts.skip:,} skipped" if counts.skip else ""
    else:
        text = (
            f"{report.verdict.value}: {counts.fail:,} failed, {counts.warn:,} warned, "
            f"{counts.passed:,} passed, {counts.skip:,} skipped, {counts.error:,} undetermined"
        )
    hosts = machines(report.hosts)
    silent = sum(1 for host in hosts if not answered(host) and host.verdict is Status.ERROR)
    told = [f"{silent:,} of {len(hosts):,} without results"] if silent else []
    if files := len(report.hosts) - len(hosts):
        told.append(f"{plural(files, 'file')} not read in full")
    # Beside hosts that pass, one of which everything was skipped must not be taken for one of them.
    unseen = [host.host for host in hosts if unverified(host)]
    if 0 < len(unseen) < len(hosts) and report.verdict is not Status.SKIP:
        told.append(f"nothing was verified on {_named(unseen)}")
    told += _lacking(hosts, unseen)
    told += [plural(len(report.findings), "finding")] if report.findings else []
    parts = [text, *filter(None, [", ".join(told)]), *_untrained(hosts)]
    return "; ".join([*parts, *(cut(one, _REASON_CHARACTERS) for one in unanswered(report))])
