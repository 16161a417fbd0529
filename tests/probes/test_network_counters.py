"""Counters of limits that were reached: read off texts, refused where they are damaged, and held
against this machine."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest

from preflight.errors import ParseError
from preflight.facts.counters import Counters
from preflight.model import Missing
from preflight.probes.parameters.network_counters import locate, network_counters
from tests.parameters_text import COUNTERS
from tests.probes.test_pci_robust import damaged


def test_counters_of_all_processors_are_added() -> None:
    found = network_counters(COUNTERS)
    assert found.packets == 2_000_000_000
    assert (found.backlog_drops, found.backlog_drops_per_million) == (128, 0.064)
    assert (found.time_squeezes, found.time_squeezes_per_million) == (2048, 1.024)
    assert found.neighbours_full == 2


def test_tcp_is_told_by_the_names_of_the_columns() -> None:
    found = network_counters(COUNTERS)
    assert (found.listen_overflows, found.passive_opens) == (120, 1_000_000)
    assert found.listen_overflows_percent == 0.012
    assert (found.syn_queue_full, found.syn_queue_full_percent) == (110, 0.011)


def test_what_is_in_use_of_the_limits() -> None:
    found = network_counters(COUNTERS)
    assert (found.files, found.files_percent) == (4096, 0.195)
    assert (found.aio, found.aio_percent) == (1024, 1.562)
    assert (found.threads, found.threads_percent) == (2048, 0.049)  # pid_max is the lower


def test_what_this_kernel_does_not_count_is_not_applicable() -> None:
    found = network_counters("/proc/loadavg:0.1 0.1 0.1 1/99 7\nend\n")
    assert found.threads == 99
    for name in ("packets", "listen_overflows", "syn_queue_full", "neighbours_full", "files"):
        value = getattr(found, name)
        assert isinstance(value, Missing)
        assert value.kind == "not-applicable"


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ("3b9aca00 00000080", "3b9aca00 xyz", "backlog_drops"),
        (f"3b9aca00 00000080 00000800{' 00000000' * 4}", "3b9aca00", "time_squeezes"),
        (": 0 120 130", ": 0 many 130", "listen_overflows"),
        (": 0 120 130 110 0", ": 0", "syn_queue_full"),
        ("4096\t0\t2097152", "4096", "files_percent"),
        ("aio-max-nr:65536", "aio-max-nr:0", "aio_percent"),
        ("4/2048", "2048", "threads"),
    ],
)
def test_a_number_that_cannot_be_read_is_no_zero(before: str, after: str, field: str) -> None:
    assert before in COUNTERS
    value = getattr(network_counters(COUNTERS.replace(before, after, 1)), field)
    assert isinstance(value, Missing)
    assert value.kind == "unreadable"


def test_a_host_that_has_counted_nothing_yet() -> None:
    zero = COUNTERS.replace("3b9aca00 00000080 00000800", "00000000 00000000 00000000")
    zero = zero.replace("3b9aca00", "00000000").replace("5000 1000000", "0 0")
    found = network_counters(zero.replace("0 120 130 110 0", "0 0 0 0 0"))
    assert found.backlog_drops_per_million == 0
    assert found.listen_overflows_percent == 0


def test_the_line_that_shows_a_field() -> None:
    lines = COUNTERS.split("\n")
    assert lines[locate(COUNTERS, 1, "listen_overflows") - 1].endswith(": 0 120 130 110 0")
    assert lines[locate(COUNTERS, 1, "passive_opens") - 1].endswith("5000 1000000")
    words = {
        "listen_overflows_percent": "netstat", "files_percent": "file-nr",
        "backlog_drops": "softnet", "neighbours_full": "arp_cache",
    }  # fmt: skip
    for field, word in words.items():
        assert word in lines[locate(COUNTERS, 1, field) - 1]


@pytest.mark.parametrize("seed", range(300))
def test_a_damaged_answer_is_read_or_refused(seed: int) -> None:
    try:
        found = network_counters(damaged(COUNTERS, seed))
    except ParseError as error:
        assert str(error)
    else:
        assert isinstance(found, Counters)


def test_cut_short_or_empty_it_is_refused() -> None:
    for text in ("", "end", COUNTERS[:-5], COUNTERS[:60]):
        with pytest.raises(ParseError):
            network_counters(text)
    assert network_counters(COUNTERS.replace("\n", "\r\n")) == network_counters(COUNTERS)


def test_this_machine_counts_and_answers_soon() -> None:
    argv = network_counters.probe.command.argv  # type: ignore[attr-defined]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=10)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found = network_counters(done.stdout)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.1
    now = Path("/proc/net/softnet_stat").read_text().split("\n")
    packets = sum(int(line.split()[0], 16) for line in now if line)
    assert isinstance(found.packets, int)
    assert packets - 1_000_000 < found.packets <= packets
    assert isinstance(found.files, int)
    assert abs(int(Path("/proc/sys/fs/file-nr").read_text().split()[0]) - found.files) < 20_000
