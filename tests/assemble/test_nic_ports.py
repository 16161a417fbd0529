"""What each port is for: by rates and kinds, by places where these are known."""

from __future__ import annotations

import re
from typing import Any

import pytest

from preflight.assemble.network.ports import by_place, with_purpose
from preflight.facts.nics import Nic, NicPort, Nics
from preflight.facts.pci_tree import PciDevice, PciTree
from preflight.facts.topology import NicPlace, Topology
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.nics import nics
from preflight.redact.redactor import Redactor
from tests.network_text import sysfs


def roles(text: str) -> dict[str, Any]:
    return {port.name: port.role for port in with_purpose(nics(text)).ports}


def test_the_fastest_of_one_layer_are_for_training() -> None:
    for roce in (False, True):
        found = roles(sysfs(roce=roce))
        assert found.pop("mlx5_1/1") == "other"
        assert found.pop("mlx5_2/1") == "other"
        assert set(found.values()) == {"training"}


def test_a_port_that_fell_behind_is_still_for_training() -> None:
    for rate in ("200 Gb/sec (2X NDR)", "100 Gb/sec (1X NDR)"):
        text = sysfs().replace("400 Gb/sec (4X NDR)", rate, 1)
        (first, *_) = with_purpose(nics(text)).ports
        assert (first.role, first.usual_rate_gbits, first.usual_lanes) == ("training", 400.0, 4)


def test_a_second_port_that_no_card_uses_is_spare() -> None:
    text = re.sub(r"(?s)(nic mlx5_2\n.*?state )4: ACTIVE", r"\g<1>1: DOWN", sysfs(), count=1)
    assert roles(text)["mlx5_2/1"] == "spare"


def test_a_virtual_function_of_the_host_is_no_port_for_training() -> None:
    text = sysfs().replace("nic mlx5_0\n", "nic mlx5_0\nvirtual\n")
    assert roles(text)["mlx5_0/1"] == "virtual"


def test_few_that_speak_another_language_are_odd_and_halves_are_a_design() -> None:
    for odd, usual in ((1, "InfiniBand"), (4, None)):
        text = sysfs(logins=False).replace("link_layer InfiniBand", "link_layer Ethernet", odd)
        (first, *_) = with_purpose(nics(text)).ports
        assert (None if isinstance(first.usual_link_layer, Missing)
                else first.usual_link_layer) == usual  # fmt: skip


def test_places_decide_where_they_are_known() -> None:
    ports = with_purpose(nics(sysfs())).ports
    topology = Topology(nics=(NicPlace("mlx5_0", role="other"), NicPlace("mlx5_1", role="training"),
                              NicPlace("mlx5_3", role="down")))  # fmt: skip
    found = by_place(ports, topology, NOT_IN_INPUT)
    assert not isinstance(found, Missing)
    told = {port.name: port.role for port in found}
    assert (told["mlx5_0/1"], told["mlx5_1/1"]) == ("other", "training")
    assert told["mlx5_3/1"] == "training"
    assert by_place(ports, Topology(), NOT_IN_INPUT) == ports


def test_an_adapter_is_known_by_its_ids_on_pci() -> None:
    tree = PciTree(
        (PciDevice("0000:18:00.0", vendor_id="0x14e4", device_id="0x1760"),
         PciDevice("0000:19:00.0", vendor_id="0x14e4", device_id="0xffff"))
    )  # fmt: skip
    given = Nics((Nic("bnxt_re0", address="0000:18:00.0"), Nic("bnxt_re1", address="0000:19:00.0")),
                 (NicPort("bnxt_re0/1", "bnxt_re0", state="ACTIVE"),))  # fmt: skip
    first, second = with_purpose(given, tree).devices
    assert first.model == "Broadcom Thor 2 (BCM57608)"
    assert isinstance(second.model, Missing)


@pytest.mark.parametrize(
    ("entries", "index"),
    [
        ((0, 1, 2, 3), 3),  # IPv4 before the address of the link
        ((0, 1), None),
        ((), None),
    ],
)
def test_the_index_of_the_address_that_is_routed(
    entries: tuple[int, ...], index: int | None
) -> None:
    text = sysfs(roce=True, logins=False, most=2)
    gone = "|".join(str(at) for at in range(4) if at not in entries) or "9"
    text = re.sub(rf"mlx5_0/ports/1/(?:gids|gid_attrs/\w+)/(?:{gone}):.*\n", "", text)
    for told in (text, Redactor().full(text)):
        (first, *_) = with_purpose(nics(told)).ports
        assert (None if isinstance(first.gid_index, Missing) else first.gid_index) == index
        assert first.roce_v2 is (index is not None)


def test_an_address_of_which_nothing_is_left_is_no_address_of_the_link() -> None:
    """As older versions redacted all of them."""
    text = re.sub(r"(?m)(/gids/\d+:).*", r"\1ipv6-1", sysfs(roce=True, logins=False, most=2))
    (first, *_) = with_purpose(nics(text)).ports
    assert isinstance(first.roce_v2, Missing)
