"""What the bench of storage tells of loaders, as facts and as a table."""

from __future__ import annotations

from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.collect import examine
from preflight.facts.host import Host
from preflight.facts.patterns import Pattern
from preflight.judge.load import load
from preflight.model import Missing, Raw, Status
from preflight.reports.patterns import pattern_tables
from tests.loader_text import row, text


def host_of(*rows: dict[str, Any], **begin: Any) -> Host:
    return assemble("x", [Raw("x", "io-bench", ("python3",), 0, text(*rows, **begin))]).host


def maps_of(host: Host) -> Pattern:
    assert isinstance(host.loader_maps, tuple)
    return host.loader_maps[0]


def test_reads_and_maps_past_the_page_cache_are_told_apart() -> None:
    host = host_of()
    assert isinstance(host.loader_reads, tuple)
    [read] = host.loader_reads
    assert (read.name, read.demand_mbps, read.network) == ("dataloader read", 400.0, True)
    assert read.bandwidth_mbps == pytest.approx(1000, rel=1e-3)
    assert read.slowest_mbps == 125.0
    assert maps_of(host).of_read_percent == pytest.approx(80, rel=1e-3)


def test_a_page_cache_that_keeps_everything_is_no_read() -> None:
    warm = row("read", through="page cache"), row("mmap", through="page cache")
    host = host_of(*warm, plan={})
    assert isinstance(host.loader_reads, Missing)
    assert host.loader_reads.kind == "not-applicable"


@pytest.mark.parametrize("through", ["page cache", "memory"])
def test_a_demand_that_no_device_was_held_against_is_open(through: str) -> None:
    raws = [Raw("x", "io-bench", ("python3",), 0, text(row("read", through=through)))]
    told = {one.check: one for one in examine("x", raws, load(["io"]).checks).results}
    for check in ("io.pattern.demand", "io.pattern.demand.map"):
        assert told[check].status is Status.ERROR
        assert "what was said to be needed was not measured" in told[check].reason
    assert through in told["io.pattern.demand"].reason
    unstated = text(row("read", through=through), plan={})
    raws = [Raw("x", "io-bench", ("python3",), 0, unstated)]
    told = {one.check: one for one in examine("x", raws, load(["io"]).checks).results}
    assert told["io.pattern.demand"].status is Status.SKIP


def test_without_a_stated_demand_none_is_held_against_it() -> None:
    found = maps_of(host_of(plan={})).demand_mbps
    assert isinstance(found, Missing)
    assert (found.kind, "--demand-mbps" in found.text) == ("not-asked", True)


def test_other_patterns_are_no_loader() -> None:
    host = host_of(row("create") | {"name": "small-files"})
    assert isinstance(host.loader_reads, Missing)
    assert host.loader_reads.kind == "not-asked"
    # fio was left out by the user: no error.
    assert isinstance(host.fio_jobs, Missing)
    assert host.fio_jobs.kind == "not-asked"


@pytest.mark.parametrize("wrong", [None, -1, 0, "x", True, float("inf")])
def test_figures_that_are_none_are_not_taken(wrong: Any) -> None:
    found = maps_of(host_of(row("mmap", brought_bytes=wrong), plan={"demand_mbps": wrong}))
    assert isinstance(found.brought_times, Missing)
    assert isinstance(found.demand_mbps, Missing)


def test_what_comes_unasked_for_is_told_below_the_table() -> None:
    mapped = row("mmap", 20.0)
    [table] = pattern_tables(host_of(row("read"), mapped | {"brought_bytes": 40_000_000 * 50}))
    assert any("50.03 bytes come from the device for each" in one for one in table["notes"])
    assert table["numbers"]["dataloader mmap"]["brought_times"] == pytest.approx(50, rel=0.01)
    assert "processes: dataloader 8 x 128 KiB" in table["notes"]
    [usual] = pattern_tables(host_of())
    assert not any("for each one used" in one for one in usual["notes"])
