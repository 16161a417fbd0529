"""Hosts compared by how they are set up: one that differs is named, and nothing else is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from preflight.collect import examine_one_of_many
from preflight.judge.comparison import Compared
from preflight.judge.fleet import judge_fleet
from preflight.judge.load import load
from preflight.judge.peers import Group, Peer
from preflight.judge.readings import Reading
from preflight.judge.unlike import not_uniform
from preflight.model import Missing, Raw, Result, Status
from preflight.nodesets import hosts_named
from tests.setup_text import SETUP

CHECKS = [check for check in load(("fleet",)).checks if check.across == "fleet"]
ASKED = datetime(2026, 1, 2, 3, 4, 5)


def _identity(name: str, off_s: int) -> Raw:
    date = ASKED + timedelta(seconds=off_s)
    text = f"hostname {name}\nkernel 6.8.0\ndate {date:%Y-%m-%dT%H:%M:%SZ}\nuid 0\n"
    return Raw(name, "identity", ("sh",), 0, text, started_at=f"{ASKED:%Y-%m-%dT%H:%M:%SZ}")


def _raws(name: str, off_s: int, texts: dict[str, str]) -> list[Raw]:
    told = SETUP | texts
    return [_identity(name, off_s), *(Raw(name, each, (each,), 0, told[each]) for each in told)]


def _judged(hosts: Sequence[list[Raw]]) -> list[Result]:
    found = [examine_one_of_many(raws[0].host, raws, CHECKS).readings for raws in hosts]
    return judge_fleet([one for one in found if one], CHECKS)


def _off(hosts: Sequence[list[Raw]]) -> list[Result]:
    return [one for one in _judged(hosts) if one.status not in (Status.PASS, Status.SKIP)]


def _fleet(**texts: str) -> list[list[Raw]]:
    """Five hosts, of which node3 answers otherwise."""
    return [_raws(f"node{at}", 0, texts if at == 3 else {}) for at in range(1, 6)]


def _without(probe: str, **answer: Any) -> list[list[Raw]]:
    """Five hosts, of which node3 gives this answer to one probe; none where it has no `rc`."""
    hosts = _fleet()
    hosts[2] = [raw for raw in hosts[2] if raw.probe != probe]
    argv = ("python3",) if probe == "packages" else ("sh",)
    hosts[2] += [Raw("node3", probe, argv, **answer)] if answer else []
    return hosts


def test_hosts_that_are_alike_pass() -> None:
    results = _judged(_fleet())
    assert _off(_fleet()) == []
    passed = {one.check for one in results if one.status is Status.PASS}
    assert {
        "fleet.board.product.same", "fleet.board.bios.same", "fleet.sysctl.same",
        "fleet.software.same", "fleet.packages.same", "fleet.topology.same", "fleet.nic.count.same",
        "fleet.nic.model.same", "fleet.nic.firmware.same", "fleet.nic.state.same",
        "fleet.nic.link_layer.same", "fleet.nic.rate.same", "fleet.nic.mtu.same",
        "fleet.clock.same", "fleet.clock.here",
    } <= passed  # fmt: skip


#: Probe, what is replaced in its answer by what; the check, its subject, status, what is measured.
ODD = [
    ("board", "SYS-821GE-TNHR", "SYS-521GE", "fleet.board.product.same", "node3", "WARN", "521"),
    ("board", "X13DEG-OAD", "X13DEG-OA", "fleet.board.name.same", "node3", "WARN", "X13DEG-OAD"),
    ("board", "bios_version 2.1", "bios_version 1.4a", "fleet.board.bios.same", "node3", "WARN",
     "1.4a; the other 4 have 2.1"),
    ("sysctls", "vm/swappiness:10", "vm/swappiness:60", "fleet.sysctl.same", "node3 vm.swappiness",
     "WARN", "60; the other 4 have 10"),
    ("sysctls", "option iommu=pt\n", "", "fleet.sysctl.same", "node3 cmdline", "WARN", "iommu=pt"),
    ("sysctls", "cpu.governor performance", "cpu.governor mixed", "fleet.sysctl.same",
     "node3 cpu.governor", "WARN", "mixed; the other 4 have performance"),
    ("software", "libnccl.so.2.21.5", "libnccl.so.2.18.3", "fleet.software.same", "node3 nccl",
     "WARN", "2.18.3; the other 4 have 2.21.5"),
    ("software", "libcudnn.so.9 ", "libcudnn.so.x ", "fleet.software.same", "node3 cudnn-9",
     "WARN", "absent; the other 4 have 9.1.0"),
    ("packages", "torch 2.3.0", "torch 2.3.1", "fleet.packages.same", "node3 torch", "WARN",
     "2.3.1+cu121; the other 4 have 2.3.0+cu121"),
    ("packages", "package numpy 1.26.4\n", "", "fleet.packages.same", "node3 numpy", "WARN",
     "absent"),
    ("pci-tree", "numa", "", "fleet.topology.same", "node3", "WARN", "numa0"),
    ("nics", "fw_ver 28.39.1002", "fw_ver 28.36.1010", "fleet.nic.firmware.same", "node3 mlx5_0",
     "WARN", "28.36.1010; the other 9 have 28.39.1002"),
    ("nics", "hca_type MT4129", "hca_type MT4123", "fleet.nic.model.same", "node3 mlx5_0", "WARN",
     "MT4123; the other 4 have MT4129"),
    ("nics", "state 4: ACTIVE", "state 1: DOWN", "fleet.nic.state.same", "node3 mlx5_0/1", "FAIL",
     "DOWN; the other 4 have ACTIVE"),
    ("nics", "link_layer InfiniBand", "link_layer Ethernet", "fleet.nic.link_layer.same",
     "node3 mlx5_0/1", "FAIL", "Ethernet"),
    ("nics", "400 Gb/sec (4X NDR)", "200 Gb/sec (4X HDR)", "fleet.nic.rate.same",
     "node3 mlx5_0/1", "FAIL", "200 Gbit/s; the other 4 have 400 Gbit/s"),
    ("nics", "mtu 4092", "mtu 2044", "fleet.nic.mtu.same", "node3 mlx5_0/1", "WARN",
     "2,044 bytes; the other 4 have 4,092 bytes"),
]  # fmt: skip


@pytest.mark.parametrize(("probe", "old", "new", "check", "subject", "status", "told"), ODD)
def test_the_odd_one_is_named(
    probe: str, old: str, new: str, check: str, subject: str, status: str, told: str
) -> None:
    text = SETUP[probe]
    changed = "\n".join(text.split("\n")[1:]) if probe == "pci-tree" else text.replace(old, new, 1)
    assert changed != text
    (one,) = _off(_fleet(**{probe: changed}))
    assert (one.check, one.subject, one.status.value) == (check, subject, status)
    assert told in str(one.measured)
    # The line of the odd host that shows it, where it has one.
    seen = one.evidence[0].text if one.evidence else ""
    assert new in seen or "absent" in told or probe == "pci-tree"


def test_an_adapter_that_is_gone_is_named_once_by_count_and_by_name() -> None:
    first, _, rest = SETUP["nics"].partition("nic mlx5_1")
    assert rest
    found = {one.check: one.subject for one in _off(_fleet(nics=f"{first}end\n"))}
    assert found == {"fleet.nic.count.same": "node3", "fleet.nic.model.same": "node3 mlx5_1"}


def test_all_adapters_gone() -> None:
    (one,) = _off(_fleet(nics="end\n"))
    assert (one.check, one.subject, one.status) == ("fleet.nic.count.same", "node3", Status.FAIL)
    assert one.measured == "0; the other 4 have 2"


def test_a_host_without_python_is_told_of_and_nothing_of_it_is_judged() -> None:
    (one,) = _off(_without("packages", rc=127))
    assert (one.check, one.subject, one.status) == (
        "fleet.told.same",
        "node3 packages",
        Status.WARN,
    )
    assert one.reason.startswith("packages: python3 is not installed")
    assert one.reason.endswith("the other 4 told it")


# What one host does not tell


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ({"rc": 124, "elapsed_s": 32.0}, "ERROR", "did not end within 32 s"),
        ({"rc": 1, "stderr": "cannot: Permission denied"}, "ERROR", "Permission denied"),
        ({"rc": 2, "stderr": "broken"}, "ERROR", "exited with 2"),
        ({"stdout": "nic mlx5_0\n"}, "ERROR", "cut short"),
        ({"stdout": SETUP["nics"], "truncated": True}, "ERROR", "too long"),
        ({"rc": None, "missing": Missing("unreachable", "it broke off")}, "ERROR", "it broke off"),
        ({"rc": 127}, "WARN", "not installed"),
        ({}, "ERROR", "not in the input"),
    ],
)
def test_what_the_others_told_and_one_did_not(
    answer: dict[str, Any], status: str, said: str
) -> None:
    (one,) = _off(_without("nics", **answer))
    assert (one.check, one.subject) == ("fleet.told.same", "node3 nics")
    assert one.status.value == status
    assert said in one.reason
    assert one.reason.startswith("nics: ")
    assert one.reason.endswith("; the other 4 told it")


def test_hosts_that_do_not_tell_for_one_reason_are_folded() -> None:
    hosts = _fleet()
    for raws in hosts[:2]:
        raws[:] = [raw for raw in raws if raw.probe != "board"]
        raws.append(Raw(raws[0].host, "board", ("sh",), 124, elapsed_s=12.0))
    (one,) = _off(hosts)
    assert (one.subject, one.status) == ("node[1-2] board", Status.ERROR)
    passed = {one.check: one.subject for one in _judged(hosts) if one.status is Status.PASS}
    # Who was not compared is not among those that are alike.
    assert passed["fleet.board.bios.same"] == "node[3-5]"


def test_parts_that_one_host_does_not_tell_for_one_reason_are_one_result() -> None:
    hosts = _fleet()
    hosts[2] = [raw for raw in hosts[2] if raw.probe not in ("board", "nics")]
    (one,) = _off(hosts)
    assert one.subject == "node3 board,nics"
    assert one.reason == "board, nics: not in the input; the other 4 told it"
    assert hosts_named(one.subject, {"node2", "node3"}) == {"node3"}


def test_many_reasons_are_few_results() -> None:
    hosts = [_raws(f"node{at:02}", 0, {}) for at in range(40)]
    for at, raws in enumerate(hosts[:15]):
        raws[:] = [raw for raw in raws if raw.probe != "board"]
        raws.append(Raw(raws[0].host, "board", ("sh",), 2, "", f"reason {at}"))
    found = _off(hosts)
    assert len(found) == 8
    assert "8 reasons, such as" in found[-1].reason
    assert found[-1].subject == "node[07-14] board"


def test_what_a_host_has_not_and_what_few_told_is_no_gap() -> None:
    assert _off(_without("board", stdout="none\nend\n")) == []
    hosts = [[raw for raw in raws if raw.probe != "packages"] for raws in _fleet()]
    hosts[0].append(Raw("node1", "packages", ("python3",), 0, SETUP["packages"]))
    assert _off(hosts) == []


def test_what_is_on_one_of_two_hosts_is_told() -> None:
    text = SETUP["packages"].replace("package torch 2.3.0+cu121\n", "")
    (one,) = _off([_raws("node1", 0, {}), _raws("node2", 0, {"packages": text})])
    assert (one.check, one.status) == ("fleet.packages.same", Status.WARN)
    assert one.measured == "mixed: 2.3.0+cu121 on node1 torch; absent on node2 torch"


# Advice


def test_the_name_of_what_is_odd_stands_in_the_advice() -> None:
    text = SETUP["sysctls"].replace("vm/swappiness:10", "vm/swappiness:60")
    (one,) = _off(_fleet(sysctls=text))
    assert "grep -rF vm.swappiness /etc/sysctl.conf" in one.fix[0]
    assert "NAME" not in " ".join(one.fix)


def test_without_a_majority_no_advice_takes_one_for_granted() -> None:
    for check in CHECKS:
        if "uniform" not in check.fail_unless | check.warn_unless:
            continue
        peers = [Peer(f"n{at}", Reading(check.id, at)) for at in range(1, 5)]
        alike = replace(check, like=())
        compared = Compared(alike, 4, (), [Group((), peers)], [])
        (one,) = not_uniform(compared, Status.WARN, True)
        assert one.fix[0].startswith("no value is that of most: decide which is right")
        assert not re.search(r"others|majority|HOSTS|n\[1-4\]|exclude", " ".join(one.fix))


def test_many_names_come_from_a_file() -> None:
    check = next(one for one in CHECKS if one.id == "fleet.driver.same")
    peers = [Peer(f"n{at * 7}x{at}", Reading(check.id, at < 20)) for at in range(100)]
    (one,) = not_uniform(Compared(check, 100, (), [Group((), peers)], []), Status.FAIL, True)
    steps = [step for step in one.fix if "srun" in step]
    assert len(steps) == 1
    assert "--save-hosts PREFIX" in steps[0]
    assert "srun --exclude=./PREFIX.fail" in steps[0]


# Clocks


def _clocks(*off_s: int) -> dict[str, Result]:
    hosts = [_raws(f"node{at}", each, {}) for at, each in enumerate(off_s, 1)]
    return {one.check: one for one in _off(hosts)}


def test_a_clock_that_is_off_is_named_with_how_much() -> None:
    found = _clocks(0, 1, -97200, 0, 2)
    assert list(found) == ["fleet.clock.same"]
    one = found["fleet.clock.same"]
    assert (one.subject, one.status) == ("node3", Status.FAIL)
    assert one.measured == "-1 d 3 h; the median 0 s"
    assert one.expected == "within 5 min of the median"
    assert "2026-01-01T00:04:05Z" in one.evidence[0].text


@pytest.mark.parametrize(("off_s", "status"), [(11, "WARN"), (300, "WARN"), (302, "FAIL")])
def test_how_far_is_off(off_s: int, status: str) -> None:
    assert _clocks(0, 0, off_s, 0)["fleet.clock.same"].status.value == status


def test_two_seconds_are_nothing() -> None:
    assert _clocks(-2, 2, 0, 1) == {}


def test_if_all_agree_and_differ_from_here_it_is_this_clock_once() -> None:
    found = _clocks(3600, 3601, 3600, 3599)
    assert list(found) == ["fleet.clock.here"]
    one = found["fleet.clock.here"]
    assert (one.subject, one.status) == ("node[1-4]", Status.WARN)
    assert one.measured == "1 h is the median of 4"
    assert one.expected == "a median of -10 s to 10 s"


def test_one_that_is_right_here_among_those_that_are_not() -> None:
    found = _clocks(3600, 3600, 0, 3600)
    assert {check: one.subject for check, one in found.items()} == {
        "fleet.clock.same": "node3", "fleet.clock.here": "node[1-4]",
    }  # fmt: skip


def test_of_two_that_differ_both_are_named() -> None:
    one = _clocks(0, 3600)["fleet.clock.same"]
    assert (one.subject, one.status) == ("node[1-2]", Status.FAIL)
    assert "node1 0 s" in one.reason
    assert "node2 1 h" in one.reason


def test_two_that_are_far_from_each_other_are_told_so_and_this_machine_is_not_blamed() -> None:
    found = _clocks(0, 400)
    assert list(found) == ["fleet.clock.same"]
    one = found["fleet.clock.same"]
    assert (one.subject, one.status) == ("node[1-2]", Status.FAIL)
    assert one.measured == "0 s to 6 min 40 s; the two in the middle are 6 min 40 s apart"
    assert list(_clocks(0, 0, 400, 400)) == ["fleet.clock.same"]
    assert set(_clocks(400, 1000)) == {"fleet.clock.same", "fleet.clock.here"}


def test_one_host_is_held_against_this_machine() -> None:
    assert _clocks(5) == {}
    (found,) = _clocks(-86400).values()
    assert (found.check, found.subject, found.status) == ("fleet.clock.here", "node1", Status.WARN)
    assert found.measured == "-1 d"


def test_of_one_host_without_a_clock_nothing_is_told() -> None:
    assert _judged([[Raw("node1", "sysctls", ("sh",), 0, SETUP["sysctls"])]]) == []


def _alone(check: str, hosts: Sequence[list[Raw]]) -> list[Result]:
    return [one for one in _off(hosts) if one.check == check]


def test_a_host_without_torch_or_with_another_fails() -> None:
    none = {"rc": 0, "stdout": "python 3.10.12 /opt/bin/python3\ntorch none\nend\n"}
    (one,) = _alone("fleet.torch.same", _without("packages", **none))
    assert (one.subject, one.status, one.measured) == (
        "node3", Status.FAIL, "no torch; the other 4 have 2.3, CUDA 12.1",
    )  # fmt: skip
    other = SETUP["packages"].replace("torch 2.3.0+cu121", "torch 2.3.0+cu118")
    (one,) = _alone("fleet.torch.same", _fleet(packages=other))
    assert (one.status, "2.3, CUDA 11.8" in str(one.measured)) == (Status.FAIL, True)
    assert not _alone("fleet.torch.same", _without("packages", rc=127))


def test_another_nccl_that_is_loaded_fails() -> None:
    other = SETUP["packages"].replace("nccl-cu12 2.20.5", "nccl-cu12 2.18.3")
    (one,) = _alone("fleet.nccl.same", _fleet(packages=other))
    assert (one.subject, one.status) == ("node3", Status.FAIL)
    preload = "preload libnccl.so.2 /opt/libnccl.so.2.19.3\n" + SETUP["software"]
    (one,) = _alone("fleet.nccl.same", _fleet(software=preload))
    assert one.measured == "2.19.3; the other 4 have 2.20.5"
