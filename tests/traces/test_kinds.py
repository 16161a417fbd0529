"""Which files diagnose-step-time takes for traces and timelines, whatever they are called."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from preflight.cli.targets.kinds import KINDS
from preflight.cli.targets.walk import head_of, kind_of
from tests.conftest import SAMPLES
from tests.traces.built import timeline_texts, trace_texts

REAL = [(path, "trace") for path in sorted((SAMPLES / "kineto").glob("*.gz"))]
REAL += [(path, "timeline") for path in sorted((SAMPLES / "op_timeline").glob("*.gz"))]


def kind(path: Path) -> str | None:
    found = kind_of(head_of(path), path.name, KINDS)
    return None if found is None else found.name


@pytest.mark.parametrize(("path", "name"), REAL, ids=lambda one: getattr(one, "name", one))
def test_real_ones_with_and_without_a_suffix(path: Path, name: str, tmp_path: Path) -> None:
    assert kind(path) == name
    for other in ("trace", "x.log", "x.json"):
        copy = tmp_path / other
        copy.write_bytes(path.read_bytes())
        assert kind(copy) == name
    copy.write_bytes(gzip.decompress(path.read_bytes()))
    assert kind(copy) == name


def test_layouts(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    for texts, name in ((trace_texts(), "trace"), (timeline_texts(), "timeline")):
        for text in texts:
            file.write_text(text)
            assert kind(file) == name


def test_a_list_of_all_ranks_may_stand_before_the_events(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    ranks = ", ".join(map(str, range(100_000)))
    file.write_text('{"distributedInfo": {"ranks": [' + ranks + ']}, "traceEvents": []}')
    assert kind(file) == "trace"


@pytest.mark.parametrize(
    "text",
    [
        '{"entries": [], "version": "2.4"}', '[{"loss": 1.5, "step": 3}]',
        '{"step": 1, "loss": 2.0}\n' * 20, 'step 1 wrote "traceEvents": 17 to the trace\n' * 5,
    ],
)  # fmt: skip
def test_others_are_not(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text)
    assert kind(file) not in ("trace", "timeline")
