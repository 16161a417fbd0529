"""Maps and advice in text and ticket: all of it there, once, in 100 columns, ready to paste."""

from __future__ import annotations

import subprocess

import pytest

from preflight import reports
from preflight.model import (
    Advice,
    Export,
    HostReport,
    LinkTable,
    Map,
    MapNode,
    Seat,
    Status,
)
from preflight.reports.json import read
from preflight.reports.layout import plain
from preflight.reports.machine.links import link_lines
from preflight.reports.machine.placing import advice_lines, export_lines, seat_lines
from preflight.reports.machine.tree import tree
from preflight.reports.merge import merge
from preflight.reports.text import lines
from tests.reports.built import HOSTILE, host, report, text_of
from tests.reports.drawn import MACHINES, advice, drawn, topo
from tests.reports.test_golden import compare
from tests.reports.test_json import document, faults


@pytest.mark.parametrize("name", MACHINES)
def test_each_machine_reads_as_the_golden_file(name: str) -> None:
    compare(f"topo.{name}.txt", text_of(topo(drawn(name))) + "\n")


def test_with_v_all_tables_and_snippets_are_there() -> None:
    compare("topo.eight.v.txt", text_of(topo(drawn("eight")), verbose=1) + "\n")


def test_the_ticket_reads_as_the_golden_file() -> None:
    compare("topo.faulty.md", "".join(reports.render(topo(drawn("faulty")), "markdown")))


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("verbose", [0, 1, 2])
@pytest.mark.parametrize("columns", [100, 80])
def test_no_line_of_a_map_is_wider_than_asked(name: str, verbose: int, columns: int) -> None:
    told = topo(drawn(name, advised=False))
    wide = [line for line in text_of(told, verbose=verbose, columns=columns).splitlines()
            if len(line) > columns]  # fmt: skip
    assert wide == []


def test_only_the_verdict_with_q() -> None:
    assert "gpu0" not in text_of(topo(drawn("eight")), quiet=True)


def test_boxes_are_drawn_only_where_they_can_be_written() -> None:
    told = topo(drawn("eight"))
    assert text_of(told).isascii()
    boxed = "\n".join(plain(line) for line in lines(told, box=True))
    assert "├─ 0000:10:01.0 > switch 0000:11:00.0" in boxed
    assert boxed.translate(str.maketrans("├└│─", "|`|-")) == text_of(told)


def test_hosts_that_are_alike_are_drawn_once_and_of_many_kinds_some_are_counted() -> None:
    alike = [drawn("eight", f"node-{number:02}") for number in range(1, 17)]
    text = text_of(topo(*alike, drawn("faulty", "node-99")))
    assert "topology of node-[01-16]" in text
    assert "topology of node-99" in text
    assert text.count("x8 of x16") == 1
    kinds = [plain_host(f"n{number}", f"gpu{number}") for number in range(6)]
    text = text_of(report(*kinds))
    assert text.count("topology of") == 3
    assert "and 3 more kinds of machine on 3 hosts (-v shows them)" in text
    assert text_of(report(*kinds), verbose=1).count("topology of") == 6
    ticket = "".join(reports.render(report(*kinds), "markdown"))
    assert "and 3 more kinds of machine on 3 hosts, in the JSON report" in ticket


def test_a_machine_with_a_failure_is_drawn_before_those_of_more_hosts() -> None:
    kinds = [plain_host(f"n{number}", f"gpu{number // 2}") for number in range(8)]
    alone = plain_host("z", "gpu9")
    alone.verdict = Status.WARN
    kinds[6].verdict = Status.FAIL
    text = text_of(report(*kinds, alone))
    heads = [line for line in text.splitlines() if line.startswith("topology of")]
    assert heads == ["topology of n[6-7]", "topology of z", "topology of n[0-1]"]


def plain_host(name: str, gpu: str) -> HostReport:
    told = host(name)
    told.map = Map((MapNode("gpu", gpu),))
    return told


