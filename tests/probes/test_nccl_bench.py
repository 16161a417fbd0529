"""What the bundled bench of collectives tells: tables, and which host or link is slow."""

from __future__ import annotations

import json
from typing import Any

import pytest

from preflight.collect import examine, examine_one_of_many
from preflight.errors import ParseError
from preflight.facts.collectives import Collective, Localisation, LocateTest, Side
from preflight.facts.host import Host
from preflight.facts.nics import NicPort
from preflight.judge import overrides
from preflight.judge.load import load
from preflight.judge.located import judge_located
from preflight.model import HostReport, Missing, Raw, Result, Status
from preflight.probes.collectives.bench import bench
from preflight.probes.collectives.job import lost_of, told_to_each
from preflight.probes.collectives.lines import said
from tests.conftest import sample

Line = dict[str, Any]
HOSTS = ["h1", "h2", "h3", "h4"]


def lines(name: str) -> list[Line]:
    return [json.loads(one) for one in sample(f"nccl_bench/{name}.jsonl").splitlines()]


def written(told: list[Line]) -> str:
    return "".join(f"{json.dumps(one)}\n" for one in told)


def judged(text: str, host: str = "input") -> HostReport:
    checks = load(("collectives",)).checks
    return examine(host, [Raw(host, "nccl-bench", stdout=text)], checks)


def statuses(report: HostReport) -> dict[str, Status]:
    return {one.check: one.status for one in report.results}


def test_a_table_is_like_one_of_nccl_tests() -> None:
    reduced, gathered = bench(sample("nccl_bench/one_host.jsonl")).runs
    assert (reduced.name, reduced.ranks, gathered.collective) == ("all_reduce", 2, "all_gather")
    assert reduced.tool == "torch 2.13.0+cpu, gloo"
    (small, *_) = reduced.rows
    assert isinstance(small.in_place, Side) and isinstance(small.out_of_place, Missing)
    # Of two ranks 2(n-1)/n is 1, and (n-1)/n a half.
    assert small.in_place.busbw_gbps == pytest.approx(small.in_place.algbw_gbps)
    side = gathered.rows[-1].out_of_place
    assert isinstance(side, Side)
    assert side.busbw_gbps == pytest.approx(side.algbw_gbps / 2)
    assert side.algbw_gbps == pytest.approx(16777216 / side.time_us / 1e3)


def test_variables_of_the_ranks_are_told_with_what_was_asked_for() -> None:
    told = lines("one_host")
    told[0]["environment"] = {"NCCL_IB_HCA": "mlx5_9", "NCCL_ALGO": "Ring"}
    assert bench(written(told)).runs[0].variables == ("NCCL_ALGO=Ring", "NCCL_IB_HCA=mlx5_9")
    told[0]["plan"]["nics"] = "=mlx5_0"
    assert bench(written(told)).runs[0].variables == ("NCCL_ALGO=Ring", "NCCL_IB_HCA==mlx5_0")


def test_processors_are_shown_and_not_judged() -> None:
    found = statuses(judged(sample("nccl_bench/one_host.jsonl")))
    assert found["collectives.wrong"] is Status.PASS
    assert found["collectives.busbw"] is Status.SKIP
    assert found["collectives.host"] is Status.SKIP


def test_a_wrong_sum_fails() -> None:
    told = lines("one_host")
    told[-2]["wrong"] = 3
    failed = [one for one in judged(written(told)).results if one.status is Status.FAIL]
    assert [(one.check, one.subject) for one in failed] == [("collectives.wrong", "all_gather")]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ({"kind": "died", "rank": 1, "status": -9, "of": "h2"}, "h2, rank 1 ended with -9"),
        ({"kind": "gone", "of": "h2", "text": "it is lost"}, "h2: it is lost"),
        ({"kind": "failed", "rank": 3, "text": "out of memory"}, "rank 3: out of memory"),
        ({"kind": "silent", "suspects": [1], "after_s": 60.0}, "rank 1 said nothing for 60 s"),
        ({"kind": "absent", "of": "h4"}, "h4 did not come"),
        ({"kind": "absent", "of": "h4", "text": "no GPU"}, "h4 did not come: no GPU"),
    ],
)
def test_what_stopped_it_is_named_and_what_came_before_is_kept(line: Line, text: str) -> None:
    told = lines("one_host")
    at = next(at for at, one in enumerate(told) if one.get("collective") == "all_gather")
    runs = bench(written([*told[:at], line, {"kind": "end"}])).runs
    assert [one.name for one in runs] == ["all_reduce"]
    assert (runs[0].ended, runs[0].trouble) == (False, text)
    assert len(runs[0].rows) == 3
    assert statuses(judged(written([*told[:at], line])))["collectives.ended"] is Status.FAIL


