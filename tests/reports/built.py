"""Reports made by hand for the tests of the renderers."""

from __future__ import annotations

from typing import Any

from preflight.model import (
    Action,
    Evidence,
    Finding,
    HostReport,
    MissingProbe,
    Override,
    Report,
    Result,
    Status,
)
from preflight.reports.text import lines, plain
from preflight.verdict import count, host_verdict, report_verdict, with_fleet

#: What a host could send to whoever reads the report: to a terminal, an XML document, a web page.
HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07 ]]> <script>alert(1)</script> | `rm -rf` \u202egnp.exe @all ![](x)"
)


def text_of(told: Report, *, verbose: int = 0, quiet: bool = False, columns: int = 100) -> str:
    shown = lines(told, verbose=verbose, quiet=quiet, width=columns)
    return "\n".join(plain(line) for line in shown)


def failed(check: str, subject: str, measured: Any, **more: Any) -> Result:
    told: dict[str, Any] = {"expected": "at most 1", **more}
    return Result(check, subject, Status.FAIL, measured, **told)


def passed(check: str, subject: str, measured: Any, expected: str, unit: str = "") -> Result:
    return Result(check, subject, Status.PASS, measured, expected, unit)


def skipped(check: str, subject: str, reason: str, title: str = "A check") -> Result:
    return Result(check, subject, Status.SKIP, title=title, reason=reason)


def undetermined(check: str, subject: str, reason: str) -> Result:
    return Result(
        check, subject, Status.ERROR, expected="0", title="A check", reason=reason,
        why="The why of the fault it looks for.", fix=("replace the card at once",),
        action=Action.REPLACE, runbook="the-fault",
    )  # fmt: skip


def retired(subject: str, pages: int, line: int) -> Result:
    return Result(
        "gpu.retired.total", subject, Status.FAIL, pages, "at most 60", "pages",
        title="Few memory pages retired",
        why="At 60 pages the vendor replaces the card; each one was a memory error.",
        fix=("drain the node, then open an RMA with the output of `nvidia-smi -q`",),
        action=Action.REPLACE, runbook="page-retirement",
        device=f"0000000{subject[-1]}:00:00.0",
        evidence=(Evidence("nvidia-smi", f"Double Bit ECC : {pages}", line),),
    )  # fmt: skip


def width(subject: str, line: int) -> Result:
    return Result(
        "pcie.width", subject, Status.FAIL, "x8", "x16",
        title="PCIe link at full width", reason="half of the lanes did not train",
        why="Half the lanes halve host-to-GPU and NIC-to-GPU bandwidth.",
        fix=(
            "reseat the card or riser, then compare LnkSta with LnkCap in `lspci -vv`",
            "`sudo nvidia-smi --gpu-reset -i 3`",
        ),
        action=Action.INSPECT, runbook="pcie-link-degraded", device="00000000:91:00.0",
        evidence=(Evidence("nvidia-smi", "Current : 8x", line),),
    )  # fmt: skip


def warm(subject: str, celsius: int) -> Result:
    return Result(
        "gpu.temperature.gpu", subject, Status.WARN, celsius, "at most 85", "C",
        title="GPU temperature", why="Close to the slowdown point clocks begin to fall.",
        fix=("look at the fans and the inlet temperature",), action=Action.WATCH,
        evidence=(Evidence("nvidia-smi", f"GPU Current Temp : {celsius} C", 96),),
    )  # fmt: skip


def hostile() -> Result:
    return Result(
        "kernel.cmdline", "node-03", Status.WARN, HOSTILE, "iommu=pt",
        title="IOMMU in pass-through", reason=f"it says {HOSTILE}", fix=("add `iommu=pt`",),
        action=Action.FIX_CONFIG,
        evidence=(Evidence("cmdline", f"BOOT_IMAGE=/vmlinuz {HOSTILE}", 1, source="```<b>.txt"),),
    )  # fmt: skip


def host(name: str, *results: Result, summary: str = "", **more: Any) -> HostReport:
    missing = tuple(more.pop("missing", ()))
    return HostReport(
        name, host_verdict(results, missing), missing, summary, results=results, **more
    )


def report(*hosts: HostReport, **more: Any) -> Report:
    fleet, findings = tuple(more.pop("fleet", ())), tuple(more.pop("findings", ()))
    with_fleet(hosts, fleet, set())
    told: dict[str, Any] = {
        "command": "gpu-health",
        "argv": ("preflight", "gpu-health"),
        "level": "quick",
        "started_at": "2026-01-02T03:04:05Z",
        "elapsed_s": 1.94,
        "verdict": report_verdict(hosts, fleet, findings),
        "counts": count([*(one for host in hosts for one in host.results), *fleet]),
    }
    return Report(**{**told, **more}, hosts=tuple(hosts), fleet=fleet, findings=findings)


