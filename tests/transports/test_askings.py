"""Two captures of one host: the one asked last is judged as a whole, the other is named."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from preflight.capture import Writer
from preflight.faults import CONNECTION, fault
from preflight.model import Raw
from tests.conftest import SAMPLES
from tests.transports.whole import Recorded, recorded

XID = SAMPLES / "kernel_log" / "xid79_then_sxid20034_fatal.log"
OLD, NEW = "2026-11-20T03:00:00Z", "2026-11-27T03:00:05Z"


def asked(host: str, at: str, *probes: str, text: str = "") -> list[Raw]:
    return [
        Raw(host, probe, (probe,), stdout=f"{text or at} {probe}", started_at=at)
        for probe in ("identity", *probes)
    ]


def write(path: Path, *raws: Raw, created_at: str = "") -> Path:
    with Writer(path, created_at=created_at) as writer:
        for raw in raws:
            writer.write(raw)
    return path


def told(found: Recorded, host: str = "n01") -> list[str]:
    return [str(raw.stdout) for raw in found.hosts[host]]


def test_the_one_asked_last_is_judged_whole_whatever_the_order(tmp_path: Path) -> None:
    old = write(tmp_path / "old.capture.gz", *asked("n01", OLD, "kernel-log", "nics"))
    new = write(tmp_path / "new.capture.gz", *asked("n01", NEW, "kernel-log"))
    for order in ((old, new), (new, old)):
        found = recorded(*order)
        assert told(found) == [f"{NEW} identity", f"{NEW} kernel-log"]
        assert found.bad == []
        assert found.notes == [
            f"n01 is also in {old}, asked 2026-11-20 03:00: left out; give it another name to "
            f"judge both: --from old={old}"
        ]
    assert set(recorded(new, f"old={old}").hosts) == {"n01", "old"}
    assert recorded(new, f"old={old}").notes == []


def test_without_times_of_answers_the_captures_own_counts_then_the_files_order(
    tmp_path: Path,
) -> None:
    first = write(tmp_path / "a.gz", *asked("n01", "", text="a"), created_at=NEW)
    second = write(tmp_path / "b.gz", *asked("n01", "", text="b"), created_at=OLD)
    assert told(recorded(first, second)) == ["a identity"]
    third = write(tmp_path / "c.gz", *asked("n01", "", text="c"), created_at=NEW)
    assert told(recorded(first, third)) == ["c identity"]
    assert told(recorded(third, first)) == ["a identity"]


def test_of_three_the_last_and_each_of_the_others_is_named(tmp_path: Path) -> None:
    files = [
        write(tmp_path / f"{name}.gz", *asked("n01", at))
        for name, at in (("a", OLD), ("b", NEW), ("c", "2026-11-21T03:00:00Z"))
    ]
    found = recorded(*files)
    assert told(found) == [f"{NEW} identity"]
    assert [note.partition(":")[0] for note in found.notes] == [
        f"n01 is also in {tmp_path}/a.gz, asked 2026-11-20 03",
        f"n01 is also in {tmp_path}/c.gz, asked 2026-11-21 03",
    ]


def test_outputs_of_tools_are_joined_with_it(tmp_path: Path) -> None:
    old = write(tmp_path / "old.gz", *asked("n01", OLD, "nics"))
    new = write(tmp_path / "new.gz", *asked("n01", NEW))
    found = recorded(new, f"n01={XID}", old)
    assert [raw.probe for raw in found.hosts["n01"]] == ["identity", "kernel-log"]
    assert len(found.notes) == 1


def test_a_host_that_gave_no_answer_the_last_time_has_none_of_the_time_before(
    tmp_path: Path,
) -> None:
    old = write(tmp_path / "old.gz", *asked("n01", OLD, "nics"))
    gone = Raw("n01", CONNECTION, rc=None, missing=fault("refused", "n01 port 22: refused"))
    new = write(tmp_path / "new.gz", gone, created_at=NEW)
    for order in ((old, new), (new, old)):
        assert [raw.probe for raw in recorded(*order).hosts["n01"]] == [CONNECTION]


def test_captures_that_were_joined_into_one_file_are_several(tmp_path: Path) -> None:
    one = write(tmp_path / "1.gz", *asked("n01", NEW, "nics"), *asked("n02", NEW))
    two = write(tmp_path / "2.gz", *asked("n01", OLD), *asked("n02", OLD))
    both = tmp_path / "both.gz"
    both.write_bytes(gzip.compress(gzip.decompress(one.read_bytes()) +
                                   gzip.decompress(two.read_bytes())))  # fmt: skip
    found = recorded(both)
    assert told(found) == [f"{NEW} identity", f"{NEW} nics"]
    assert told(found, "n02") == [f"{NEW} identity"]
    assert found.notes == [f"n[01-02] are more than once in {both}: only the last is judged"]


@pytest.mark.parametrize("hosts", [2, 300])
def test_of_many_hosts_one_sentence_says_which_file_gave_way(tmp_path: Path, hosts: int) -> None:
    names = [f"n{number:03}x{number % 7}" for number in range(hosts)]
    files = [
        write(tmp_path / f"{name} all.gz", *(raw for host in names for raw in asked(host, at)))
        for name, at in (("old", OLD), ("new", NEW))
    ]
    (note,) = recorded(*files).notes
    assert len(note.replace(str(tmp_path), "")) < 200
    assert note.endswith(f"left out; to judge it, by itself: --from '{files[0]}'")


def test_a_file_that_is_called_like_its_host_gets_another_name(tmp_path: Path) -> None:
    files = []
    for folder, at in (("a", OLD), ("b", NEW)):
        (tmp_path / folder).mkdir()
        files.append(write(tmp_path / folder / "n01.capture.gz", *asked("n01", at)))
    (note,) = recorded(*files).notes
    assert note.endswith(f"--from n01-before={files[0]}")