def test_only_the_slow_host_is_at_fault() -> None:
    text = sample("nccl_bench/slow_link_of_h3_h3.jsonl")
    (failed,) = [one for one in judged(text, "h3").results if one.status is Status.FAIL]
    assert (failed.check, failed.subject, failed.measured) == (
        "collectives.host", "h3", "75 % slower",
    )  # fmt: skip
    assert failed.reason.startswith("proved by test 2 (h3, h4): 0.011 GB/s; test 3 (h2, h3)")
    assert any(line.startswith("preflight run") and " h3 " in line for line in failed.fix)
    first = statuses(judged(sample("nccl_bench/slow_link_of_h3_h1.jsonl"), "h1"))
    assert Status.FAIL not in first.values()
    assert first["collectives.host"] is Status.PASS


def test_each_host_is_told_of_itself_and_the_ends_of_a_link_of_that() -> None:
    told = [one for one in lines("sound_h1") if one["kind"] not in ("job", "located")]
    found = next(one for one in told if one["kind"] == "found")
    runs = [{"culprit": ["h4"], "tests": [2]}, {"culprit": ["h1", "h2"], "tests": [1]}]
    found |= {"nodes": ["h4"], "links": [["h1", "h2"]], "runs": runs}
    by = told_to_each({"h1": written(told), "h2": "", "h3": "", "h4": ""})
    assert list(by) == HOSTS
    begin = next(one for one in told if one["kind"] == "begin")
    reports = {host: judged(written([begin, one]), host) for host, one in by.items()}
    failed = {
        host: [(one.check, one.subject) for one in each.results if one.status is Status.FAIL]
        for host, each in reports.items()
    }
    assert failed == {
        "h1": [("collectives.link", "h1 to h2")], "h2": [("collectives.link", "h1 to h2")],
        "h3": [], "h4": [("collectives.host", "h4")],
    }  # fmt: skip


def test_a_boundary_is_told_with_its_sides() -> None:
    told = [one for one in lines("sound_h1") if one["kind"] not in ("job", "located")]
    found = next(one for one in told if one["kind"] == "found")
    found |= {"boundary": [["h1", "h2"], ["h3", "h4"]],
              "runs": [{"culprit": ["boundary"], "tests": [3, 4]}]}  # fmt: skip
    (failed,) = [one for one in judged(written(told)).results if one.status is Status.FAIL]
    assert (failed.check, failed.subject) == ("collectives.boundary", "h[1-2] | h[3-4]")


def located(report: HostReport, kind: str = "host") -> Result:
    (one,) = [one for one in report.results if one.check == f"collectives.{kind}"]
    return one


def examined(text: str, host: str, *stated: str) -> HostReport:
    checks = overrides.apply(load(("collectives",)).checks, map(overrides.parse, stated))
    return examine(host, [Raw(host, "nccl-bench", stdout=text)], checks)


def test_how_slow_is_slow_can_be_set() -> None:
    slow = sample("nccl_bench/slow_link_of_h3_h3.jsonl")
    assert located(examined(slow, "h3")).expected == "at most 8 % below the others"
    assert located(examined(slow, "h3", "collectives.host=50")).status is Status.FAIL
    spared = located(examined(slow, "h3", "collectives.host=80"))
    assert (spared.status, spared.expected) == (Status.PASS, "at most 80 % below the others")
    finer = located(examined(sample("nccl_bench/sound_h2.jsonl"), "h2", "collectives.host=4"))
    assert finer.status is Status.ERROR
    assert "--set collectives.host=4" in finer.reason


