"""The answers of several probes -> one Host. Pure, and driven by the tables below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.fabric_manager import fabric_manager
from preflight.facts.chassis import Chassis, EventLog
from preflight.facts.dcgm import DcgmDiag
from preflight.facts.gpu import Driver, Gpu, NvidiaSmi
from preflight.facts.host import Cpu, Host, Identity, SiteAnswer
from preflight.facts.kernel import KernelLog
from preflight.facts.nvlink import NvlinkAnswer
from preflight.facts.pci_tree import PciTree
from preflight.facts.watch import Watch
from preflight.gpu_inventory import (
    count_gpus,
    not_asked,
    nothing_wrong_without_gpus,
    nouveau_beside,
    silence,
    watch_of,
)
from preflight.gpu_links import with_links
from preflight.gpu_processes import with_unexplained
from preflight.model import NOT_IN_INPUT, Check, Command, Known, Missing, MissingProbe, Raw
from preflight.pci_paths import functions, looks_virtual, paths
from preflight.probes.kernel_log_union import relabelled, union
from preflight.probes.spec import Probe

#: Where each probe lives. Cheap ones first, vendor tools last: a tool that hangs costs no answer.
PROBES: dict[str, str] = {
    "identity": "identity:identity",
    "pci": "pci:pci",
    "meminfo": "system:meminfo",
    "os-release": "system:os_release",
    "lscpu": "system:lscpu",
    "driver-module": "driver_module:driver_module",
    "services": "services:services",
    "edac": "edac:edac",
    "dmidecode": "dmidecode:dmidecode",
    "dmesg": "kernel_log:dmesg",
    "journalctl": "kernel_log:journalctl",
    "kernel-log": "kernel_log:kernel_log",
    "lspci": "lspci:lspci",
    "nvidia-smi": "nvidia_smi_xml:nvidia_smi_xml",
    "nvidia-smi-q": "nvidia_smi_text:nvidia_smi_text",
    "nvidia-smi-table": "nvidia_smi_table:nvidia_smi_table",
    "nvlink-s": "nvlink:nvlink_status",
    "nvlink-e": "nvlink:nvlink_errors",
    "nvlink": "nvlink:nvlink",
    "dcgmi-diag": "dcgm_diag:dcgmi_diag",
    "ipmi-sdr": "ipmi_sdr:ipmi_sdr",
    "ipmi-sel": "ipmi_sel:ipmi_sel",
    "watch": "watch:watch",
    "nvidia-smi-dmon": "nvidia_smi_dmon:nvidia_smi_dmon",
    "dcgmi-dmon": "dcgm_dmon:dcgm_dmon",
}

#: Each part of the vocabulary and the probes that can supply it, best first.
SUPPLIERS: dict[str, tuple[str, ...]] = {
    "identity": ("identity",),
    "pci": ("pci",),
    "memory": ("meminfo",),
    "os": ("os-release",),
    "cpu": ("lscpu",),
    "kernel_log": ("dmesg", "journalctl", "kernel-log"),
    "pci_tree": ("lspci",),
    "driver_module": ("driver-module",),
    "services": ("services",),
    "nvidia_smi": ("nvidia-smi", "nvidia-smi-q", "nvidia-smi-table"),
    "nvlink_status": ("nvlink-s", "nvlink"),
    "nvlink_errors": ("nvlink-e", "nvlink"),
    "chassis": ("ipmi-sdr",),
    "sel": ("ipmi-sel",),
    "edac": ("edac",),
    "dimms": ("dmidecode",),
    "dcgm": ("dcgmi-diag",),
    "watch": ("watch", "nvidia-smi-dmon", "dcgmi-dmon"),
}

#: Forms of a part that only a recording holds: never asked of a live host.
RECORDED_ONLY = frozenset(
    {
        "kernel-log", "nvidia-smi-q", "nvidia-smi-table", "nvlink", "dcgmi-diag",
        "nvidia-smi-dmon", "dcgmi-dmon",
    }
)  # fmt: skip

#: Asked by an option of its own (--duration), with a command that depends on it.
BY_OPTION = frozenset({"watch"})

#: The first word of a fact path -> the parts it is made of. `identity` and `pci` are always asked.
MADE_OF: dict[str, tuple[str, ...]] = {
    "identity": ("identity",),
    "os": ("os",),
    "cpu": ("cpu",),
    "memory": ("memory",),
    "pci": ("pci",),
    "container": ("identity",),
    "virtualization": ("cpu", "nvidia_smi"),
    "driver": ("nvidia_smi", "pci"),
    "gpus": ("nvidia_smi", "pci"),
    "gpu_inventory": ("nvidia_smi", "pci", "identity"),
    "kernel_log": ("kernel_log",),
    "pci_tree": ("pci_tree",),
    "pci_paths": ("pci_tree", "nvidia_smi", "cpu"),
    "driver_module": ("driver_module",),
    "services": ("services",),
    "fabric_manager": ("services", "pci", "nvidia_smi", "cpu"),
    "chassis": ("chassis",),
    "sel": ("sel",),
    "edac": ("edac",),
    "dimms": ("dimms",),
    "dcgm": ("dcgm",),
    "watch": ("watch", "pci"),
    "site": (),
}
#: The same for facts of a GPU that are asked for by themselves: the word below `gpus[*]`.
BELOW_GPUS: dict[str, tuple[str, ...]] = {"nvlink": ("nvlink_status", "nvlink_errors")}

#: A tool or probe -> where it comes from, for tools whose absence makes checks undetermined.
_COMES_WITH = {
    "nvidia-smi": "; it comes with the driver (nvidia-utils), into a container with "
    "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
    "lspci": "; it comes with pciutils: apt install pciutils, dnf install pciutils",
    "ipmitool": "; on a server with a management controller: `sudo apt install ipmitool`, or dnf",
    "dmidecode": "; `sudo apt install dmidecode`, or dnf",
    "watch": "; another: --python 'CMD'",
}

#: Why nobody has run DCGM's diagnostics: it is work that the user asks for by name.
_NO_DIAG = Missing(
    "not-asked",
    "`dcgmi diag` loads the GPUs and is not run from here: on the drained host "
    "`sudo dcgmi diag -r 3 -j > diag.json`, then --from diag.json",
)

_DENIED = ("Operation not permitted", "Permission denied", "password is required", "not permitted")


def probe_of(name: str) -> Probe | None:
    """The probe called `name`, or `name#2`; None where it is a site's own or unknown."""
    stem = name.partition("#")[0]
    if stem not in PROBES:
        return None
    module, function = PROBES[stem].split(":")
    found: Probe = getattr(import_module(f"preflight.probes.{module}"), function).probe
    return found


