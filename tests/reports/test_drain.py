"""The lines that drain hosts: for what failed only, folded, and safe to paste."""

from __future__ import annotations

import shlex

from preflight.model import HostReport, Report, Result, Status
from preflight.reports.drain import drain_lines
from preflight.verdict import count, host_verdict, report_verdict
from tests.reports.built import HOSTILE, failed, passed, undetermined


def _report(hosts: dict[str, tuple[Result, ...]]) -> Report:
    told = tuple(
        HostReport(name, host_verdict(results, ()), results=results)
        for name, results in hosts.items()
    )
    counts = count([result for host in told for result in host.results])
    return Report(
        "gpu-health", ("preflight",), "quick", "2026-01-02T03:04:05Z", 1.0,
        report_verdict(told, (), ()), counts, told,
    )  # fmt: skip


def test_hosts_that_failed_alike_are_one_line() -> None:
    xid = failed("gpu.xid.79", "gpu3", 1)
    width = (failed("pcie.width", "gpu0", "x8"), failed("pcie.width", "gpu1", "x8"))
    told = _report({"node03": (xid,), "node05": (xid, *width), "node07": (xid,)})
    assert drain_lines(told) == [
        'scontrol update nodename="node[03,07]" state=drain reason="preflight: gpu.xid.79 gpu3"',
        'scontrol update nodename="node05" state=drain '
        'reason="preflight: gpu.xid.79 gpu3, pcie.width gpu[0-1]"',
    ]


def test_what_passes_warns_or_is_not_known_drains_nothing() -> None:
    warned = Result("gpu.heat", "gpu0", Status.WARN, 90)
    told = _report({
        "a1": (passed("x", "gpu0", 1, "1"),),
        "a2": (warned,),
        "a3": (undetermined("gpu.count", "a3", "no answer"),),
        "a4": (),
    })  # fmt: skip
    assert drain_lines(told) == []


def test_what_follows_from_a_failure_is_no_reason_of_its_own() -> None:
    lost = failed("gpu.lost", "gpu3", "yes")
    after = failed("gpu.count", "n1", 7, cause="gpu.lost")
    (line,) = drain_lines(_report({"n1": (after, lost)}))
    assert line.endswith('reason="preflight: gpu.lost gpu3"')


def test_a_check_of_the_host_does_not_repeat_its_name() -> None:
    (line,) = drain_lines(_report({"n1": (failed("gpu.count", "n1", 7),)}))
    assert line.endswith('reason="preflight: gpu.count"')


def test_many_reasons_are_counted() -> None:
    many = tuple(failed(f"gpu.some.rather.long.name.{number:02}", "gpu0", 1) for number in range(9))
    (line,) = drain_lines(_report({"n1": many}))
    reason = shlex.split(line)[-1]
    assert len(reason) < 160
    named = reason.count("gpu.some")
    assert reason.endswith(f", {9 - named} more")


def test_no_text_of_a_host_reaches_a_shell() -> None:
    told = _report({"n1": (failed("gpu.xid.79", f'{HOSTILE}"$(reboot)`x`\\!', 1),)})
    (line,) = drain_lines(told)
    assert shlex.split(line)[:4] == ["scontrol", "update", "nodename=n1", "state=drain"]
    assert len(shlex.split(line)) == 5
    assert not set(line.partition("reason=")[2][1:-1]) & set("\"$`\\!'|<>\x1b\x07\n")


def test_a_name_that_no_node_has_is_left_out() -> None:
    assert drain_lines(_report({'n1" x': (failed("a.b", "gpu0", 1),)})) == []