def test_that_all_are_alike_is_told_with_how_fast_they_are() -> None:
    told = [one for one in lines("sound_h1") if one["kind"] not in ("job", "located")]
    passed = located(judged(written(told)))
    assert passed.status is Status.PASS
    assert "rounds, healthy ones at 0.0" in str(passed.measured)
    link = located(judged(written(told)), "link")
    assert "looked at: each node, and each of the 4 links" in str(link.measured)


def test_slow_alike_is_told_beside_what_the_hardware_allows() -> None:
    test = LocateTest(1, tuple(f"n{at}" for at in range(8)), "")
    run = Collective("all_reduce", "torch", product="NVIDIA H100 80GB HBM3", ranks=128,
                     host_count=16, ranks_per_host=8)  # fmt: skip
    ports = tuple(
        NicPort(f"mlx5_{at}/1", nic=f"mlx5_{at}", role="training", state="ACTIVE", rate_gbits=400.0)
        for at in range(8)
    )
    found = Localisation(test.hosts, (test,), 1, (), 2, "", "", {"groups": 98.0},
                         size_bytes=1 << 28)  # fmt: skip
    host = Host("n0", collectives=(run,), nic_ports=ports, localisation=found)
    (one,) = judge_located(host, [c for c in load(("collectives",)).checks
                                  if c.id == "collectives.host"])  # fmt: skip
    assert one.status is Status.PASS
    assert str(one.measured).startswith("1 tests in 2 rounds, healthy ones at 98 GB/s, ")
    share = int(str(one.measured).split(", ")[2].split("%")[0])
    assert 20 < share < 40


def test_a_host_with_fewer_gpus_is_told() -> None:
    told = lines("sound_h1")
    job = next(one for one in told if one["kind"] == "job")
    assert statuses(judged(written(told)))["collectives.even"] is Status.PASS
    job["gpus"] = {"h1": 8, "h2": 8, "h3": 7, "h4": 8}
    assert statuses(judged(written(told)))["collectives.even"] is Status.WARN


@pytest.mark.parametrize("last", [None, {"kind": "interrupted"}])
def test_what_lacks_its_end_does_not_pass_for_ended(last: Line | None) -> None:
    told = [one for one in lines("one_host") if one["kind"] != "end"]
    found = statuses(judged(written(told + ([last] if last else []))))
    assert found["collectives.ended"] is Status.ERROR


def test_where_no_size_was_measured_nothing_was_right() -> None:
    told = [
        {**{key: one[key] for key in ("kind", "collective", "bytes")}, "skipped": "no memory"}
        if one["kind"] == "size" else one
        for one in lines("one_host")
    ]  # fmt: skip
    assert statuses(judged(written(told)))["collectives.wrong"] is Status.ERROR


def test_hosts_that_did_not_come_are_not_counted() -> None:
    told = [one for one in lines("sound_h1") if one["kind"] not in ("job", "located")]
    (run,) = bench(written([*told, {"kind": "absent", "of": "h4"}])).runs
    assert (run.ranks, run.trouble) == (3, "h4 did not come")


def test_a_host_with_another_nccl_was_left_out_and_the_others_measured() -> None:
    told = [one for one in lines("sound_h1") if one["kind"] not in ("job", "located")]
    unlike = {"kind": "unlike", "of": "h4", "text": "it has NCCL 2.20.5, and h1 NCCL 2.21.5"}
    (run,) = bench(written([*told, unlike])).runs
    assert (run.ranks, run.ended, run.trouble) == (3, True, "")
    sizes = ("size", "test", "found")
    (run,) = bench(written([*(one for one in told if one["kind"] not in sizes), unlike])).runs
    assert (run.ended, run.trouble) == (False, "h4: it has NCCL 2.20.5, and h1 NCCL 2.21.5")


def test_a_search_that_is_none_is_told_to_nobody() -> None:
    begin = next(one for one in lines("sound_h1") if one["kind"] == "begin")
    assert told_to_each({"h1": written([begin, {"kind": "found", "nodes": 3}])}) == {}


