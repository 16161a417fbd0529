"""What a bench of an object store told, and how it is judged."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from preflight.assemble.host import assemble
from preflight.collect import examine_one_of_many
from preflight.expect.failures import least_share, most_share
from preflight.judge.evaluate import judge
from preflight.judge.load import load
from preflight.model import Missing, Raw, Result, Status
from preflight.recognise import recognise
from tests.object_lines import URL, lines, text

CHECKS = load(("objects",)).checks


def raw(told: str, rc: int = 0) -> Raw:
    return Raw("x", "objects", ("python3",), rc, told)


def judged(told: str, rc: int = 0) -> dict[str, Result]:
    """The worst of each check."""
    results = judge(assemble("x", [raw(told, rc)]).host, CHECKS)
    order = [Status.PASS, Status.SKIP, Status.WARN, Status.ERROR, Status.FAIL]
    return {one.check: one for one in sorted(results, key=lambda one: order.index(one.status))}


def statuses(told: str, rc: int = 0) -> dict[str, str]:
    """Of those that are neither sound nor for the training to say."""
    return {
        check.removeprefix("objects."): one.status.value for check, one in judged(told, rc).items()
        if one.status is not Status.PASS and "how fast it must be" not in one.reason
    }  # fmt: skip


def test_a_sound_store() -> None:
    found = assemble("x", [raw(text())]).host
    assert not isinstance(found.object_stores, Missing)
    (store,) = found.object_stores
    assert (store.name, store.requests, store.failed) == (URL, 3096, 0)
    assert (store.put_mbps, store.parts_get_mbps) == (48 * (2 << 20) / 1e6, (32 << 20) / 0.2 / 1e6)
    assert not isinstance(found.object_ways, Missing)
    put = found.object_ways[0]
    assert (put.name, put.per_s, put.p50_us, put.p99_us, put.max_us) == (
        "put 16 KiB, 16 at once", 375.0, 27490.0, 34840.0, 34990.0
    )  # fmt: skip
    assert statuses(text()) == {}
    assert [one.probe for one in recognise(text().encode(), "x")] == ["objects"]


@pytest.mark.parametrize(
    ("failed", "tries", "status", "measured"),
    [(0, 3000, "PASS", "0 of 3,000 requests failed: below 0.1 %"),
     (0, 496, "SKIP", "0 of 496 requests failed: below 0.6 %"),
     (1, 3000, "WARN", "1 of 3,000 requests failed: 0.0017 to 0.16 %"),
     (8, 496, "FAIL", "8 of 496 requests failed: 0.8 to 2.9 %"),
     (2, 40100, "PASS", "2 of 40,100 requests failed: 0.00089 to 0.016 %")],
)  # fmt: skip
def test_a_rate_of_failures_is_what_so_many_requests_show(
    failed: int, tries: int, status: str, measured: str
) -> None:
    told = lines(0)
    told[2] |= {"failed": failed, "taken_us": [20_000] * (tries - failed - 96),
                "said": ["throttled: SlowDown"] * bool(failed)}  # fmt: skip
    result = judged("".join(json.dumps(one) + "\n" for one in told))["objects.failures"]
    assert (result.status.value, result.measured) == (status, measured)
    if status in ("WARN", "FAIL"):
        assert result.reason == "throttled: SlowDown"
    if status == "SKIP":
        assert "2,996 requests without a failure" in result.reason


def test_a_stated_rate_is_never_skipped() -> None:
    checks = [replace(one, row={**one.row, "stated": True}) for one in CHECKS if one.rule]
    (result,) = judge(assemble("x", [raw(text(200))]).host, checks)
    assert result.status is Status.ERROR


@pytest.mark.parametrize(("tries", "failed"), [(3000, 0), (400, 1), (10_000, 37), (9000, 4000)])
def test_bounds_of_a_rate_are_those_of_the_binomial_law(tries: int, failed: int) -> None:
    """Among as many tries at the bound so few, or so many, are seen once in twenty."""
    from math import comb

    def up_to(most: int, share: float) -> float:
        return sum(comb(tries, k) * share**k * (1 - share) ** (tries - k) for k in range(most + 1))

    low, high = least_share(tries, failed), most_share(tries, failed)
    assert low <= failed / tries <= high
    if failed < 100:
        assert up_to(failed, high) == pytest.approx(0.05, rel=0.05)
        assert not failed or 1 - up_to(failed - 1, low) == pytest.approx(0.05, rel=0.05)


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [({"reached": {"ok": False, "text": "put: access denied: 403"}}, {"reached": "FAIL"}),
     ({"exchanges": {"throttled": 40, "troubled": 40}}, {"throttled": "WARN"}),
     ({"exchanges": {"throttled": 400, "troubled": 400}}, {"throttled": "FAIL"}),
     ({"exchanges": {"troubled": 60}}, {"retries": "WARN"}),
     ({"exchanges": {"seen": 7}}, {"throttled": "ERROR", "retries": "ERROR"}),
     ({"content": {"wrong": 1}}, {"content": "FAIL"}),
     ({"content": {"read": 0}}, {"content": "ERROR"}),
     ({"listed": {"missing": 2}}, {"listed": "FAIL"}),
     ({"listed": {"missing": -1, "text": "no answer"}}, {"listed": "ERROR"}),
     ({"parts": {"ok": False, "text": "failed: InternalError"}}, {"parts": "FAIL"}),
     ({"removed": {"left": 3}}, {"removed": "WARN"}),
     ({"removed": {"left": -1, "text": "no answer"}}, {"removed": "ERROR"}),
     ({"get": {"taken_us": [1_500_000] * 750}}, {"latency": "WARN"}),
     ({"get": {"taken_us": [15_000_000] * 750}}, {"latency": "FAIL"})],
)  # fmt: skip
def test_each_fault_is_told(changed: dict[str, Any], wanted: dict[str, str]) -> None:
    found = statuses(text(**changed))
    if wanted == {"reached": "FAIL"}:
        assert found.pop("reached") == "FAIL"
        assert set(found.values()) == {"SKIP"}
        return
    assert {name: found.get(name) for name in wanted} == wanted
    assert set(found) == set(wanted)


@pytest.mark.parametrize(
    "way", [{"failed": -3}, {"elapsed_s": 1e300}, {"elapsed_s": -1}, {"size_bytes": 10**400}]
)
def test_numbers_that_no_bench_tells_are_no_answer(way: dict[str, Any]) -> None:
    found = assemble("x", [raw(text(get=way))]).host.object_stores
    assert isinstance(found, Missing)
    assert found.kind == "unreadable"


def test_what_comes_from_memory_is_not_judged() -> None:
    found = statuses(text(get={"cached": True}))
    assert found["latency"] == found["get.bandwidth"] == "ERROR"


def test_a_recording_without_its_end_tells_no_rate_of_failures() -> None:
    assert statuses("".join(text().splitlines(keepends=True)[:-1]))["failures"] == "ERROR"


def test_what_is_lost_is_a_fault_of_its_content_and_told() -> None:
    told = text(content={"lost": 2}, get={"lost": 2})
    assert statuses(told) == {"content": "FAIL"}
    (table,) = examine_one_of_many("x", [raw(told)], CHECKS).measured
    assert any(one.startswith("lost: 2 objects were put") for one in table["notes"])


def test_removed_is_said_where_it_was_and_else_what_to_type() -> None:
    (table,) = examine_one_of_many("x", [raw(text())], CHECKS).measured
    assert table["notes"][0].endswith("removed afterwards")
    told = text(removed={"left": -1, "text": "no answer"})
    (table,) = examine_one_of_many("x", [raw(told)], CHECKS).measured
    assert not any("removed afterwards" in one for one in table["notes"])
    assert (
        "what stays there: aws s3 rm --recursive "
        "s3://training/runs/me/.preflight-objects-1790000000.0.0.1.1" in table["notes"]
    )


def test_what_is_no_network_is_neither_throttled_nor_tried_again() -> None:
    told = text(begin={"protocol": "file"}, exchanges={"seen": 0, "statuses": {}})
    assert statuses(told) == {"throttled": "SKIP", "retries": "SKIP", "parts": "SKIP"}


@pytest.mark.parametrize(
    ("line", "kind", "told"),
    [({"kind": "cannot", "why": "no-library", "text": "python3 has no s3fs: pip install s3fs"},
      "no-tool", "pip install s3fs"),
     ({"kind": "cannot", "why": "refused", "text": "/x is a file"}, "exited", "/x is a file"),
     ({"kind": "busy", "text": "active work of preflight holds it"}, "busy", "holds it")],
)  # fmt: skip
def test_nothing_was_begun(line: dict[str, Any], kind: str, told: str) -> None:
    found = assemble("x", [raw(json.dumps({"preflight": "objects/1", **line}))]).host
    assert isinstance(found.object_stores, Missing)
    assert (found.object_stores.kind, told in found.object_stores.text) == (kind, True)


def test_interrupted_it_tells_what_it_saw() -> None:
    told = "".join(json.dumps(one) + "\n" for one in [*lines()[:3], {"kind": "interrupted"}])
    found = judged(told, 130)
    assert found["objects.reached"].status is Status.PASS
    for name in ("content", "listed", "removed", "throttled", "get.bandwidth"):
        assert found[f"objects.{name}"].status is Status.ERROR


@pytest.mark.parametrize("told", ["", "{}", "hello", '{"preflight":"objects/2","kind":"begin"}'])
def test_other_texts_are_refused(told: str) -> None:
    assert isinstance(assemble("x", [raw(told)]).host.object_stores, Missing)


def test_the_table_has_every_figure() -> None:
    (table,) = examine_one_of_many("x", [raw(text(get={"said": ["no answer"]}))], CHECKS).measured
    assert [row["requests"] for row in table["rows"]] == [
        "put 16 KiB, 16 at once", "get 16 KiB, 16 at once", "put 2 MiB, 16 at once",
        "get 2 MiB, 16 at once",
    ]  # fmt: skip
    assert "failed: 0 of 3,096, which shows a rate below 0.097 % (95 % certainty)" in table["notes"]
    assert any("1,560 x 200, 1,556 x 206" in one for one in table["notes"])