_H100 = "8 x NVIDIA H100 80GB HBM3, driver 535.161.08"


def _healthy(gpus: range) -> list[Result]:
    return [
        *(passed("gpu.answers", f"gpu{i}", True, "yes") for i in gpus),
        *(passed("gpu.ecc.volatile", f"gpu{i}", 0, "0", "errors") for i in gpus),
        *(skipped("gpu.mig.uniform", f"gpu{i}", "MIG is off") for i in gpus),
        *(skipped("gpu.remap.failure", f"gpu{i}", "the device has none") for i in gpus),
    ]


def one_host() -> Report:
    """A single host with a bit of everything."""
    counted = {1: 65, 2: 63, 6: 65, 7: 64}
    results = [
        *_healthy(range(8)),
        *(
            retired(f"gpu{i}", counted[i], 100 + i)
            if i in counted
            else passed("gpu.retired.total", f"gpu{i}", 0, "at most 60", "pages")
            for i in range(8)
        ),
        width("gpu3", 212),
        warm("gpu5", 87),
    ]
    hints = ("preflight gpu-health --level standard", "the next level adds a burn of 10 min")
    return report(host("node-07", *results, summary=_H100, facts={"driver": "535"}), hints=hints)


def rich() -> Report:
    """Several hosts: every status, one unreachable, fleet, findings, hostile text."""
    lost = [
        f"gpu.{name}" for name in ("ecc.volatile", "power", "clocks", "memory", "fabric", "mig")
    ]
    node_01 = [*_healthy(range(8)), width("gpu2", 212), width("gpu3", 319), warm("gpu0", 87)]
    node_02 = [*_healthy(range(8)), width("gpu2", 212), width("gpu3", 319), warm("gpu4", 91)]
    node_03 = [
        *_healthy(range(7)),
        *(
            undetermined(check, "gpu7", "GPU is lost: reboot the host to recover it")
            for check in lost
        ),
        undetermined("host.services", "node-03", "systemctl: timed out after 10 s"),
        passed("pcie.gen", "gpu0", 5.0, "at least 5"),
        hostile(),
    ]
    no_tool = MissingProbe("ipmitool", "no-tool", "ipmitool: not found; install ipmitool")
    cut = MissingProbe("dmesg", "timeout", "dmesg: timed out after 10 s")
    gone = MissingProbe("ssh", "unreachable", "ssh: connect to host port 22: Connection timed out")
    return report(
        host("node-01", *node_01, summary=_H100, facts={"driver": {"version": "535.161.08"}}),
        host("node-02", *node_02, summary=_H100, missing=[cut]),
        host("node-03", *node_03, summary=_H100.replace("8 x", "7 x"), missing=[no_tool]),
        host("node-04", missing=[gone]),
        host("node-05", missing=[gone]),
        command="run",
        argv=("preflight", "run", "--hosts", "node-[01-05]", "--password", "***"),
        profile="cloud-vm",
        overrides=(Override("gpu.temperature.gpu", 85, "--set"),),
        fleet=[
            Result(
                "fleet.driver.same", "node-03", Status.FAIL, "535.54.03; the others 535.161.08",
                "the same everywhere", title="One driver on all hosts",
                fix=("install the driver of the others",), action=Action.FIX_CONFIG,
                runbook="driver-drift",
            ),
            passed("fleet.kernel.same", "node-[01-03]", "5.15.0", "the same everywhere"),
        ],
        findings=[
            Finding(
                "data-wait", Status.FAIL, "rank 3", 0.41234, "high",
                (Evidence("train.log", "data_time: 0.91", 77, source="train.log"),),
                ("raise `num_workers` from 2 to 8", "keep the shards on a local disk"),
            ),
            Finding("INCOMPLETE: no trace of rank 4", Status.ERROR, fix=("give `--trace FILE`",)),
        ],
        measurements=(
            {
                "table": "all_reduce",
                "host": "node-01",
                "rows": [
                    {"size_bytes": 8, "busbw_gbps": 0.0012345, "ok": True},
                    {"size_bytes": 8589934592, "busbw_gbps": 361.2349, "ok": True},
                ],
            },
        ),
        hints=("preflight run --level standard --hosts 'node-[01-03]'",),
    )  # fmt: skip