def test_without_torch_run_leaves_it_out_and_who_asks_is_told() -> None:
    cannot = {"preflight": "nccl-bench/1", "kind": "cannot", "why": "no-torch", "text": "no torch"}
    assert set(statuses(judged(written([cannot]))).values()) == {Status.SKIP}


def test_a_search_without_an_end_is_undetermined() -> None:
    told = [one for one in lines("sound_h1") if one["kind"] not in ("job", "located", "found")]
    found = statuses(judged(written(told)))
    assert found["collectives.host"] is Status.ERROR


def test_a_host_that_could_not_take_part_says_why() -> None:
    cannot = {"preflight": "nccl-bench/1", "kind": "cannot", "why": "no-torch", "text": "no torch"}
    report = judged(written([cannot]))
    (one,) = [one for one in report.results if one.check == "collectives.ended"]
    assert "no torch" in one.reason


def test_hosts_that_do_not_meet_say_whom_they_did_not_reach() -> None:
    ways = {"preflight": "nccl-bench/1", "kind": "ways", "address": "10.0.0.1", "port": 1,
            "ways": [{"host": "h2", "why": ""}, {"host": "h3", "why": "silent"}]}  # fmt: skip
    apart = {"preflight": "nccl-bench/1", "kind": "unmet", "own": False, "text": "not all meet"}
    report = judged(written([ways, apart]))
    (one,) = [one for one in report.results if one.check == "collectives.host"]
    assert (one.status, one.reason) == (
        Status.ERROR, "not all meet; this host does not reach h3: silent",
    )  # fmt: skip


def test_with_one_gpu_there_is_nobody_to_send_to() -> None:
    few = {"preflight": "nccl-bench/1", "kind": "cannot", "why": "few-gpus", "text": "it takes 2"}
    assert set(statuses(judged(written([few]))).values()) == {Status.SKIP}


@pytest.mark.parametrize("text", ["", "{}\n", "[1]\n", '{"kind": "size"}\n', "no json\n"])
def test_lines_that_are_none_are_refused(text: str) -> None:
    with pytest.raises((ParseError, ValueError)):
        bench(text)


def test_the_slow_rail_of_a_host_is_named_and_the_others_are_sound() -> None:
    text = sample("nccl_bench/slow_rail_of_h3_h3.jsonl")
    failed = {one.check: one for one in judged(text, "h3").results if one.status is Status.FAIL}
    assert {check: one.subject for check, one in failed.items()} == {
        "collectives.host": "h3", "collectives.nic": "h3 eth1",
    }  # fmt: skip
    rail = failed["collectives.nic"]
    assert rail.measured == "75 % slower"
    assert "over eth1 alone on h2, h4: 0.0478 GB/s" in rail.reason
    assert any("ethtool eth1" in line for line in rail.fix)
    assert not any(line.startswith("if ") for line in rail.fix)
    first = statuses(judged(sample("nccl_bench/slow_rail_of_h3_h1.jsonl"), "h1"))
    assert (first["collectives.nic"], first["collectives.gpu"]) == (Status.PASS, Status.SKIP)
    assert Status.FAIL not in first.values()


def test_what_was_tried_within_a_host_is_a_table() -> None:
    raw = Raw("h3", "nccl-bench", stdout=sample("nccl_bench/slow_rail_of_h3_h3.jsonl"))
    (table,) = examine_one_of_many("h3", [raw], load(("collectives",)).checks).measured
    assert table["rows"][0] == {"tried": "over eth1 alone", "on": "h3, h1", "GB/s": 0.01194}
    assert table["notes"][0].endswith("slow: h3 eth1")


def test_a_rail_that_is_slow_between_all_hosts_is_none_of_the_hosts() -> None:
    text = sample("nccl_bench/slow_rail_of_h3_h3.jsonl")
    told = text.replace('"name":"eth1"', '"name":"eth1 of all hosts"')
    failed = {one.check: one for one in judged(told, "h3").results if one.status is Status.FAIL}
    assert failed["collectives.nic"].subject == "eth1 of all hosts"
    assert failed["collectives.nic"].fix[0].startswith("look at the switches of that rail")


