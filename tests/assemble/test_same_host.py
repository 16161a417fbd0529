"""Two names of one machine."""

from __future__ import annotations

from preflight.assemble.same_host import told_apart
from preflight.model import Missing, Raw

BOOT = "b0883328-5378-4c10-aecc-ca363c0ef43a"


def _identity(name: str, hostname: str, boot_id: str = BOOT) -> tuple[str, list[Raw]]:
    return name, [Raw(name, "identity", stdout=f"hostname {hostname}\nboot_id {boot_id}\n")]


def _faults(*hosts: tuple[str, list[Raw]]) -> list[str]:
    found = (raws[-1].missing for _, raws in told_apart(hosts))
    return [missing.fault if missing else "" for missing in found]


def test_the_second_name_of_a_machine_is_told() -> None:
    hosts = [_identity("node1", "node1"), _identity("node1-ib", "node1"), _identity("x", "x", "2")]
    assert _faults(*hosts) == ["", "same-host", ""]


def test_containers_of_one_machine_are_two_hosts() -> None:
    assert _faults(_identity("a", "a"), _identity("b", "b")) == ["", ""]


def test_without_a_boot_id_nothing_is_said() -> None:
    assert _faults(_identity("a", "node", ""), _identity("b", "node", "")) == ["", ""]


def test_hosts_without_answers_are_left_alone() -> None:
    silent = [Raw("a", "connection", rc=None, missing=Missing("unreachable", "x", "refused"))]
    assert [raws for _, raws in told_apart([("a", silent), ("b", silent)])] == [silent, silent]
