"""--fix-script, --apply and --undo as a user types them: what they refuse, and what they print."""

from __future__ import annotations

import json
import os
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from preflight.capture import Writer
from preflight.model import Raw
from tests.cli.command import PREFLIGHT, preflight
from tests.parameters_text import BASES, PARAMETERS

LOW = PARAMETERS.replace("swappiness:1", "swappiness:60").replace("governor performance",
                                                                  "governor powersave")  # fmt: skip


def _capture(path: Path, hosts: dict[str, str]) -> str:
    with Writer(path) as writer:
        for name, text in hosts.items():
            answers = {**BASES["parameters"], "sysctls": text}
            answers["identity"] = f"hostname {name}\nuptime 864000.0 1\nuid 0\n"
            writer.write([Raw(name, probe, ("sh",), 0, told) for probe, told in answers.items()])
    return str(path)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--apply", "--undo", "x"), "--apply and --undo are two things"),
        (("--apply", "--fix-script"), "--fix-script and --apply are two things"),
        (("--apply", "--from", "x"), "--apply changes this machine only"),
        (("--apply", "--hosts", "n1"), "--apply changes this machine only"),
        (("--apply", "--slurm"), "--apply changes this machine only"),
        (("--undo", "x", "--hosts", "n1"), "--undo changes this machine only"),
        (("--fix-script", "--format", "json"), "--fix-script has no report to print as json"),
        (("--undo-file", "x"), "--undo-file is where --apply writes"),
        (("--undo", "/nonexistent.json"), "cannot be read: No such file"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments: tuple[str, ...], said: str) -> None:
    ran = preflight("sysctl", *arguments)
    assert ran.rc == 2
    assert ran.out == ""
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_one_script_for_hosts_that_need_the_same(tmp_path: Path) -> None:
    capture = _capture(tmp_path / "all.capture.gz",
                       {"n1": LOW, "n2": LOW, "n3": PARAMETERS})  # fmt: skip
    ran = preflight("sysctl", "--fix-script", "--from", capture)
    assert ran.rc == 0
    assert ran.out.startswith("#!/bin/sh\n# For n[1-2], by preflight sysctl.\n")
    assert "\nnow vm.swappiness 1 /proc/sys/vm/swappiness\n" in ran.out
    assert "system.sysctl.swappiness: it is 60.\n# While a checkpoint is written" in ran.out
    assert "\nnow cpu.governor performance /sys/devices/system/cpu/cpu[0-9]*/" in ran.out
    assert "\n# n3: nothing to change\n" in ran.out
    assert ran.out.endswith("# Not set, not in the input: nofile, memlock, nproc.\n")
    assert "WARN: 0 failed, " in ran.err


def test_two_groups_are_two_scripts(tmp_path: Path) -> None:
    other = LOW.replace("governor powersave", "governor performance")
    capture = _capture(tmp_path / "all.capture.gz", {"n1": LOW, "n2": other})
    out = preflight("sysctl", "--fix-script", "--from", capture).out
    assert [line for line in out.splitlines() if line.startswith("# For")] == [
        "# For n1, by preflight sysctl.", "# For n2, by preflight sysctl."
    ]  # fmt: skip
    assert out.startswith("echo 'here are 2 scripts")


def test_a_profile_decides_the_value(tmp_path: Path) -> None:
    profile = tmp_path / "site.yaml"
    profile.write_text("set: {system.sysctl.swappiness: 10, system.sysctl.rmem_max: 67108864}\n")
    capture = _capture(tmp_path / "all.capture.gz", {"n1": LOW})
    out = preflight("sysctl", "--fix-script", "--from", capture, "--profile", str(profile)).out
    assert "\nnow vm.swappiness 10 " in out
    assert "'net.core.rmem_max = 67108864'" in out


def test_a_file_that_could_not_be_read_is_no_host_without_need(tmp_path: Path) -> None:
    capture = _capture(tmp_path / "all.capture.gz", {"n1": PARAMETERS})
    (tmp_path / "odd.bin").write_bytes(b"\x00\x01odd")
    ran = preflight(
        "sysctl", "--fix-script", "--from", capture, "--from", str(tmp_path / "odd.bin")
    )
    assert "odd.bin: not known, " in ran.out
    assert "nothing to change" in ran.out


