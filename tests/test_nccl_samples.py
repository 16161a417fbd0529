"""Every sample of NCCL's log is judged as it was: version, network, adapters, ways, rings, and what
is wrong, stated for each."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from preflight.collect import examine
from preflight.facts.nccl import NcclLog
from preflight.judge.load import load
from preflight.logs.nccl.log import nccl_log
from preflight.model import Raw, Status
from preflight.recognise import recognise
from preflight.transports.recorded import open_inputs
from tests.conftest import SAMPLES, sample_bytes
from tests.nccl_lines import BASES, PREFIXES, Job, on_sockets

CHECKS = load(["nccl"]).checks


class Told(Struct, frozen=True):
    """What a sample tells. `networks` by host; `ways`: how many connections of each kind."""

    versions: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    adapters: tuple[str, ...] = ()
    ways: dict[str, int] = {}
    communicators: tuple[str, ...] = ()
    rings: int = 0
    findings: dict[str, str] = {}
    lines: int = 0


HFI = ("hfi1_0", "hfi1_1", "hfi1_2", "hfi1_3")
MLX = tuple(f"mlx5_{n}" for n in range(8))
SAMPLES_TOLD: dict[str, Told] = {
    "nccl_debug/a100_x8_4nodes_omnipath.log": Told(
        ("2.10.3",), ("node-02 IB", "node-03 IB", "node-04 IB", "node-05 IB"), HFI,
        {"P2P IPC/read": 56, "NET IB": 32}, ("32 ranks: 32 of 32 ready",), 2,
        {"nccl.omnipath": "WARN"}, 508,
    ),
    "nccl_debug/v100_x4_1node_omnipath.log": Told(
        ("2.7.8",), ("node-01 IB",), HFI, {"P2P IPC": 12}, ("4 ranks: 4 of 4 ready",), 12, {}, 150,
    ),
    "nccl_debug/v100_x4_4nodes_omnipath.log": Told(
        ("2.10.3",), ("node-06 IB", "node-07 IB", "node-08 IB", "node-09 IB"), HFI,
        {"P2P IPC": 32, "NET IB": 62}, ("16 ranks: 16 of 16 ready",), 4,
        {"nccl.omnipath": "WARN"}, 366,
    ),
    "nccl_debug/net_selection_lines_mixed.log": Told(
        networks=("line 1 FastSocket", "line 2 IB", "line 3 Socket", "line 4 IB"),
        adapters=(*MLX, "mlx5_bond_0"), findings={"nccl.adapters.odd": "WARN"}, lines=4,
    ),
    "nccl_debug/azure_ib_roce_mix_error12_vendor129.log": Told(
        networks=("node-02 IB",), adapters=("ibP111p0s0", "rdmaP1111p0s2"),
        findings={"nccl.adapters.mixed": "FAIL", "nccl.completions": "FAIL"}, lines=5,
    ),
    "nccl_tests/aws_2x1gpu_socket_old_error_column_0.30.log": Told(
        networks=("node-01 Socket", "node-02 Socket"), ways={"NET Socket": 3},
        communicators=("2 ranks: 2 of 2 ready",), lines=18, findings={"nccl.network": "WARN"},
    ),
    "training_log/fsdp_llama3_8b_p5_first_batches.log": Told(("2.26.2",), lines=4),
}  # fmt: skip


def raw_of(name: str) -> Raw:
    [raw] = [one for one in recognise(sample_bytes(name), name) if one.probe == "nccl-log"]
    return raw


def read(name: str) -> NcclLog:
    return nccl_log(str(raw_of(name).stdout))


def parts(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else ()


def networks(log: NcclLog) -> tuple[str, ...]:
    hosts = [
        f"{one.name} {one.network}" for one in parts(log.hosts) if isinstance(one.network, str)
    ]
    lines = [f"{one.name} {one.network}" for one in parts(log.selections) if not one.host]
    return tuple(sorted([*hosts, *lines]))


def ways(log: NcclLog) -> dict[str, int]:
    return dict(Counter(f"{one.transport} {one.way}" for one in parts(log.connections)))


def communicators(log: NcclLog) -> tuple[str, ...]:
    return tuple(
        f"{one.name}: {one.complete} of {one.ranks} ready" for one in parts(log.communicators)
    )


@pytest.mark.parametrize("name", SAMPLES_TOLD)
def test_it_is_read_as_it_was(name: str) -> None:
    log, told = read(name), SAMPLES_TOLD[name]
    adapters = {each.name for one in parts(log.selections) for each in one.adapters}
    assert tuple(one.version for one in parts(log.versions)) == told.versions
    assert networks(log) == told.networks
    assert tuple(sorted(adapters)) == told.adapters
    assert ways(log) == told.ways
    assert communicators(log) == told.communicators
    assert sum(one.rings for one in parts(log.hosts)) == told.rings
    assert log.lines == told.lines


@pytest.mark.parametrize("name", SAMPLES_TOLD)
def test_it_is_judged_as_it_was(name: str) -> None:
    results = examine("input", [raw_of(name)], CHECKS).results
    off = {
        one.check: one.status.value for one in results
        if one.status not in (Status.PASS, Status.SKIP)
    }  # fmt: skip
    assert off == SAMPLES_TOLD[name].findings


def test_no_sample_is_left_out() -> None:
    """Those of nccl-tests with the launch mode or the end of a communicator alone tell nothing."""
    held = {
        str(path.relative_to(SAMPLES)) for path in SAMPLES.rglob("*.log")
        if path.read_bytes().count(b"NCCL INFO ") > 1 or b"NCCL WARN " in path.read_bytes()
    }  # fmt: skip
    assert held == set(SAMPLES_TOLD)


def test_evidence_is_the_line_of_the_source() -> None:
    name = "nccl_debug/azure_ib_roce_mix_error12_vendor129.log"
    results = examine("input", [raw_of(name)], CHECKS).results
    [one] = [one for one in results if one.check == "nccl.completions"]
    [seen] = one.evidence
    assert (seen.source, seen.line) == (name, 2)
    assert "vendor err 129" in seen.text


def test_the_command_shows_it_and_its_facts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from preflight.cli.app import main

    log = tmp_path / "nccl.log"
    log.write_text(Job().text(), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["topo", "--from", str(log), "--format", "json"])
    report = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0
    [host] = report["hosts"]
    assert host["reach"] == "NCCL 2.21.5 log of 301 lines of 2 hosts"
    assert [one["network"] for one in host["facts"]["nccl"]["hosts"]] == ["IB", "IB"]
    passed = {one["check"]: one for one in host["results"] if one["status"] == "PASS"}
    assert passed["nccl.warnings"]["measured"] == "none in 301 lines"


def test_a_folder_of_each_process_own_file_is_one_log(tmp_path: Path) -> None:
    text = BASES["nccl_error"].text()
    own: dict[str, list[str]] = {}
    for line in text.splitlines(keepends=True):
        own.setdefault("_".join(line.split(":")[:2]), []).append(line)
    for name, lines in own.items():
        (tmp_path / f"nccl_{name}.log").write_text("".join(lines), encoding="utf-8")
    inputs = open_inputs([str(tmp_path)], None)
    [(_, raws)] = list(inputs.hosts())
    assert len(raws) == len(own) == 12
    assert inputs.bad() == []
    apart = examine("input", raws, CHECKS).results
    [whole] = recognise(text.encode(), "x")
    together = examine("input", [whole], CHECKS).results
    told = [[(one.check, one.subject, one.status) for one in found] for found in (apart, together)]
    assert sorted(told[0]) == sorted(told[1])
    [failed] = [one for one in apart if one.check == "nccl.completions"]
    [seen] = failed.evidence
    assert seen.source.endswith("nccl_node-02_4000.log")
    assert "error 12" in seen.text


def test_redacted_no_host_of_the_log_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from preflight.cli.app import main

    log = tmp_path / "nccl.log"
    log.write_text(on_sockets([1]).text(PREFIXES["pdsh"]), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["topo", "--from", str(log), "--format", "json", "--redact", "--only", "nccl.*"])
    shown = capsys.readouterr().out
    assert ended.value.code == 1
    assert "node-0" not in shown
    assert "10.0.0." not in shown
    assert "mlx5_7" in shown
