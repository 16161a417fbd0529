"""preflight nccl-bench: what may be asked, and what is asked of a payload."""

from __future__ import annotations

import fcntl
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from preflight.cli import benches
from preflight.cli.benches import plan_of, told_of
from preflight.cli.options import Options
from preflight.cli.plan import Question, make_plan
from preflight.cli.saving import opened_targets
from preflight.errors import UsageError
from preflight.payload.collectives.plan import Plan
from tests.cli.command import preflight

SMALL = ("--collective", "all_reduce", "-b", "1K", "-e", "1K", "--python", sys.executable)


def test_the_plan_holds_what_was_asked_and_nothing_else() -> None:
    assert plan_of(Options()) == {}
    asked = Options(collective=["all_reduce"], begin="8", end="1G", factor=4, dtype="bfloat16",
                    pairwise=True, repeats=9)  # fmt: skip
    plan = plan_of(asked)
    assert plan == {
        "collectives": ["all_reduce"], "begin_bytes": 8, "end_bytes": 1 << 30, "factor": 4,
        "dtype": "bfloat16", "pairwise": True, "repeats": 9,
    }  # fmt: skip
    Plan(**plan)


def test_what_is_slow_is_asked_for_as_the_checks_have_it() -> None:
    asked = Question("nccl-bench", ("collectives",), benches={})
    plan = make_plan(asked, Options(level="standard", hosts=["n[1-8]"]))
    assert plan.benches == {"behind_percent": 8}
    finer = Options(level="standard", hosts=["n[1-8]"], set_=["collectives.link=5"])
    assert make_plan(asked, finer).benches == {"behind_percent": 5}
    with pytest.raises(UsageError, match=r"collectives\.host=95 is out of range"):
        make_plan(asked, replace(finer, set_=["collectives.host=95"]))


def test_what_is_named_twice_is_taken_once() -> None:
    plan = plan_of(Options(interface="eth0, eth0,eth1", collective=["reduce", "reduce"]))
    assert (plan["interface"], plan["collectives"]) == ("eth0,eth1", ["reduce"])


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"collective": ["gossip"]}, "--collective 'gossip' is none"),
        ({"dtype": "int7"}, "--dtype 'int7' is none"),
        ({"begin": "many"}, "'many' is not a size in bytes"),
        ({"end": "1"}, "--end 1 is out of range"),
        ({"begin": "1G", "end": "1M"}, "-b 1G is more than -e 1M"),
        ({"factor": 1}, "--factor 1 is out of range"),
        ({"interface": " , "}, "--interface ' , ' names none"),
        ({"repeats": 1}, "--repeats 1 is out of range"),
        ({"pairwise": True, "no_locate": True}, "--pairwise looks for slow links"),
    ],
)
def test_what_cannot_be_is_refused(asked: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        plan_of(Options(**asked))


def test_the_names_are_those_of_the_payload() -> None:
    pytest.importorskip("torch")
    from preflight.payload.collectives.operations import COLLECTIVES
    from preflight.payload.collectives.work import TYPES

    assert tuple(COLLECTIVES) == benches.COLLECTIVES
    assert tuple(TYPES) == benches.DTYPES


def test_news_are_in_words() -> None:
    assert told_of({"kind": "begin", "world": 4}) == "4 ranks start"
    test = {"kind": "test", "test": 3, "among": ["a", "b"], "why": "half of test 1"}
    assert told_of(test) == "test 3, of 2 hosts: half of test 1"
    links = {"kind": "wire_round", "tool": "tcp", "number": 2, "pairs": [["a", "b"], ["c", "d"]]}
    assert told_of(links) == "links by tcp, round 2: a and b, c and d"
    assert told_of({"kind": "begin"}) == told_of({}) == ""


def test_on_this_host_it_is_timed_and_proved() -> None:
    pytest.importorskip("torch")
    done = preflight(
        "nccl-bench",
        "--collective",
        "all_reduce",
        "-b",
        "1K",
        "-e",
        "1K",
        "--format",
        "json",
        "--python",
        sys.executable,
    )
    assert done.rc == 0, done
    (host,) = json.loads(done.out)["hosts"]
    passed = {one["check"] for one in host["results"] if one["status"] == "PASS"}
    assert {"collectives.ended", "collectives.wrong", "collectives.together"} <= passed


def test_a_lock_that_is_held_is_told_with_quiet_too(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ran = preflight("nccl-bench", "-q", *SMALL, PREFLIGHT_LOCK=str(lock))
    assert ran.rc == 3
    assert "active work of preflight holds" in " ".join(ran.out.split())


def test_while_it_works_nothing_lies_beside_the_file_to_be_saved(tmp_path: Path) -> None:
    """Whoever kills it then leaves nothing behind."""
    options = Options(save=[str(tmp_path / "a.json")], save_hosts=str(tmp_path / "today"))
    with opened_targets(options, drawn=False) as targets:
        assert not list(tmp_path.iterdir())
        assert len(targets.each) == 3
