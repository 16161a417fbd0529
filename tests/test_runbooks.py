"""Symptoms as users type them find the right runbook first; what is unknown finds none; every
runbook can be acted on, and every command of preflight in it is one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

from preflight import datafiles, error_texts, runbooks, strict_yaml
from preflight.cli.app import build
from preflight.judge.load import DOMAINS, load

TABLE = strict_yaml.load(
    (Path(__file__).parent / "symptoms.yaml").read_text(encoding="utf-8"), "symptoms.yaml"
)
#: Decisions stand in tables and lists; commands in code.
ACTS = re.compile(r"`[^`\n]+`|^ {4,}\S|^\|", re.MULTILINE)


@pytest.mark.parametrize(
    ("typed", "book"),
    [(typed, book) for book, phrases in TABLE["found"].items() for typed in phrases],
)
def test_words_of_a_symptom_find_its_runbook_first(typed: str, book: str) -> None:
    found = [each.id for each in runbooks.search(typed)]
    assert found[:1] == [book]


@pytest.mark.parametrize("typed", TABLE["unrelated"])
def test_what_is_unknown_finds_nothing(typed: str) -> None:
    assert runbooks.search(typed) == []


@pytest.mark.parametrize("typed", TABLE["several"])
def test_words_that_every_trouble_has_list_what_may_be_meant(typed: str) -> None:
    assert runbooks.vague(typed)
    assert runbooks.search(typed)


def test_a_symptom_with_a_word_of_its_own_is_not_vague() -> None:
    told = [typed for phrases in TABLE["found"].values() for typed in phrases]
    assert [typed for typed in told if runbooks.vague(typed)] == []


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


def test_the_first_line_of_a_runbook_keeps_its_indentation() -> None:
    lines = runbooks.load()["lock-differs"].body.splitlines()
    assert [line[:14] for line in lines[:3]] == ["    preflight "] * 3


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
    assert used - known - {""} == set()


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
