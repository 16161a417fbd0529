"""The answers of several probes -> one Host. Pure, and driven by the tables below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.gpu import Gpu, GpuInventory, NvidiaSmi
from preflight.facts.host import Cpu, Host, Identity, PciFunction, SiteAnswer
from preflight.facts.kernel import KernelLog
from preflight.model import NOT_IN_INPUT, Check, Command, Known, Missing, MissingProbe, Raw
from preflight.probes.identity import granted
from preflight.probes.spec import Probe

#: Where each probe lives. Cheap ones first, vendor tools last: a tool that hangs costs no answer.
PROBES: dict[str, str] = {
    "identity": "identity:identity",
    "pci": "pci:pci",
    "meminfo": "system:meminfo",
    "os-release": "system:os_release",
    "lscpu": "system:lscpu",
    "dmesg": "kernel_log:dmesg",
    "journalctl": "kernel_log:journalctl",
    "kernel-log": "kernel_log:kernel_log",
    "nvidia-smi": "nvidia_smi_xml:nvidia_smi_xml",
    "nvidia-smi-q": "nvidia_smi_text:nvidia_smi_text",
}

#: Each part of the vocabulary and the probes that can supply it, best first.
SUPPLIERS: dict[str, tuple[str, ...]] = {
    "identity": ("identity",),
    "pci": ("pci",),
    "memory": ("meminfo",),
    "os": ("os-release",),
    "cpu": ("lscpu",),
    "kernel_log": ("dmesg", "journalctl", "kernel-log"),
    "nvidia_smi": ("nvidia-smi", "nvidia-smi-q"),
}

#: Forms of a part that only a recording holds: never asked of a live host.
RECORDED_ONLY = frozenset({"kernel-log", "nvidia-smi-q"})

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
    "site": (),
}

#: Vendors of other accelerators (pci.ids) and the PCI classes by which theirs are told from the
#: graphics chip of a server's management controller.
OTHER_VENDORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "0x1002": ("an AMD GPU", ("0x0300", "0x0302", "0x0380", "0x1200")),
    "0x19e5": ("a Huawei Ascend accelerator", ("0x1200",)),
    "0x1da3": ("an Intel Gaudi accelerator", ("0x1200",)),
    "0x8086": ("an Intel GPU", ("0x0302", "0x0380", "0x1200")),
}

_DENIED = ("Operation not permitted", "Permission denied", "password is required", "not permitted")


def probe_of(name: str) -> Probe | None:
    """The probe called `name`; None where it is a site's own or unknown."""
    if name not in PROBES:
        return None
    module, function = PROBES[name].split(":")
    found: Probe = getattr(import_module(f"preflight.probes.{module}"), function).probe
    return found


def commands_for(checks: Iterable[Check], site: Sequence[Command] = ()) -> list[Command]:
    """The questions that these checks need, in the order in which they are asked."""
    roots = {
        text.lstrip(".").partition("[")[0].partition(".")[0]
        for check in checks
        for text in (check.fact, *check.when)
    }
    parts = {"identity", "pci", "os", "cpu", "memory"}
    parts.update(part for root in roots for part in MADE_OF.get(root, ()))
    wanted = {name for part in parts for name in SUPPLIERS[part]} - RECORDED_ONLY
    probes = [probe_of(name) for name in PROBES if name in wanted]
    return [probe.command for probe in probes if probe] + list(site)


class Assembled(Struct):
    """A host's facts, and the questions that got no usable answer."""

    host: Host
    missing: list[MissingProbe]


def assemble(name: str, raws: Iterable[Raw]) -> Assembled:
    """The facts of one host from all its answers."""
    by_probe = {raw.probe: raw for raw in raws}
    read = {probe: _read(raw) for probe, raw in by_probe.items() if probe in PROBES}
    parts = {part: _best(read, suppliers) for part, suppliers in SUPPLIERS.items()}
    parts["kernel_log"] = _longest(read, parts["kernel_log"])
    site = {probe: _site(raw) for probe, raw in by_probe.items() if probe.startswith("site.")}
    return Assembled(_host(name, parts, site), _unanswered(read, site))