def commands_for(checks: Iterable[Check], site: Sequence[Command] = ()) -> list[Command]:
    """The questions that these checks need, in the order in which they are asked."""
    paths = {path for check in checks for path in _paths(check)}
    parts = {"identity", "pci", "os", "cpu", "memory"}
    parts.update(part for path in paths for part in _parts(path))
    wanted = {name for part in parts for name in SUPPLIERS[part]} - RECORDED_ONLY - BY_OPTION
    probes = [probe_of(name) for name in PROBES if name in wanted]
    return [probe.command for probe in probes if probe] + list(site)


def _parts(path: str) -> Iterator[str]:
    """The parts that the fact at `path` is made of."""
    root = path.partition("[")[0].partition(".")[0]
    yield from MADE_OF.get(root, ())
    if root == "gpus":
        yield from BELOW_GPUS.get(path.partition("[*].")[2].partition(".")[0], ())


def _paths(check: Check) -> Iterator[str]:
    """All facts of the host that a check reads: its own, its conditions', what it compares with."""
    yield from (check.fact, *check.when)
    for declared in (check.fail_unless, check.warn_unless):
        for argument in declared.values():
            if isinstance(argument, dict) and not str(argument.get("fact", ".")).startswith("."):
                yield argument["fact"]
    if check.row.get("settled_by"):
        yield "gpus"


