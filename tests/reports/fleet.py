"""Reports of many hosts, made by hand for the tests of the renderers."""

from __future__ import annotations

from preflight.faults import FAULTS
from preflight.model import Action, HostReport, MissingProbe, Report, Result, Status
from tests.reports.built import failed, host, passed, report, skipped, undetermined, warm, width

SUMMARY = "8 x NVIDIA H100 80GB HBM3, driver 550.54.15; 224 CPUs, 2 TiB, Ubuntu 22.04.4 LTS"
FOUR = range(4)


def broken(name: str, fault: str, text: str, *results: Result) -> HostReport:
    """A host that gave no answer, or none any more."""
    missing = MissingProbe("connection", FAULTS[fault].kind, text, fault)
    return host(name, *results, missing=[missing], summary=SUMMARY if results else "")


def healthy(name: str) -> list[Result]:
    return [
        *(passed("gpu.answers", f"gpu{i}", True, "yes") for i in range(8)),
        *(passed("pcie.gen", f"gpu{i}", 5.0, "at least 5") for i in range(8)),
        *(passed("nvlink.up", f"gpu{i}", 18, "18", "links") for i in range(8)),
        passed("kernel.oom", name, 0, "0", "events"),
        passed("fabric.manager.running", name, True, "yes"),
        skipped("dcgm.memory", name, "no run of dcgmi diag is in the input"),
    ]


def odd(subject: str, *, status: Status = Status.FAIL, **more: object) -> Result:
    told: dict[str, object] = {
        "measured": "535.104.05; the other 123 have 550.54.15",
        "expected": "the same on all hosts",
        "title": "One driver version on all hosts",
        "why": "NCCL between two drivers fails at start, or runs at a fraction of the speed.",
        "fix": ("install the driver that the others have",),
        "action": Action.FIX_CONFIG,
        "runbook": "fleet-unlike",
        **more,
    }
    return Result("fleet.driver.version", subject, status, **told)  # type: ignore[arg-type]


def mixed_kernels(names: list[str]) -> Result:
    told = "mixed: 5.15.0-105-generic node[001-061]; 5.15.0-107-generic node[062-128]"
    return Result(
        "fleet.kernel", "node[001-128]", Status.WARN, told, "the same on all hosts",
        title="One kernel on all hosts", why="Two kernels are two sets of bugs.",
        fix=("update the kernels of the hosts that were left out",), action=Action.FIX_CONFIG,
        runbook="fleet-unlike",
    )  # fmt: skip


def cluster() -> Report:
    """128 hosts: three fail alike, one lost a GPU, one broke off, two are silent for different
    reasons, five are warned, two look odd among the others, the rest is healthy."""
    names = [f"node{i:03}" for i in range(1, 129)]
    told = {name: host(name, *healthy(name), summary=SUMMARY) for name in names}
    for name in ("node017", "node042", "node108"):
        told[name] = host(name, *healthy(name), width("gpu3", 212), summary=SUMMARY)
    lost = [f"gpu.{one}" for one in ("ecc.volatile", "power.draw", "clocks.sm", "temperature.gpu")]
    told["node064"] = host(
        "node064", *healthy("node064")[1:],
        failed("gpu.answers", "gpu0", False, expected="yes", title="Every GPU answers",
               reason="GPU is lost. Reboot the system to recover this GPU", action=Action.REBOOT,
               fix=("reboot the host; if it is lost again, open an RMA",), runbook="gpu-lost"),
        *(undetermined(check, "gpu0", "gpu0 does not answer") for check in lost),
        summary=SUMMARY,
    )  # fmt: skip
    for at, name in enumerate(("node021", "node022", "node023", "node080", "node090")):
        told[name] = host(name, *healthy(name), warm(f"gpu{at % 2}", 86 + at), summary=SUMMARY)
    told["node030"] = broken("node030", "refused", "connect to node030 port 22: refused")
    told["node099"] = broken("node099", "silent", "node099 gave no answer within 60 s")
    cut = [undetermined("kernel.oom", "node111", "not asked: the connection broke off")]
    told["node111"] = broken(
        "node111", "died", "the connection to node111 broke off after 41 s",
        *healthy("node111")[:24], *cut,
    )  # fmt: skip
    return report(
        *told.values(), command="run", fleet=[odd("node[003,007]"), mixed_kernels(names)],
        elapsed_s=61.2, argv=("preflight", "run", "--hosts", "node[001-128]"),
    )  # fmt: skip


def yesterday() -> Report:
    """The same hosts a day before: another GPU was hot, one PCIe link was narrow already, one host
    was silent, one had another driver, one is not there any more."""
    now = cluster()
    told = {one.host: one for one in now.hosts}
    for name in ("node017", "node030", "node042", "node064", "node099", "node111"):
        told[name] = host(name, *healthy(name), passed("pcie.width", "gpu3", "x16", "x16"),
                          summary=SUMMARY)  # fmt: skip
    told["node108"] = now.hosts[107]
    told["node050"] = broken("node050", "no-answer", "ping node050: nothing for 10 s")
    told["node060"] = host("node060", *healthy("node060"), width("gpu1", 9), summary=SUMMARY)
    told["node070"] = host("node070", *healthy("node070"),
                           summary=SUMMARY.replace("550.54.15", "535.104.05"))  # fmt: skip
    told["node129"] = host("node129", *healthy("node129"), summary=SUMMARY)
    return report(
        *told.values(), command="run", started_at="2026-01-01T03:04:05Z",
        fleet=[odd("node[003,007,070]")],
    )  # fmt: skip


def thousand(hosts: int = 1000, results: int = 800) -> Report:
    """Many hosts with many results each, some of them off; equal results are one object."""
    per_check = [
        passed(f"{domain}.check{number}", f"gpu{gpu}", number, "at most 100")
        for number in range(results // 32)
        for domain in ("gpu", "pcie", "nvlink", "kernel")
        for gpu in range(8)
    ]
    skips = [skipped(f"dcgm.check{i}", "x", f"reason {i % 20}") for i in range(results // 8)]
    told = [*per_check[: results - len(skips)], *skips]
    reports = []
    for at in range(hosts):
        more = [warm(f"gpu{at % 8}", 86 + at % 7)] if at % 10 == 0 else []
        more += [width("gpu3", 212)] if at % 100 == 7 else []
        reports.append(host(f"node{at:04}", *told, *more, summary=SUMMARY))
    return report(*reports, fleet=[odd("node[0003,0007]")])