def test_disks_that_are_alike_are_one_line_and_with_v_each_is_one() -> None:
    disks = tuple(MapNode("nvme", f"0000:0{at}:00.0", "PM1743", "gen5 x4") for at in range(4))
    slow = MapNode("nvme", "0000:05:00.0", "PM1743", "gen5 x2", "x2 of x4")
    node = MapNode("numa", "NUMA node 0", below=(*disks, slow))
    shown = [plain(line) for line in tree([node], width=100)]
    assert shown[1:] == [
        "|- 4 x NVMe 0000:00:00.0  PM1743  gen5 x4",
        "`- NVMe 0000:05:00.0      PM1743  gen5 x2  <-- x2 of x4",
    ]
    assert len(list(tree([node], width=100, verbose=1))) == 6


def test_a_fault_within_a_chain_is_not_lost() -> None:
    gpu = MapNode("gpu", "gpu0", link="gen5 x16")
    switch = MapNode("switch", "0000:02:00.0", "PEX", "gen5 x8", "x8 of x16", (gpu,))
    root = MapNode("root", "0000:01:00.0", below=(switch,))
    shown = [plain(line) for line in tree([MapNode("numa", "n", below=(root,))], width=100)]
    assert shown == [
        "n",
        "`- 0000:01:00.0 > switch 0000:02:00.0  PEX  gen5 x8  <-- x8 of x16",
        "   `- gpu0                                  gen5 x16",
    ]


def table(cells: dict[tuple[str, str], str], names: tuple[str, ...], other: str) -> LinkTable:
    both = cells | {(b, a): cell for (a, b), cell in cells.items()}
    return LinkTable(names, tuple(
        tuple("X" if a == b else both.get((a, b), other) for b in names) for a in names
    ))  # fmt: skip


def test_where_links_differ_rows_that_are_alike_are_one_row() -> None:
    gpus = tuple(f"gpu{at}" for at in range(4))
    nics = ("mlx5_0", "mlx5_3", "bond0")
    near = {("gpu0", "mlx5_0"): "PIX", ("gpu1", "mlx5_0"): "PIX", ("gpu0", "gpu1"): "NV4",
            ("gpu2", "gpu3"): "NV4"}  # fmt: skip
    told = Map(table=table(near, (*gpus, *nics), "SYS"), domains=(gpus[:2], gpus[2:]))
    assert [plain(line) for line in link_lines(told, width=100)] == [
        "NVLink domains: gpu[0-1]; gpu[2-3]",
        "GPU to GPU, by the number of gpuN",
        "         0   1   2   3",
        "  gpu0   - NV4 SYS SYS",
        "  gpu1 NV4   - SYS SYS",
        "  gpu2 SYS SYS   - NV4",
        "  gpu3 SYS SYS NV4   -",
        "GPU to NIC: n0 mlx5_0, n1 mlx5_3, n2 bond0",
        "            n0  n1  n2",
        "  gpu[0-1] PIX SYS SYS",
        "  gpu[2-3] SYS SYS SYS",
        "NV4: 4 NVLinks; PIX: one PCIe switch; SYS: between NUMA nodes",
    ]


def test_more_columns_than_fit_go_on_below() -> None:
    names = (*(f"gpu{at}" for at in range(2)), *(f"mlx5_{at}" for at in range(40)))
    told = Map(table=table({("gpu0", "mlx5_0"): "PIX"}, names, "NODE"))
    shown = [plain(line) for line in link_lines(told, width=100)]
    assert max(map(len, shown)) <= 100
    assert sum(line.startswith("  gpu0") for line in shown) == 3


