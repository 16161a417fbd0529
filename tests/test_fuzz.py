"""A thousand mutated inputs over every reader; `make fuzz` runs a million."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from fuzz import drawn, pipeline
from fuzz.mutations import MUTATIONS, Mutation, mutated
from fuzz.seeds import foreign, seeds
from fuzz.targets import Target, targets
from fuzz.trial import judged, least, tried, watched
from preflight.assemble.tables import PROBES
from preflight.errors import ParseError, UsageError
from preflight.model import LinkTable, Map, MapNode, Status
from preflight.recognise import recognise
from tests.conftest import sample

ROOT = Path(__file__).resolve().parents[1]


def test_a_short_run_finds_nothing() -> None:
    argv = [sys.executable, "-m", "fuzz", "-n", "500", "--seed", "7"]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for name in (*targets(), *pipeline.NAMES, drawn.NAME):
        assert name in done.stdout


def test_every_probe_is_a_target() -> None:
    assert set(PROBES) <= set(targets())
    assert {"recognise", "capture", "strict_yaml", "site probe", "error texts"} <= set(targets())


@pytest.mark.parametrize("name", list(targets()))
def test_seeds_are_of_the_target_and_short(name: str) -> None:
    target = targets()[name]
    own = seeds(target)
    assert own != foreign(target)
    read = [text for text in own if not tried(target, text).refused]
    assert len(read) >= len(own) / 2 or name in ("recognise", "strict_yaml")
    assert max(map(len, own)) <= 8_100


def test_the_same_seed_gives_the_same_input() -> None:
    text = seeds(targets()["kernel-log"])[0]
    one, other = ([mutated(Random(f"{i}"), text) for i in range(50)] for _ in range(2))
    assert one == other
    assert len(set(one)) > 45


@pytest.mark.parametrize("mutation", list(dict.fromkeys(MUTATIONS)))
@pytest.mark.parametrize("text", ["", "\n", "a: 1\nb: 2\n", "<a>1</a>\n"])
def test_a_mutation_takes_any_text(mutation: Mutation, text: str) -> None:
    for number in range(20):
        assert isinstance(mutation(Random(number), text), str)


def broken(text: str) -> None:
    """A reader with the faults that are looked for."""
    if "9" in text:
        int(text.partition("9")[2] + "x")
    if "slow" in text:
        sum(i for i in range(3_000_000))
    if "no" in text:
        raise ParseError("no")


def test_faults_are_seen() -> None:
    target = Target("broken", broken, (ParseError,))
    with watched():
        assert judged(target, "fine").failure == ""
        assert (judged(target, "no").refused, judged(target, "no").failure) == (True, "")
        assert judged(target, "a 9 b").place.startswith("ValueError at test_fuzz.py:")
        assert judged(target, "slow").place == "slow"


def test_a_failing_input_is_made_small() -> None:
    text = "one\ntwo\nthree 9 and more\nfour\n" * 5
    assert least(text, lambda part: "9" in part) == "9"


def test_a_verdict_that_may_not_be_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    (text, evidence), *_ = pipeline.failing()
    assert 0 < evidence <= text.count("\n") + 1
    target = pipeline.target("cut hosts")
    told = f"0\x1d{len(text) // 2}"
    assert tried(target, told).failure == ""

    class Good:
        verdict = Status.PASS

    monkeypatch.setattr(pipeline, "judged", lambda raws: Good)
    assert "told to be cut, and PASS" in tried(target, told).failure


@pytest.mark.parametrize(
    ("name", "text"),
    [
        # What the fuzzer found, each once.
        ("lscpu", "CPU(s): ²\n"),
        ("lscpu", "CPU(s): 8\nFlags:" + " " * 20_000 + "x\n"),
        ("recognise", "| " + "Error" + " " * 15_000),
        ("recognise", "GPU 00000000:07:00.0\nAttached GPUs : ²\n"),
        ("recognise", "Attached GPUs : 1\nGPU 00000000:07:00.0\n    a" + " " * 15_000 + "b\n"),
        ("strict_yaml", "a: \ud800"),
        ("strict_yaml", "a: " + "9" * 5_000),
        ("meminfo", "MemTotal: " + "9" * 5_000 + " kB\n"),
    ],
)
def test_what_was_found_stays_mended(name: str, text: str) -> None:
    with watched():
        assert judged(targets()[name], text).failure == ""


def test_a_host_is_drawn_whatever_its_gpus_lack() -> None:
    text = "0019:01:00.0 ER: \n    ECC Errors\n     Volatile\n      SRAM Correctable:"
    with watched():
        assert judged(drawn.target(), text).failure == ""


def test_a_picture_that_may_not_be_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    text = sample("topo/h100_x8_no_nic_spaces.txt")
    assert tried(drawn.target(), text).failure == ""
    twice = (MapNode("numa", "NUMA node 0", below=2 * (MapNode("gpu", "gpu0"),)),)
    for found, told in (
        (Map(twice), "drawn twice: gpu0"),
        (Map(table=LinkTable(("gpu0", "gpu1"), (("X", "SYS"),))), "not square"),
        (Map(unknown=("\x00",)), ""),
    ):
        monkeypatch.setattr("preflight.placement.map.map_of", lambda _, found=found: found)
        assert told in tried(drawn.target(), text).failure


def test_strict_yaml_says_that_it_is_no_utf8() -> None:
    from preflight import strict_yaml

    with pytest.raises(UsageError, match="not UTF-8"):
        strict_yaml.load("a: \ud800", "x.yaml")


@pytest.mark.parametrize("after", ["Attached GPUs  ", "GPU 00000000:07:00.0", "Product Name  "])
def test_a_report_cut_near_its_head_is_not_whole(after: str) -> None:
    text = sample("nvidia_smi_q/a10_535.129_row_remap_pending.txt")
    end = text.index("\n", text.index(after))
    for part in (text[:end], text[: end + 1]):
        report = pipeline.judged(recognise(part.encode(), "input"))
        assert report.verdict is Status.ERROR
