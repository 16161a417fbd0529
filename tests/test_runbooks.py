"""Symptoms as users type them find the right runbook first; what is unknown finds none; every
runbook can be acted on, and every command of preflight in it is one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
from typer.main import get_command

from preflight import datafiles, error_texts, runbooks
from preflight.cli.app import build
from preflight.judge.load import DOMAINS, load

#: Runbook -> phrasings that must find it first.
PHRASES: dict[str, tuple[str, ...]] = {
    "loss-zero": (
        "loss is zero",
        "loss zero",
        "my loss is 0.0",
        "training loss is always 0",
        "los is zero",
        "all labels -100",
    ),
    "loss-nan": (
        "loss goes to nan",
        "loss became NaN after 2000 steps",
        "nan loss",
        "grad_norm is nan",
        "loss is inf",
    ),
    "loss-spike": (
        "loss spikes",
        "sudden loss spike",
        "loss explodes",
        "the loss jumped up",
        "training diverged",
    ),
    "loss-flat": (
        "loss does not decrease",
        "loss is not going down",
        "loss not falling",
        "loss stuck",
        "the model does not learn anything",
        "loss plateaus",
    ),
    "gradient-norm": (
        "gradient norm keeps rising",
        "grad norm increasing",
        "gradients explode",
        "exploding gradient",
    ),
    "loss-scale": (
        "loss scale falling",
        "skipped steps",
        "gradient overflow",
    ),
    "output-one-token": (
        "output is all one token",
        "model repeats the same token",
        "outputs garbage after loading checkpoint",
        "generates only exclamation marks",
    ),
    "data-wait": (
        "util goes up and down",
        "gpu utilization swings",
        "gpu utilisation fluctuates between 0 and 100",
        "dataloader slow",
        "data loader is the bottleneck",
        "low gpu utilization",
        "gpu is idle waiting for batches",
    ),
    "allreduce-slow": (
        "all reduce x3 slower",
        "allreduce became slow",
        "all-reduce is 3x slower during the run",
        "nccl is slow",
        "slow communication between nodes",
        "nccl bandwith dropped",
    ),
    "slow-rank": (
        "one rank slow",
        "one node is slower than the others",
        "stragglers",
        "stragler",
    ),
    "loss-after-resume": (
        "loss jumps after resume",
        "loss is higher after resuming from a checkpoint",
    ),
    "slow-first-steps": (
        "slow after resume",
        "first steps are slow",
        "slow first step",
        "torch.compile recompiling",
    ),
    "checkpoint-slow": (
        "checkpoint slow",
        "saving checkpoints takes forever",
        "checkpoint saving is slow",
    ),
    "nccl-timeout": (
        "training hangs",
        "training hang",
        "traning hangs",
        "job is stuck",
        "NCCL timeout",
        "nccl timout",
        "watchdog timeout",
    ),
    "gpu-out-of-memory": (
        "CUDA out of memory after hours",
        "oom after some hours",
        "cuda oom",
        "gpu memory fragmented",
    ),
    "gpu-busy-but-slow": (
        "GPU is 100 % busy but slow",
        "gpu at 100% but training is slow",
        "low mfu",
        "low throughput at full utilization",
    ),
    "loader-killed": (
        "dataloader workers killed",
        "dataloader worker killed by signal",
        "bus error in data loader",
        "/dev/shm is full",
        "shared memory too small",
    ),
    "slow-drift": (
        "training gets slower over days",
        "throughput drops over time",
        "memory leak",
    ),
    "step-jitter": (
        "backward time jitter",
        "step time varies",
        "random slow steps",
    ),
    "rendezvous": (
        "rendezvous timed out",
        "address already in use",
        "connection refused",
        "init_process_group hang",
    ),
    "cuda-not-available": (
        "torch.cuda.is_available returns False",
        "cuda is not available",
        "torch cannot see the gpu",
    ),
    "cuda-versions": (
        "nvidia driver is too old",
        "cuda versions mismatch",
    ),
    "limits-low": (
        "too many open files",
        "memlock limit",
    ),
    "shared-storage": (
        "stale file handle",
        "nfs is slow",
    ),
    "checkpoint-load": (
        "checkpoint does not load",
        "corrupt checkpoint",
        "missing keys in state dict",
    ),
    "gpu-lost": (
        "gpu fell off the bus",
        "gpu has falen off the bus",
    ),
    "overheating": (
        "gpu too hot",
        "thermal throttling",
    ),
    "driver-not-answering": ("nvidia-smi hangs",),
    "gpu-missing": ("gpu missing",),
    "gpu-memory-error": ("ecc errors",),
    "clocks-locked": ("clocks are locked",),
    "host-memory": ("host killed process oom",),
    "link-flap": ("link flapping",),
    "nvlink-error": ("nvlink errors",),
    "storage-fault": ("read only filesystem",),
    "kernel-panic": ("node rebooted by itself",),
    "persistence-off": ("persistence mode off",),
}

#: The same, written down by another road: what the words of the first table do not hold.
MORE: dict[str, tuple[str, ...]] = {
    "loss-zero": (
        "why is my loss zero?",
        "the loss is exactly 0 since the start",
    ),
    "loss-nan": (
        "loss turned into NaN",
        "NaN losses",
    ),
    "loss-spike": (
        "model diverges",
        "loss suddenly goes up",
    ),
    "loss-flat": (
        "loss wont go down",
        "loss constant",
    ),
    "gradient-norm": (
        "gradient norms grow",
        "gradnorm rising",
    ),
    "loss-scale": (
        "fp16 loss scale goes to zero",
        "too many skipped iterations",
    ),
    "output-one-token": (
        "always generates the same token",
        "generation is repetitive garbage",
    ),
    "data-wait": (
        "GPU util jumping between 0% and 100%",
        "utilisation swinging",
        "training starved by data loading",
    ),
    "allreduce-slow": (
        "all_reduce slow down",
        "ncll allreduce slower than before",
        "nccl fell back to tcp",
    ),
    "slow-rank": (
        "one gpu is slower",
        "slow node",
        "how to find the straggler",
    ),
    "loss-after-resume": (
        "loss is different after resume",
        "after restart the loss is higher",
    ),
    "slow-first-steps": ("first iterations are very slow",),
    "checkpoint-slow": (
        "saving the checkpoint blocks training",
        "checkpoint write is slow",
    ),
    "nccl-timeout": (
        "job hangs",
        "training freezes without error",
        "NCCL watchdog timeout",
        "collective timed out",
    ),
    "gpu-out-of-memory": (
        "out of GPU memory",
        "cuda out of memmory",
    ),
    "gpu-busy-but-slow": (
        "GPUs busy at 100% but slow",
        "mfu too low",
    ),
    "loader-killed": (
        "loader workers get killed",
        "shm full",
    ),
    "slow-drift": (
        "training slows down over time",
        "step time grows every epoch",
    ),
    "step-jitter": ("backward jitters",),
    "cuda-not-available": ("gpu not detected by torch",),
    "cuda-versions": ("cuda driver too old",),
    "limits-low": ("ulimit too low",),
    "shared-storage": ("lustre is slow",),
    "checkpoint-load": (
        "checkpoint is corrupted",
        "state_dict missing keys",
    ),
    "gpu-lost": ("gpu lost",),
    "overheating": ("gpu temperatures high",),
    "driver-not-answering": ("nvidia-smi does not answer",),
    "gpu-missing": ("7 gpus instead of 8",),
    "gpu-memory-error": ("double bit ecc",),
    "link-flap": ("infiniband link down",),
    "nvlink-error": ("nvlink inactive",),
    "pcie-link-degraded": ("pcie x8",),
    "power-brake": ("power capped gpus",),
    "fabric-not-ready": ("fabric manager not running",),
}

#: Of other matters: nothing may be found.
UNRELATED = (
    "my printer is out of paper",
    "how do I bake bread",
    "the coffee machine is broken",
    "weather tomorrow",
    "buy cheap shoes online",
    "qwertz zuiop",
    "what is the capital of France",
    "python list comprehension",
    "git merge conflict",
    "wifi password",
    "the website does not open",
    "how to write a novel",
    "keyboard layout is wrong",
    "invoice number 4711 unpaid",
    "lorem ipsum dolor sit amet",
    "monitor flickers",
    "docker build fails",
    "recipe for pancakes",
    "how tall is the Eiffel tower",
    "my phone battery",
    "translate this to German",
    "excel formula",
    "bicycle tyre",
    "javascript promise",
    "football results",
    "holiday in Spain",
    "vacuum cleaner bag",
    "credit card declined",
    "css center div",
    "spotify playlist",
    "dentist appointment",
    "birthday present ideas",
)


#: Decisions stand in tables and lists; commands in code.
ACTS = re.compile(r"`[^`\n]+`|^ {4,}\S|^\|", re.MULTILINE)


@pytest.mark.parametrize(
    ("typed", "book"),
    [(typed, book) for table in (PHRASES, MORE) for book, all_ in table.items() for typed in all_],
)
def test_words_of_a_symptom_find_its_runbook_first(typed: str, book: str) -> None:
    found = [each.id for each in runbooks.search(typed)]
    assert found[:1] == [book]


@pytest.mark.parametrize("typed", UNRELATED)
def test_what_is_unknown_finds_nothing(typed: str) -> None:
    assert runbooks.search(typed) == []


@pytest.mark.parametrize("book", runbooks.load())
def test_each_symptom_of_a_runbook_finds_it_first(book: str) -> None:
    missed = [
        (symptom, found)
        for symptom in runbooks.load()[book].symptoms
        if (found := [each.id for each in runbooks.search(symptom)])[:1] != [book]
    ]
    # One text may stand in two runbooks, as "nvidia-smi hangs" does.
    assert [one for one in missed if book not in one[1]] == []
    assert len(missed) <= 2, missed


def test_one_letter_may_be_wrong() -> None:
    words = {
        "straggler": "slow-rank",
        "throttling": "overheating",
        "persistence": "persistence-off",
    }
    for word, book in words.items():
        for at in range(1, len(word)):
            for wrong in (word[:at] + word[at + 1 :], word[:at] + "x" + word[at + 1 :]):
                found = [each.id for each in runbooks.search(wrong)]
                assert book in found, wrong


@pytest.mark.parametrize("book", runbooks.load().values(), ids=lambda book: book.id)
def test_a_runbook_says_what_to_do_on_one_screen(book: runbooks.Runbook) -> None:
    assert book.symptoms
    assert ACTS.search(book.body)
    assert len(book.body.splitlines()) <= 48
    prose = [line for line in book.body.splitlines() if not line.startswith(("|", "    "))]
    assert max(map(len, prose)) <= 120


def test_every_runbook_that_is_named_exists() -> None:
    known = set(runbooks.load())
    used = {check.runbook for check in load(DOMAINS).checks}
    used |= {row.runbook for row in error_texts.rows()}
    assert used - known == set()


def commands() -> Iterator[tuple[str, str]]:
    """Every command line of preflight in runbooks, fixes and next steps, with where it stands."""
    root = datafiles.root()
    found = re.compile(
        r"`(preflight [^`]+)`|^ {4,}(preflight .*)$|preflight (explain [\w.-]+)", re.M
    )
    for path in [*root.glob("runbooks/*.md"), *root.glob("checks/**/*.yaml")]:
        for match in found.finditer(path.read_text(encoding="utf-8")):
            line = match[1] or match[2] or f"preflight {match[3]}"
            yield path.name, re.sub(r"\s+", " ", line.partition(" #")[0].partition(" <")[0])


def test_every_command_of_preflight_is_one() -> None:
    told = list(commands())
    assert len(told) > 40
    program = get_command(build())
    for where, line in told:
        name, *arguments = shlex.split(line)[1:]
        command = program.commands.get(name)  # type: ignore[attr-defined]
        assert command is not None, (where, line)
        command.make_context(name, list(arguments))  # raises for an option that there is not
        if name == "explain" and arguments and arguments[0].islower():
            known = {check.id for check in load(DOMAINS).checks} | set(runbooks.load())
            assert arguments[0] in known or arguments[0] in ("-",), (where, line)
