"""Which value a result that is no pass asks for: the declared one, the threshold, a profile's."""

from __future__ import annotations

from typing import Any

import pytest

from preflight.collect import examine
from preflight.judge import overrides
from preflight.judge.advice import target, typed, value_of
from preflight.judge.check_faults import faults
from preflight.judge.load import load
from preflight.model import Check, Raw, Result, Status
from preflight.settings.wanted import ByHand, Wanted, wanted
from preflight.writable import faults as set_faults
from tests.parameters_text import BASES, PARAMETERS

CHECKS = load(("system", "parameters"), hold=True).checks
DRIVER = "cpu.driver acpi-cpufreq\n"
SETTABLE = {check.id: check for check in CHECKS if check.set}


def _wanted(text: str, *stated: str, container: bool = False) -> Wanted:
    checks = overrides.apply(CHECKS, map(overrides.parse, stated))
    answers = {**BASES["parameters"], "sysctls": text}
    if container:
        answers["identity"] = "hostname node-07\ncontainer_file /.dockerenv\nuid 0\n"
    raws = [Raw("node-07", probe, ("sh",), 0, answer) for probe, answer in answers.items()]
    return wanted(checks, examine("node-07", raws, checks).results)


def _values(found: Wanted) -> dict[str, str]:
    return {one.name: one.value for one in found.changes}


def test_what_passes_is_left_alone() -> None:
    assert _wanted(PARAMETERS).changes == ()


@pytest.mark.parametrize(
    ("before", "after", "name", "value"),
    [
        ("swappiness:1", "swappiness:60", "vm.swappiness", "1"),
        ("somaxconn:65535", "somaxconn:128", "net.core.somaxconn", "65535"),
        ("overcommit_memory:0", "overcommit_memory:2", "vm.overcommit_memory", "0"),
        ("count:262144", "count:1024", "vm.max_map_count", "262144"),
        ("131072\t6291456", "131072\t9", "net.ipv4.tcp_rmem", "4096 131072 4194304"),
        ("governor performance", "governor mixed", "cpu.governor", "performance"),
        ("[madvise] never\nthp.defrag", "madvise [never]\nthp.defrag", "thp.enabled", "madvise"),
        ("boost 1", "boost 0", "cpu.boost", "1"),
    ],
)
def test_the_value_of_one_that_does_not(before: str, after: str, name: str, value: str) -> None:
    assert before in PARAMETERS
    assert _values(_wanted(PARAMETERS.replace(before, after))) == {name: value}


@pytest.mark.parametrize(
    ("stated", "name", "value"),
    [
        ("system.sysctl.max_map_count=1000000", "vm.max_map_count", "1000000"),
        ("system.sysctl.swappiness=0", "vm.swappiness", "0"),
        ("system.sysctl.somaxconn=131072", "net.core.somaxconn", "131072"),
        ("system.sysctl.tcp_wmem=67108864", "net.ipv4.tcp_wmem", "4096 16384 67108864"),
        ("system.sysctl.thp_enabled=never", "thp.enabled", "never"),
        ("system.sysctl.overcommit_memory=[1]", "vm.overcommit_memory", "1"),
        ("system.sysctl.governor=schedutil", "cpu.governor", "schedutil"),
    ],
)
def test_a_site_decides_the_value(stated: str, name: str, value: str) -> None:
    assert _values(_wanted(PARAMETERS, stated)) == {name: value}


def test_a_value_that_no_file_may_hold_is_never_written() -> None:
    found = _wanted(PARAMETERS, 'system.sysctl.governor="x\'; reboot"')
    assert found.changes == ()
    assert "no value that can be written" in str(found.left_out)


def test_in_a_container_what_is_of_the_host_is_left_out() -> None:
    text = PARAMETERS.replace("swappiness:1", "swappiness:60").replace(":65535", ":128")
    found = _wanted(text, container=True)
    assert set(_values(found)) == {"net.core.somaxconn", "net.ipv4.tcp_max_syn_backlog"}
    left = {one.name: one.reason for one in found.left_out}
    assert left["vm.swappiness"] == "belongs to the host, not to a container"
    assert left["cpu.governor"] == "belongs to the host, not to a container"


def test_a_virtual_machine_without_a_governor() -> None:
    found = _wanted(PARAMETERS.replace("cpu.governor performance\n", ""))
    assert found.changes == ()
    assert ("cpu.governor", "it has no cpu.governor") in [
        (one.name, one.reason) for one in found.left_out
    ]


@pytest.mark.parametrize("name", SETTABLE)
def test_every_value_passes_its_own_check(name: str) -> None:
    """Else --apply would not mend what it is for."""
    check = SETTABLE[name]
    kind, parameter = target(check)
    value = value_of(check)
    if kind == "limit":
        pytest.skip("a limit is of the next login")
    line = f"{parameter} {value}" if kind == "sysfs" else f"{parameter.replace('.', '/')}:{value}"
    raws = [
        Raw("node-07", probe, ("sh",), 0, answer)
        for probe, answer in {**BASES["parameters"], "sysctls": f"{DRIVER}{line}\nend\n"}.items()
    ]
    (one,) = examine("node-07", raws, [check]).results
    assert one.status.value == "PASS"


