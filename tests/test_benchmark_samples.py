"""Every sample of nccl-tests and of perftest is read as it was, and judged as it is to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.cli.nccl_bench import ASKED
from preflight.collect import examine
from preflight.expect.collectives import collective_busbw
from preflight.facts.host import Host
from preflight.judge.load import load
from preflight.judge.overrides import mark
from preflight.model import Missing, Status
from preflight.recognise import recognise
from preflight.redact.redactor import Redactor
from tests.conftest import SAMPLES, sample_bytes

NCCL_TESTS = sorted(path.name for path in (SAMPLES / "nccl_tests").iterdir())
PERFTEST = sorted(path.name for path in (SAMPLES / "perftest").iterdir())
A100, A100_40 = "NVIDIA A100-SXM4-80GB", "A100-SXM4-40GB"

#: Sample -> collective, ranks, hosts, model, sizes, the bus bandwidth of the largest
#: size's worse side, average.
RUNS: dict[str, tuple[Any, ...]] = {
    "a100_sxm_x16_2nodes_150.209.log": ("all_reduce", 16, 2, A100, 6, 181.39, 150.209),
    "a100_sxm_x8_210.99.log": ("all_reduce", 8, 1, A100, 6, 231.70, 210.99),
    "a100_sxm_x8_allgather.log": ("all_gather", 8, 1, A100_40, 29, 223.39, 58.2651),
    "a100_sxm_x8_allreduce.log": ("all_reduce", 8, 1, A100_40, 32, 235.03, 68.4048),
    "a100_sxm_x8_alltoall.log": ("alltoall", 8, 1, A100_40, 29, 224.31, 58.6481),
    "a100_sxm_x8_broadcast.log": ("broadcast", 8, 1, A100_40, 32, 232.81, 64.8653),
    "a100_sxm_x8_reduce.log": ("reduce", 8, 1, A100_40, 32, 228.38, 65.018),
    "a100_sxm_x8_reducescatter.log": ("reduce_scatter", 8, 1, A100_40, 29, 231.25, 60.168),
    # The largest size is 128 MiB.
    "aws_2x1gpu_socket_old_error_column_0.30.log": (
        "all_reduce", 2, None, None, 25, "not-applicable", 0.300212,
    ),
    "azure_a100_x16_2nodes_nccl_info_in_tail_57.12.log": (
        "all_reduce", 16, None, None, 31, 187.51, 57.1241,
    ),
    "cx8_pcie_x16_2nodes_ar_on_midsize_collapse_17.87.log": (
        "all_reduce", 16, 2, "NVIDIA Graphics Device", 24, 49.84, 17.8737,
    ),
    "cx8_pcie_x16_2nodes_nccl2.30_21.07.log": (
        "all_reduce", 16, 2, "NVIDIA Graphics Device", 24, 49.83, 21.0721,
    ),
    # Of both the table has `none -1`, and the factor is the same.
    "gke_a4_b200_x16_allgather_128.335.log": (
        "all_gather or alltoall", 16, None, None, 24, 366.29, 128.335,
    ),
    "h100_x16_2nodes_oci_464.log": (
        "all_reduce", 16, 2, "NVIDIA H100 80GB HBM3", 5, 470.75, 464.075,
    ),
    "k80_x2_nodes_tcp_allreduce.log": ("all_reduce", 2, 2, "Tesla K80", 11, 0.61, 0.565546),
    "mpirun_not_enough_slots.log": (None, None, None, None, 0, None, None),
    "p4de_a100_x16_2nodes_rank_prefix_no_footer.log": (
        "all_reduce", 16, None, None, 29, 78.33, None,
    ),
    "p5_h100_mpi_tag_output_156.742.log": ("all_reduce", 8, None, None, 32, 483.05, 156.742),
    "p5_h100_x16_2nodes_rank_prefix_no_footer.log": (
        "all_reduce", 16, None, None, 32, 487.09, None,
    ),
    # One rank sends nothing.
    "vendor_mock_1gpu_avg_bw_failed.log": (
        "all_reduce", 1, 1, "NVIDIA Test GPU", 1, "not-applicable", 0.0,
    ),
    "vendor_mock_1gpu_out_of_bounds_failed.log": (
        "all_reduce", 1, 1, "NVIDIA Test GPU", 1, "not-applicable", 0.0,
    ),
}  # fmt: skip
#: Sample -> device, link layer, MTU, sizes, Gbit/s of the largest, whether both ends are in it.
TESTS: dict[str, tuple[Any, ...]] = {
    "ib_write_bw_dc_roce_100g_all_sizes_gbits.log": (
        "mlx5_1", "Ethernet", 4096, 23, 97.56, False,
    ),
    # 24056.72 and 23240.68 times 2^20 bytes.
    "ib_write_bw_hdr200_8M_loopback.log": ("ib0", "InfiniBand", 4096, 1, 201.802, True),
    "ib_write_bw_hdr200_all_sizes_loopback.log": ("ib0", "InfiniBand", 4096, 23, 194.957, True),
}  # fmt: skip


def host_of(*files: str | Path) -> Host:
    raws = [raw for file in files for raw in recognise(sample_bytes(str(file)), "x.txt")]
    return assemble("input", raws).host


def _plain(value: Any) -> Any:
    """The value; of what the input does not hold None, else why it is missing."""
    if not isinstance(value, Missing):
        return value
    return None if value.kind in ("not-in-input", "unreadable") else value.kind


def test_no_sample_is_left_out() -> None:
    assert sorted(RUNS) == NCCL_TESTS
    assert sorted(TESTS) == PERFTEST


@pytest.mark.parametrize("name", NCCL_TESTS)
def test_each_run_is_read_as_it_was(name: str) -> None:
    runs = host_of(f"nccl_tests/{name}").collectives
    assert isinstance(runs, tuple)
    [run] = runs
    told = (run.collective, run.ranks, run.host_count, run.product)
    found = (*map(_plain, told), len(run.rows), _plain(run.busbw_gbps), _plain(run.average_gbps))
    assert found == RUNS[name]


@pytest.mark.parametrize("name", PERFTEST)
def test_each_test_of_rdma_is_read_as_it_was(name: str) -> None:
    tests = host_of(f"perftest/{name}").rdma_tests
    assert isinstance(tests, tuple)
    [one] = tests
    found = (one.device, one.link_layer, one.mtu_bytes, len(one.rows), one.average_gbits)
    assert (*found, one.loopback) == TESTS[name]


def test_wrong_results_are_counted_and_no_check_is_no_zero() -> None:
    wrong = {
        name: runs[0].wrong
        for name in NCCL_TESTS
        if isinstance(runs := host_of(f"nccl_tests/{name}").collectives, tuple)
    }
    assert wrong.pop("vendor_mock_1gpu_out_of_bounds_failed.log") == 2
    unchecked = {name for name, value in wrong.items() if isinstance(value, Missing)}
    old = {name for name in NCCL_TESTS if name.startswith("a100_sxm_x8_") and "210" not in name}
    assert unchecked == old | {"k80_x2_nodes_tcp_allreduce.log", "mpirun_not_enough_slots.log"}
    assert {value for name, value in wrong.items() if name not in unchecked} == {0}


def test_the_middle_of_a_table_is_read_or_unknown() -> None:
    """A file whose beginning or end is lost never tells of ranks that it had not."""
    for name in NCCL_TESTS:
        lines = sample_bytes(f"nccl_tests/{name}").decode().splitlines(keepends=True)
        text = "".join(lines[: 2 * len(lines) // 3])
        raws = recognise(text.encode(), "x.txt")
        assert {raw.probe for raw in raws} <= {"nccl-tests", "nccl-log"}
        runs = assemble("input", raws).host.collectives
        assert isinstance(runs, tuple)
        assert _plain(runs[0].ranks) in (RUNS[name][1], None)
        assert runs[0].ended is not True or name.startswith("vendor_mock")


#: Sample -> what of it does not pass; an ERROR with its reason.
FINDINGS: dict[str, tuple[str, ...]] = {
    "nccl_tests/mpirun_not_enough_slots.log": ("ERROR collectives.ended",),
    "nccl_tests/vendor_mock_1gpu_out_of_bounds_failed.log": ("FAIL collectives.wrong",),
    "nccl_tests/vendor_mock_1gpu_avg_bw_failed.log": ("FAIL collectives.own_limit",),
    "nccl_tests/cx8_pcie_x16_2nodes_ar_on_midsize_collapse_17.87.log": (
        "WARN collectives.order", "WARN collectives.sides",
    ),
    "nccl_tests/cx8_pcie_x16_2nodes_nccl2.30_21.07.log": ("WARN collectives.order",),
}  # fmt: skip
#: Those whose links the table knows: the share of the bound that they reach, in percent.
SHARES = {
    "a100_sxm_x8_210.99.log": 100, "a100_sxm_x8_allgather.log": 96,
    "a100_sxm_x8_allreduce.log": 101, "a100_sxm_x8_alltoall.log": 96,
    "a100_sxm_x8_broadcast.log": 100, "a100_sxm_x8_reduce.log": 98,
    "a100_sxm_x8_reducescatter.log": 99,
}  # fmt: skip
CHECKS = load(("collectives",)).checks


@pytest.mark.parametrize(
    "name", [*(f"nccl_tests/{one}" for one in NCCL_TESTS), *(f"perftest/{one}" for one in PERFTEST)]
)
def test_each_sample_is_judged_as_it_is_to_be(name: str) -> None:
    raws = recognise(sample_bytes(name), "x.txt")
    results = examine("input", raws, CHECKS).results
    off = {
        f"{one.status.value} {one.check}" for one in results
        if one.status not in (Status.PASS, Status.SKIP)
    }  # fmt: skip
    assert off == set(FINDINGS.get(name, ()))
    if "mpirun" in name:
        assert {one.measured for one in results} == {None}


@pytest.mark.parametrize(
    "name", [*(f"nccl_tests/{one}" for one in NCCL_TESTS), *(f"perftest/{one}" for one in PERFTEST)]
)
def test_where_bandwidth_is_asked_for_a_sound_sample_lacks_a_bound_at_most(name: str) -> None:
    raws = recognise(sample_bytes(name), "x.txt")
    results = examine("input", raws, mark(CHECKS, ASKED, asked=True)).results
    off = [one for one in results if one.status not in (Status.PASS, Status.SKIP)]
    unbound = [one for one in off if one.reason.startswith("INCOMPLETE: held against nothing")]
    bandwidth = {"collectives.busbw", "collectives.rough", "rdma.bandwidth"}
    assert {one.check for one in unbound} <= bandwidth
    assert all(one.status is Status.ERROR and one.fix for one in unbound)
    others = {f"{one.status.value} {one.check}" for one in off if one not in unbound}
    assert others == set(FINDINGS.get(name, ()))
    told = [one for one in results if one.check in bandwidth]
    measured = {one.subject for one in told if one.measured is not None}
    known = {one.subject for one in told if one.status is Status.PASS}
    assert measured == known | {one.subject for one in unbound}


@pytest.mark.parametrize("name", SHARES)
def test_a_sound_run_is_near_its_bound(name: str) -> None:
    host = host_of(f"nccl_tests/{name}")
    assert isinstance(host.collectives, tuple)
    bound = collective_busbw(host, host.collectives[0])
    assert not isinstance(bound, Missing)
    assert not isinstance(host.collectives[0].busbw_gbps, Missing)
    assert round(100 * host.collectives[0].busbw_gbps / bound.value) == SHARES[name]


def test_adapters_at_line_rate_pass_where_their_port_is_known() -> None:
    """97.56 Gb/s of RoCE at 100; 201.8 and 195 of InfiniBand at 200."""
    for name, rate in zip(PERFTEST, (100, 200, 200), strict=True):
        device = TESTS[name][0]
        port = (
            f"CA '{device}'\n\tCA type: MT4123\n\tNumber of ports: 1\n\tPort 1:\n"
            f"\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: {rate}\n"
        )
        raws = recognise(sample_bytes(f"perftest/{name}"), "x.txt")
        raws += recognise(port.encode(), "ibstat.txt")
        [one] = [one for one in examine("input", raws, CHECKS).results
                 if one.check == "rdma.bandwidth"]  # fmt: skip
        assert one.status is Status.PASS


@pytest.mark.parametrize(("name", "rate"), [*zip(PERFTEST, (56, 100, 100), strict=True)])
def test_more_than_a_port_carries_is_no_pass(name: str, rate: int) -> None:
    port = (
        f"CA '{TESTS[name][0]}'\n\tCA type: MT4123\n\tNumber of ports: 1\n\tPort 1:\n"
        f"\t\tState: Active\n\t\tPhysical state: LinkUp\n\t\tRate: {rate}\n"
    )
    raws = recognise(sample_bytes(f"perftest/{name}"), "x.txt")
    raws += recognise(port.encode(), "ibstat.txt")
    [one] = [one for one in examine("input", raws, CHECKS).results
             if one.check == "rdma.bandwidth"]  # fmt: skip
    assert one.status is Status.ERROR
    assert f"times the {rate} of the port" in one.reason


def test_addresses_and_hosts_are_stand_ins_and_nothing_else_changes() -> None:
    name = "perftest/ib_write_bw_dc_roce_100g_all_sizes_gbits.log"
    shown = Redactor([]).full(sample_bytes(name).decode())
    assert "255:255:10:00" not in shown
    assert shown.count("GID: ipv6-") == 4
    [raw] = recognise(shown.encode(), "x.txt")
    assert isinstance(tests := assemble("input", [raw]).host.rdma_tests, tuple)
    assert (tests[0].average_gbits, tests[0].mtu_bytes) == (97.56, 4096)
    failed = (
        "0: saturn07: Test NCCL failure common.cu:3 'x'\n .. saturn07 pid 7: Test failure a:1\n"
    )
    assert "saturn" not in Redactor([]).full(failed)
    assert "saturn" not in Redactor([]).full(" Couldn't connect to saturn07:18515\n")
