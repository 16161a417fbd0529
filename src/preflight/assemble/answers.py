"""One answer -> its facts, or why there are none."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from preflight.assemble.sources import probe_of
from preflight.errors import ParseError
from preflight.facts.chassis import Chassis, EventLog
from preflight.facts.collectives import Bench, Collectives
from preflight.facts.dcgm import DcgmDiag
from preflight.facts.gpu import Driver, NvidiaSmi
from preflight.facts.host import SiteAnswer
from preflight.facts.kernel import KernelLog
from preflight.facts.nvlink import NvlinkAnswer
from preflight.facts.objects import Objects
from preflight.facts.patterns import Bench as StorageBench
from preflight.facts.stress import Stress
from preflight.facts.training import Training
from preflight.facts.watch import Watch
from preflight.model import Known, Missing, Raw
from preflight.probes.collectives.asked import ended_by_us, named, not_run, stopped
from preflight.probes.spec import Probe
from preflight.probes.training.lines import ended_by

#: A tool or probe -> where it comes from, for tools whose absence makes checks undetermined.
_COMES_WITH = {
    "nvidia-smi": "; it comes with the driver (nvidia-utils), into a container with "
    "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
    "lspci": "; it comes with pciutils: apt install pciutils, dnf install pciutils",
    "ipmitool": "; on a server with a management controller: `sudo apt install ipmitool`, or dnf",
    "dmidecode": "; `sudo apt install dmidecode`, or dnf",
    "npu-smi": "; it comes with Ascend's driver, in /usr/local/sbin or /usr/local/bin",
    "rocm-smi": "; it comes with ROCm (rocm-smi-lib), in /opt/rocm/bin",
    "watch": "; another: --python 'CMD'",
    "stress": "; another: --python 'CMD'",
    "micro-train": "; another: --python 'CMD'",
    "io-bench": "; another: --python 'CMD'",
    "objects": "; another: --python 'CMD'",
    "shard": "; another: --python 'CMD'",
    "packages": "; another: --python 'CMD'",
}

#: The probe of runs of nccl-tests.
_TESTS = "nccl-tests"
#: The last line of a report that is whole.
_END = "</nvidia_smi_log>"
_EXPLAINED = Missing("not-applicable", "nvidia-smi says in words why it ended with an error")
#: What the loader says (glibc, musl) of a program that is there and cannot start; it ends with 127,
#: as a shell does for a command that is not there.
_LOADER = ("error while loading shared libraries", "Error loading shared library",
           "symbol lookup error")  # fmt: skip
_PYTHON_ERROR = re.compile(r"[\w.]{0,80}(?:Error|Exception|Interrupt|Exit)\b", re.ASCII)
_NO_COMMAND = re.compile(r"sudo: \S+: command not found")

_DENIED = ("Operation not permitted", "Permission denied", "password is required", "not permitted")


def read(raw: Raw) -> Any:
    """The facts in one answer, or why there are none."""
    failed = _failed(raw)
    probe = probe_of(raw.probe)
    if raw.truncated and raw.rc == 0 and probe and (log := _cut_log(raw, probe)):
        return log
    if failed is not None and probe and raw.argv and raw.probe.startswith(_TESTS):
        return _measured_so_far(raw, probe, failed)
    if failed is not None or probe is None:
        return _hung(raw, failed, probe)
    try:
        facts = probe.parse(answer_text(raw, probe))
    except ParseError as error:
        why = _exited(raw) if raw.rc else Missing("unreadable", f"{raw.probe}: {error}")
        if raw.probe.startswith(_TESTS):
            return not_run(raw.argv, why if raw.rc or not raw.argv else _without_table(raw))
        return why
    if isinstance(facts, Collectives) and raw.probe.startswith(_TESTS):
        facts = named(facts, raw.argv)
        return stopped(facts, _with_rc(raw)) if raw.rc else facts
    # A tool that failed may have told half of it; of nvidia-smi the text says what is wrong.
    if raw.rc == 0 or _explains(facts):
        return _timed(facts, raw)
    if isinstance(facts, Training):
        return _seen_so_far(raw, probe, _exited(raw)) or _exited(raw)
    return _with_status(facts, raw) or _exited(raw)


def _with_status(facts: Any, raw: Raw) -> NvidiaSmi | None:
    """A report that nvidia-smi told to its end, and then ended with an error: it is judged, and so
    is the error."""
    if not isinstance(facts, NvidiaSmi) or raw.probe != "nvidia-smi" or not facts.gpus:
        return None
    if raw.rc is None or (not 0 < raw.rc <= 127 and raw.rc != 255):  # ended by a signal
        return None
    if facts.cut or facts.attached != len(facts.gpus) or _END not in _text(raw.stdout):
        return None
    timed: NvidiaSmi = _timed(facts, raw)
    return replace(timed, driver=replace(timed.driver, exit_status=raw.rc))


def _timed(facts: Any, raw: Raw) -> Any:
    """nvidia-smi's answer with how long it took, where preflight itself has asked."""
    if not isinstance(facts, NvidiaSmi) or not raw.argv:
        return facts
    status = 0 if raw.rc == 0 else _EXPLAINED
    return replace(facts, driver=replace(facts.driver, answer_s=raw.elapsed_s, exit_status=status))


