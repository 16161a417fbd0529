"""Judging: unknown never passes, and each way of leaving a check out says why."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from msgspec.structs import replace

from preflight.errors import UsageError
from preflight.facts.gpu import Gpu, GpuInventory, Pcie, Power, Throttle
from preflight.facts.host import Host
from preflight.judge import overrides
from preflight.judge.evaluate import judge
from preflight.model import (
    STATUS_OF_MISSING,
    Action,
    Check,
    Missing,
    MissingKind,
    Override,
    Result,
    Status,
)

WIDTH = Check(
    "pcie.width", "Full width", fact="gpus[*].pcie.width", fail_unless={"min": 16}, why="Slow.",
    fix=("reseat",), action=Action.INSPECT, runbook="pcie-link-degraded",
)  # fmt: skip


def _gpu(index: int, **fields: Any) -> Gpu:
    return Gpu(index, f"gpu{index}", f"00000000:0{index}:00.0", line=1, probe="p", **fields)


def _host(*gpus: Gpu, **fields: Any) -> Host:
    return Host("node", gpus=gpus, **fields)


def _one(host: Host, check: Check) -> Result:
    (found,) = judge(host, [check])
    return found


def test_a_pass_is_short_and_a_failure_has_all_a_person_needs() -> None:
    passed, failed = judge(
        _host(_gpu(0, pcie=Pcie(width=16)), _gpu(1, pcie=Pcie(width=8))), [WIDTH]
    )
    assert passed == Result("pcie.width", "gpu0", Status.PASS, 16, "at least 16")
    assert (failed.subject, failed.status, failed.measured) == ("gpu1", Status.FAIL, 8)
    assert (failed.why, failed.fix, failed.action) == ("Slow.", ("reseat",), Action.INSPECT)
    assert failed.device == "00000000:01:00.0"
    assert failed.evidence[0].field == "pcie.width"


@pytest.mark.parametrize("kind", get_args(MissingKind))
def test_a_missing_value_never_passes(kind: MissingKind) -> None:
    found = _one(_host(_gpu(0, pcie=Pcie(width=Missing(kind, "because")))), WIDTH)
    assert found.status is STATUS_OF_MISSING[kind]
    assert found.status not in (Status.PASS, Status.WARN, Status.FAIL)
    assert found.reason == "because"


def test_a_path_that_reaches_nothing_is_an_error() -> None:
    assert _one(_host(), WIDTH).status is Status.ERROR


def test_an_optional_tool_that_is_absent_is_a_skip() -> None:
    missing = Missing("no-tool", "no ipmitool")
    optional = replace(WIDTH, optional=True)
    assert _one(Host("node", gpus=missing), optional).status is Status.SKIP
    denied = Missing("denied", "no")
    assert _one(Host("node", gpus=denied), optional).status is Status.ERROR


def test_what_belongs_to_the_host_is_skipped_in_a_container() -> None:
    check = replace(WIDTH, host_only=True)
    inside = _one(_host(_gpu(0, pcie=Pcie(width=8)), container="docker"), check)
    assert (inside.status, inside.reason) == (
        Status.SKIP,
        "belongs to the host, not to a container",
    )
    outside = _one(_host(_gpu(0, pcie=Pcie(width=8)), container="none"), check)
    assert outside.status is Status.FAIL


def test_when_leaves_a_host_out_with_one_result_that_shows_what_was_measured() -> None:
    check = replace(WIDTH, when={"virtualization": "none"})
    gpus = (_gpu(0, pcie=Pcie(width=8)), _gpu(1, pcie=Pcie(width=16)))
    found = _one(_host(*gpus, virtualization="vm"), check)
    assert (found.status, found.measured) == (Status.SKIP, "16, 8")
    assert "virtualization is none; here it is vm" in found.reason
    unknown = Missing("timeout", "lscpu")
    assert _one(_host(*gpus, virtualization=unknown), check).status is Status.ERROR


def test_where_leaves_an_element_out() -> None:
    check = replace(WIDTH, where={".performance_state": {"one_of": ["P0", "P1"]}})
    idle, busy = judge(
        _host(
            _gpu(0, performance_state="P8", pcie=Pcie(width=8)),
            _gpu(1, performance_state="P0", pcie=Pcie(width=8)),
        ),
        [check],
    )
    assert (idle.status, busy.status) == (Status.SKIP, Status.FAIL)
    assert "here it is P8" in idle.reason


def test_an_unknown_condition_is_not_a_reason_to_pass() -> None:
    check = replace(WIDTH, where={".performance_state": "P0"})
    gpu = _gpu(0, performance_state=Missing("unreadable", "ERR!"), pcie=Pcie(width=16))
    assert _one(_host(gpu), check).status is Status.ERROR


def test_a_value_from_another_fact_and_a_bound() -> None:
    lower = replace(
        WIDTH, fact="gpus[*].power.limit_w", fail_unless={"min": {"fact": ".power.default_limit_w"}}
    )
    found = _one(_host(_gpu(0, power=Power(limit_w=500.0, default_limit_w=700.0))), lower)
    assert (found.status, found.expected, found.unit) == (Status.FAIL, "at least 700", "W")
    bound = replace(WIDTH, fail_unless={"min": {"bound": "pcie_width", "fraction": 0.5}})
    found = _one(_host(_gpu(0, pcie=Pcie(width=8, width_max=16))), bound)
    assert found.status is Status.PASS
    assert found.expected == "at least 8 (50% of 16, what card and slot can both do)"


def test_a_bound_that_is_not_known_does_not_pass() -> None:
    bound = replace(WIDTH, fail_unless={"min": {"bound": "pcie_width"}})
    found = _one(_host(_gpu(0, pcie=Pcie(width=8))), bound)
    assert (found.status, found.measured) == (Status.SKIP, 8)


def test_fail_is_looked_at_before_warn() -> None:
    check = replace(WIDTH, fail_unless={"min": 4}, warn_unless={"min": 16})
    statuses = [
        one.status
        for one in judge(
            _host(*(_gpu(n, pcie=Pcie(width=w)) for n, w in enumerate((2, 8, 16)))), [check]
        )
    ]
    assert statuses == [Status.FAIL, Status.WARN, Status.PASS]


def test_across_a_host_names_the_odd_one() -> None:
    check = replace(WIDTH, across="host", fail_unless={}, warn_unless={"uniform": True})
    same = _host(*(_gpu(n, pcie=Pcie(width=16)) for n in range(3)))
    assert _one(same, check) == Result("pcie.width", "node", Status.PASS, 16, "all the same")
    odd = _one(_host(*same.gpus, _gpu(3, pcie=Pcie(width=8))), check)  # type: ignore[misc]
    assert (odd.status, odd.measured) == (Status.WARN, "gpu3 8; the others 16")
    hidden = _gpu(3, pcie=Pcie(width=Missing("unreadable", "Unknown Error")))
    unknown = _one(_host(*same.gpus, hidden), check)  # type: ignore[misc]
    assert (unknown.status, unknown.subject) == (Status.ERROR, "gpu3")
    assert unknown.reason == "Unknown Error"
    none = _gpu(3, pcie=Pcie(width=Missing("not-applicable", "N/A")))
    skipped = _one(_host(*same.gpus, none), check)  # type: ignore[misc]
    assert (skipped.status, skipped.subject) == (Status.SKIP, "node")


def test_too_few_to_compare_is_no_pass() -> None:
    wanted = {"outlier": {"mad": 5, "at_least": 0.08, "of": 4}}
    check = Check("x", "X", fact="gpus[*].power.draw_w", across="host", warn_unless=wanted)
    host = _host(*(_gpu(index, power=Power(draw_w=700.0)) for index in range(3)))
    found = _one(host, check)
    assert (found.status, found.reason) == (Status.SKIP, "3 to compare, and it takes 4")


def test_an_outlier_across_a_host() -> None:
    wanted = {"outlier": {"mad": 5, "at_least": 0.08, "of": 4}}
    check = replace(WIDTH, fact="gpus[*].power.draw_w", across="host", fail_unless=wanted)
    draws = (700.0, 698.0, 702.0, 699.0, 400.0)
    found = _one(_host(*(_gpu(n, power=Power(draw_w=w)) for n, w in enumerate(draws))), check)
    assert (found.status, found.measured) == (Status.FAIL, "gpu4 400 W; the median 699 W")


def test_presence() -> None:
    check = replace(WIDTH, fail_unless={"present": True})
    absent = Missing("not-applicable", "N/A")
    assert _one(_host(_gpu(0, pcie=Pcie(width=8))), check).status is Status.PASS
    assert _one(_host(_gpu(0, pcie=Pcie(width=absent))), check).status is Status.FAIL
    unknown = Missing("timeout", "hung")
    assert _one(_host(_gpu(0, pcie=Pcie(width=unknown))), check).status is Status.ERROR


def test_a_value_of_another_type_fails_rather_than_raises() -> None:
    check = replace(WIDTH, fact="gpus[*].product")
    assert _one(_host(_gpu(0, product="H100")), check).status is Status.FAIL


def test_text_from_a_host_is_made_safe() -> None:
    check = replace(WIDTH, fact="gpus[*].product", fail_unless={"equals": "H100"})
    found = _one(_host(_gpu(0, product="\x1b[31mH100\x07")), check)
    assert found.measured == "\\x1b[31mH100\\x07"


def test_set_changes_a_threshold_and_is_strict() -> None:
    (changed,) = overrides.apply([WIDTH], [overrides.parse("pcie.width=8")])
    assert changed.fail_unless == {"min": 8}
    for text in ("pcie.widht=8", "pcie.width=wide", "pcie.width", "pcie.width.warn=8", "=8"):
        with pytest.raises(UsageError):
            overrides.apply([WIDTH], [overrides.parse(text)])
    both = replace(WIDTH, warn_unless={"min": 16})
    with pytest.raises(UsageError, match="one to fail"):
        overrides.apply([both], [Override("pcie.width", 8, "--set")])
    (changed,) = overrides.apply([both], [Override("pcie.width.warn", 4, "--set")])
    assert (changed.warn_unless, changed.fail_unless) == ({"min": 4}, {"min": 16})


def test_a_stated_threshold_is_never_skipped() -> None:
    (stated,) = overrides.apply([WIDTH], [overrides.parse("pcie.width=8")])
    assert _one(Host("node"), WIDTH).status is Status.SKIP
    assert _one(Host("node"), stated).status is Status.ERROR


def test_only_and_skip_choose_by_glob_and_refuse_what_fits_nothing() -> None:
    checks = [WIDTH, replace(WIDTH, id="gpu.count"), replace(WIDTH, id="x.y", level="full")]
    assert [c.id for c in overrides.select(checks, only=["gpu.*"])] == ["gpu.count"]
    assert [c.id for c in overrides.select(checks, skip=["gpu.*"], level="quick")] == ["pcie.width"]
    with pytest.raises(UsageError, match=r"gpu\.cuont"):
        overrides.select(checks, only=["gpu.cuont"])


PRESENT = replace(WIDTH, id="gpu.present", rule="gpu-present", fact="gpu_inventory.on_pci")
NONE = GpuInventory(on_pci=0, listed=0, other_vendors=("an AMD GPU",))


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ({}, Status.SKIP),
        ({"asked": True}, Status.ERROR),
        ({"asked": True, "stated": True}, Status.FAIL),
    ],
)
def test_no_gpu_is_as_bad_as_the_question(row: dict[str, bool], status: Status) -> None:
    found = _one(Host("node", gpu_inventory=NONE), replace(PRESENT, row=row))
    assert (found.status, found.reason) == (status, "no NVIDIA GPU on PCI; there is an AMD GPU")


def test_a_gpu_on_pci_or_in_the_list_is_a_gpu() -> None:
    for inventory in (GpuInventory(on_pci=8), GpuInventory(on_pci=0, listed=1)):
        assert _one(Host("node", gpu_inventory=inventory), PRESENT).status is Status.PASS


def test_a_throttle_reason_named_elsewhere_is_not_told_twice() -> None:
    check = replace(
        WIDTH, fact="gpus[*].throttle.hw_slowdown", fail_unless={"equals": False},
        where={".throttle.hw_power_brake": {"not": True}},
    )  # fmt: skip
    named = _gpu(0, throttle=Throttle(hw_slowdown=True, hw_power_brake=True))
    unnamed = _gpu(1, throttle=Throttle(hw_slowdown=True, hw_power_brake=False))
    statuses = [one.status for one in judge(_host(named, unnamed), [check])]
    assert statuses == [Status.SKIP, Status.FAIL]
