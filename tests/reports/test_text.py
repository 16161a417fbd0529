"""The text report: failures first, once, true, with what to do, and never wider than asked."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from preflight.judge.load import DOMAINS as CATALOGUE
from preflight.judge.load import load
from preflight.model import (
    Action,
    Evidence,
    Finding,
    MissingProbe,
    Override,
    Result,
    Status,
)
from preflight.reports.wording import DOMAINS
from tests.reports.built import (
    failed,
    host,
    one_host,
    passed,
    report,
    retired,
    skipped,
    text_of,
    undetermined,
    warm,
    width,
)


def test_equal_results_are_told_once_under_the_folded_name() -> None:
    told = report(host("n1", *(width(f"gpu{i}", 10 + i) for i in range(8))))
    text = text_of(told)
    assert text.count("pcie.width") == 1
    assert "FAIL   pcie.width  gpu[0-7]  x8, expected x16" in text
    assert text.count("Half the lanes") == 1


def test_values_that_differ_are_told_for_each_subject() -> None:
    told = report(
        host("n1", retired("gpu0", 65, 1), retired("gpu1", 63, 2), retired("gpu2", 65, 3))
    )
    text = text_of(told)
    assert "gpu[0-2]  63 to 65 pages, expected at most 60" in text
    assert "each:   gpu[0,2] 65, gpu1 63" in text


def test_sentences_that_differ_are_told_a_line_each_with_torch_first() -> None:
    unlike = (("n2 numpy", "1.26; the other 4 have 2.1"), ("n2 torch", "2.5; the other 4 have 2.9"))
    odd = [
        replace(failed("fleet.packages.same", subject, None, reason=""), measured=measured)
        for subject, measured in unlike
    ]
    text = text_of(report(*(host(f"n{at}") for at in range(5)), fleet=odd))
    first, second = (f"{subject} {measured}\n" for subject, measured in reversed(unlike))
    assert f"each:   {first}               {second}" in text.replace("\u00a0", " ")


def test_reasons_that_differ_are_told_for_each_subject() -> None:
    told = report(
        host("n1", *(failed("a.b", f"gpu{i}", None, reason=f"because {i}") for i in range(3)))
    )
    assert "gpu1: because 1" in text_of(told)
    assert text_of(told).count("FAIL   a.b") == 1


def test_many_values_are_cut_short_and_told_in_full_with_v() -> None:
    results = [failed("a.b", f"gpu{i}", 100 + i, reason=f"why {i}") for i in range(30)]
    told = report(host("n1", *results))
    assert "and 24 more (-v lists them)" in text_of(told)
    assert "gpu29 129: why 29" not in text_of(told)
    assert "gpu29 129: why 29" in text_of(told, verbose=1)


def test_subjects_carry_their_host_where_there_are_several() -> None:
    one = [host("node03", width("gpu2", 1)), host("node07", width("gpu2", 1))]
    text = text_of(report(*one, host("node09", width("gpu0", 1), width("gpu1", 1))))
    assert "pcie.width  node[03,07] gpu2, node09 gpu[0-1]  x8" in text
    alone = text_of(report(one[0]))
    assert "pcie.width  gpu2  x8" in alone


def test_a_result_of_the_whole_host_names_the_host_once() -> None:
    told = report(*(host(f"n{i}", failed("kernel.x", f"n{i}", 4)) for i in range(1, 4)))
    assert "FAIL   kernel.x  n[1-3]  4, expected at most 1" in text_of(told)
    assert "FAIL   kernel.x  n1  4" in text_of(report(host("n1", failed("kernel.x", "n1", 4))))


def test_failures_come_first_and_what_asks_for_most_leads() -> None:
    told = report(
        host(
            "n1",
            warm("gpu0", 90),
            undetermined("c.d", "n1", "no answer"),
            failed("z.watch", "n1", 3, action=Action.WATCH),
            failed("y.replace", "n1", 3, action=Action.REPLACE),
            failed("x.reboot", "n1", 3, action=Action.REBOOT),
        )
    )
    text = text_of(told)
    order = ["y.replace", "x.reboot", "z.watch", "c.d", "gpu.temperature.gpu"]
    assert [text.index(check) for check in order] == sorted(text.index(check) for check in order)


def test_a_failure_says_why_what_to_do_where_it_is_and_what_was_seen() -> None:
    block = text_of(report(host("n1", width("gpu3", 212))))
    assert "       half of the lanes did not train\n" in block
    assert "why:    Half the lanes" in block
    assert "do:     inspect cable, seat, optics, cooling, power" in block
    assert "               sudo nvidia-smi --gpu-reset -i 3" in block
    assert "device: gpu3 00000000:91:00.0" in block
    assert "seen:   nvidia-smi:212  Current : 8x" in block
    assert "more:   preflight explain pcie-link-degraded" in block


def test_a_warning_keeps_its_background_for_v() -> None:
    told = report(host("n1", warm("gpu0", 90)))
    assert "seen:" not in text_of(told)
    assert "do:     watch it" in text_of(told)
    assert "seen:   nvidia-smi:96" in text_of(told, verbose=1)


def test_one_lack_that_leaves_many_checks_undetermined_is_told_once() -> None:
    checks = [f"gpu.check{i:02}" for i in range(31)]
    told = report(host("n1", *(undetermined(check, "gpu3", "GPU is lost") for check in checks)))
    text = text_of(told)
    assert text.count("GPU is lost") == 1
    assert "ERROR  31 checks  gpu3  GPU is lost" in text
    assert "gpu.check00, gpu.check01, gpu.check02, gpu.check03 and 27 more" in text
    assert "gpu.check30" in text_of(told, verbose=1)


def test_an_undetermined_check_does_not_advise_as_if_it_had_failed() -> None:
    text = text_of(report(host("n1", undetermined("gpu.power", "gpu3", "timed out"))), verbose=2)
    assert "ERROR  gpu.power  gpu3  timed out" in text
    assert "replace" not in text
    assert "the-fault" not in text


def test_skipped_checks_are_counted_by_reason() -> None:
    results = [
        skipped(f"ecc.{i}", f"gpu{j}", "the device has none") for i in range(6) for j in (0, 1)
    ]
    told = report(host("n1", *results, passed("a.b", "n1", 1, "1")))
    assert "SKIP   12 x the device has none  (ecc.0, ecc.1, ecc.2 and 3 more" in text_of(told)
    assert "ecc.5" in text_of(told, verbose=1)


def test_reasons_to_skip_beyond_six_are_counted() -> None:
    told = report(host("n1", *(skipped("a.b", f"gpu{i}", f"busy: pid {i}") for i in range(10))))
    assert "SKIP   4 x 4 other reasons (-v lists them)" in text_of(told)
    assert "busy: pid 9" in text_of(told, verbose=1)


def test_reasons_that_end_in_another_reason_are_counted_with_it() -> None:
    results = [skipped("a.b", "gpu0", "not in the input"), skipped("a.c", "gpu0", "busy")]
    results.append(skipped("a.d", "gpu0", "brand is not known: not in the input"))
    told = report(host("n1", *results))
    assert "SKIP   2 x not in the input  (a.b, a.d)" in text_of(told)
    assert "brand is not known: not in the input  (a.d)" in text_of(told, verbose=1)


def test_evidence_is_told_short_and_with_vv_in_full() -> None:
    long = Evidence("nvidia-smi", "Pending   :  Yes " + "x " * 200, 7, source="/a/b/dump.txt")
    told = report(host("n1", failed("a.b", "gpu0", 3, evidence=(long,))))
    assert "seen:   dump.txt:7  Pending : Yes x x" in text_of(told)
    assert "..." in text_of(told)
    assert "/a/b/dump.txt:7" in text_of(told, verbose=2)
    assert "..." not in text_of(told, verbose=2)


def test_passed_checks_are_counted_and_listed_with_v() -> None:
    assert "gpu.answers" not in text_of(one_host())
    assert "PASS   gpu.answers  gpu[0-7]  yes, expected yes" in text_of(one_host(), verbose=1)
    assert "PASS   gpu.answers  gpu7  yes, expected yes" in text_of(one_host(), verbose=2)


def test_quiet_leaves_the_last_line_alone() -> None:
    assert text_of(one_host(), quiet=True) == text_of(one_host()).splitlines()[-1]
    assert text_of(one_host(), quiet=True) == (
        "FAIL: 5 failed, 1 warned, 20 passed, 16 skipped, 0 undetermined"
    )


@pytest.mark.parametrize("results", [[], [skipped("a.b", "n1", "not asked")]])
def test_a_report_in_which_nothing_was_judged_says_so(results: list[Result]) -> None:
    last = text_of(report(host("n1", *results)), quiet=True)
    assert last.startswith("SKIP: nothing was verified")


def test_a_host_that_did_not_answer_is_an_error_and_is_not_forgotten() -> None:
    gone = MissingProbe("ssh", "unreachable", "ssh: Connection timed out")
    hosts = [host(f"n{i}", missing=[gone]) for i in (2, 3)]
    told = report(host("n1", passed("a.b", "n1", 1, "1")), *hosts)
    text = text_of(told)
    assert "ERROR  n[2-3]  unreachable: ssh: Connection timed out" in text
    assert text.splitlines()[-1] == (
        "ERROR: 0 failed, 0 warned, 1 passed, 0 skipped, 0 undetermined; 2 of 3 without results"
    )


def test_an_unreadable_file_is_told_with_its_text() -> None:
    cut = MissingProbe("dump.txt", "unreadable", "dump.txt:12: expected a GPU, got 'x'")
    text = text_of(report(host("input", missing=[cut])))
    assert "ERROR  input  unreadable: dump.txt:12: expected a GPU, got 'x'" in text


def test_a_tool_without_an_answer_is_noted_beside_what_was_judged() -> None:
    slow = MissingProbe("dmesg", "timeout", "dmesg: timed out after 10 s")
    absent = MissingProbe("ipmitool", "no-tool", "ipmitool: not found")
    told = report(host("n1", passed("a.b", "n1", 1, "1"), missing=[slow, absent]))
    assert "note   dmesg: timed out after 10 s" in text_of(told)
    assert "ipmitool" not in text_of(told)
    assert "note   ipmitool: not found" in text_of(told, verbose=1)


def test_a_tool_without_an_answer_is_not_told_twice() -> None:
    slow = MissingProbe("dmesg", "timeout", "timed out after 10 s")
    told = report(host("n1", undetermined("kernel.xid", "n1", slow.text), missing=[slow]))
    assert text_of(told).count("timed out after 10 s") == 1


def test_the_checklist_has_a_line_for_each_domain() -> None:
    results = [
        passed("gpu.a", "gpu0", 1, "1"),
        failed("gpu.b", "gpu0", 2),
        skipped("nic.a", "n", "x"),
    ]
    told = report(host("n1", *results), command="run")
    assert "GPUs  FAIL   1 failed, 1 passed" in text_of(told)
    assert "NICs  SKIP   1 skipped" in text_of(told)
    assert "GPUs  FAIL" not in text_of(report(host("n1", *results)))


def test_each_domain_of_the_catalogue_has_a_name_for_people() -> None:
    known = {check.id.partition(".")[0] for check in load(CATALOGUE).checks}
    assert known - set(DOMAINS) == set()


def test_changed_values_and_the_profile_are_told() -> None:
    told = report(profile="cloud-vm", overrides=(Override("gpu.count", 8, "--set"),))
    assert "profile cloud-vm" in text_of(told)
    assert "not the built-in values: gpu.count=8 (--set)" in text_of(told)


def test_findings_of_every_status_are_shown() -> None:
    findings = [
        Finding("healthy", Status.PASS),
        Finding("data-wait", Status.FAIL, "rank 3", 0.412, "high", fix=("raise `num_workers`",)),
    ]
    text = text_of(report(findings=findings))
    assert "PASS   healthy" in text
    assert "FAIL   data-wait  rank 3  share 41.2 %, confidence high" in text
    assert text.index("data-wait") < text.index("healthy")
    assert text.splitlines()[-1].startswith("FAIL: ")


def test_a_figure_that_rounds_to_its_bound_is_told_with_more_digits() -> None:
    told = report(host("n1", failed("a.b", "n1", 0.84987, expected="at least 0.85")))
    assert "0.8499, expected at least 0.85" in text_of(told)


@pytest.mark.parametrize(
    ("measured", "shown"),
    [
        (True, "yes, "),
        (False, "no, "),
        (None, "-, "),
        (1234567, "1,234,567, "),
        (0.41666, "0.417, "),
    ],
)
def test_values_as_a_person_reads_them(measured: object, shown: str) -> None:
    assert f"n1  {shown}expected" in text_of(report(host("n1", failed("a.b", "n1", measured))))


def test_yes_is_not_one() -> None:
    told = report(host("n1", failed("a.b", "gpu0", True), failed("a.b", "gpu1", 1)))
    assert "each:   gpu0 yes, gpu1 1" in text_of(told)


def test_a_host_of_which_all_was_skipped_does_not_hide_behind_one_that_passes() -> None:
    told = report(
        host("node-01", passed("gpu.a", "gpu0", 1, "1")),
        host("node-02", skipped("gpu.a", "gpu0", "not in the input")),
    )
    assert text_of(told).splitlines()[-1].endswith("; nothing was verified on node-02")


def test_a_training_run_that_was_left_out_is_told_in_the_last_line() -> None:
    good, why = passed("gpu.a", "gpu0", 1, "1"), "/usr/bin/python3 has no torch"
    out = [skipped("training.ranks", "n1", why), skipped("training.finite", "n1", why)]
    last = text_of(report(host("n1", good, *out)), columns=200).splitlines()[-1]
    assert last.endswith(f"0 undetermined; training was not run: {why}")
    trained = host("n2", good, passed("training.ranks", "n2", True, ""))
    both = report(host("n1", good, *out), trained)
    assert f"; training was not run on n1: {why}" in text_of(both, columns=200)


def test_a_rank_that_was_not_looked_at_is_no_run_that_was_left_out() -> None:
    ranks = skipped("training.ranks", "rank 0", "it was ended because of rank 1")
    lost = failed("training.ranks", "rank 1", False)
    assert "was not run" not in text_of(report(host("n1", ranks, lost)))
    assert "was not run" not in text_of(report(host("n1", skipped("training.compile", "n1", "no"))))
