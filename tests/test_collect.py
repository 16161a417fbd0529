"""What is asked of a host for a few checks is all that these checks read."""

from __future__ import annotations

from typing import Any

import pytest

from bench.inputs import gpus_like
from preflight.assemble.sources import commands_for
from preflight.collect import ask, examine
from preflight.judge.load import load
from preflight.model import Check, Raw, Result, Status
from preflight.transports.fake import Fake
from tests.conftest import sample

PCI = "0000:07:00.0 0x030000 0x10de 0x2504 nvidia\nend\n"
NO_ROWS_TOLD = sample("nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml")
NOTHING_PENDING = sample("nvidia_smi_xml/rtx_a5000_x2_nvlink_590.44_v13.xml")
REMAPPED = "[    1.0] Linux version 6\n[   90.0] NVRM: Xid (PCI:0000:07:00): 63, pid=1, Row"


def alone(check: Check, **answers: Raw | str) -> Result:
    """The first result where nothing else is judged, so nothing else is asked."""
    told = {name.replace("_", "-"): answer for name, answer in answers.items()}
    raws = ask(Fake("n1", told), commands_for([check]), [])
    return examine("n1", raws, [check]).results[0]


def shipped(name: str) -> Check:
    (found,) = [check for check in load().checks if check.id == name]
    return found


@pytest.mark.parametrize(
    "check",
    [
        Check("x", "X", fact="driver.version"),
        Check("x", "X", fact="cpu.cpus", when={"driver.version": "570"}),
        Check("x", "X", fact="cpu.cpus", fail_unless={"equals": {"fact": "driver.version"}}),
        Check("x", "X", fact="cpu.cpus", warn_unless={"equals": {"fact": "driver.version"}}),
    ],
    ids=["its fact", "a condition", "what it fails against", "what it warns against"],
)
def test_a_fact_is_asked_for_wherever_a_check_names_it(check: Check) -> None:
    assert "nvidia-smi" in [command.probe for command in commands_for([check])]


def test_what_no_check_reads_is_not_asked_for() -> None:
    check = Check("x", "X", fact="gpus[*].ecc.mode", warn_unless={"equals": {"fact": ".ecc.mode"}})
    assert "dmesg" not in [command.probe for command in commands_for([check])]
    check = Check("x", "X", fact="cpu.cpus", fail_unless={"equals": 8})
    assert "nvidia-smi" not in [command.probe for command in commands_for([check])]


@pytest.mark.parametrize(
    ("smi", "status"), [(NOTHING_PENDING, "PASS"), (NO_ROWS_TOLD, "WARN")], ids=["told", "untold"]
)
def test_an_xid_that_the_gpu_settles_is_settled_when_judged_alone(smi: str, status: str) -> None:
    one = gpus_like(smi, 1)
    found = alone(shipped("gpu.xid.63"), dmesg=REMAPPED, nvidia_smi=one, pci=PCI)
    assert (found.subject, found.status.value) == ("gpu0", status)


def test_where_nvidia_smi_comes_from_is_said_where_it_is_not_there() -> None:
    check = shipped("gpu.driver.running")
    assert "nvidia-utils" in alone(check, pci=PCI).reason
    no_timeout = alone(check, pci=PCI, nvidia_smi=Raw("n1", "nvidia-smi", ("nvidia-smi",), 125))
    assert "coreutils" in no_timeout.reason
    assert "nvidia-utils" not in no_timeout.reason


@pytest.mark.parametrize(
    ("end", "kind", "words"),
    [
        ({"rc": 0, "truncated": True}, "unreadable", "is cut short"),
        ({"rc": None}, "exited", "its end was not seen"),
        ({"rc": 124, "elapsed_s": 5.0}, "timeout", "did not end within 5 s"),
        ({"rc": 125}, "no-tool", "no timeout(1)"),
        ({"rc": 126}, "denied", "cannot be run"),
        ({"rc": 127}, "no-tool", "is not installed"),
        ({"rc": 137}, "exited", "was killed"),
        ({"rc": 137, "elapsed_s": 5.0}, "timeout", "did not end within 5 s"),
        ({"rc": 137, "elapsed_s": 7.0, "limit_s": 5}, "timeout", "did not end within 7 s"),
        ({"rc": 137, "elapsed_s": 8.0, "limit_s": 30}, "exited", "killed by signal 9 after 8 s"),
    ],
)
def test_an_answer_that_did_not_end_well_is_not_believed(
    end: dict[str, Any], kind: str, words: str
) -> None:
    # The answer itself is sound: only its end says that it may not be the whole truth.
    smi = Raw("n1", "nvidia-smi", ("nvidia-smi",), stdout=gpus_like(NOTHING_PENDING, 1), **end)
    told = examine("n1", [smi, Raw("n1", "pci", ("sh",), 0, PCI)], [shipped("gpu.temperature")])
    (result,) = told.results
    assert result.status is Status.ERROR
    assert words in result.reason
    assert [(one.probe, one.kind) for one in told.missing] == [("nvidia-smi", kind)]


def test_a_script_that_hangs_is_told_by_what_it_asks_for() -> None:
    hung = Raw("n1", "identity", ("sh", "-c", "cat /proc/uptime"), 124, elapsed_s=10.0)
    (result,) = examine("n1", [hung], [shipped("system.uptime")]).results
    assert result.status is Status.ERROR
    assert result.reason == "the script identity did not end within 10 s"