def test_the_exports_are_what_a_shell_makes_of_them() -> None:
    text = "\n".join(export_lines(advice(8).exports))
    asked = 'printf "%s\\n" "$NCCL_IB_HCA" "$NCCL_SOCKET_IFNAME" "$SPACED"'
    done = subprocess.run(
        ["sh", "-euc", f"{text}\n{asked}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [one.value for one in advice(8).exports]
    assert "#" not in text  # to zsh at its prompt that is no comment
    shown = text_of(topo(drawn("eight"))).splitlines()
    at = shown.index("export NCCL_SOCKET_IFNAME='=eth0'")
    assert shown[at - 1].startswith("export NCCL_IB_HCA")
    assert "note  NCCL_SOCKET_IFNAME: the way to the other hosts" in shown[at:]


def test_what_a_host_says_is_no_second_command() -> None:
    one = Export("NAME", "x\nrm -rf /", "why\nrm -rf /")
    (line,) = export_lines((one,))
    assert line == "export NAME='x\\x0arm -rf /'"
    text = [plain(line) for line in advice_lines(Advice(exports=(one,)), width=100)]
    assert text == [line, "note  NAME: why\\x0arm -rf /"]


def test_seats_lack_the_columns_that_none_fills_and_the_processors_where_they_do_not_fit() -> None:
    text = [plain(line) for line in seat_lines((Seat(0, "gpu0"),), 100)]
    assert text == ["  rank  gpu", "  0     gpu0"]
    wide = Seat(0, "gpu0", ("mlx5_0",), 0, "0-23,96-119", "numactl --cpunodebind=0 " * 3)
    head = plain(next(iter(seat_lines((wide,), 100))))
    assert head.split() == ["rank", "gpu", "numa", "nic", "start", "it", "with"]


def test_snippets_stand_at_the_first_column() -> None:
    text = text_of(topo(drawn("eight")), verbose=1)
    assert "\n#SBATCH --nodes=NODES\n" in text
    assert "#SBATCH" not in text_of(topo(drawn("eight")))
    assert "-v shows how to start it: sbatch, mesh" in text_of(topo(drawn("eight")))


def test_a_hostile_name_neither_obeys_nor_breaks_out() -> None:
    told = host("n")
    told.map = Map((MapNode("gpu", HOSTILE, HOSTILE, HOSTILE, HOSTILE),), unknown=(HOSTILE,))
    told.advice = Advice(left=(HOSTILE,))
    for fmt in ("text", "markdown"):
        text = "".join(reports.render(report(told), fmt, verbose=2))
        assert "\x1b" not in text and "\u202e" not in text
        assert text.isascii()


def test_merged_and_stored_reports_keep_the_map() -> None:
    one, other = topo(drawn("eight", "a")), topo(drawn("faulty", "b"))
    both = merge([one, other])
    assert [each.map for each in both.hosts] == [each.map for each in (*one.hosts, *other.hosts)]
    stored = read("".join(reports.render(both, "json")))
    assert text_of(stored) == text_of(both)
    without = report(host("a"))
    without.started_at = "2027-01-01T00:00:00Z"
    (kept,) = merge([one, without]).hosts
    assert kept.map == one.hosts[0].map and kept.advice == one.hosts[0].advice


@pytest.mark.parametrize("name", MACHINES)
def test_maps_and_advice_in_json_are_as_the_schema_says(name: str) -> None:
    assert faults(document(topo(drawn(name)))) == []


def test_of_a_log_alone_there_is_nothing_to_draw_and_no_list_of_what_is_not_known() -> None:
    told = host("input")
    told.map = Map(unknown=("GPUs and NVLink: not in the input",))
    assert "topology" not in text_of(report(told))
    assert "not known" not in "".join(reports.render(report(told), "markdown"))


def test_without_names_the_tree_is_enough_and_v_shows_the_table() -> None:
    gpu, nic = "0000:19:00.0", "0000:1a:00.0"
    told = Map(
        (MapNode("numa", "NUMA node 0", below=(MapNode("gpu", gpu), MapNode("nic", nic))),),
        table({}, (gpu, nic), "PIX"),
    )
    assert list(link_lines(told, width=100)) == []
    shown = [plain(line) for line in link_lines(told, width=100, verbose=1)]
    assert shown[0] == "GPU to NIC: n0 0000:1a:00.0"
    assert shown[2] == "  0000:19:00.0 PIX"
