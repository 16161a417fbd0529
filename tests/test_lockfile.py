"""The lock as a file: what is written is read, and what is out of order is told with its line."""

from __future__ import annotations

import json

import pytest

from preflight import lockfile
from preflight.errors import UsageError
from preflight.lockfile import Locked

TORCH = Locked("package", "torch", "2.5.1+cu124", "2026-01-02", 'verified: "A100", FSDP\t\u00e9')
NCCL = Locked("software", "nccl", "2.21.5", "2024-09-30", "")


def read(text: str) -> list[Locked]:
    return lockfile.read(text.encode(), "env.lock.json")


def test_what_is_written_is_read() -> None:
    text = lockfile.written([TORCH, NCCL])
    assert read(text) == [TORCH, NCCL]
    assert json.loads(text)["entries"][0]["note"] == TORCH.note
    assert len([line for line in text.splitlines() if '"kind"' in line]) == 2  # an entry a line
    assert read(lockfile.written([])) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"value": "2.21.5"', '"value": 2.21', "env.lock.json:6: value is a text in quotes"),
        ('"name": "nccl", ', "", "env.lock.json:6: name is missing"),
        ('"name": "nccl"', '"name": ""', "env.lock.json:6: name is missing"),
        ('"since": "2024-09-30"', '"since": "autumn"', "env.lock.json:6: since is a date"),
        ('"name": "nccl"', '"nmae": "nccl"', "env.lock.json:6: unknown key 'nmae'"),
        ('"name": "nccl"', '"name": "nccl", "name": "x"', "env.lock.json:6: "),
        ('"kind": "software", "name": "nccl"', '"kind": "package", "name": "torch"',
         "env.lock.json:6: package torch stands already at line 5"),
        ("preflight.lock/1", "preflight.lock/9", "env.lock.json:1: its schema is"),
        ('"schema": "preflight.lock/1",', "", "env.lock.json:1: its schema is 'None'"),
        ('"entries": [', '"entries": ["torch==2.5",', "env.lock.json:1: expected an entry"),
        ('"entries"', '"pins"', "env.lock.json:1: expected an object with schema and entries"),
        ("]\n}\n", "", "env.lock.json:"),
        ('{"kind": "software"', '"kind": "software"', "env.lock.json:6: "),
    ],
)  # fmt: skip
def test_what_is_out_of_order_is_told_with_its_line(old: str, new: str, said: str) -> None:
    text = lockfile.written([TORCH, NCCL])
    assert old in text
    with pytest.raises(UsageError) as raised:
        read(text.replace(old, new, 1))
    assert raised.value.what.startswith(said)
    assert raised.value.hint


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b"\xff\xfe{}", b"7", b"{}", b'{"a": \x00}'])
def test_what_is_no_lock_is_refused(data: bytes) -> None:
    with pytest.raises(UsageError):
        lockfile.read(data, "env.lock.json")


def test_a_lock_is_told_from_a_report() -> None:
    assert lockfile.is_lock(lockfile.written([]).encode(), "env.json")
    assert lockfile.is_lock(b"{", "env.lock.json")
    assert not lockfile.is_lock(b'{"schema": "preflight.report/1"}', "report.json")


def test_dates_and_notes_stay_while_the_value_does() -> None:
    now = [Locked("package", "torch", "2.5.1+cu124"), Locked("software", "nccl", "2.22.3"),
           Locked("driver", "nvidia", "550.90.07")]  # fmt: skip
    assert lockfile.merged(now, [TORCH, NCCL], "2026-11-30") == [
        TORCH, Locked("software", "nccl", "2.22.3", "2026-11-30"),
        Locked("driver", "nvidia", "550.90.07", "2026-11-30"),
    ]  # fmt: skip


def test_old_pins_are_found_by_months() -> None:
    assert list(lockfile.old([TORCH, NCCL], "2026-02-01", 12)) == [NCCL]
    assert list(lockfile.old([NCCL], "2025-09-30", 12)) == []
    assert list(lockfile.old([NCCL], "2025-10-01", 12)) == [NCCL]
    assert list(lockfile.old([Locked("os", "release", "x")], "2026-02-01", 12)) == []
