"""Who is odd among many hosts: by majority, by distance from the median, by absence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from preflight.errors import UsageError
from preflight.facts.gpu import Gpu, Temperature
from preflight.facts.host import Cpu, Host, HostMemory
from preflight.facts.host_memory import Dimm, Dimms
from preflight.judge.evidence import Lines
from preflight.judge.fleet import judge_fleet
from preflight.judge.overrides import apply, parse
from preflight.judge.readings import Readings, readings
from preflight.model import Check, Known, Missing, Raw, Result, Status

KERNEL = Check("fleet.os", "One system", fact="os", across="fleet", warn_unless={"uniform": True})
VBIOS = Check(
    "fleet.vbios", "One VBIOS", fact="gpus[*].vbios", across="fleet", like=(".product",),
    fail_unless={"uniform": True},
)  # fmt: skip
DIMMS = Check(
    "fleet.dimms", "Modules", fact="dimms.fitted[*].size_gib", across="fleet", like=(".name",),
    everywhere=True, warn_unless={"uniform": True},
)  # fmt: skip
MEMORY = Check(
    "fleet.m", "M", fact="memory.total_bytes", across="fleet",
    fail_unless={"uniform": {"within": 0.02}},
)  # fmt: skip
SPREAD = {"outlier": {"mad": 5, "at_least": 0.25, "of": 4}}
HEAT = Check(
    "fleet.heat", "Heat", fact="gpus[*].temperature.gpu_c", across="fleet", like=(".name",),
    warn_unless=SPREAD,
)  # fmt: skip
TIMEOUT = Missing("timeout", "cat did not end within 10 s")


def gpu(index: int, product: Known[str] = "H100", vbios: Known[str] = "96.1", **more: Any) -> Gpu:
    bus = f"00000000:{index:02x}:00.0"
    return Gpu(index, f"gpu{index}", bus, product=product, vbios=vbios, **more)


def gpus(name: str, *vbios: str, product: Known[str] = "H100") -> Host:
    return Host(name, gpus=tuple(gpu(at, product, one) for at, one in enumerate(vbios)))


def systems(*told: Known[str]) -> list[Host]:
    return [Host(f"node{number:03}", os=one) for number, one in enumerate(told, 1)]


def hot(name: str, *celsius: int) -> Host:
    return Host(
        name,
        gpus=tuple(gpu(at, temperature=Temperature(gpu_c=c)) for at, c in enumerate(celsius)),
    )


def read(hosts: Sequence[Host], check: Check) -> list[Readings]:
    """Through the form in which they travel between processes."""
    found = [readings(host, [check], Lines([])) for host in hosts]
    return msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=list[Readings])


def compared(hosts: Sequence[Host], check: Check) -> list[Result]:
    return judge_fleet(read(hosts, check), [check])


def one(hosts: Sequence[Host], check: Check) -> Result:
    (found,) = compared(hosts, check)
    return found


# Majority


def test_the_odd_hosts_are_named_folded_and_what_the_others_have() -> None:
    hosts = systems(*["22.04"] * 128)
    for at in (3, 7):
        hosts[at - 1] = Host(f"node{at:03}", os="24.04")
    found = one(hosts, KERNEL)
    assert (found.subject, found.status) == ("node[003,007]", Status.WARN)
    assert found.measured == "24.04; the other 126 have 22.04"
    assert found.expected == "all the same"


def test_each_odd_value_is_a_result_of_its_own() -> None:
    found = compared(systems("a", "a", "a", "a", "a", "b", "c", "b"), KERNEL)
    assert [(each.subject, each.measured) for each in found] == [
        ("node[006,008]", "b; 5 others have a"),
        ("node007", "c; 5 others have a"),
    ]


def test_a_hundred_odd_values_are_few_results() -> None:
    found = compared(systems(*["usual"] * 101, *map(str, range(100))), KERNEL)
    assert len(found) == 9
    assert "and 87 more; 101 others have usual" in str(found[-1].measured)


def test_without_a_majority_it_is_mixed_the_most_frequent_first() -> None:
    found = one(systems("b", "a", "a", "c"), KERNEL)
    assert (found.subject, found.status) == ("node[001-004]", Status.WARN)
    assert found.measured == "mixed: a on node[002-003]; b on node001; c on node004"


def test_of_two_that_differ_both_are_named() -> None:
    found = one(systems("a", "b"), KERNEL)
    assert (found.subject, found.measured) == ("node[001-002]", "mixed: a on node001; b on node002")


def test_many_hosts_of_a_mix_are_counted_not_listed() -> None:
    hosts = [Host(f"n{'ab'[at % 2]}x{at * 7}y", os="ab"[at % 2]) for at in range(200)]
    assert one(hosts, KERNEL).measured == "mixed: a on 100 hosts; b on 100 hosts"


def test_all_alike_pass_with_the_value() -> None:
    found = one(systems("a", "a", "a"), KERNEL)
    assert (found.status, found.measured, found.subject) == (Status.PASS, "a", "node[001-003]")


def test_true_is_not_one() -> None:
    cpus = Check("fleet.c", "C", fact="cpu.cpus", across="fleet", fail_unless={"uniform": True})
    hosts = [Host(f"n{at}", cpu=Cpu(cpus=number)) for at, number in enumerate((1, 1, 1, True))]
    assert one(hosts, cpus).subject == "n3"


# What is not known


def test_pass_says_how_many_were_compared() -> None:
    found = one(systems(*["a"] * 126, TIMEOUT, Missing("denied", "no")), KERNEL)
    assert (found.status, found.measured) == (Status.PASS, "a on 126 of 128 hosts")


def test_a_host_that_gave_no_answer_counts_among_those_not_compared() -> None:
    read_ = [*read(systems("a", "a"), KERNEL), Readings("dead")]
    (found,) = judge_fleet(read_, [KERNEL])
    assert found.measured == "a on 2 of 3 hosts"


def test_what_cannot_be_read_is_no_error_of_the_fleet_and_never_passes() -> None:
    found = one(systems("a", TIMEOUT, TIMEOUT), KERNEL)
    assert found.status is Status.SKIP
    assert "only one host tells it" in found.reason
    assert TIMEOUT.text in found.reason
    assert one(systems(TIMEOUT, TIMEOUT), KERNEL).status is Status.SKIP


def test_an_odd_host_is_seen_beside_others_that_cannot_be_read() -> None:
    assert one(systems("a", "a", "a", "b", TIMEOUT), KERNEL).subject == "node004"


@pytest.mark.parametrize("count", [0, 1])
def test_one_host_is_compared_with_none(count: int) -> None:
    assert compared(systems(*["a"] * count), KERNEL) == []
    assert judge_fleet([*read(systems(*["a"] * count), KERNEL), Readings("dead")], [KERNEL]) == []


def test_other_checks_are_not_judged_here() -> None:
    host = Check("x", "X", fact="os", fail_unless={"equals": "a"})
    assert judge_fleet(read(systems("a", "b"), KERNEL), [host]) == []


def test_when_and_where_leave_out_of_the_comparison() -> None:
    when = msgspec.structs.replace(KERNEL, when={"container": "none"})
    hosts = [
        Host(name, os=told, container=container)
        for name, told, container in (
            ("n1", "a", "none"), ("n2", "a", "none"), ("n3", "b", "docker"),
        )
    ]  # fmt: skip
    assert one(hosts, when).measured == "a on 2 of 3 hosts"
    where = msgspec.structs.replace(VBIOS, where={".product": "H100"}, like=())
    mixed = [gpus("n1", "1"), gpus("n2", "1"), gpus("n3", "2", product="A100")]
    assert one(mixed, where).status is Status.PASS
    assert one(mixed, msgspec.structs.replace(VBIOS, like=())).subject == "n3 gpu0"


# Elements


def test_elements_are_pooled_over_all_hosts() -> None:
    hosts = [gpus(f"node{at:02}", *["1"] * 8) for at in range(1, 10)]
    hosts[6] = gpus("node07", "1", "1", "1", "2", *["1"] * 4)
    found = one(hosts, VBIOS)
    assert (found.subject, found.measured) == ("node07 gpu3", "2; the other 71 have 1")
    hosts[6], hosts[8] = gpus("node07", *["2"] * 8), gpus("node09", *["2"] * 8)
    assert one(hosts, VBIOS).subject == "node[07,09] gpu[0-7]"


def test_only_what_is_alike_is_compared() -> None:
    hosts = [
        gpus("a1", "1", "1"), gpus("a2", "1", "1"),
        gpus("b1", "7", "7", product="A100"), gpus("b2", "7", "7", product="A100"),
    ]  # fmt: skip
    assert one(hosts, VBIOS).status is Status.PASS
    hosts.append(gpus("b3", "7", "8", product="A100"))
    found = one(hosts, VBIOS)
    assert (found.subject, found.measured) == ("b3 gpu1", "8; the other 5 have 7")
    assert "product A100" in found.reason


def test_where_no_two_are_alike_nothing_passes() -> None:
    found = one([gpus("a", "1"), gpus("b", "1", product="A100")], VBIOS)
    assert found.status is Status.SKIP
    assert "no two of 2 hosts are alike in product" in found.reason


def test_what_may_be_like_is_compared_with_everybody() -> None:
    unknown = Missing("exited", "nvidia-smi exited with 9")
    hosts = [gpus("a1", "1"), gpus("a2", "1"), gpus("a3", "1"), gpus("x", "2", product=unknown)]
    assert one(hosts, VBIOS).subject == "x gpu0"
    hosts[3] = gpus("x", "1", product=unknown)
    assert one(hosts, VBIOS).measured == "1"


def test_a_host_without_is_odd_among_hosts_that_have() -> None:
    count = Check(
        "fleet.n", "N", fact="memory.total_bytes", across="fleet", like=("cpu.model",),
        fail_unless={"uniform": True},
    )  # fmt: skip
    cpu = Cpu(model="EPYC")
    hosts = [Host(f"n{at}", cpu=cpu, memory=HostMemory(total_bytes=8)) for at in range(4)]
    hosts.append(Host("bare", memory=HostMemory(total_bytes=0)))
    assert one(hosts, count).subject == "bare"


def slots(name: str, **size_gib: float) -> Host:
    return Host(name, dimms=Dimms(tuple(Dimm(slot, size_gib=of) for slot, of in size_gib.items())))


def test_elements_of_a_name_are_compared_and_an_absent_one_is_odd() -> None:
    hosts = [slots(f"n{at}", A=64.0, B=32.0) for at in range(1, 6)]
    assert one(hosts, DIMMS).status is Status.PASS
    hosts[1] = slots("n2", A=64.0)
    found = one(hosts, DIMMS)
    assert (found.subject, found.measured) == ("n2 B", "absent; the other 4 have 32")
    hosts[1] = slots("n2", A=64.0, B=64.0)
    assert one(hosts, DIMMS).measured == "64; the other 4 have 32"
    hosts[1] = slots("n2")
    assert {each.subject for each in compared(hosts, DIMMS)} == {"n2 A", "n2 B"}


def test_what_only_some_have_and_what_was_not_read_is_not_absent() -> None:
    hosts = [slots(f"n{at}", A=64.0) for at in range(1, 6)]
    hosts[0] = slots("n1", A=64.0, B=32.0)
    hosts[1] = Host("n2", dimms=Missing("denied", "only root may"))
    found = one(hosts, DIMMS)
    assert (found.status, found.measured) == (Status.PASS, "64 on 4 of 5 hosts")


# Distance from the median


def test_both_tails_are_told() -> None:
    for odd in (91, 20):
        hosts = [hot(f"n{at}", 50 + at % 3, 60 + (at > 1) + (at > 7)) for at in range(10)]
        hosts[4] = hot("n4", 51, odd)
        found = one(hosts, HEAT)
        assert (found.subject, found.status) == ("n4 gpu1", Status.WARN)
        assert found.measured == f"{odd} C; the median 61 C"


def test_all_outliers_are_one_result() -> None:
    hosts = [hot(f"n{at}", *[50 + at % 3] * 8) for at in range(10)]
    hosts[4] = hot("n4", *range(85, 93))
    found = one(hosts, HEAT)
    assert (found.subject, found.measured) == ("n4 gpu[0-7]", "85 to 92 C; the median 51 C")
    assert "n4 gpu0 85 C, median 51 C" in found.reason
    assert "; and 3 more" in found.reason


def test_the_spread_of_a_sound_fleet_is_no_alarm() -> None:
    # 5 % between GPUs, as bandwidth and clocks have it, and the 10 degrees between slots.
    hosts = [
        hot(f"n{at}", *(50 + (at * 7 + slot * 3) % 11 for slot in range(8))) for at in range(9)
    ]
    assert one(hosts, HEAT).status is Status.PASS
    bandwidth = Check(
        "fleet.b", "B", fact="memory.total_bytes", across="fleet", fail_unless={
            "outlier": {"mad": 5, "at_least": 0.08, "of": 4}
        },
    )  # fmt: skip
    spread = [Host(f"n{at}", memory=HostMemory(total_bytes=1000 + 5 * at)) for at in range(11)]
    assert one(spread, bandwidth).status is Status.PASS
    spread[5] = Host("n5", memory=HostMemory(total_bytes=900))
    assert one(spread, bandwidth).subject == "n5"


def test_too_few_are_not_judged() -> None:
    found = one([hot("n1", 50), hot("n2", 90)], HEAT)
    assert (found.status, found.reason) == (Status.SKIP, "2 to compare, and it takes 4")


def test_slots_are_compared_with_the_same_slot() -> None:
    hosts = [hot(f"n{at}", 40, 40, 40, 40, 40, 75) for at in range(6)]
    assert one(hosts, HEAT).status is Status.PASS


# Values that are close together


def sizes(*gib: float) -> list[Host]:
    memory = [HostMemory(total_bytes=int(each * (1 << 30))) for each in gib]
    return [Host(f"n{at}", memory=each) for at, each in enumerate(memory, 1)]


@pytest.mark.parametrize(
    ("gib", "subject", "told"),
    [
        ((2014, 2015, 2016, 1007), "n4", "1,007 GiB; the other 3 have 1.97 TiB"),
        ((2015, 2015, 1007), "n3", "1,007 GiB; the other 2 have 1.97 TiB"),
        ((503, 503, 1007), "n3", "1,007 GiB; the other 2 have 503 GiB"),
        ((2015, 1007), "n[1-2]", "mixed: 1,007 GiB on n2; 1.97 TiB on n1"),
        ((2014, 2015, 1006, 1007), "n[1-4]",
         "mixed: 1,006 GiB to 1,007 GiB on n[3-4]; 1.97 TiB on n[1-2]"),
    ],
)  # fmt: skip
def test_half_of_the_memory_is_told_of_any_number_of_hosts(
    gib: tuple[float, ...], subject: str, told: str
) -> None:
    found = one(sizes(*gib), MEMORY)
    assert (found.subject, found.status) == (subject, Status.FAIL)
    assert found.measured == told
    assert found.expected == "all within 2%"


def test_what_kernels_keep_for_themselves_is_no_difference() -> None:
    found = one(sizes(2015, 2014, 2012.5, 2010), MEMORY)
    assert (found.status, found.expected) == (Status.PASS, "all within 2%")
    assert found.measured == "1.96 TiB to 1.97 TiB"


# A stated value


def stated(text: str, check: Check = KERNEL) -> Check:
    (found,) = apply([check], [parse(f"{check.id}={text}")])
    return found


def test_a_stated_value_stands_in_place_of_the_majority() -> None:
    found = one(systems("22.04", "22.04", "24.04"), stated("'24.04'"))
    assert (found.subject, found.status) == ("node[001-002]", Status.WARN)
    assert (found.measured, found.expected) == ("22.04; 24.04 was stated", "24.04")
    assert one(systems("24.04", "24.04"), stated("'24.04'")).status is Status.PASS


def test_advice_is_to_bring_hosts_to_what_was_stated() -> None:
    check = msgspec.structs.replace(stated("'24.04'"), fix=("look", "install that of the others"))
    found = one(systems("22.04", "22.04", "24.04"), check)
    assert found.fix == ("bring the hosts to what was stated: 24.04", "look")


def test_a_stated_value_is_held_against_one_host_and_is_never_skipped() -> None:
    check = stated("'24.04'")
    assert one(systems("22.04"), check).subject == "node001"
    assert one(systems("24.04"), check).status is Status.PASS
    found = one(systems("24.04", TIMEOUT), check)
    assert (found.subject, found.status, found.reason) == ("node002", Status.ERROR, TIMEOUT.text)


def test_a_stated_size_is_met_closely() -> None:
    check = stated(str(2015 << 30), MEMORY)
    assert one(sizes(2014, 2016), check).status is Status.PASS
    found = one(sizes(1007, 1007), check)
    assert (found.subject, found.measured) == ("n[1-2]", "1,007 GiB; 1.97 TiB was stated")


def test_a_value_that_the_fact_never_has_is_refused_with_what_to_type() -> None:
    with pytest.raises(UsageError) as refused:
        stated("24.04")
    assert "--set \"fleet.os='1.10'\"" in str(refused.value.hint)
    with pytest.raises(UsageError, match="never has such a value"):
        stated("much", MEMORY)


# Evidence, size


def test_the_line_of_the_odd_value_is_shown_with_its_host() -> None:
    memory = Check(
        "fleet.m", "M", fact="memory.total_bytes", across="fleet", fail_unless={"uniform": True}
    )
    found, told = [], set[Any]()
    for at, size in enumerate((8, 8, 8, 9, 9)):
        raw = Raw(f"n{at}", "meminfo", ("cat",), 0, f"MemTotal: {size} kB\n")
        fact = HostMemory(total_bytes=size, line=1, probe="meminfo")
        found.append(readings(Host(f"n{at}", memory=fact), [memory], Lines([raw]), told))
    (result,) = judge_fleet(found, [memory])
    assert result.subject == "n[3-4]"
    assert [each.text for each in result.evidence] == ["n3: MemTotal: 9 kB"]
    # One line for each value is looked up, not one for each host.
    assert [one.of[0].evidence is None for one in found] == [False, True, True, False, True]


def test_readings_are_small() -> None:
    (found,) = read([gpus("n1", *["96.00.74.00.01"] * 8)], VBIOS)
    (reading,) = found.of
    assert reading.subjects == tuple(f"gpu{at}" for at in range(8))
    (long,) = read([Host("n1", os="x" * 100_000)], KERNEL)
    assert len(msgspec.msgpack.encode(long)) < 300


def test_a_number_beyond_all_machines_is_odd_and_no_error() -> None:
    memory = Check(
        "fleet.m", "M", fact="memory.total_bytes", across="fleet", fail_unless={"uniform": True}
    )
    hosts = [Host(f"n{at}", memory=HostMemory(total_bytes=8)) for at in range(3)]
    assert one([*hosts, Host("x", memory=HostMemory(total_bytes=10**21))], memory).subject == "x"


def test_long_texts_that_differ_at_their_end_differ() -> None:
    assert (
        one(systems("x" * 500 + "a", "x" * 500 + "a", "x" * 500 + "b"), KERNEL).subject == "node003"
    )


def test_text_of_a_host_is_made_safe() -> None:
    found = one(systems("a", "a", "\x1b[2Jb"), KERNEL)
    assert "\x1b" not in str(found.measured)
