"""File names become stand-ins wherever they stand in a command line, a source, a sentence."""

from __future__ import annotations

import json
import shlex

import pytest

from preflight.model import Raw
from preflight.redact.redactor import Redactor, redact_raw


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("run --from secret-node-17.txt", "run --from file-1"),
        ("run --from=a/secret.txt --save r.json", "run --from=file-1 --save file-2"),
        ("run --from n=a.xml --from n=log", "run --from host-1=file-1 --from host-1=file-2"),
        ("run --from a/c=d --from ./x --from x", "run --from file-1 --from file-2 --from file-2"),
        ("run --from - --profile cloud-vm", "run --from - --profile cloud-vm"),
        ("run --profile acme.yaml --checks acme", "run --profile file-1 --checks file-2"),
        ("capture -o acme.capture.gz", "capture -o file-1"),
        ("capture -oacme.capture.gz", "capture -ofile-1"),
        ("run --only gpu.ecc --set a.count=8", "run --only gpu.ecc --set a.count=8"),
        ("run --hosts 'atlas-[1-2]' -v", "run --hosts 'host-[1-2]' -v"),
        ("divergence-rescue /data/acme/run7 run.log", "divergence-rescue file-1 file-2"),
        ("micro-train --data acme7 --folder=/s/me", "micro-train --data file-1 --folder=file-2"),
        ("/opt/acme/bin/preflight run", "/opt/acme/bin/preflight run"),
    ],
)  # fmt: skip
def test_a_command_line_names_no_file_and_no_host(line: str, shown: str) -> None:
    redactor = Redactor()
    once = redactor.arguments(shlex.split(line))
    assert once == shlex.split(shown)
    assert Redactor().arguments(once) == once


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("/data/acme/secret-node-17.txt", "file-1"),
        ("dmesg", "file-1"),
        ("my notes.txt", "file-1"),
        ("a.log, then b.log from line 12", "file-1, then file-2 from line 12"),
        (
            "a.log, then b.log from line 12, then a.log from line 30",
            "file-1, then file-2 from line 12, then file-1 from line 30",
        ),
        ("a capture, then b.log from line 12", "a capture, then file-1 from line 12"),
        ("standard input", "standard input"),
        ("", ""),
    ],
)
def test_a_source_is_one_file_or_several(source: str, shown: str) -> None:
    assert Redactor().source(source) == shown
    assert Redactor().source(shown) == shown


def test_a_file_once_named_is_known_in_other_texts_with_and_without_its_folder() -> None:
    redactor = Redactor()
    assert redactor.file("/data/acme/secret.txt") == "file-1"
    told = "see /data/acme/secret.txt or secret.txt, not mysecret.txt or secret.txt.gz"
    assert redactor.full(told) == "see file-1 or file-1, not mysecret.txt or secret.txt.gz"


def test_the_folders_of_a_training_run_are_named_nowhere_in_its_answer() -> None:
    plan = json.dumps({"data": "/projects/acme/corpus", "folder": "/scratch/acme", "ranks": 2})
    told = json.dumps({"kind": "cannot", "text": "--data: /projects/acme/corpus/a.bin: truncated?"})
    raw = Raw("n", "micro-train", ("python3", "-I", "-", "train", "--plan", plan), 0, f"{told}\n")
    shown = redact_raw(raw, Redactor())
    assert "acme" not in f"{shown.argv} {shown.stdout!r}"
    assert json.loads(shown.argv[-1])["ranks"] == 2
    assert json.loads(str(shown.stdout))["kind"] == "cannot"


def test_a_file_that_is_called_like_a_tool_does_not_rename_the_tool() -> None:
    redactor = Redactor()
    assert redactor.file("nvidia-smi") == "file-1"
    assert redactor.full("nvidia-smi failed; dmesg too") == "nvidia-smi failed; dmesg too"


def test_a_refusal_names_no_other_file() -> None:
    why = "not judged: my node 18 answers the same for host atlas; see logs/node-19.txt"
    assert Redactor(["atlas"]).refusal(why) == (
        "not judged: my node 18 answers the same for host host-1; see file-2"
    )