def test_bandwidth_is_of_the_ranks_that_measured() -> None:
    told = [one for one in lines("sound_h1") if one["kind"] not in ("job", "located")]
    size = next(one for one in told if one["kind"] == "size")
    size["ranks"] = 3
    (run,) = bench(written([{**told[0], "kind": "gone", "of": "h4", "text": "lost"}, *told])).runs
    side = run.rows[0].in_place
    assert isinstance(side, Side)
    assert (run.ranks, run.trouble) == (3, "h4: lost")
    assert side.busbw_gbps == pytest.approx(side.algbw_gbps * 4 / 3)


def test_what_a_host_tells_of_itself_needs_no_name() -> None:
    assert said({"kind": "gone", "text": "it did not end"}) == "it did not end"
    assert said({"kind": "gone", "of": "h3", "text": "it did not end"}) == "h3: it did not end"


LOST = [
    ({"kind": "absent", "of": "h3", "text": "no sign for 120 s"}, "no sign for 120 s"),
    ({"kind": "gone", "of": "h3", "text": "it said nothing"}, "it said nothing"),
    ({"kind": "died", "of": "h3", "rank": 2, "status": -9}, "rank 2 ended with -9"),
    ({"kind": "silent", "of": "h3", "suspects": [2], "stopped": [2], "after_s": 60},
     "rank 2 said nothing for 60 s"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "text"), LOST)
def test_where_one_host_is_lost_it_alone_is_at_fault(line: Line, text: str) -> None:
    told = [one for one in lines("sound_h1") if one["kind"] not in ("job", "located")]
    at = next(at for at, one in enumerate(told) if one["kind"] == "size")
    texts = {"h1": written([*told[:at], line, *told[-1:]]), "h2": "", "h3": ""}
    found = lost_of(texts)
    assert found.keys() == {"h3"} and text in found["h3"]["text"]
    lost = judged(written([found["h3"]]), "h3")
    (failed,) = [one for one in lost.results if one.status is Status.FAIL]
    assert (failed.check, failed.reason) == ("collectives.ended", found["h3"]["text"])
    first = judged(texts["h1"], "h1").results
    assert not [one for one in first if one.status is Status.FAIL]
    ended = next(one for one in first if one.check == "collectives.ended")
    assert ended.status is Status.ERROR and ended.reason.startswith("not measured from then on: h3")


@pytest.mark.parametrize(("line", "_text"), LOST)
def test_where_the_others_measure_all_nothing_is_held_against_them(line: Line, _text: str) -> None:
    told = [one for one in lines("sound_h1") if one["kind"] not in ("job", "located")]
    at = next(at for at, one in enumerate(told) if one["kind"] == "size")
    report = judged(written([*told[:at], line, *told[at:]]), "h1")
    assert statuses(report)["collectives.ended"] is Status.PASS


def test_an_error_of_a_rank_is_told_of_the_run() -> None:
    told = [one for one in lines("sound_h1") if one["kind"] not in ("job", "located")]
    at = next(at for at, one in enumerate(told) if one["kind"] == "size")
    failed = {"kind": "failed", "of": "h3", "rank": 2, "text": "NCCL failure"}
    assert lost_of({"h1": written([*told[:at], failed]), "h3": ""}) == {}
    report = judged(written([*told[:at], failed, *told[-1:]]), "h1")
    assert statuses(report)["collectives.ended"] is Status.FAIL


def test_hosts_whose_lead_is_lost_are_at_no_fault() -> None:
    begin = {**next(one for one in lines("sound_h1") if one["kind"] == "begin"), "host": "h2"}
    gone = {"kind": "gone", "text": "h1, which leads, gave no sign for 90 s"}
    told = [begin, gone, {"kind": "end"}]
    found = statuses(judged(written(told), "h2"))
    assert found["collectives.ended"] is Status.ERROR
    assert Status.FAIL not in found.values()


def test_a_host_that_says_why_it_takes_no_part_is_not_lost() -> None:
    absent = {"kind": "absent", "of": "h3", "text": "7 GPUs"}
    cannot = {"kind": "cannot", "text": "7 GPUs"}
    assert lost_of({"h1": written([absent]), "h3": written([cannot])}) == {}