ENTRY: dict[str, Any] = {
    "id": "site.x", "title": "x", "fact": "sysctls[vm.swappiness].number", "why": "x",
    "fix": ["x"], "action": "none", "runbook": "kernel-parameters", "warn_unless": {"max": 1},
}  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"sysctl": "vm.swappiness"}, None),
        ({"sysctl": "vm.swappiness", "value": "1"}, None),
        ({"limit": "nofile"}, None),
        ({"limit": "memlock", "value": "unlimited"}, None),
        ({"limit": "memlock", "value": "65536"}, "memlock is unlimited"),
        ({"limit": "memlock"}, "memlock is unlimited"),
        ({"sysctl": "kernel.core_pattern"}, "none that preflight may write"),
        ({"sysfs": "/sys/x"}, "none that preflight may write"),
        ({"sysctl": "vm.swappiness", "limit": "nofile"}, "it is {sysctl: NAME}"),
        ({"value": "1"}, "it is {sysctl: NAME}"),
        ({"sysctl": "vm.swappiness", "to": "1"}, "it is {sysctl: NAME}"),
        ({"sysctl": "vm.swappiness", "value": 1}, "no short text"),
        ({"sysctl": "vm.swappiness", "value": "$(reboot)"}, "no short text"),
    ],
)
def test_the_key_set_is_held_against_what_may_be_written(
    declared: dict[str, Any], said: str | None
) -> None:
    found = list(faults({**ENTRY, "set": declared}))
    assert (said is None) == (found == [])
    assert said is None or said in found[0]
    assert [f"set: {one}" for one in set_faults(declared)] == found


@pytest.mark.parametrize(
    ("declared", "unless", "value"),
    [
        ({"limit": "nofile"}, {"min": 1048576}, "1048576"),
        ({"limit": "nofile", "value": "1048576"}, {"min": 65536}, "1048576"),
        ({"limit": "nofile", "value": "1048576"}, {"min": 2097152}, "2097152"),
        ({"limit": "memlock", "value": "unlimited"}, {"min": 68719476736}, "unlimited"),
        ({"limit": "memlock", "value": "unlimited"}, {"equals": "unlimited"}, "unlimited"),
    ],
)
def test_the_value_of_a_limit(declared: dict[str, str], unless: dict[str, Any], value: str) -> None:
    check = Check("site.x", "x", fact="site.limit.number", warn_unless=unless, set=declared)
    assert value_of(check) == value


def test_a_check_without_set_is_never_changed() -> None:
    check = Check("site.x", "x", fact="sysctls[vm.swappiness].number", warn_unless={"max": 1},
                  fix=("echo 1", "echo 2"))  # fmt: skip
    raws = [Raw("node-07", "sysctls", ("sh",), 0, "vm/swappiness:60\nend\n")]
    found = wanted([check], examine("node-07", raws, [check]).results)
    assert found == Wanted(by_hand=(ByHand("site.x", "echo 1"),))


def _judged(identifier: str, status: Status, reason: str = "") -> Result:
    return Result(identifier, "node-07", status, reason=reason, fix=("first", "second"))


def test_of_two_checks_on_one_limit_one_may_be_skipped() -> None:
    """What is set is not told as not set."""
    skipped = _judged("system.limits.nofile_hard", Status.SKIP, "not in the input")
    failed = _judged("system.limits.nofile", Status.WARN)
    for results in ([skipped, failed], [failed, skipped]):
        found = wanted(CHECKS, results)
        assert _values(found) == {"nofile": "1048576"}
        assert found.left_out == ()


def test_what_is_not_set_is_told_and_what_is_not_known_too() -> None:
    results = [
        _judged("system.limits.stack", Status.WARN),
        _judged("system.disk.space", Status.FAIL),
        _judged("system.disk.space", Status.FAIL),
        _judged("system.limits.nproc", Status.WARN),
        _judged("system.sysctl.swappiness", Status.ERROR, "permission denied"),
        _judged("system.sysctl.boost", Status.SKIP, "it has no cpu.boost"),
    ]
    found = wanted(CHECKS, results)
    assert found.by_hand == (ByHand("system.limits.stack", "first"),
                             ByHand("system.disk.space", "first"))  # fmt: skip
    assert found.undetermined == ("vm.swappiness",)
    assert _values(found) == {"nproc": "unlimited"}


@pytest.mark.parametrize("stated", ["", "system.limits.nofile=2000000"])
@pytest.mark.parametrize("name", SETTABLE)
def test_the_advice_types_the_value_that_is_set(name: str, stated: str) -> None:
    checks = overrides.apply(CHECKS, map(overrides.parse, filter(None, [stated])))
    check = next(one for one in checks if one.id == name)
    value, text = value_of(check), " ".join(typed(check))
    assert value in text
    assert "VALUE" not in text
    assert "THRESHOLD" not in text


def test_a_stated_threshold_stands_in_the_advice() -> None:
    (check,) = overrides.apply(
        [SETTABLE["system.sysctl.tcp_rmem"]], [overrides.parse("system.sysctl.tcp_rmem=67108864")]
    )
    raws = [Raw("n", "sysctls", ("sh",), 0, "net/ipv4/tcp_rmem:4096 131072 9\nend\n")]
    (one,) = examine("n", raws, [check]).results
    assert one.fix[0] == "sudo sysctl -w net.ipv4.tcp_rmem='4096 131072 67108864'"


def test_only_what_is_set_has_a_value_to_type() -> None:
    for check in CHECKS:
        assert check.set or not any("VALUE" in step for step in check.fix), check.id