def _host(name: str, parts: Mapping[str, Any], site: dict[str, Known[SiteAnswer]]) -> Host:
    identity, smi, pci = parts["identity"], parts["nvidia_smi"], parts["pci"]
    inventory = _inventory(identity, pci, smi)
    smi = _no_gpu(inventory, smi)
    return Host(
        name=name,
        identity=identity,
        os=parts["os"],
        container=identity if isinstance(identity, Missing) else identity.container,
        virtualization=_virtualization(parts["cpu"], smi),
        cpu=parts["cpu"],
        memory=parts["memory"],
        pci=pci,
        driver=smi if isinstance(smi, Missing) else smi.driver,
        gpus=_gpus(smi),
        gpu_inventory=inventory,
        kernel_log=parts["kernel_log"],
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
        return failed
    try:
        return probe.parse(answer_text(raw, probe))
    except ParseError as error:
        return _exited(raw) if raw.rc else Missing("unreadable", f"{raw.probe}: {error}")


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
        return Missing("no-tool", f"{tool} is not installed")
    if raw.rc == 125:
        return Missing("no-tool", f"{tool} was not asked: the host has no timeout(1) (coreutils)")
    if raw.rc == 126:
        return Missing("denied", f"{tool} cannot be run: {_first_line(raw.stderr)}")
    if raw.rc in (124, 137):
        return Missing("timeout", f"{tool} did not end within {raw.elapsed_s:.0f} s")
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


def _longest(read: Mapping[str, Any], first: Any) -> Any:
    """Of several kernel logs the one that reaches back furthest: the ring buffer may have lost its
    beginning, the journal may be closed to this user."""
    logs = [read[name] for name in SUPPLIERS["kernel_log"] if name in read]
    return max((log for log in logs if isinstance(log, KernelLog)), key=_line_count, default=first)


def _line_count(log: KernelLog) -> int:
    return log.lines


def _gpus(smi: Known[NvidiaSmi]) -> Known[tuple[Gpu, ...]]:
    if isinstance(smi, Missing):
        return smi
    if not smi.gpus and smi.driver.state != "answers":
        return Missing("exited", f"nvidia-smi: {smi.driver.text}")
    return smi.gpus


def _no_gpu(inventory: GpuInventory, smi: Known[NvidiaSmi]) -> Known[NvidiaSmi]:
    """Where PCI shows no NVIDIA GPU and nvidia-smi lists none, nothing is wrong with either."""
    if inventory.on_pci != 0 or not _silent(smi):
        return smi
    others = f"; there is {', '.join(inventory.other_vendors)}" if inventory.other_vendors else ""
    return Missing("not-applicable", f"no NVIDIA GPU on PCI{others}")


def _silent(smi: Known[NvidiaSmi]) -> bool:
    """Whether nvidia-smi told of no GPU. One that hangs waits for something."""
    return smi.kind != "timeout" if isinstance(smi, Missing) else not smi.gpus


def _inventory(
    identity: Known[Identity], pci: Known[tuple[PciFunction, ...]], smi: Known[NvidiaSmi]
) -> GpuInventory:
    on_pci, without_driver, others = _on_pci(pci)
    listed = _listed(smi)
    if on_pci == 0 and _silent(smi):
        listed = 0
    expected, basis = _expected(identity, on_pci, listed)
    attached = smi if isinstance(smi, Missing) else smi.attached
    return GpuInventory(on_pci, without_driver, others, attached, listed, expected, basis)


def _on_pci(
    pci: Known[tuple[PciFunction, ...]],
) -> tuple[Known[int], Known[int], tuple[str, ...]]:
    if isinstance(pci, Missing):
        return pci, pci, ()
    gpus = [
        each
        for each in pci
        if each.vendor_id == "0x10de"
        and each.class_id[:6] in ("0x0300", "0x0302")
        and each.driver != "vfio-pci"
    ]
    others = {
        OTHER_VENDORS[each.vendor_id][0]
        for each in pci
        if each.class_id[:6] in OTHER_VENDORS.get(each.vendor_id, ("", ()))[1]
    }
    unbound = [each for each in gpus if each.driver != "nvidia"]
    if not gpus:
        none = Missing("not-applicable", "no NVIDIA GPU on PCI")
        return 0, none, tuple(sorted(others))
    return len(gpus), len(unbound), tuple(sorted(others))


def _listed(smi: Known[NvidiaSmi]) -> Known[int]:
    if isinstance(smi, Missing):
        return smi
    count = len(smi.gpus)
    if smi.driver.state != "answers" and not count:
        return Missing("exited", f"nvidia-smi: {smi.driver.text}")
    if isinstance(smi.attached, Missing):
        return Missing("not-in-input", "the head with the number of attached GPUs is not there")
    if count < smi.attached:
        text = f"{smi.attached} GPUs announced, {count} listed: the input is cut short"
        return Missing("unreadable", text)
    return count


def _expected(
    identity: Known[Identity], on_pci: Known[int], listed: Known[int]
) -> tuple[Known[int], str]:
    """How many GPUs should be listed, and who says so: PCI or a limiting allocation."""
    if isinstance(on_pci, Missing):
        text = "how many there should be is not known; state it: --set gpu.count=N"
        return Missing(on_pci.kind, text), ""
    if on_pci == 0:
        text = "PCI shows no NVIDIA GPU here; state the number: --set gpu.count=N"
        return Missing("not-applicable", text), ""
    if isinstance(listed, Missing) or isinstance(identity, Missing) or listed >= on_pci:
        return on_pci, "PCI"
    limit = granted(identity)
    if isinstance(limit, int):
        return limit, "the allocation"
    if limit is NOT_IN_INPUT:
        return on_pci, "PCI"
    return Missing(limit.kind, f"{listed} of the {on_pci} GPUs on PCI are visible here"), ""


def _virtualization(cpu: Known[Cpu], smi: Known[NvidiaSmi]) -> Known[str]:
    """`vm` or `none`: by the processor's hypervisor flag, else by what the GPU driver was told."""
    if isinstance(cpu, Cpu) and isinstance(cpu.hypervisor, str):
        return "none" if cpu.hypervisor == "none" else "vm"
    if isinstance(smi, Missing):
        return NOT_IN_INPUT
    told = {gpu.virtualization for gpu in smi.gpus if isinstance(gpu.virtualization, str)}
    if not told:
        return NOT_IN_INPUT
    return "none" if told <= {"None", "Host VGPU", "Host VSGA"} else "vm"


def _site(raw: Raw) -> Known[SiteAnswer]:
    failed = _failed(raw)
    if failed is not None:
        return failed
    from preflight.probes.site import site_answer

    rc = NOT_IN_INPUT if raw.rc is None else raw.rc
    return replace(site_answer(_text(raw.stdout)), rc=rc, probe=raw.probe)
