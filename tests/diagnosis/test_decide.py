"""From signs to findings: which is told first, what is another's effect, what is not known."""

from __future__ import annotations

from preflight import datafiles
from preflight.diagnosis.causes import causes
from preflight.diagnosis.decide import findings
from preflight.diagnosis.reading import Lack, Number, Reading, Sign
from preflight.model import Finding, Status


def read(*signs: Sign, covers: tuple[str, ...] = (), lacks: tuple[Lack, ...] = ()) -> Reading:
    return Reading(
        "a log", steps=100, step_s=1.0, signs=signs, covers=frozenset(covers), lacks=lacks
    )


def names(*readings: Reading) -> list[tuple[str, str]]:
    return [(one.finding, one.status.value) for one in findings(readings)]


def test_the_table_names_runbooks_and_causes_that_are_there() -> None:
    for row in causes().values():
        assert (datafiles.root() / "runbooks" / f"{row.runbook}.md").is_file(), row.id
        assert set(row.behind) <= set(causes()), row.id
        assert row.id not in row.behind
        assert row.fail == "always" or (row.warn is None or 0 < row.warn < 1), row.id
        assert row.fix and row.why, row.id


def test_nothing_is_behind_itself_by_others() -> None:
    """What explains each other in a ring would all be left out."""
    for start in causes():
        seen, open_ = set(), list(causes()[start].behind)
        while open_:
            one = open_.pop()
            assert one != start, start
            if one not in seen:
                seen.add(one)
                open_ += causes()[one].behind


def test_bounds_are_those_of_the_cause() -> None:
    assert names(read(Sign("data-wait", "waits", share=0.25))) == [("data-wait", "FAIL")]
    assert names(read(Sign("data-wait", "waits", share=0.10))) == [("data-wait", "WARN")]
    assert names(read(Sign("data-wait", "waits", share=0.03), covers=("data-wait",))) == [
        ("healthy", "PASS")
    ]


def test_what_is_not_sure_is_no_failure() -> None:
    sign = Sign("data-wait", "waits", share=0.5, confidence="low")
    assert names(read(sign)) == [("data-wait", "WARN")]


def test_the_dearest_first_and_two_that_are_close_by_the_table() -> None:
    far = read(Sign("host", "launches", share=0.40), Sign("data-wait", "waits", share=0.25))
    near = read(Sign("host", "launches", share=0.40), Sign("data-wait", "waits", share=0.37))
    assert names(far) == [("host", "FAIL"), ("data-wait", "FAIL")]
    assert names(near) == [("data-wait", "FAIL"), ("host", "FAIL")]


def test_a_hang_comes_before_all() -> None:
    reading = read(Sign("data-wait", "waits", share=0.9), Sign("hang", "rank 3 did not come"))
    assert names(reading)[0] == ("hang", "FAIL")


def test_an_effect_is_told_in_the_words_of_its_cause() -> None:
    slow = Sign("straggler", "rank 3 is 1.3 x the others", share=0.23, subject="rank 3")
    heat = Sign("throttled", "1,200 of 1,980 MHz", share=0.20, subject="rank 3")
    (found,) = findings([read(slow, heat)])
    assert (found.finding, found.subject) == ("throttled", "rank 3")
    assert "rank 3 is 1.3 x the others" in found.text
    assert found.share == 0.23


def test_the_effect_of_another_rank_is_told_by_itself() -> None:
    slow = Sign("straggler", "slow", share=0.23, subject="rank 3")
    heat = Sign("throttled", "hot", share=0.20, subject="rank 5")
    assert {one.finding for one in findings([read(slow, heat)])} == {"straggler", "throttled"}


def test_an_effect_that_is_much_dearer_is_told_as_well() -> None:
    waits = Sign("exposed-communication", "all wait", share=0.60)
    slow = Sign("straggler", "a little slow", share=0.12, subject="rank 3")
    assert names(read(slow, waits))[0][0] == "exposed-communication"


def test_several_inputs_with_one_cause_are_one_finding() -> None:
    log = read(Sign("data-wait", "by the log", share=0.3, confidence="low"))
    trace = read(Sign("data-wait", "by the trace", share=0.35, confidence="high"))
    (found,) = findings([log, trace])
    assert found.confidence == "high"
    assert "by the log" in found.text


LACK = Lack(("data-wait", "host"), "no times of parts in it", "--timing-log-level 2")


def test_what_is_missing_is_said_with_what_supplies_it() -> None:
    (found,) = findings([read(lacks=(LACK,))])
    assert (found.finding, found.status) == ("step.unknown", Status.ERROR)
    assert found.text.startswith("INCOMPLETE")
    assert found.fix == ("--timing-log-level 2",)


def test_what_another_input_covers_is_not_missing() -> None:
    log, trace = read(lacks=(LACK,)), read(covers=("data-wait", "host"))
    assert names(log, trace) == [("healthy", "PASS")]


def test_a_run_as_fast_as_its_hardware_allows_lacks_nothing() -> None:
    number = Number("MFU", 42.0, "%", good="35 to 50 % is good", is_good=True)
    one = Reading("a log", steps=9, step_s=1.0, covers=frozenset({"drift"}), lacks=(LACK,),
                  numbers=(number,))  # fmt: skip
    (found,) = findings([one])
    assert (found.finding, found.status) == ("healthy", Status.PASS)
    assert "MFU 42 %" in found.text


def test_what_could_not_be_read_is_never_a_pass() -> None:
    told = findings([Reading("what was given", unread=("x.log: permission denied",))])
    assert [(one.status, one.text) for one in told] == [
        (Status.ERROR, "INCOMPLETE: x.log: permission denied")
    ]


def test_nothing_at_all_is_nothing() -> None:
    assert findings([]) == ()


def test_a_finding_has_the_rows_runbook_and_steps() -> None:
    (found,) = findings([read(Sign("h2d", "copies", share=0.3, seconds=0.31))])
    assert isinstance(found, Finding)
    assert (found.runbook, found.seconds) == ("data-wait", 0.31)
    assert found.fix == causes()["h2d"].fix