def _explains(facts: Any) -> bool:
    """Whether the answer is one although its tool ended with an error. ipmitool does so for one
    sensor among many that did not answer, dcgmi for a test that failed."""
    if isinstance(facts, NvlinkAnswer):
        return facts.explained
    if isinstance(facts, Watch):
        return facts.ended in ("no-answer", "interrupted")
    if isinstance(facts, (Stress, Training, Bench, StorageBench, Objects)):
        return facts.interrupted
    if isinstance(facts, NvidiaSmi):
        return _tells_what_is_ill(facts)
    return isinstance(facts, (Chassis, EventLog, DcgmDiag, Missing))


def _tells_what_is_ill(smi: NvidiaSmi) -> bool:
    return smi.driver.state != "answers" or any(
        gpu.answers is False or gpu.inforom_corrupted is True or gpu.reset_required is True
        for gpu in smi.gpus
    )


def _hung(raw: Raw, failed: Missing | None, probe: Probe | None) -> Any:
    """A driver that lets nvidia-smi wait for its whole limit is a fact; cut off sooner, by the
    host's deadline, it is only unknown."""
    over = raw.reached_limit and probe and raw.elapsed_s >= probe.command.timeout_s
    work = ("watch", "stress", "micro-train", "nccl-bench", "io-bench", "objects")
    if raw.probe in work and probe and raw.stdout:
        return _seen_so_far(raw, probe, failed) or failed
    if failed is None or raw.probe != "nvidia-smi" or not over:
        return failed
    return NvidiaSmi(Driver("hangs", failed.text, line=1, probe=raw.probe), failed, ())


def _seen_so_far(
    raw: Raw, probe: Probe, why: Missing | None
) -> Watch | Stress | Training | Bench | StorageBench | Objects | None:
    """What a watch saw until it was interrupted or cut off, where it saw a GPU at all; and how far
    other work came; training and the bench of storage have `why` they went no further for a last
    line."""
    text = answer_text(raw, probe)
    if raw.probe in ("micro-train", "io-bench") and why is not None:
        text = ended_by(text, why.text)
    try:
        found = probe.parse(text)
    except ParseError:
        return None
    if isinstance(found, Stress):
        return found if not isinstance(found.devices, Missing) else None
    if isinstance(found, Training):
        begun = not (isinstance(found.ranks, Missing) and isinstance(found.sweeps, Missing))
        return found if begun else None
    if isinstance(found, Objects):
        return found if found.stores else None
    if isinstance(found, StorageBench):
        return found if found.runs or found.patterns else None
    if isinstance(found, Bench):
        return found if found.runs else None
    seen = isinstance(found, Watch) and not isinstance(found.gpus, Missing)
    return found if seen else None


def _with_rc(raw: Raw) -> str:
    lines = (line.strip()[:200] for line in _text(raw.stderr).splitlines())
    said = next((line for line in lines if any(map(str.isalnum, line))), "")
    return f"{raw.tool} exited with {raw.rc}{f': {said}' if said else ''}"


def _measured_so_far(raw: Raw, probe: Probe, why: Missing) -> Collectives | Missing:
    """The sizes that a benchmark measured until it was ended. One that hangs has failed; of one
    that was interrupted nobody knows."""
    try:
        found: Collectives = probe.parse(answer_text(raw, probe))
    except ParseError:
        said = _first_line(raw.stderr)
        told = Missing(why.kind, f"{why.text}; it said: {said}") if said else why
        return not_run(raw.argv, told)
    return ended_by_us(named(found, raw.argv), why, hangs=raw.reached_limit)


