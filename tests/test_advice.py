"""Advice can be followed: its commands exist, and those that change something have sudo."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from preflight import datafiles, runbooks
from preflight.cli.app import COMMANDS, build
from preflight.judge import learn
from preflight.reports.wording import typed as as_typed

#: What is typed to change something.
CHANGES = re.compile(
    r"(?<![\w-])(?<!sudo )(?:systemctl (?:stop|start|restart|enable|disable)|modprobe|rmmod|umount"
    r"|nvidia-smi (?:--gpu-reset|-r|-pm|-pl|-mig|-ac|-rac|-lgc|-rgc|-e)|dcgmi diag|fsck|xfs_repair"
    r"|reboot$)\b"
)


def texts() -> Iterator[tuple[str, str]]:
    root = datafiles.root()
    for path in [*root.glob("runbooks/*.md"), *root.glob("checks/**/*.yaml")]:
        yield path.name, path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("step", "subjects", "shown"),
    [
        ("du NAME", ["/raid/a"], "du /raid/a"),
        ("systemctl edit NAME", ["slurmd.service"], "systemctl edit slurmd.service"),
        ("prlimit --pid PID", ["pid 4711", "pid 4711"], "prlimit --pid 4711"),
        ("du NAME", ["/raid", "/tmp"], "du NAME"),
        ("du NAME", ["/a;reboot"], "du NAME"),
        ("du NAME", ["node-07"], "du NAME"),
        ("RENAMED NAME", ["/"], "RENAMED /"),
    ],
)
def test_advice_names_what_it_is_about(step: str, subjects: list[str], shown: str) -> None:
    assert as_typed(step, subjects, [""]) == shown


def test_every_command_of_preflight_that_is_named_exists() -> None:
    known = {spec.name.partition(" ")[0] for spec in COMMANDS}
    named = [
        (name, word)
        for name, text in texts()
        for word in re.findall(r"(?:`|^ {4,}|: )preflight ([a-z][\w-]*)", text, re.MULTILINE)
    ]
    assert len(named) > 1
    assert [(name, word) for name, word in named if word not in known] == []


def typed_commands() -> Iterator[tuple[str, str]]:
    """Where it stands, and what follows `preflight `, to the end of what is typed."""
    places = [*texts(), ("learn.py", Path(learn.__file__).read_text(encoding="utf-8"))]
    for name, text in places:
        for match in re.finditer(
            r"(?:`|^ {4,}|[:|;] |- \"|^ +\"|sudo )preflight ([a-z][\w-]* [^`\n]*)",
            text,
            re.MULTILINE,
        ):
            yield name, re.split(r"[|;&>#`\"()\[{]|   ", match[1])[0]


def commands_of(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """All of them; those of a group after its name."""
    for name, found in group.commands.items():
        if hasattr(found, "commands"):
            yield from commands_of(found, f"{before}{name} ")
        else:
            yield f"{before}{name}", found


def parted(words: list[str], known: Iterable[str]) -> tuple[str, list[str]]:
    """The command, which may have two words, and what follows it."""
    count = 2 if " ".join(words[:2]) in known else 1
    return " ".join(words[:count]), words[count:]


def test_every_option_of_preflight_that_is_named_exists() -> None:
    """Placeholders are not values: what is asked is whether the command takes the option."""
    group = typer.main.get_command(build())
    known = {
        name: {flag for one in found.params for flag in (*one.opts, *one.secondary_opts)}
        for name, found in commands_of(group)
    }
    named = [
        (name, command, word)
        for name, typed in typed_commands()
        for command, words in [parted(typed.split(), known)]
        if command in known
        for word in re.findall(r"(?<!\S)--[a-z][\w-]*", " ".join(words))
    ]
    assert len(named) > 50
    assert [one for one in named if one[2] not in known[one[1]]] == []


def test_what_changes_something_is_typed_with_sudo() -> None:
    typed = re.compile(r"`([^`\n]+)`|^ {4,}(\S.*)$", re.MULTILINE)
    found = [
        (name, code)
        for name, text in texts()
        for match in typed.finditer(text if name.endswith(".md") else re.sub(r"(?m)^ +", "", text))
        for code in [(match[1] or match[2]).partition(" #")[0].strip()]
        if CHANGES.search(code)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("typed", "book"),
    [
        ("RmInitAdapter failed", "gpu-init-failed"),
        ("GPU has fallen off the bus", "gpu-lost"),
        ("NCCL timeout", "nccl-timeout"),
        ("NCCL watchdog", "nccl-timeout"),
        ("CUDA out of memory", "gpu-out-of-memory"),
        ("CUDA error: out of memory", "gpu-out-of-memory"),
        ("out of memory on the host", "host-memory"),
        ("uncorrectable ECC error", "gpu-memory-error"),
        ("unable to determine the device handle", "gpu-lost"),
        ("device-side assert", "application-fault"),
        ("soft lockup", "hung-task"),
        ("read-only file system", "storage-fault"),
        ("mlx5 health compromised", "nic-fault"),
        ("API mismatch", "driver-not-answering"),
    ],
)
def test_words_of_a_symptom_find_its_runbook(typed: str, book: str) -> None:
    assert runbooks.search(typed)[0].id == book