class Assembled(Struct):
    """A host's facts, and the questions that got no usable answer."""

    host: Host
    missing: list[MissingProbe]


def assemble(name: str, raws: Iterable[Raw]) -> Assembled:
    """The facts of one host from all its answers."""
    by_probe = {raw.probe: raw for raw in raws}
    read = {probe: _read(raw) for probe, raw in by_probe.items() if probe_of(probe)}
    parts = {part: _best(read, suppliers) for part, suppliers in SUPPLIERS.items()}
    parts["watch"] = watch_of(parts["watch"], parts["pci"], by_probe.values())
    parts["kernel_log"] = _all_logs(read, parts["kernel_log"], parts["identity"])
    site = {probe: _site(raw) for probe, raw in by_probe.items() if probe.startswith("site.")}
    return Assembled(_host(name, parts, site), _unanswered(read, site))


def _host(name: str, parts: Mapping[str, Any], site: dict[str, Known[SiteAnswer]]) -> Host:
    identity, smi, pci, tree = (
        parts[part] for part in ("identity", "nvidia_smi", "pci", "pci_tree")
    )
    container = identity if isinstance(identity, Missing) else identity.container
    smi = not_asked(pci, smi)
    if pci is NOT_IN_INPUT:
        pci = functions(tree, smi)
    inventory = count_gpus(identity, pci, smi)
    smi = nothing_wrong_without_gpus(inventory, smi)
    virtualization = _virtualization(parts["cpu"], smi, tree)
    return Host(
        name=name,
        identity=identity,
        os=parts["os"],
        container=container,
        virtualization=virtualization,
        cpu=parts["cpu"],
        memory=parts["memory"],
        pci=pci,
        driver=smi if isinstance(smi, Missing) else smi.driver,
        gpus=with_unexplained(
            with_links(_gpus(smi), parts["nvlink_status"], parts["nvlink_errors"]), container
        ),
        gpu_inventory=inventory,
        kernel_log=parts["kernel_log"],
        pci_tree=tree,
        pci_paths=paths(tree, smi, virtualization),
        driver_module=nouveau_beside(parts["driver_module"], pci),
        services=parts["services"],
        fabric_manager=fabric_manager(parts["services"], pci, smi, virtualization),
        chassis=parts["chassis"],
        sel=parts["sel"],
        edac=parts["edac"],
        dimms=parts["dimms"],
        dcgm=_NO_DIAG if parts["dcgm"] is NOT_IN_INPUT else parts["dcgm"],
        watch=parts["watch"],
        site=site,
    )


def _unanswered(
    read: Mapping[str, Any], site: Mapping[str, Known[SiteAnswer]]
) -> list[MissingProbe]:
    """The questions that got no usable answer, where no other probe supplied the same."""
    failed = {name: value for name, value in {**read, **site}.items() if isinstance(value, Missing)}
    supplied = {
        name
        for suppliers in SUPPLIERS.values()
        if any(name in read and name not in failed for name in suppliers)
        for name in suppliers
    }
    return [
        MissingProbe(name, value.kind, value.text)
        for name, value in failed.items()
        if name not in supplied
    ]


def _read(raw: Raw) -> Any:
    """The facts in one answer, or why there are none."""
    failed = _failed(raw)
    probe = probe_of(raw.probe)
    if failed is not None or probe is None:
        return _hung(raw, failed, probe)
    try:
        facts = probe.parse(answer_text(raw, probe))
    except ParseError as error:
        return _exited(raw) if raw.rc else Missing("unreadable", f"{raw.probe}: {error}")
    # A tool that failed may have told half of it; of nvidia-smi the text says what is wrong.
    told = raw.rc == 0 or _explains(facts)
    return _timed(facts, raw) if told else _exited(raw)