def answer_text(raw: Raw, probe: Probe | None) -> str:
    """What the probe reads: standard output, for some with standard error behind it."""
    text = _text(raw.stdout)
    if probe is not None and probe.with_stderr and raw.stderr:
        text = f"{text}\n{_text(raw.stderr)}"
    return text


def _text(data: str | bytes) -> str:
    return data if isinstance(data, str) else data.decode(errors="replace")


def _without_table(raw: Raw) -> Missing:
    """Of a program that ended well and told nothing of use."""
    size = len(raw.stdout)
    told = f"{size:,} characters without a table of nccl-tests" if size else "nothing"
    return Missing("unreadable", f"{raw.tool} printed {told}, and exited with 0")


def _failed(raw: Raw) -> Missing | None:
    """What the exit status alone says; 124, 125, 126, 127, 137 are those of timeout(1)."""
    tool = raw.tool
    if raw.missing is not None:
        return Missing(raw.missing.kind, f"{tool}: {raw.missing.text}")
    if raw.rc == 127 and any(word in _text(raw.stderr) for word in _LOADER):
        return None  # what it says is read
    if raw.rc == 127 and raw.probe == "packages" and raw.argv and tool != "python3":
        return Missing("exited", f"--python {tool}: the host has no such program; name another")
    if raw.rc == 127 or (raw.rc == 1 and _NO_COMMAND.match(_text(raw.stderr))):
        comes_with = _COMES_WITH.get(tool) or _COMES_WITH.get(raw.probe, "")
        return Missing("no-tool", f"{tool} is not installed{comes_with}")
    if raw.rc == 125:
        return Missing("no-tool", f"{tool} was not asked: the host has no timeout(1) (coreutils)")
    if raw.rc == 126:
        return Missing("denied", f"{tool} cannot be run: {_first_line(raw.stderr)}")
    if raw.rc is None:
        return Missing("exited", f"{tool}: its end was not seen")
    if raw.reached_limit:
        return Missing("timeout", f"{tool} did not end within {raw.elapsed_s:.0f} s")
    if raw.rc == 137:
        after = f" after {raw.elapsed_s:.0f} s" if raw.elapsed_s >= 1 else ""
        return Missing("exited", f"{tool} was killed by signal 9{after} (memory?)")
    if raw.truncated:
        return Missing("unreadable", f"{tool}: {_cut(raw)}")
    return None


def _cut(raw: Raw) -> str:
    if raw.argv:
        return "the answer was too long and is cut short"
    return f"{raw.source or 'the file'} ends early: it is cut short or damaged"


def _cut_log(raw: Raw, probe: Probe) -> KernelLog | None:
    """A log without its end: what it tells counts, what it does not tell is not known."""
    text = answer_text(raw, probe)
    try:
        found = probe.parse(text[: text.rfind("\n") + 1] or text)
    except ParseError:
        return None
    return replace(found, cut=_cut(raw)) if isinstance(found, KernelLog) else None


def _exited(raw: Raw) -> Missing:
    said = _python_error(raw.stderr) or _first_line(raw.stderr) or _first_line(raw.stdout)
    if any(word in said for word in _DENIED):
        command = " ".join(raw.argv)
        if said.startswith("sudo:"):
            return Missing("denied", f"{said}; `sudo -n {command}` must work for this user")
        return Missing("denied", f"{said}; run preflight as root or with --sudo (`sudo {command}`)")
    return Missing("exited", f"{raw.tool} exited with {raw.rc}: {said or 'it printed nothing'}")


def _python_error(data: str | bytes) -> str:
    """The last line of Python's words on an error: what stands above it is where it happened."""
    lines = [line.strip()[:200] for line in _text(data).splitlines() if line.strip()]
    return lines[-1] if lines and _PYTHON_ERROR.match(lines[-1]) else ""


def _first_line(data: str | bytes) -> str:
    return next((line.strip()[:200] for line in _text(data).splitlines() if line.strip()), "")


def site(raw: Raw) -> Known[SiteAnswer]:
    """The answer to a site's own question."""
    failed = _failed(raw)
    if failed is not None:
        return failed
    from preflight.probes.site import site_answer

    answer = replace(site_answer(_text(raw.stdout)), rc=raw.rc or 0, probe=raw.probe)
    if not raw.rc:
        return answer
    failed = _exited(raw)  # what a command that failed printed is no answer
    return replace(answer, text=failed, lines=failed, number=failed)
