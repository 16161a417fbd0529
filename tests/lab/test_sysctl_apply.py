"""preflight sysctl --apply and --undo on real parameters: those of a network namespace of our own,
with an /etc/sysctl.d and a /var/lib of our own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import PREFLIGHT
from tests.conftest import require

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("net/core/somaxconn", "net/ipv4/tcp_max_syn_backlog")
#: Where /proc/sys may only be read, as in a container, it stays so, and --apply would say so.
_OWN = """\
set -eu
for folder in /etc/sysctl.d /var/lib; do mount -t tmpfs own $folder; done
[ -d /etc/tmpfiles.d ] && mount -t tmpfs own /etc/tmpfiles.d
mount -o remount,rw /proc/sys 2>/dev/null || :
"""


def _own(script: str, *, ready: bool = True) -> subprocess.CompletedProcess[str]:
    """A shell script in namespaces of its own; needs root."""
    can = os.geteuid() == 0 and shutil.which("unshare") is not None
    require("root and unshare", can and _namespaces_work() if ready else can)
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "PREFLIGHT": str(PREFLIGHT),
           "PYTHON": sys.executable}  # fmt: skip
    argv = ["unshare", "-n", "-m", "sh", "-c", _OWN + script]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, env=env, cwd=ROOT)


def _namespaces_work() -> bool:
    done = _own("sysctl=/proc/sys/net/core/somaxconn; echo 77 >$sysctl; cat $sysctl", ready=False)
    return done.stdout == "77\n"


@pytest.mark.lab
def test_apply_check_and_undo() -> None:
    show = "cat " + " ".join(f"/proc/sys/{name}" for name in NAMES)
    only = "--only system.sysctl.somaxconn --only system.sysctl.tcp_max_syn_backlog"
    done = _own(f"""
        echo 'net.core.somaxconn = 256' >/etc/sysctl.d/95-site.conf
        echo 1234 >/proc/sys/net/core/somaxconn
        {show}
        "$PREFLIGHT" sysctl --apply {only} >/dev/null
        {show}; cat /etc/sysctl.d/zz-preflight.conf
        "$PREFLIGHT" sysctl -q {only}
        "$PREFLIGHT" sysctl --undo /var/lib/preflight/undo-*.json >/dev/null
        {show}; ls /etc/sysctl.d
        """)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[2:4] == ["65535", "65535"]
    assert lines[5:7] == ["net.core.somaxconn = 65535", "net.ipv4.tcp_max_syn_backlog = 65535"]
    assert lines[7].startswith("PASS: 0 failed, 0 warned, 2 passed")
    assert lines[8:] == [*lines[:2], "95-site.conf"]
    assert lines[0] == "1234"
    assert f"{PREFLIGHT} sysctl --undo /var/lib/preflight/undo-" in done.stderr


@pytest.mark.lab
def test_a_second_time_there_is_nothing_to_change() -> None:
    only = "--only system.sysctl.somaxconn --set system.sysctl.somaxconn=99999"
    done = _own(f"""
        "$PREFLIGHT" sysctl --apply -q {only}
        "$PREFLIGHT" sysctl --apply {only}
        "$PREFLIGHT" sysctl --apply -q {only}
        ls /var/lib/preflight | wc -l
        """)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "nothing to change\n1\n"
    assert done.stderr == ""


@pytest.mark.lab
def test_what_cannot_be_kept_fails() -> None:
    only = "--only system.sysctl.somaxconn --set system.sysctl.somaxconn=99999"
    done = _own(f"""
        ln -s /dev/null /etc/sysctl.d/90-preflight.conf
        "$PREFLIGHT" sysctl --apply {only} && exit 9
        "$PREFLIGHT" sysctl --apply -q {only} --set system.sysctl.somaxconn=111111 && exit 9
        cat /proc/sys/net/core/somaxconn
        """)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["done", "net.core.somaxconn", "99999"]
    assert lines[1].startswith("FAIL  /etc/sysctl.d/90-preflight.conf")
    assert lines[-2].startswith("FAIL  /etc")
    assert lines[-1] == "111111"


@pytest.mark.lab
def test_the_script_does_the_same() -> None:
    done = _own("""
        "$PREFLIGHT" sysctl --fix-script >/var/lib/fix.sh
        sh /var/lib/fix.sh >/dev/null
        cat /proc/sys/net/core/somaxconn /proc/sys/net/ipv4/tcp_max_syn_backlog
        "$PREFLIGHT" sysctl --fix-script | grep -c '^now ' || :
        """)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "65535\n65535\n0\n"


@pytest.mark.lab
def test_killed_before_any_call_undo_returns_every_value() -> None:
    done = _own('exec "$PYTHON" -m tests.lab.killed_settings')
    assert done.returncode == 0, done.stderr
    calls, changed = map(int, done.stdout.split())
    assert calls > 20
    assert changed > 5


@pytest.mark.lab
def test_what_may_only_be_read_fails() -> None:
    done = _own("""
        mount -o bind,ro /proc/sys /proc/sys
        "$PREFLIGHT" sysctl --apply --only system.sysctl.somaxconn \
          --set system.sysctl.somaxconn=99999 && exit 9
        "$PREFLIGHT" sysctl --fix-script --only system.sysctl.somaxconn \
          --set system.sysctl.somaxconn=99999 >/var/lib/fix.sh
        sh /var/lib/fix.sh >/dev/null && exit 9
        rm -r /var/lib/fix.sh; ls /var/lib
        """)
    assert done.returncode == 0, done.stderr
    assert "FAIL  net.core.somaxconn" in done.stdout
    assert "/proc/sys/net/core/somaxconn cannot be written here" in done.stdout
    assert "undo" not in done.stdout + done.stderr
    assert "not all of it could be done" in done.stderr
