"""What counters grew while a bench ran: on the host that it is about, and no other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from preflight.collect import examine_one_of_many
from preflight.facts.bench import NetworkGrowth
from preflight.judge.load import load
from preflight.model import Missing, Raw, Status
from preflight.probes.collectives.bench import bench
from preflight.probes.collectives.job import split
from tests.conftest import sample

LOSES, SENDS = (sample(f"nccl_bench/loses_{one}.jsonl") for one in ("h3", "h4"))
CHECKS = ("gaps", "links", "link_errors", "drops")
Line = dict[str, Any]


def judged(text: str) -> dict[str, Status]:
    found = examine_one_of_many("h3", [Raw("h3", "nccl-bench", stdout=text)],
                                load(("collectives",)).checks)  # fmt: skip
    worst: dict[str, Status] = {}
    for one in found.report.results:
        name = one.check.removeprefix("collectives.")
        if name in CHECKS and worst.get(name, Status.PASS) is Status.PASS:
            worst[name] = one.status
    return worst


def with_port(more: Line, *, kind: str = "rdma", name: str = "mlx5_0/1") -> str:
    """With a device whose counters grow by so much in 10 s."""
    told = []
    for line in map(json.loads, SENDS.splitlines()):
        if line["kind"] == "counters":
            last = line["when"] == "after"
            line["at_s"] = 1000 + 10 * last
            line[kind] |= {name: {key: 100 + one * last for key, one in more.items()}}
        told.append(line)
    return "".join(f"{json.dumps(one)}\n" for one in told)


def growth_of(text: str) -> NetworkGrowth:
    found = bench(text).growth
    assert not isinstance(found, Missing)
    return found


def test_the_host_that_packets_are_lost_to_is_told_and_not_who_sends_them_again() -> None:
    """20 of 1,000 packets that reach h3 are dropped there; h4 sends them."""
    assert judged(LOSES)["gaps"] is Status.WARN
    assert set(judged(SENDS).values()) == {Status.PASS}
    lost, sent = growth_of(LOSES), growth_of(SENDS)
    assert isinstance(lost.out_of_order_percent, float) and lost.out_of_order_percent > 2
    assert isinstance(sent.retransmits_percent, float) and sent.retransmits_percent > 1


@pytest.mark.parametrize(
    ("more", "check", "status"),
    [
        ({"link_downed": 1}, "links", Status.FAIL),
        ({"local_link_integrity_errors": 1}, "links", Status.FAIL),
        ({"symbol_error": 99, "port_rcv_errors": 99}, "link_errors", Status.PASS),
        ({"symbol_error": 200}, "link_errors", Status.WARN),
        ({"port_xmit_discards": 2000}, "drops", Status.WARN),
        ({"port_xmit_discards": 900, "np_cnp_sent": 100000, "port_xmit_wait": 1 << 40}, "drops",
         Status.PASS),
    ],
)  # fmt: skip
def test_what_grows_is_held_against_its_rate(more: Line, check: str, status: Status) -> None:
    expected = dict.fromkeys(CHECKS, Status.PASS) | {check: status}
    assert judged(with_port(more)) == expected


def test_devices_on_pci_and_interfaces_count_too() -> None:
    assert judged(with_port({"fatal": 1}, kind="pci", name="0000:18:00.0"))["links"] is Status.FAIL
    text = with_port({"rx_crc_errors": 500}, kind="net", name="eth1")
    assert judged(text)["link_errors"] is Status.WARN


def test_what_went_back_was_cleared_and_tells_nothing() -> None:
    (device,) = [one for one in growth_of(with_port({"symbol_error": -50})).devices
                 if one.kind == "rdma"]  # fmt: skip
    assert device.grew == {} and device.errors_per_s == 0


def test_without_its_last_look_nothing_passes() -> None:
    lines = [one for one in LOSES.splitlines() if '"when":"after"' not in one]
    assert set(judged("".join(f"{one}\n" for one in lines)).values()) == {Status.ERROR}
    assert isinstance(bench(sample("nccl_bench/one_host.jsonl")).growth, Missing)


def test_windows_in_which_it_grew_are_told() -> None:
    counted = [{"kind": "counted", "window": at, "at_s": 2.0 * at, "grew": {"": {"TCPOFOQueue": 9}}}
               for at in (3, 4)]  # fmt: skip
    text = LOSES + "".join(f"{json.dumps(one)}\n" for one in counted)
    assert growth_of(text).windows == {"TCPOFOQueue": (6.0, 8.0)}
    found = examine_one_of_many("h3", [Raw("h3", "nccl-bench", stdout=text)],
                                load(("collectives",)).checks)  # fmt: skip
    rows = [row for one in found.measured if "grew" in one["table"] for row in one["rows"]]
    assert [row["windows of --duration"] for row in rows] == ["2, the first after 6 s"]


def test_what_the_first_host_told_of_another_is_that_ones() -> None:
    (line,) = [one for one in LOSES.splitlines() if '"when":"after"' in one]
    own = json.dumps({**json.loads(line), "of": "h3"}, separators=(",", ":"))
    found = split({"h1": f"{own}\n", "h3": ""})
    assert found["h1"] == "" and '"when":"after"' in found["h3"]


def test_what_grew_is_shown_with_its_rate_and_sound_hosts_show_nothing() -> None:
    def tables(text: str) -> list[Any]:
        found = examine_one_of_many("h3", [Raw("h3", "nccl-bench", stdout=text)],
                                    load(("collectives",)).checks)  # fmt: skip
        return [row for one in found.measured if "grew" in one["table"] for row in one["rows"]]

    (row,) = tables(LOSES)
    assert (row["where"], row["counter"]) == ("TCP", "came after a gap")
    rows = tables(with_port({"np_cnp_sent": 40, "port_rcv_packets": 1000}))
    (cnp,) = [one for one in rows if one["where"] == "mlx5_0/1"]
    assert cnp == {"where": "mlx5_0/1", "counter": "np_cnp_sent", "grew": 40, "a second": 4.0,
                   "of a million": "40,000"}  # fmt: skip
