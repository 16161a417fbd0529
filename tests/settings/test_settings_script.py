"""The script, run on a machine below a folder, in several shells."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from preflight.settings.script import scripts
from preflight.settings.wanted import ByHand, Change, LeftOut, Wanted
from tests.conftest import require
from tests.settings.machine import CHANGES, machine, snapshot

SHELLS = (("dash",), ("bash", "--posix"), ("busybox", "sh"))
NEEDED = Wanted(
    tuple(Change(*one[:3], why="it's why", current="low", check="system.sysctl.x")
          for one in ((c.kind, c.name, c.value) for c in CHANGES)),
    (LeftOut("cpu.boost", "it has no cpu.boost"),),
)  # fmt: skip


def _script(needed: Wanted = NEEDED, names: tuple[str, ...] = ("node-07",)) -> str:
    return "".join(scripts([(name, needed) for name in names]))


def _run(shell: tuple[str, ...], root: Path, text: str) -> subprocess.CompletedProcess[str]:
    """As root in its eyes, with all paths below the folder."""
    for place in ("/proc/sys/", "/sys/", "/etc/", "/run/", "/usr/", "/lib/sysctl", "/.dockerenv"):
        text = re.sub(rf"(?<![\w*/]){place}", f"{root}{place}", text)
    text = text.replace('"$(id -u)"', '"0"').replace("$(uname -n", "$(echo node-07")
    text = re.sub(r'\[ -n "\$\{container-.*\]', "false", text)
    return subprocess.run([*shell], input=text, capture_output=True, text=True, timeout=30)


@pytest.mark.parametrize("shell", SHELLS)
def test_it_sets_what_is_wanted_and_may_be_run_again(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    require(shell[0], shutil.which(shell[0]) is not None)
    root = machine(tmp_path)
    done = _run(shell, root, _script())
    assert (done.returncode, done.stderr) == (0, "")
    assert (root / "proc/sys/net/ipv4/tcp_rmem").read_text() == "4096 131072 6291456\n"
    assert (root / "sys/kernel/mm/transparent_hugepage/enabled").read_text() == "madvise\n"
    governors = list(root.glob("sys/devices/system/cpu/*/cpufreq/scaling_governor"))
    assert {one.read_text() for one in governors} == {"performance\n"}
    assert done.stdout.count("cpu.governor: performance\n") == 1  # not for each processor
    ours = (root / "etc/sysctl.d/90-preflight.conf").read_text()
    assert "vm.swappiness = 1\n" in ours
    assert "fs.aio-max-nr = 1048576\n" in ours
    assert "vm.swappiness = 10\n" not in ours
    limits = (root / "etc/security/limits.d/90-preflight.conf").read_text()
    assert "* - nofile 1048576\n" in limits
    once = snapshot(root)
    assert _run(shell, root, _script()).returncode == 0
    assert snapshot(root) == once


@pytest.mark.parametrize("shell", SHELLS)
def test_a_later_file_is_told_and_given_way_to(shell: tuple[str, ...], tmp_path: Path) -> None:
    require(shell[0], shutil.which(shell[0]) is not None)
    root = machine(tmp_path)
    (root / "etc/sysctl.d/95-site.conf").write_text("vm.swappiness = 30\n")
    done = _run(shell, root, _script())
    assert done.returncode == 0
    assert "95-site.conf sets one of these too" in done.stderr
    last = root / "etc/sysctl.d/zz-preflight.conf"
    assert "vm.swappiness = 1\n" in last.read_text()
    (root / "etc/sysctl.d/95-site.conf").unlink()
    last.write_text("vm.swappiness = 7\n")
    assert _run(shell, root, _script()).returncode == 0
    assert "vm.swappiness = 7\n" not in last.read_text()


def test_a_value_that_cannot_be_written_fails_and_stops_nothing(tmp_path: Path) -> None:
    root = machine(tmp_path)
    (root / "proc/sys/net/core/somaxconn").unlink()
    (root / "proc/sys/net/core/somaxconn").mkdir()
    done = _run(("sh",), root, _script())
    assert done.returncode == 1
    assert "somaxconn cannot be written here" in done.stderr
    assert (root / "proc/sys/vm/swappiness").read_text() == "1\n"


LIMIT = Wanted((Change("limit", "nofile", "2000000"),))


@pytest.mark.parametrize("shell", SHELLS)
def test_open_files_beyond_nr_open_raise_it_first(shell: tuple[str, ...], tmp_path: Path) -> None:
    require(shell[0], shutil.which(shell[0]) is not None)
    root = machine(tmp_path)
    (root / "proc/sys/fs").mkdir()
    (root / "proc/sys/fs/nr_open").write_text("1048576\n")
    done = _run(shell, root, _script(LIMIT))
    assert (done.returncode, done.stderr) == (0, "")
    assert (root / "proc/sys/fs/nr_open").read_text() == "2000000\n"
    ours = (root / "etc/sysctl.d/90-preflight.conf").read_text()
    assert "fs.nr_open = 2000000\n" in ours
    assert "vm.swappiness = 10\n" in ours
    limits = root / "etc/security/limits.d/90-preflight.conf"
    assert "* - nofile 2000000\n" in limits.read_text()
    limits.unlink()
    refuses = _script(LIMIT).replace("now fs.nr_open 2000000", ": ")
    (root / "proc/sys/fs/nr_open").write_text("1048576\n")
    done = _run(shell, root, refuses)
    assert done.returncode == 1
    assert "nofile: left alone" in done.stderr
    assert "not all of it could be done" in done.stderr
    assert not limits.exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_in_a_container_no_limit_is_written(shell: tuple[str, ...], tmp_path: Path) -> None:
    require(shell[0], shutil.which(shell[0]) is not None)
    root = machine(tmp_path)
    (root / ".dockerenv").touch()
    done = _run(shell, root, _script(LIMIT))
    assert (done.returncode, done.stderr) == (0, "")
    assert "docker run --ulimit nofile=2000000:2000000" in done.stdout
    assert not (root / "etc/security/limits.d/90-preflight.conf").exists()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_line_that_overrides_a_limit_is_given_way_to_and_told(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    require(shell[0], shutil.which(shell[0]) is not None)
    root = machine(tmp_path)
    site = root / "etc/security/limits.d/99-site.conf"
    site.write_text("* soft nofile 1024\n@train - nofile 9\nroot - nofile 9\n# @x - nofile 1\n")
    done = _run(shell, root, _script(LIMIT))
    assert done.returncode == 0
    assert "99-site.conf sets one of these too" in done.stderr
    assert [line for line in done.stderr.splitlines() if "for them" in line] == [
        f"note: for them this line counts: {site}:2:@train - nofile 9"
    ]
    assert "nofile 2000000" in (root / "etc/security/limits.d/zz-preflight.conf").read_text()


@pytest.mark.parametrize("shell", SHELLS)
def test_a_file_that_cannot_be_written_fails_and_stops_nothing(
    shell: tuple[str, ...], tmp_path: Path
) -> None:
    """A full disk: what was there stays, and all else is done."""
    require(shell[0], shutil.which(shell[0]) is not None)
    root = machine(tmp_path)
    before = (root / "etc/sysctl.d/90-preflight.conf").read_bytes()
    full = _script().replace("new=$file.new.$$", "new=/dev/full; rm() { :; }")
    done = _run(shell, root, full)
    assert done.returncode == 1
    assert "90-preflight.conf: cannot be written, and is as it was" in done.stderr
    assert "not all of it could be done" in done.stderr
    assert (root / "proc/sys/vm/swappiness").read_text() == "1\n"
    assert (root / "etc/sysctl.d/90-preflight.conf").read_bytes() == before


def test_a_link_in_the_place_of_a_file_stays(tmp_path: Path) -> None:
    root = machine(tmp_path)
    ours = root / "etc/sysctl.d/90-preflight.conf"
    ours.unlink()
    ours.symlink_to("/dev/null")
    done = _run(("sh",), root, _script())
    assert done.returncode == 1
    assert "it is a link, and stays" in done.stderr
    assert ours.is_symlink()


def test_elsewhere_it_warns(tmp_path: Path) -> None:
    root = machine(tmp_path)
    done = _run(("sh",), root, _script(names=("node-08.cluster",)))
    assert "this was made for node-08, and here is node-07" in done.stderr
    assert "uname" not in _script(names=("node-07", "node-08"))
    assert "uname" not in _script(names=("10.1.2.3",))  # no machine is called so


def test_what_it_does_not_set_is_told() -> None:
    needed = Wanted(CHANGES[:1], by_hand=(ByHand("system.disk.space", "du /"),))
    line = "# Not set, by hand: system.disk.space: du /\n"
    assert line in _script(needed)
    assert line in _script(Wanted(by_hand=needed.by_hand))


def test_without_root_it_does_nothing(tmp_path: Path) -> None:
    root = machine(tmp_path)
    before = snapshot(root)
    done = _run(("sh",), root, _script().replace('"$(id -u)"', '"1000"'))
    assert done.returncode == 1
    assert "needs root" in done.stderr
    assert snapshot(root) == before


def test_nothing_of_a_host_reaches_the_shell() -> None:
    evil = "x\n$(touch /tmp/evil) `id` '; reboot #\x1b[2J"
    changes = (Change("sysctl", "vm.swappiness", "1", evil, evil, "system.sysctl.swappiness"),)
    needed = Wanted(changes, (LeftOut("cpu.boost", evil),))
    text = _script(needed, ("a\nreboot",))
    for line in text.splitlines():
        assert line.startswith("#") or not re.search("touch|reboot|`id`", line), line
    assert "\x1b" not in text


def test_one_script_for_each_group_and_none_of_them_runs_by_mistake(tmp_path: Path) -> None:
    one, other = Wanted(CHANGES[:1]), Wanted(CHANGES[:2])
    nothing = Wanted(unknown="no route to host")
    hosts = [("n1", one), ("n2", other), ("n3", one), ("n4", Wanted()), ("n5", nothing)]
    text = "".join(scripts(hosts))
    heads = re.findall(r"^# For (.*), by preflight", text, re.MULTILINE)
    assert heads == ["n[1,3]", "n2"]
    assert text.count("#!/bin/sh\n") == 2
    assert text.endswith("# n5: not known, no route to host\n# n4: nothing to change\n")
    root = machine(tmp_path)
    before = snapshot(root)
    done = _run(("sh",), root, text)
    assert done.returncode == 2
    assert "cut them apart" in done.stderr
    assert snapshot(root) == before


def test_a_single_group_is_one_script_from_its_first_line() -> None:
    text = _script(names=("n1", "n2"))
    assert text.startswith("#!/bin/sh\n# For n[1-2], by")
    assert "# Not set, it has no cpu.boost: cpu.boost." in text
    assert "# system.sysctl.x: it is low.\n# it's why\n" in text
    assert max(map(len, text.splitlines())) < 600
