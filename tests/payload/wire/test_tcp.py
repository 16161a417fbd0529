"""Links by TCP, over real connections: the slow host and the lossy one of a network are named."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("torch")

from preflight.payload.collectives.agents import free_ports
from preflight.payload.collectives.plan import Plan
from preflight.payload.wire import adapters, part, processors, sides
from preflight.payload.wire.flows import Flow
from preflight.payload.wire.sides import Line
from preflight.payload.wire.tcp import tcp
from tests.lab.shaped import shaped
from tests.lab.wire_hosts import WireHosts
from tests.payload.wire.judged import judged


@pytest.mark.lab
def test_the_hosts_behind_a_slow_link_and_a_lossy_one_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tests that are a fraction as long as real ones; where other tests have the processors, which
    carry these links too, as long as those."""
    plan = Plan(hosts=["h1", "h2", "h3", "h4"], wire="auto", interface="eth0",
                addresses=[f"10.79.0.{number}" for number in range(1, 5)])  # fmt: skip
    with shaped(tmp_path, 4) as lab:
        lab.rate("h3", 100)
        lab.loses("h4", 30)

        def inside(at: int) -> list[str]:
            return lab.inside(["ip", "netns", "exec", f"h{at + 1}"])

        for share in (0.15, 0.5, 1.0):
            monkeypatch.setattr(part, "SHARE", share)
            found = named(WireHosts(plan, prefix=inside).told())
            if found == {("h3", "wire.host"), ("h4", "wire.lost")}:
                return
    pytest.fail(f"named: {sorted(found)}")


def named(texts: dict[str, str]) -> set[tuple[str, str]]:
    """The hosts of which anything is not well, each with the check."""
    return {(host, one.check) for host, report in judged(texts).items() for one in report.results
            if one.status.value in ("WARN", "FAIL", "ERROR")}  # fmt: skip


def test_a_pair_is_timed_in_both_ways_one_by_one_and_at_once() -> None:
    lines = _both({"share": 0.05})
    assert not any("trouble" in one for one in lines)
    told = Counter((one["from"], one["flows"], one["together"])
                   for one in lines if "gbits" in one)  # fmt: skip
    assert told == {(host, flows, together): 1 for host in "ab" for flows in (1, 8)
                    for together in (False, True)}  # fmt: skip
    rates = [one["gbits"] for one in lines if "gbits" in one]
    assert all(len(one) == 5 and max(one) > 0 for one in rates)
    (trips,) = [one for one in lines if "p50_us" in one]
    assert 0 < trips["p50_us"] <= trips["p99_us"]


def test_a_connection_over_which_nothing_comes_is_no_slow_link(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Flow, "_send", lambda self: self._over.wait())
    lines = _both({"share": 0.02})
    assert not any("gbits" in one for one in lines)
    assert {one["trouble"][:29] for one in lines if "trouble" in one} == {
        "connected, and nothing arrive"
    }


def _both(more: Line) -> list[Line]:
    """A pair of hosts on the loopback of this one."""
    plan = Plan(hosts=["a", "b"], addresses=["127.0.0.1", "127.0.0.2"])
    (port,) = free_ports("127.0.0.1", 1)
    order = {"hosts": [0, 1], "port": port, **more}
    lines: list[Line] = []
    threads = [threading.Thread(target=lambda at=at: lines.extend(tcp(plan, at, order)))
               for at in (0, 1)]  # fmt: skip
    for one in threads:
        one.start()
    for one in threads:
        one.join(20)
    return lines


def test_hosts_that_do_not_reach_each_other_are_told_with_what_to_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sides, "_COMES_S", 0.2)
    plan = Plan(hosts=["a", "b"], addresses=["127.0.0.1", "127.0.0.2"])
    (port,) = free_ports("127.0.0.1", 1)
    for at, other in ((0, "did not call"), (1, "refused")):
        (line,) = tcp(plan, at, {"hosts": [0, 1], "port": port, "share": 0.1})
        assert other in line["trouble"] and f"nc -vz 127.0.0.1 {port}" in line["trouble"]


def test_a_bond_has_the_rates_of_its_members_and_a_virtual_interface_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapters, "SYS", tmp_path)
    for name, files in {
        "bond0": {"bonding/slaves": "eno1 eno2", "mtu": "9000", "speed": "50000"},
        "eno1": {"speed": "25000", "mtu": "9000", "device/vendor": "0x15b3"},
        "eno2": {"speed": "-1", "mtu": "9000", "device/vendor": "0x15b3"},
        "veth0": {"speed": "10000", "mtu": "1500"},
    }.items():
        for path, text in files.items():
            file = tmp_path / "class/net" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n")
    told = {name: adapters.interface(name) for name in ("bond0", "eno1", "veth0")}
    assert told["bond0"] == {"interface": "bond0", "physical": True, "mtu_bytes": 9000,
                             "rates_gbits": [25.0]}  # fmt: skip
    assert (told["eno1"]["physical"], told["eno1"]["rates_gbits"]) == (True, [25.0])
    assert (told["veth0"]["physical"], told["veth0"]["rates_gbits"]) == (False, [])


def test_the_kernels_part_of_a_processor_counts_and_what_others_compute_does_not() -> None:
    before = ({"cpu0": (100, 1000), "cpu1": (100, 1000)}, 3)
    assert processors.busiest(before, ({"cpu0": (100, 2000), "cpu1": (900, 2000)}, 3)) == 0.8
    assert processors.busiest(before, ({"cpu0": (100, 2000)}, 4)) == 1.0