def _timed(facts: Any, raw: Raw) -> Any:
    """nvidia-smi's answer with how long it took, where preflight itself has asked."""
    if not isinstance(facts, NvidiaSmi) or not raw.argv:
        return facts
    return replace(facts, driver=replace(facts.driver, answer_s=raw.elapsed_s))


def _explains(facts: Any) -> bool:
    """Whether the answer is one although its tool ended with an error. ipmitool does so for one
    sensor among many that did not answer, dcgmi for a test that failed."""
    if isinstance(facts, NvlinkAnswer):
        return facts.explained
    if isinstance(facts, Watch):
        return facts.ended in ("no-answer", "interrupted")
    if isinstance(facts, NvidiaSmi):
        return _tells_what_is_ill(facts)
    return isinstance(facts, (Chassis, EventLog, DcgmDiag, Missing))


def _tells_what_is_ill(smi: NvidiaSmi) -> bool:
    ill = (gpu.answers is False or gpu.inforom_corrupted is True for gpu in smi.gpus)
    return smi.driver.state != "answers" or any(ill)


def _hung(raw: Raw, failed: Missing | None, probe: Probe | None) -> Any:
    """A driver that lets nvidia-smi wait for its whole limit is a fact; cut off sooner, by the
    host's deadline, it is only unknown."""
    over = raw.rc in (124, 137) and probe and raw.elapsed_s >= probe.command.timeout_s
    if raw.probe == "watch" and probe and raw.stdout:
        return _seen_so_far(raw, probe) or failed
    if failed is None or raw.probe != "nvidia-smi" or not over:
        return failed
    return NvidiaSmi(Driver("hangs", failed.text, line=1, probe=raw.probe), failed, ())


def _seen_so_far(raw: Raw, probe: Probe) -> Watch | None:
    """What a watch saw until it was interrupted or cut off, where it saw a GPU at all."""
    try:
        found = probe.parse(answer_text(raw, probe))
    except ParseError:
        return None
    seen = isinstance(found, Watch) and not isinstance(found.gpus, Missing)
    return found if seen else None


def answer_text(raw: Raw, probe: Probe | None) -> str:
    """What the probe reads: standard output, for some with standard error behind it."""
    text = _text(raw.stdout)
    if probe is not None and probe.with_stderr and raw.stderr:
        text = f"{text}\n{_text(raw.stderr)}"
    return text


def _text(data: str | bytes) -> str:
    return data if isinstance(data, str) else data.decode(errors="replace")


def _failed(raw: Raw) -> Missing | None:
    """What the exit status alone says; 124, 125, 126, 127, 137 are those of timeout(1)."""
    tool = raw.argv[0] if raw.argv else raw.probe
    if raw.missing is not None:
        return Missing(raw.missing.kind, f"{tool}: {raw.missing.text}")
    if raw.rc == 127:
        comes_with = _COMES_WITH.get(tool) or _COMES_WITH.get(raw.probe, "")
        return Missing("no-tool", f"{tool} is not installed{comes_with}")
    if raw.rc == 125:
        return Missing("no-tool", f"{tool} was not asked: the host has no timeout(1) (coreutils)")
    if raw.rc == 126:
        return Missing("denied", f"{tool} cannot be run: {_first_line(raw.stderr)}")
    if raw.rc is None:
        return Missing("exited", f"{tool}: its end was not seen")
    if raw.rc == 124 or (raw.rc == 137 and raw.elapsed_s >= 1):
        return Missing("timeout", f"{tool} did not end within {raw.elapsed_s:.0f} s")
    if raw.rc == 137:
        return Missing("exited", f"{tool} was killed (memory?)")
    if raw.truncated:
        return Missing("unreadable", f"{tool}: the answer was too long and is cut short")
    return None


