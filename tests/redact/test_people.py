"""Names of people get stand-ins: in process lists, logs, paths; words and system accounts stay."""

from __future__ import annotations

import pytest

from preflight.redact.redactor import Redactor

NAMED = [
    "/home/{}/run.py",
    "/global/homes/j/{}/run.py",
    "/nfs_home2/{}/run.py",
    "User=ACME\\{}",
    "UserId={}(1000) uid=1000({})",
    "groups=1000({}),27(sudo)",
    'audit: acct="{}" AUID="{}" uid=0',
    "sshd[1]: Invalid user {} from 127.0.0.1",
    "sshd[1]: Disconnected from user {} 127.0.0.1 port 4711",
    "sshd[1]: Connection closed by authenticating user {} 127.0.0.1",
    "sshd[1]: Accepted keyboard-interactive/pam for {} from 127.0.0.1",
    "systemd[1]: Started Session 4 of User {}.",
    "systemd[1]: Created slice User Slice of {}.",
    "su: (to root) {} on pts/0",
    "CRON[4711]: ({}) CMD (run)",
    "USER         PID %CPU %MEM    VSZ   RSS TTY\n{}  4711 99.0  1.2 123456  7890 ?        Rl",
    "UID          PID    PPID  C STIME TTY\n{}       4711       1 99 10:00 ?    00:01:00 python",
    "    PID USER      PR  NI    VIRT    RES\n   4711 {}      20   0   72.1g   1.2g S python",
    "-rw-r--r-- 1 {} acme 4096 Jan 1 x",
    "/dev/nvidia0:        {}      4711 F...m python3",
    "COMMAND  PID USER   FD   TYPE\npython3 4711 {}  mem    CHR  195,0 /dev/nvidia0",
]


@pytest.mark.parametrize("text", NAMED)
def test_a_user_gets_a_stand_in_and_keeps_it(text: str) -> None:
    redactor = Redactor()
    shown = text.replace("ACME\\", "").replace("{}", "user-1")
    assert redactor.full(text.replace("{}", "jdoe")) == shown
    assert redactor.full(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "stopped by user request, page fault for user address, by user space, of user memory",
        "USER         PID %CPU %MEM    VSZ   RSS TTY\nroot  4711 99.0  1.2 123456  7890 ?   Rl",
        "-rw-r--r-- 1 root root 4096 Jan 1 x; crw-rw-rw- 1 root root 195, 0 nvidia0",
        "Created slice User Slice of UID 1000; user=ubuntu; uid=0(root) gid=27(sudo)",
        "/home/conda/lib/x.so /home/linuxbrew/bin",
        "Session 4 of user root.",
        "(root) CMD (run-parts /etc/cron.hourly)",
    ],
)
def test_words_and_accounts_of_the_system_stay(text: str) -> None:
    assert Redactor().full(text) == text


def test_a_user_once_named_is_known_as_a_folder() -> None:
    redactor = Redactor()
    assert redactor.full("UserId=jdoe(1000)") == "UserId=user-1(1000)"
    assert redactor.full("/scratch/jdoe/x, /mnt/jdoe.old, jdoe") == (
        "/scratch/user-1/x, /mnt/jdoe.old, jdoe"
    )


def test_an_address_goes_as_a_whole_with_its_user() -> None:
    assert Redactor().full("jo.doe@acme.com and git@login01.acme.com") == "email-1 and email-2"
