"""Changes on a machine below a folder: made, taken back, and cut short at every call."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from preflight.errors import UsageError
from preflight.settings import places, undo_file
from preflight.settings.apply import Plan, carry_out, plan
from preflight.settings.restore import restore
from preflight.settings.undo_file import SCHEMA, File, Undo, Value
from preflight.settings.wanted import Change
from tests.settings.machine import CHANGES, killed_before_call, machine, snapshot

MADE_AT = "2026-01-02T03:04:05Z"


def _apply(root: Path, undo: Path) -> Plan:
    planned = plan(CHANGES, MADE_AT, root)
    undo_file.write(planned.undo, undo)
    carry_out(planned, root)
    return planned


def test_what_is_wanted_holds_and_stays(tmp_path: Path) -> None:
    root = machine(tmp_path)
    planned = plan(CHANGES, MADE_AT, root)
    assert not planned.left_out
    assert not [one for one in carry_out(planned, root) if one.problem]
    assert (root / "proc/sys/net/core/somaxconn").read_text() == "65535\n"
    assert (root / "proc/sys/net/ipv4/tcp_rmem").read_text() == "4096 131072 6291456\n"
    cpus = root / "sys/devices/system/cpu"
    assert [one.read_text() for one in cpus.glob("*/cpufreq/scaling_governor")] == [
        "performance\n"
    ] * 2
    ours = (root / "etc/sysctl.d/90-preflight.conf").read_text().splitlines()
    assert ours[:2] == ["# ours", "fs.aio-max-nr = 1048576"]  # what is not ours to change stays
    assert ours[3:] == [
        "net.core.somaxconn = 65535",
        "net.ipv4.tcp_rmem = 4096 131072 6291456",
        "vm.swappiness = 1",
    ]
    assert "enabled - - - - madvise" in (root / "etc/tmpfiles.d/preflight.conf").read_text()
    limits = (root / "etc/security/limits.d/90-preflight.conf").read_text()
    assert "* - nofile 1048576\nroot - nofile 1048576\n" in limits


def test_twice_is_as_once(tmp_path: Path) -> None:
    root = machine(tmp_path)
    carry_out(plan(CHANGES, MADE_AT, root), root)
    once = snapshot(root)
    carry_out(plan(CHANGES, MADE_AT, root), root)
    assert snapshot(root) == once


def test_undo_returns_everything_bit_for_bit(tmp_path: Path) -> None:
    root = machine(tmp_path / "root")
    before = snapshot(root)
    _apply(root, tmp_path / "undo.json")
    # The driver changes the preference together with the governor.
    cpufreq = root / "sys/devices/system/cpu/cpu0/cpufreq"
    (cpufreq / "energy_performance_preference").write_text("performance\n")
    assert snapshot(root) != before
    told = (tmp_path / "undo.json").stat()
    assert told.st_mode & 0o777 == 0o600
    outcomes = restore(undo_file.read(tmp_path / "undo.json"), root)
    assert not [one for one in outcomes if one.problem]
    assert snapshot(root) == before


def test_killed_at_any_call_undo_returns_everything(tmp_path: Path) -> None:
    calls, files, changed = 0, 0, 0
    while True:
        root, undo = machine(tmp_path / f"{calls}"), tmp_path / f"{calls}.json"
        before = snapshot(root)
        killed = killed_before_call(calls, lambda: _apply(root, undo))  # noqa: B023
        if undo.exists():
            files += 1
            changed += snapshot(root) != before
            outcomes = restore(undo_file.read(undo), root)
            assert not [one for one in outcomes if one.problem]
        assert snapshot(root) == before, f"killed before call {calls}"
        if not killed:
            break
        calls += 1
    assert calls > 40
    assert changed > 20
    assert files < calls  # some were killed before there was an undo file, and nothing was changed


def test_undo_that_is_killed_can_be_run_again(tmp_path: Path) -> None:
    calls = 0
    while True:
        root, undo = machine(tmp_path / f"{calls}"), tmp_path / f"{calls}.json"
        before = snapshot(root)
        _apply(root, undo)
        killed = killed_before_call(calls, lambda: restore(undo_file.read(undo), root))  # noqa: B023
        restore(undo_file.read(undo), root)
        assert snapshot(root) == before, f"killed before call {calls}"
        if not killed:
            break
        calls += 1
    assert calls > 20


def test_what_is_not_here_or_cannot_be_written_is_left_out(tmp_path: Path) -> None:
    root = machine(tmp_path)
    (root / "sys/kernel/mm/transparent_hugepage/enabled").unlink()
    (root / "proc/sys/vm/swappiness").unlink()
    (root / "proc/sys/vm/swappiness").symlink_to("/etc/passwd")
    planned = plan(CHANGES, MADE_AT, root)
    assert {one.name: one.reason for one in planned.left_out} == {
        "thp.enabled": "not on this machine",
    }
    assert {one.name: one.problem for one in planned.refused} == {
        "vm.swappiness": "/proc/sys/vm/swappiness cannot be written here",
    }
    assert not [one for one in carry_out(planned, root) if one.problem]
    assert "swappiness = 1" not in (root / "etc/sysctl.d/90-preflight.conf").read_text().split("\n")
    assert "thp" not in (root / "etc/tmpfiles.d/preflight.conf").read_text()


def test_a_drop_in_that_is_a_link_is_left_alone(tmp_path: Path) -> None:
    root = machine(tmp_path / "root")
    ours, victim = root / "etc/sysctl.d/90-preflight.conf", tmp_path / "victim"
    ours.unlink()
    ours.symlink_to(victim)
    planned = plan(CHANGES, MADE_AT, root)
    assert [one.name for one in planned.refused] == ["/etc/sysctl.d/90-preflight.conf"]
    carry_out(planned, root)
    assert not victim.exists()


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("etc/sysctl.d/95-site.conf", "vm/swappiness=30\n", "zz-preflight.conf"),
        ("usr/lib/sysctl.d/99-vendor.conf", " - net.core.somaxconn = 128\n", "zz-preflight.conf"),
        ("etc/sysctl.conf", "vm.swappiness = 30\n", "zz-preflight.conf"),
        ("etc/sysctl.d/zz-preflight.conf", "fs.aio-max-nr = 1\n", "zz-preflight.conf"),
        ("etc/sysctl.d/95-site.conf", "# vm.swappiness=30\nvm.swappiness2=1\n", ""),
        ("etc/sysctl.d/10-site.conf", "vm.swappiness=30\n", ""),
        ("etc/sysctl.d/95-site.conf.bak", "vm.swappiness=30\n", ""),
    ],
)
def test_a_later_file_gives_ours_a_later_name(
    tmp_path: Path, path: str, text: str, name: str
) -> None:
    root = machine(tmp_path)
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    (first, *_) = plan(CHANGES, MADE_AT, root).files
    assert first.path == f"/etc/sysctl.d/{name or '90-preflight.conf'}"


def test_a_value_that_the_kernel_does_not_keep_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine(tmp_path)
    planned = plan((Change("sysctl", "vm.swappiness", "1"),), MADE_AT, root)
    monkeypatch.setattr(places, "write_value", lambda path, _: path.write_bytes(b"2\n"))
    one, _ = carry_out(planned, root)
    assert one.problem == "1 was written, /proc/sys/vm/swappiness reads 2"
    (root / "proc/sys/vm/swappiness").write_text("1\n")
    *_, one = restore(planned.undo, root)
    assert one.problem == "it was 60, it is 2"


def test_what_fails_stops_nothing_else(tmp_path: Path) -> None:
    root = machine(tmp_path)
    planned = plan(CHANGES, MADE_AT, root)
    (root / "proc/sys/net/core/somaxconn").unlink()
    outcomes = {one.name: one.problem for one in carry_out(planned, root)}
    assert "cannot be written: No such file" in outcomes.pop("net.core.somaxconn")
    assert not any(outcomes.values())
    problems = [one for one in restore(planned.undo, root) if one.problem]
    assert [one.name for one in problems] == ["/proc/sys/net/core/somaxconn"]


NOFILE = (Change("limit", "nofile", "2000000"),)


def _with(root: Path, path: str, text: str) -> Path:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    return root


def test_what_holds_is_not_written_again(tmp_path: Path) -> None:
    root = machine(tmp_path)
    carry_out(plan(CHANGES, MADE_AT, root), root)
    again = plan(CHANGES, MADE_AT, root)
    assert (again.steps, again.files, again.undo.entries) == ((), (), ())
    assert [one.name for one in again.left_out] == ["nofile"]
    assert "logs in anew" in again.left_out[0].reason


def test_open_files_beyond_nr_open_raise_it_first(tmp_path: Path) -> None:
    """The kernel refuses such a limit, and pam_limits then the login."""
    root = _with(machine(tmp_path / "root"), "proc/sys/fs/nr_open", "1048576\n")
    before = snapshot(root)
    planned = _apply_these(NOFILE, root, tmp_path / "undo.json")
    assert (root / "proc/sys/fs/nr_open").read_text() == "2000000\n"
    ours = (root / "etc/sysctl.d/90-preflight.conf").read_text()
    assert "fs.nr_open = 2000000\n" in ours
    assert "* - nofile 2000000" in (root / "etc/security/limits.d/90-preflight.conf").read_text()
    assert not planned.refused
    restore(undo_file.read(tmp_path / "undo.json"), root)
    assert snapshot(root) == before


def _apply_these(changes: tuple[Change, ...], root: Path, undo: Path) -> Plan:
    planned = plan(changes, MADE_AT, root)
    undo_file.write(planned.undo, undo)
    assert not [one for one in carry_out(planned, root) if one.problem]
    return planned


def test_no_limit_is_written_that_the_kernel_would_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = _with(machine(tmp_path), "proc/sys/fs/nr_open", "1048576\n")
    planned = plan((*NOFILE, CHANGES[2]), MADE_AT, root)

    def refuse(path: Path, value: bytes) -> None:
        if path.name == "nr_open":
            raise OSError(22, "Invalid argument")
        path.write_bytes(value)

    monkeypatch.setattr(places, "write_value", refuse)
    outcomes = {one.name: one.problem for one in carry_out(planned, root)}
    assert "Invalid argument" in outcomes["fs.nr_open"]
    assert "left alone" in outcomes["/etc/security/limits.d/90-preflight.conf"]
    assert not (root / "etc/security/limits.d/90-preflight.conf").exists()
    assert "nofile" not in outcomes
    assert outcomes["vm.swappiness"] == ""


def test_no_limit_is_written_where_nr_open_may_only_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = _with(machine(tmp_path), "proc/sys/fs/nr_open", "1048576\n")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "access", lambda path, _: path.name != "nr_open")
    planned = plan(NOFILE, MADE_AT, root)
    assert [one.name for one in planned.refused] == ["fs.nr_open"]
    (one,) = carry_out(planned, root)
    assert "left alone" in one.problem
    assert not (root / "etc/security/limits.d/90-preflight.conf").exists()


def test_a_file_of_limits_that_is_a_link_is_not_told_as_written(tmp_path: Path) -> None:
    root = machine(tmp_path)
    (root / "etc/security/limits.d/90-preflight.conf").symlink_to("/dev/null")
    planned = plan(NOFILE, MADE_AT, root)
    assert [one.name for one in planned.refused] == ["/etc/security/limits.d/90-preflight.conf"]
    assert planned.left_out == ()


def test_open_files_below_nr_open_leave_it_alone(tmp_path: Path) -> None:
    root = _with(machine(tmp_path), "proc/sys/fs/nr_open", "2000000\n")
    assert [one.change.name for one in plan(NOFILE, MADE_AT, root).steps] == ["nofile"]


def test_in_a_container_limits_come_from_what_started_it(tmp_path: Path) -> None:
    root = _with(machine(tmp_path), ".dockerenv", "")
    memlock = Change("limit", "memlock", "unlimited")
    planned = plan((*NOFILE, memlock, CHANGES[0]), MADE_AT, root)
    told = {one.name: one.reason for one in planned.left_out}
    assert told["nofile"].endswith("docker run --ulimit nofile=2000000:2000000")
    assert told["memlock"].endswith("docker run --ulimit memlock=-1")
    assert [one.path for one in planned.files] == ["/etc/sysctl.d/90-preflight.conf"]
    (root / "proc/sys/net/core/somaxconn").unlink()
    (root / "proc/sys/net/core/somaxconn").symlink_to("/dev/null")
    (one,) = plan(CHANGES[:1], MADE_AT, root).refused
    assert one.problem.endswith("docker run --sysctl net.core.somaxconn=65535")


@pytest.mark.parametrize(
    ("path", "text", "name", "note"),
    [
        ("99-site.conf", "* soft nofile 1024\n", "zz-preflight.conf", ""),
        ("99-site.conf", "root - nofile 1024\n", "zz-preflight.conf", ""),
        ("zzz.conf", "*\thard\tnofile 4096\n", "zz-preflight.conf", "/zzz.conf sets one of these"),
        ("10-site.conf", "* - nofile 1024\n", "90-preflight.conf", ""),
        ("99-site.conf", "# * - nofile 1024\n* - core 0\n", "90-preflight.conf", ""),
        ("10-site.conf", "x\n@train - nofile 9\n", "90-preflight.conf",
         "10-site.conf:2 sets nofile for @train"),
        ("99-site.conf", "anna soft nofile 9\n", "90-preflight.conf", "sets nofile for anna"),
    ],
)  # fmt: skip
def test_a_line_that_overrides_a_limit_is_given_way_to_or_told(
    tmp_path: Path, path: str, text: str, name: str, note: str
) -> None:
    root = _with(machine(tmp_path), f"etc/security/limits.d/{path}", text)
    planned = plan(NOFILE, MADE_AT, root)
    assert [one.path for one in planned.files] == [f"/etc/security/limits.d/{name}"]
    assert note in " ".join(planned.notes)
    assert bool(note) == bool(planned.notes)


def test_what_was_changed_since_stays_and_is_told(tmp_path: Path) -> None:
    root = machine(tmp_path / "root")
    _apply(root, tmp_path / "undo.json")
    _with(root, "proc/sys/vm/swappiness", "5\n")
    _with(root, "etc/security/limits.d/90-preflight.conf", "mine\n")
    outcomes = restore(undo_file.read(tmp_path / "undo.json"), root)
    told = {one.name: one.problem for one in outcomes if one.problem}
    assert set(told) == {"/proc/sys/vm/swappiness", "/etc/security/limits.d/90-preflight.conf"}
    assert ": 5; to have it back: echo '60' | sudo tee" in told["/proc/sys/vm/swappiness"]
    assert (root / "proc/sys/vm/swappiness").read_text() == "5\n"
    assert (root / "etc/security/limits.d/90-preflight.conf").read_text() == "mine\n"
    assert (root / "proc/sys/net/core/somaxconn").read_text() == "4096\n"


FULL = File("/etc/sysctl.d/90-preflight.conf", b"")
UNDO = Undo(SCHEMA, "0.1.0", "here", MADE_AT, (FULL,))
FORBIDDEN = [
    Value("/proc/sys/kernel/core_pattern", b"core\n", b"|/tmp/evil\n"),
    Value("/proc/sys/kernel/modprobe", b"", b"/tmp/evil\n"),
    Value("/proc/sys/vm/../kernel/core_pattern", b"", b"|/tmp/evil\n"),
    Value("/proc/sys/vm.swappiness", b"", b"1\n"),
    Value("/sys/devices/system/cpu/cpu0/../../../../etc/cpufreq/scaling_governor", b"", b"x\n"),
    Value("/sys/devices/system/cpu/cpu/cpufreq/scaling_governor", b"", b"x\n"),
    Value("/etc/passwd", b"", b"root::0:0\n"),
    File("/etc/passwd", b"root::0:0\n"),
    File("/etc/sysctl.d/../passwd", b""),
    File("/etc/sysctl.d/90-preflight.conf", b"", 0o4755),
    File("/etc/sysctl.d/90-preflight.conf", b"", uid=1 << 40),
    File("/etc/sysctl.d/90-preflight.conf", b"", gid=(1 << 32) - 1),
    File("/etc/sysctl.d/90-preflight.conf", b"", uid=-1),
]


@pytest.mark.parametrize("entry", FORBIDDEN)
def test_an_undo_file_writes_nothing_that_apply_would_not(
    tmp_path: Path, entry: Value | File
) -> None:
    undo_file.write(replace(UNDO, entries=(entry,)), tmp_path / "undo.json")
    with pytest.raises(UsageError, match="nothing that preflight writes"):
        undo_file.read(tmp_path / "undo.json")


def _written(folder: Path) -> Path:
    undo_file.write(UNDO, folder / "undo.json")
    return folder / "undo.json"


def test_an_undo_file_that_another_user_could_change_is_refused(tmp_path: Path) -> None:
    path = _written(tmp_path)
    path.chmod(0o620)
    with pytest.raises(UsageError, match="another user"):
        undo_file.read(path)


def test_an_undo_file_that_is_a_link_cut_short_or_of_another_kind_is_refused(
    tmp_path: Path,
) -> None:
    path = _written(tmp_path)
    (tmp_path / "link.json").symlink_to(path)
    with pytest.raises(UsageError, match="cannot be read"):
        undo_file.read(tmp_path / "link.json")
    with pytest.raises(UsageError, match="cannot be read"):
        undo_file.read(tmp_path / "none.json")
    os.mkfifo(tmp_path / "pipe.json", 0o600)
    with pytest.raises(UsageError, match="no regular file"):
        undo_file.read(tmp_path / "pipe.json")
    text = path.read_text()
    for damaged in (text[:-20], "", "[]", "{}", json.dumps({**json.loads(text), "schema": 3})):
        path.write_text(damaged)
        with pytest.raises(UsageError, match="no whole undo file"):
            undo_file.read(path)
    path.write_text(text.replace(SCHEMA, "preflight.undo/2"))
    with pytest.raises(UsageError, match="its schema is"):
        undo_file.read(path)


def test_an_undo_file_that_holds_nothing_is_refused(tmp_path: Path) -> None:
    undo_file.write(replace(UNDO, entries=()), tmp_path / "undo.json")
    with pytest.raises(UsageError, match="holds nothing"):
        undo_file.read(tmp_path / "undo.json")


def test_an_undo_file_is_never_overwritten(tmp_path: Path) -> None:
    path = _written(tmp_path)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="nothing was changed"):
        undo_file.write(UNDO, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    assert undo_file.default_path(tmp_path, MADE_AT) != undo_file.default_path(tmp_path, "x")
    first = undo_file.default_path(tmp_path, MADE_AT)
    undo_file.write(UNDO, first)
    assert undo_file.default_path(tmp_path, MADE_AT).name == "undo-20260102T030405Z-2.json"