def _exited(raw: Raw) -> Missing:
    tool = raw.argv[0] if raw.argv else raw.probe
    said = _first_line(raw.stderr) or _first_line(raw.stdout)
    if any(word in said for word in _DENIED):
        command = " ".join(raw.argv)
        return Missing("denied", f"{said}; run preflight as root or with --sudo (`sudo {command}`)")
    return Missing("exited", f"{tool} exited with {raw.rc}: {said or 'it printed nothing'}")


def _first_line(data: str | bytes) -> str:
    return next((line.strip()[:200] for line in _text(data).splitlines() if line.strip()), "")


def _best(read: Mapping[str, Any], suppliers: Sequence[str]) -> Any:
    """The first supplier that has it; else the first one's reason."""
    answers = [read[name] for name in suppliers if name in read]
    found = [answer for answer in answers if not isinstance(answer, Missing)]
    return (found or answers or [NOT_IN_INPUT])[0]


def _all_logs(read: Mapping[str, Any], first: Any, identity: Known[Identity]) -> Any:
    """All kernel logs of the host as one; one that is closed to this user hurts nobody."""
    logs = [
        log if log.probe == name else relabelled(log, name)
        for name, log in read.items()
        if isinstance(log, KernelLog)
    ]
    logs.sort(key=_best_log_first)
    booted_at_s = _booted_at_s(identity)
    if not logs:
        return first
    log = union(logs, booted_at_s)
    return replace(log, reach_h=_reach_h(log, identity))


def _reach_h(log: KernelLog, identity: Known[Identity]) -> Known[float]:
    """How far back a log goes that lost its beginning."""
    if isinstance(identity, Missing):
        return identity
    if not log.truncated:
        return Missing("not-applicable", "the log begins at boot")
    now = identity.uptime_s if log.clock == "boot" else identity.date_s
    if isinstance(now, Missing) or log.first_at_s is None:
        return Missing("not-applicable", "the lines have no time")
    return max(now - log.first_at_s, 0.0) / 3600


def _best_log_first(log: KernelLog) -> int:
    return SUPPLIERS["kernel_log"].index(log.probe.partition("#")[0])


def _booted_at_s(identity: Known[Identity]) -> float | None:
    """When the host was booted, in seconds since 1970."""
    if isinstance(identity, Missing):
        return None
    date_s, uptime_s = identity.date_s, identity.uptime_s
    if isinstance(date_s, Missing) or isinstance(uptime_s, Missing):
        return None
    return date_s - uptime_s


def _gpus(smi: Known[NvidiaSmi]) -> Known[tuple[Gpu, ...]]:
    if isinstance(smi, Missing):
        return smi
    if not smi.gpus and smi.driver.state != "answers":
        return silence(smi.driver)
    if not smi.gpus and smi.attached != 0:
        return Missing("unreadable", "the input is cut short: no GPU is whole in it")
    return smi.gpus


def _virtualization(cpu: Known[Cpu], smi: Known[NvidiaSmi], tree: Known[PciTree]) -> Known[str]:
    """`vm` or `none`: by the GPU driver where it was given a GPU, else by the CPU's hypervisor
    flag (which x86 has and other processors have not), else by devices that only virtual machines
    have."""
    gpus = () if isinstance(smi, Missing) else smi.gpus
    told = {gpu.virtualization for gpu in gpus if isinstance(gpu.virtualization, str)}
    if told - {"None", "Host VGPU", "Host VSGA"}:
        return "vm"
    if isinstance(cpu, Cpu) and isinstance(cpu.hypervisor, str):
        return "none" if cpu.hypervisor == "none" else "vm"
    if told:
        return "none"
    return "vm" if looks_virtual(tree) else NOT_IN_INPUT


def _site(raw: Raw) -> Known[SiteAnswer]:
    failed = _failed(raw)
    if failed is not None:
        return failed
    from preflight.probes.site import site_answer

    answer = replace(site_answer(_text(raw.stdout)), rc=raw.rc or 0, probe=raw.probe)
    if not raw.rc:
        return answer
    failed = _exited(raw)  # what a command that failed printed is no answer
    return replace(answer, text=failed, lines=failed, number=failed)
