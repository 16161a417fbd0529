"""What is asked of a host for a few checks is all that these checks read."""

from __future__ import annotations

import pytest

from bench.inputs import gpus_like
from preflight.assemble import commands_for
from preflight.collect import ask, examine
from preflight.judge.load import load
from preflight.model import Check, Raw, Result
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