def test_undo_of_another_host_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "undo.json"
    undo: dict[str, Any] = {"schema": "preflight.undo/1", "preflight": "0.1.0", "host": "elsewhere",
            "made_at": "2026-01-02T03:04:05Z", "entries": []}  # fmt: skip
    undo["entries"] = [{"type": "file", "path": "/etc/sysctl.d/90-preflight.conf",
                        "before": None, "mode": 420, "uid": 0, "gid": 0}]  # fmt: skip
    path.write_text(json.dumps(undo))
    path.chmod(0o600)
    ran = preflight("sysctl", "--undo", str(path))
    assert ran.rc == 2
    assert "was made on elsewhere" in ran.err
    assert f"write {socket.gethostname()} for it in that file" in ran.err
    undo["host"] = socket.gethostname()
    path.write_text(json.dumps(undo))
    ran = preflight("sysctl", "--undo", str(path), "--dry-run")
    assert (ran.rc, ran.out) == (0, "would put back /etc/sysctl.d/90-preflight.conf\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
@pytest.mark.lab
def test_without_root_nothing_is_changed_and_it_says_so() -> None:
    under = ("setpriv", "--reuid", "65534", "--clear-groups")
    ran = preflight("sysctl", "--apply", under=under, HOME="/nonexistent")
    assert ran.rc == 2
    assert "takes root" in ran.err
    assert f"sudo {PREFLIGHT} sysctl --apply\n" in ran.err  # sudo does not look in our PATH


def test_what_would_be_changed_is_shown_and_nothing_is_run() -> None:
    ran = preflight("sysctl", "--apply", "--dry-run", "--only", "system.sysctl.somaxconn",
                    "--set", "system.sysctl.somaxconn=99999")  # fmt: skip
    assert "would run" not in ran.out
    assert re.search(r"would set +net.core.somaxconn +99999, it is|cannot be written", ran.out)
    if "would set" in ran.out:
        assert "would write  /etc/sysctl.d/" in ran.out
    assert "undo" not in ran.err


def test_the_script_names_what_it_does_not_set(tmp_path: Path) -> None:
    low = PARAMETERS.replace("clocksource tsc", "clocksource hpet")
    assert low != PARAMETERS
    capture = _capture(tmp_path / "all.capture.gz", {"n1": low})
    ran = preflight("sysctl", "--fix-script", "--from", capture)
    assert "# n1: nothing to change\n" in ran.out
    assert "# Not set, by hand: system.sysctl.clocksource: sudo dmesg | grep" in ran.out


def test_explain_shows_the_value_and_where_it_comes_from(tmp_path: Path) -> None:
    shipped = preflight("explain", "system.sysctl.swappiness").out
    assert "warns      unless at most 1\n" in shipped
    assert "sets       vm.swappiness 1 (--fix-script, --apply)\n" in shipped
    assert "declared   checks/parameters.yaml:" in shipped
    profile = tmp_path / "site.yaml"
    profile.write_text("set: {system.sysctl.swappiness: 10}\n")
    site = preflight("explain", "system.sysctl.swappiness", "--profile", str(profile)).out
    assert "warns      unless at most 10\n" in site
    assert f"value      10, by profile {profile}\n" in site
    assert "sets       vm.swappiness 10 (" in site
    user = preflight("explain", "system.sysctl.swappiness", "--set", "system.sysctl.swappiness=5")
    assert "value      5, by --set\n" in user.out
    assert preflight("explain", "79", "--profile", "nosuch").rc == 2


def test_the_profile_of_ethernet_storage_raises_buffers(tmp_path: Path) -> None:
    capture = _capture(tmp_path / "all.capture.gz", {"n1": PARAMETERS})
    out = preflight(
        "sysctl", "--fix-script", "--from", capture, "--profile", "ethernet-storage"
    ).out
    assert "'net.ipv4.tcp_rmem = 4096 131072 67108864'" in out
    assert "'net.core.netdev_max_backlog = 30000'" in out
