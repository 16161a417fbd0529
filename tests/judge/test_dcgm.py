"""`dcgmi diag` of DCGM 2 to 4, table and JSON: every test of every GPU, and nothing passed over."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from preflight.collect import examine
from preflight.errors import ParseError
from preflight.facts.dcgm import DcgmDiag
from preflight.judge.load import load
from preflight.judge.overrides import select
from preflight.model import Action, Missing, Raw, Result, Status
from preflight.probes.dcgm.diag import dcgmi_diag
from tests.conftest import sample

CHECKS = load(["dcgm"]).checks
RULE = "+---------------------------+------------------------------------------------+\n"
HEAD = (
    f"Successfully ran diagnostic for group.\n{RULE}"
    "| Diagnostic                | Result                                         |\n"
    "+===========================+================================================+\n"
)


def row(name: str, told: str) -> str:
    return f"| {name:25} | {told:46} |\n"


def section(name: str) -> str:
    return f"+-----  {name}  {'-' * (18 - len(name))}+{'-' * 48}+\n"


def wrapped(name: str, text: str) -> str:
    pieces = [text[at : at + 45] for at in range(0, len(text), 45)]
    return "".join(row(name if not at else "", piece) for at, piece in enumerate(pieces))


def table(*rows: str) -> str:
    return HEAD + "".join(rows) + RULE


def results(text: str, only: str = "*") -> list[Result]:
    checks = select(CHECKS, only=[only])
    return list(examine("n", [Raw("n", "dcgmi-diag", stdout=text)], checks).results)


def bad(text: str, only: str = "*") -> dict[tuple[str, str], Result]:
    return {
        (one.check, one.subject): one
        for one in results(text, only)
        if one.status not in (Status.PASS, Status.SKIP)
    }


def v4(*entities: dict[str, Any], name: str = "memory", summary: str = "") -> str:
    test: dict[str, Any] = {"name": name, "results": list(entities)}
    if summary:
        test["test_summary"] = {"status": summary}
    run = {"test_categories": [{"category": "Hardware", "tests": [test]}]}
    groups = [
        {
            "entity_group": "GPU",
            "entities": [{"device_id": "2330", "entity_id": n} for n in range(8)],
        }
    ]
    return json.dumps(
        {"DCGM Diagnostic": run, "entity_groups": groups, "metadata": {"version": "4.2.3"}},
        indent=1,
    )


def of(gpu: int, status: str = "Pass", *warnings: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"entity_group": "GPU", "entity_group_id": 1, "entity_id": gpu}
    return {**told, "status": status, **({"warnings": list(warnings)} if warnings else {})}


def warning(severity: int, error_id: int = 0, text: str = "said") -> dict[str, Any]:
    return {"error_category": 7, "error_id": error_id, "error_severity": severity, "warning": text}


def test_every_gpu_is_judged_not_only_the_first() -> None:
    text = v4(*(of(n, "Fail" if n == 7 else "Pass") for n in range(8)), summary="Fail")
    assert set(bad(text)) == {("dcgm.test", "memory gpu7")}
    assert sum(one.check == "dcgm.test" for one in results(text)) == 8


@pytest.mark.parametrize(
    ("severity", "check", "action"),
    [
        (1, "dcgm.monitor", Action.WATCH),
        (2, "dcgm.isolate", Action.DRAIN),
        (3, "dcgm.test", Action.INSPECT),
        (4, "dcgm.triage", Action.INSPECT),
        (5, "dcgm.config", Action.FIX_CONFIG),
        (6, "dcgm.reset", Action.RESET_GPU),
    ],
)
def test_the_severities_are_not_upside_down(severity: int, check: str, action: Action) -> None:
    """Other tools take RESET for 3 or 2, or ISOLATE for 3 (dcgmErrorSeverity_t, dcgm_errors.h)."""
    found = bad(v4(*(of(n) for n in range(7)), of(7, "Fail", warning(severity, 999))))
    assert set(found) == {(check, "memory gpu7")}
    (one,) = found.values()
    assert (one.status, one.action) == (Status.FAIL, action)


def test_the_worst_of_several_messages_decides() -> None:
    found = bad(v4(*(of(n) for n in range(7)), of(7, "Fail", warning(5), warning(6), warning(1))))
    assert set(found) == {("dcgm.reset", "memory gpu7")}
    found = bad(v4(*(of(n) for n in range(7)), of(7, "Fail", warning(6), warning(2))))
    assert set(found) == {("dcgm.isolate", "memory gpu7")}


def test_an_error_without_a_severity_has_that_of_dcgms_table() -> None:
    text = v4(*(of(n) for n in range(7)), of(7, "Fail", {"warning": "w", "error_id": 4}))
    assert set(bad(text)) == {("dcgm.isolate", "memory gpu7")}


def test_a_warning_is_a_warning() -> None:
    found = bad(v4(*(of(n) for n in range(7)), of(7, "Warn", warning(1, 43))))
    assert found["dcgm.monitor", "memory gpu7"].status is Status.WARN
    beside_pass = bad(v4(*(of(n) for n in range(7)), of(7, "Pass", warning(1, 43))))
    assert beside_pass["dcgm.monitor", "memory gpu7"].status is Status.WARN


def test_what_was_skipped_is_skipped_with_its_reason() -> None:
    text = v4(*(of(n) for n in range(7)), of(7, "Skip", warning(5, 55, "ECC is not enabled")))
    (one,) = [one for one in results(text) if one.subject == "memory gpu7"]
    assert one.status is Status.SKIP
    assert "ECC is not enabled" in one.reason


def test_a_run_in_which_all_was_skipped_is_not_verified() -> None:
    text = table(
        section("Deployment"), row("Denylist", "Pass"), section("Hardware"),
        row("GPU Memory", "Skip - All"), section("Stress"), row("Targeted Power", "Skip - All"),
    )  # fmt: skip
    found = bad(text)
    assert set(found) == {("dcgm.verified", "n")}
    assert found["dcgm.verified", "n"].status is Status.ERROR
    assert (
        "not verified: all 2 tests of the hardware were skipped"
        in found["dcgm.verified", "n"].reason
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"DCGM Diagnostic": {"runtime_error": "Unable to complete diagnostic"}}',
        '{"DCGM GPU Diagnostic": {"version": "3.3.3", "runtime_error": "paused"}}',
        '{"DCGM GPU Diagnostic": {"test_categories": [null, {"tests": null}], "version": "3.3.3"}}',
        "Error: Diagnostic could not be run while DCGM is paused.\n",
        table(section("Metadata"), row("DCGM Version", "4.0.0")),
    ],
)
def test_a_run_of_nothing_is_never_a_pass(text: str) -> None:
    assert {one.status for one in results(text)} == {Status.ERROR}
    assert len(results(text)) == len(CHECKS)


def test_a_pass_on_memory_that_it_did_not_get_is_no_pass() -> None:
    """NVIDIA/DCGM issue 284."""
    alloc = warning(4, 56, "Couldn't allocate at least 75.0% of GPU memory on GPU 7")
    found = bad(v4(*(of(n) for n in range(7)), of(7, "Pass", alloc)))
    assert found["dcgm.test", "memory gpu7"].status is Status.ERROR
    text = table(
        section("Hardware"), row("memory", "Pass"), row("", "GPU0: Pass"), row("", "GPU1: Pass"),
        wrapped("Info: GPU1", "Unable to allocate 75 percent of the memory"),
    )  # fmt: skip
    assert {key: one.status for key, one in bad(text).items()} == {
        ("dcgm.test", "memory gpu1"): Status.ERROR,
    }


def test_a_table_of_dcgm_4_tells_each_warning_under_its_gpu() -> None:
    text = table(
        "|-----  Metadata  ----------+------------------------------------------------|\n",
        row("DCGM Version", "4.2.3"), row("GPU Device IDs Detected", "2330, 2330"),
        section("Deployment"), row("software", "Fail"), row("", "GPU0: Pass"),
        row("", "GPU1: Fail"),
        wrapped("Warning: GPU1", "Persistence mode for GPU 1 is disabled. Enable persistence."),
        section("Hardware"), row("memory", "Fail"), row("", "GPU0: Fail"), row("", "GPU1: Pass"),
        wrapped("Warning: GPU0", "Detected 3 volatile double-bit ECC error(s) in GPU 0."),
    )  # fmt: skip
    found = bad(text)
    assert set(found) == {("dcgm.config", "software gpu1"), ("dcgm.isolate", "memory gpu0")}
    assert "double-bit ECC error(s) in GPU 0" in found["dcgm.isolate", "memory gpu0"].reason


def test_words_that_a_cell_cut_are_whole_again() -> None:
    text = "Thermal violations totaling 13.3 seconds started at 9.7 seconds into the test for GPU 3"
    found = bad(
        table(section("Hardware"), row("GPU Memory", "Fail - GPU: 3"), wrapped("Warning", text))
    )
    assert text in found["dcgm.thermal", "GPU Memory gpu3"].reason


def test_a_test_that_tells_of_fewer_gpus_than_there_are_is_not_verified() -> None:
    text = v4(*(of(n) for n in range(7)))
    assert "memory tells of 7 of 8 GPUs" in bad(text)["dcgm.verified", "n"].reason


def test_a_fault_is_told_even_where_its_own_check_was_left_out() -> None:
    text = v4(*(of(n) for n in range(7)), of(7, "Fail", warning(2, 4)))
    assert set(bad(text, "dcgm.test")) == {("dcgm.test", "memory gpu7")}


def test_json_of_dcgm_2_and_3() -> None:
    run = {
        "test_categories": [
            {"category": "Deployment", "tests": [
                {"name": "Denylist", "results": [{"status": "Pass"}]},
                {"name": "Persistence Mode", "results": [
                    {"gpu_id": "3", "status": "Fail", "warnings": [
                    {"warnings": "Persistence mode for GPU 3 is disabled", "error_id": 29,
                     "error_category": 8, "error_severity": 5}]}]},
            ]},
            {"category": "Hardware", "tests": [
                {"name": "GPU Memory", "results": [
                    {"gpu_ids": "0,1,2", "status": "Pass"},
                    {"gpu_ids": 3, "status": "FAIL", "warnings": "Row remapping failed on GPU 3"}]},
            ]},
        ],
    }  # fmt: skip
    found = bad(json.dumps({"DCGM GPU Diagnostic": run}))
    assert set(found) == {
        ("dcgm.config", "Persistence Mode gpu3"), ("dcgm.remap", "GPU Memory gpu3"),
    }  # fmt: skip


def test_a_test_without_results_is_not_passed_over() -> None:
    run = json.loads(v4(*(of(n) for n in range(8))))
    category = run["DCGM Diagnostic"]["test_categories"][0]
    category["tests"].append({"name": "pcie", "results": None})
    (one,) = [one for one in results(json.dumps(run)) if one.subject == "pcie"]
    assert one.status is Status.SKIP


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("GPU 3 had memory errors and row remappings are pending", Action.RESET_GPU),
        ("GPU 3 had uncorrectable memory errors and row remapping failed.", Action.REPLACE),
    ],
)
def test_a_failed_remapping_is_not_mended_by_a_reset(text: str, action: Action) -> None:
    found = bad(table(section("Deployment"), row("Row Remap", "Fail"), wrapped("Error", text)))
    assert found["dcgm.remap", "Row Remap gpu3"].action is action


def test_iterations_are_all_judged() -> None:
    one = json.loads(v4(*(of(n) for n in range(8))))
    two = json.loads(v4(*(of(n) for n in range(7)), of(7, "Fail", warning(2, 4))))
    text = json.dumps({"iterations": [one, two], "result": "Fail"})
    assert set(bad(text)) == {("dcgm.isolate", "memory gpu7")}


def test_what_is_cut_off_is_unknown_and_what_it_shows_counts() -> None:
    cut = sample("dcgmi_diag/r3_a16_x4_dcgm4.0.0_pass.txt")[:1800]
    assert set(bad(cut)) == {("dcgm.verified", "n")}
    with pytest.raises(ParseError):
        dcgmi_diag(v4(of(0))[:200])


@pytest.mark.parametrize("text", ["", "nothing", "| a | b |\n", '{"DCGM Diagnostic": '])
def test_what_is_no_answer(text: str) -> None:
    try:
        found = dcgmi_diag(text)
    except ParseError:
        return
    assert isinstance(found.results, Missing)


def test_deep_json_is_refused() -> None:
    with pytest.raises(ParseError):
        dcgmi_diag('{"DCGM Diagnostic":' + "[" * 200_000)


@pytest.mark.parametrize(
    "line",
    [
        row("Warning", "GPU 1 fail " + "x" * 30), row("", "GPU1: Fail"),
        row("memory", "Fail - All"),
        "|" * 200 + "\n", row("", "y" * 45), "| " + "a " * 300 + "\n", row("Error", "unable " * 6),
    ],
)  # fmt: skip
def test_a_megabyte_takes_about_a_second(line: str) -> None:
    text = HEAD + row("memory", "Fail") + line * (1_000_000 // len(line)) + RULE
    begun = time.process_time()
    assert isinstance(dcgmi_diag(text), DcgmDiag)
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("Couldn't allocate at least 75.0% of GPU memory on GPU 3 Check the logs", "dcgm.triage"),
        ("GPU 3 is running at PCI link width 8X, which is below the minimum", "dcgm.config"),
        ("GPU 3 is running at PCI link generation 3, which is below the minimum", "dcgm.triage"),
        ("GPU 3's NvLink link 17 is currently down Check DCGM and system logs", "dcgm.triage"),
        ("Only 11 NvLinks are up out of the expected 12 Ensure Fabric Manager runs", "dcgm.triage"),
        ("Detected 3 ecc_dbe_volatile_total for GPU 3", "dcgm.isolate"),
        ("Detected fatal errors on NvSwitch 1 link 3", "dcgm.isolate"),
        ("Detected nonfatal errors on NvSwitch 1 link 3", "dcgm.monitor"),
        ("GPU 3 had uncorrectable memory errors and row remapping failed.", "dcgm.remap"),
        ("Skipping test x because ECC is not enabled on GPU 3", "dcgm.config"),
    ],
)
def test_a_message_without_a_number_has_the_severity_of_dcgms_table(text: str, check: str) -> None:
    found = bad(
        table(section("Hardware"), row("memory", "Fail - GPU: 3"), wrapped("Warning", text))
    )
    assert set(found) == {(check, "memory gpu3")}


def test_a_processor_that_fails_is_no_gpu_that_must_be_taken_out() -> None:
    text = (
        '{"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "cpu_'
        'eud", "results": [{"entity_group_id": 7, "entity_id": 0, "status": "Fail", "warnings": [{"'
        'warning": "EUD failed", "error_id": 95, "error_severity": 2}]}]}]}]}}'
    )
    report = examine("n", [Raw("n", "dcgmi-diag", stdout=text)], load(["dcgm"]).checks)
    failed = [(one.check, one.subject) for one in report.results if one.status is Status.FAIL]
    assert failed == [("dcgm.beside_gpus", "cpu_eud cpu0")]
