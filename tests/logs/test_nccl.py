"""The log of NCCL, read: every version's layout, whatever stands around its lines."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.nccl import NcclLog
from preflight.logs.nccl.log import nccl_log
from preflight.nccl_text import kept_of, parted
from preflight.recognise import recognise
from tests.conftest import sample
from tests.nccl_lines import OLD, PREFIXES, WARN_ONLY, Job, wrong

A100 = "nccl_debug/a100_x8_4nodes_omnipath.log"


def read(text: str) -> NcclLog:
    mine, _ = parted(text)
    return nccl_log(mine)


def told(value: Any) -> Any:
    """A part of the log that must be there."""
    assert isinstance(value, tuple), value
    return value


@pytest.mark.parametrize("name", PREFIXES)
def test_what_launchers_and_collectors_put_before_a_line_changes_nothing(name: str) -> None:
    log = read(Job().text(PREFIXES[name]))
    assert log == read(Job().text())
    assert [(host.name, host.processes) for host in told(log.hosts)] == [
        ("node-01", 8), ("node-02", 8),
    ]  # fmt: skip


def test_a_healthy_job_of_two_hosts() -> None:
    log = read(Job().text())
    first, second = told(log.hosts)
    assert (first.network, first.plugin, first.adapters, first.adapters_used) == (
        "IB",
        "none",
        8,
        8,
    )
    assert (first.p2p, first.shm, first.net, first.net_gpudirect) == (7, 0, 16, 16)
    assert (first.nvls, first.cumem, first.mnnvl) == (True, True, False)
    assert (first.rings, first.trees, second.rings) == (1, 16, 0)
    [one] = told(log.communicators)
    assert (one.name, one.ranks, one.seen, one.complete, one.hosts, one.absent) == (
        "16 ranks, 0x5eaf00d", 16, 16, 16, 2, "",
    )  # fmt: skip
    [one, _] = told(log.selections)
    assert [adapter.name for adapter in one.adapters] == [f"mlx5_{n}" for n in range(8)]
    assert (one.layers, one.oob, one.relaxed_ordering) == ("IB", "eth0", True)


def test_2_4_lists_sockets_though_it_takes_infiniband() -> None:
    log = read(OLD["2.4.8"])
    [host] = told(log.hosts)
    assert (host.network, host.p2p, host.shm) == ("IB", 1, 1)
    assert [(one.version, one.cuda) for one in told(log.versions)] == [("2.4.8", "10.0")]
    assert [one.name for one in told(log.communicators)] == ["2 ranks"]


def test_2_7_names_gpus_by_their_address_and_says_that_p2p_was_refused() -> None:
    log = read(OLD["2.7.8"])
    [host] = told(log.hosts)
    assert host.p2p_refused == ("1(=3d000) - 0(=1a000)",)
    assert [(one.source_device, one.target_device) for one in told(log.connections)] == [
        ("3d000", "1a000"), ("1a000", "3d000"),
    ]  # fmt: skip
    assert [(one.name, one.value) for one in log.variables] == [("NCCL_IB_HCA", "mlx5_0")]


def test_2_29_with_a_plugin() -> None:
    log = read(OLD["2.29.2"])
    [host] = told(log.hosts)
    assert (host.network, host.plugin) == ("Libfabric", "Libfabric (v11)")
    assert (host.plugin_version, host.tuner) == ("aws-ofi-nccl 1.18.0", "nccl_ofi_tuner")
    received, sent = told(log.connections)
    assert (received.direction, received.adapter, received.gpudirect) == ("receive", 0, True)
    assert (sent.direction, sent.proxy, sent.gpudirect) == ("send", 4, True)
    [graph] = told(log.graphs)
    assert (graph.intra, graph.inter, graph.channels) == ("NVL", "PIX", 8)
    assert [one.text for one in log.warnings] == [
        "misc/socket.cc:58 socketProgress: Connection closed by remote peer node-02<41234>"
    ]


@pytest.mark.parametrize(
    ("line", "status", "vendor", "adapter"),
    [
        ("NET/IB : Got completion from peer 10.0.0.2<33092> with error 12, opcode 0, len 0, "
         "vendor err 129 (Recv)", 12, 129, None),
        ("NET/IB: Got completion from peer 10.0.0.2<50854> with status=5 opcode=31245 len=0 "
         "vendor err 249 (Recv) localGid fe80::1 remoteGidsfe80::2 hca mlx5_9", 5, 249, "mlx5_9"),
        ("NET/IB: Got completion from peer 10.0.0.2<50854> with status=IBV_WC_RETRY_EXC_ERR(12) "
         "opcode=0 len=0 vendor err 129 (Send)", 12, 129, None),
    ],
)  # fmt: skip
def test_completions_of_all_versions(
    line: str, status: int, vendor: int, adapter: str | None
) -> None:
    log = read(f"node-01:1:2 [0] transport/net_ib.cc:1296 NCCL WARN {line}\n")
    [one] = log.completions
    assert (one.name, one.peer, one.status) == ("node-01 gpu0", "10.0.0.2", status)
    assert one.vendor_error == vendor
    assert (one.adapter if adapter else None) == adapter


def test_a_line_that_an_editor_folded_is_one() -> None:
    log = read(sample("nccl_debug/azure_ib_roce_mix_error12_vendor129.log"))
    [one] = log.completions
    assert (one.vendor_error, one.direction, one.line) == (129, "Recv", 2)
    assert [(each.place, each.code, each.count) for each in log.returns] == [
        ("transport/net.cc:1134", 6, 3)
    ]


def test_two_lines_that_ran_into_each_other_are_two() -> None:
    text = (
        "node-01:11:12 [0] NCCL INFO Using network IB\n"
        "node-01:21:22 [1] NCCL INFO threadThresholds 8/8/64node-01:11:12 [0] NCCL INFO Channel 00"
        "/0 : 0[0] -> 1[1] via P2P/IPC\nstep 5 loss 2.3node-01:21:22 [1] NCCL INFO Using network IB"
    )
    log = read(text)
    assert [(host.name, host.processes, host.lines) for host in told(log.hosts)] == [
        ("node-01", 2, 4)
    ]
    [one] = told(log.connections)
    assert (one.name, one.line) == ("node-01 rank 0 -> 1", 2)


def test_lines_count_as_in_the_source() -> None:
    text = "loss 1\n\nnode-01:1:2 [0] NCCL INFO Using network IB\nloss 2\n" * 3
    mine, others = parted(text)
    each = ["", "", "node-01:1:2 [0] NCCL INFO Using network IB", ""]
    assert mine.splitlines() == [*each, *each, *each[:3]]
    assert others == text.replace("node-01:1:2 [0] NCCL INFO Using network IB", "")


def test_calls_of_every_collective_are_left_out() -> None:
    call = "node-01:1:2 [0] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f recvbuff 0x7f count 1\n"
    log = read(Job().text() + call * 3)
    assert log.lines == read(Job().text()).lines


def test_without_info_there_are_warnings_and_nothing_else() -> None:
    log = read(WARN_ONLY)
    assert (log.lines, log.info_lines, len(log.warnings)) == (1, 0, 1)
    for part in (log.hosts, log.selections, log.connections, log.communicators, log.versions):
        assert "NCCL_DEBUG=INFO was not set" in part.text  # type: ignore[union-attr]


def test_what_is_no_log_is_refused() -> None:
    with pytest.raises(ParseError):
        nccl_log("RuntimeError: NCCL error in: reducer.cpp, unhandled system error\n")


def test_ranks_that_never_came_are_named() -> None:
    job = Job()
    job.absent = {3, *range(8, 16)}
    [one] = told(read(job.text()).communicators)
    assert (one.seen, one.complete, one.absent) == (7, 0, "3, 8-15")


@pytest.mark.parametrize("text", [sample(A100), Job().text(), OLD["2.29.2"]])
def test_a_log_cut_anywhere_is_read_as_far_as_it_goes(text: str) -> None:
    whole = read(text)
    for at in range(200, len(text), max(len(text) // 60, 1)):
        log = read(text[:at]) if re.search("NCCL (?:INFO|WARN) ", text[:at]) else whole
        assert 0 < log.lines <= whole.lines


def test_alike_warnings_are_told_once_for_a_process() -> None:
    job = Job()
    for port in (41234, 41235, 41236):
        head = "node-01:4000:1 [0] misc/socket.cc:9 NCCL WARN Call to connect to"
        wrong(job, f"{head} 10.0.0.2<{port}> failed : Connection refused")
    [one] = read(job.text()).warnings
    assert one.count == 3


def test_a_log_beside_other_tools_is_one_answer_and_theirs_another() -> None:
    text = Job().text() + "\n" + sample("nvlink/h100_gpu0_status_then_capabilities.txt")
    assert {raw.probe for raw in recognise(text.encode(), "x")} == {"nvlink", "nccl-log"}


def test_the_place_of_a_warning_may_be_a_signature() -> None:
    place = "int nccl_net_ofi_create_plugin(nccl_net_ofi_plugin_t**):208"
    line = f"[2026-01-02 10:24:27] node-01:35:36 [2] {place} NCCL WARN NET/OFI failed\n"
    [one] = read(line).warnings
    assert (one.name, one.text) == ("node-01 gpu2", f"{place} NET/OFI failed")


def test_a_line_glued_to_the_end_of_another_leaves_that_one_whole() -> None:
    text = Job().text()
    for at in [found.start() for found in re.finditer("GDRDMA\n(?=.*Channel)", text)][3::7]:
        glued = text[: at + 6] + text[at + 7 :]
        before, after = read(text), read(glued)
        assert after.lines == before.lines
        ways = [replace(one, line=0) for one in told(after.connections)]
        assert ways == [replace(one, line=0) for one in told(before.connections)]


@pytest.mark.parametrize("key", ["log", "message", "msg"])
def test_records_of_json_are_read_as_what_they_hold(key: str) -> None:
    text = Job().text()
    wrapped = "".join(
        json.dumps({key: f"{line}\n", "stream": "stdout"}) + "\n" for line in text.splitlines()
    )
    assert parted(wrapped)[0] == parted(text)[0]


@pytest.mark.parametrize("line", ['{"log": 3, "x": "NCCL INFO "}', "{NCCL INFO a", "{" * 9])
def test_what_is_no_record_stays_as_it_is(line: str) -> None:
    assert kept_of(line) in ("", line[line.find("NCCL") :])
