"""Several recorded hosts in one command: the odd ones are named, in every form of the report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from preflight.capture import Writer
from preflight.model import Raw
from tests.cli.command import preflight
from tests.conftest import sample
from tests.setup_text import NICS

H100 = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")


def captured(folder: Path, name: str, smi: str = H100, kernel: str = "5.15.0-94") -> str:
    path = folder / f"{name}.capture.gz"
    identity = f"hostname {name}\nkernel {kernel}\nuid 0\n"
    with Writer(path) as writer:
        writer.write(
            [
                Raw(name, "identity", ("sh",), 0, identity),
                Raw(name, "nvidia-smi-q", ("nvidia-smi", "-q"), 0, smi),
            ]
        )
    return str(path)


def fleet(folder: Path) -> Path:
    for number in range(1, 13):
        name = f"gpu-a{number:02}"
        smi = H100.replace("535.161.08", "535.104.05") if number in (3, 7) else H100
        captured(folder, name, smi, "6.8.0-31" if number == 9 else "5.15.0-94")
    return folder


def odd(report: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (one["check"], one["subject"], one["status"]) for one in report["fleet"] if "action" in one
    ]


def test_the_odd_hosts_are_named_and_decide_the_verdict(tmp_path: Path) -> None:
    ran = preflight("gpu-health", "--from", str(fleet(tmp_path)), "--only", "fleet.*")
    assert ran.rc == 1
    assert "fleet.driver.same  gpu-a[03,07]  535.104.05; the other 10 have 535.161.08" in ran.out
    assert "fleet.kernel.same  gpu-a09  6.8.0-31; the other 11 have 5.15.0-94" in ran.out
    assert "gpu-a03: Driver Version : 535.104.05" in ran.out
    assert "srun --exclude='gpu-a[03,07]'" in ran.out
    assert "nothing was verified" not in ran.out


@pytest.mark.parametrize(
    ("chosen", "answered", "failed"),
    [
        ("fleet.kernel.same", 13, []),  # gpu-a09 is odd by a warning
        ("fleet.driver.same", 12, ["blind", "gpu-a03", "gpu-a07"]),
    ],
)
def test_hosts_that_were_only_compared_are_not_silent(
    tmp_path: Path, chosen: str, answered: int, failed: list[str]
) -> None:
    (tmp_path / "hosts").mkdir()
    folder = fleet(tmp_path / "hosts")
    captured(folder, "blind", "")  # of its driver nothing can be read
    (folder / "notes.txt").write_text("nothing of ours\n")
    ran = preflight("gpu-health", "--from", str(folder), "--only", chosen, "--save-hosts", "x",
                    "--save", "x.json", cwd=tmp_path)  # fmt: skip
    out = " ".join(ran.out.split())
    assert f"13 hosts, {answered} answered, {13 - len(failed)} passed" in out
    assert ("1 of 13 without results" in out) == (answered < 13)
    assert "1 file not read in full" in out
    assert (tmp_path / "x.fail").read_text().split() == failed
    told = json.loads((tmp_path / "x.json").read_text())
    verdicts = {one["host"]: one["verdict"] for one in told["hosts"]}
    assert [name for name, one in verdicts.items() if one == "FAIL"] == failed[1:]


def test_a_host_that_is_odd_has_the_verdict_of_it_and_its_junit_suite_has_not(
    tmp_path: Path,
) -> None:
    folder = str(fleet(tmp_path))
    only = ("--only", "gpu.answers", "--only", "fleet.*")
    ran = preflight("gpu-health", "--from", folder, *only, "--format", "json",
                    "--save", str(tmp_path / "x.xml"))  # fmt: skip
    told = {one["host"]: one for one in json.loads(ran.out)["hosts"]}
    assert told["gpu-a03"]["verdict"] == "FAIL"
    assert told["gpu-a09"]["verdict"] == "WARN"
    assert told["gpu-a01"]["verdict"] == "PASS"
    assert {one["status"] for one in told["gpu-a03"]["results"]} == {"PASS"}
    suite = (tmp_path / "x.xml").read_text().partition('name="gpu-a03"')[2]
    assert 'failures="0" errors="0"' in suite.partition(">")[0]


def test_json_has_them_apart_from_the_hosts_and_counts_them(tmp_path: Path) -> None:
    folder = str(fleet(tmp_path))
    told = json.loads(preflight("gpu-health", "--from", folder, "--format", "json").out)
    assert odd(told) == [
        ("fleet.kernel.same", "gpu-a09", "WARN"), ("fleet.driver.same", "gpu-a[03,07]", "FAIL"),
    ]  # fmt: skip
    of_hosts = [one for host in told["hosts"] for one in host["results"]]
    assert not [one for one in of_hosts if one["check"].startswith("fleet.")]
    assert sum(told["counts"].values()) == len(of_hosts) + len(told["fleet"])


def test_one_host_is_compared_with_none(tmp_path: Path) -> None:
    told = preflight("gpu-health", "--from", captured(tmp_path, "n1"), "--format", "json")
    assert json.loads(told.out)["fleet"] == []


def test_a_file_that_is_no_host_is_not_counted_as_one(tmp_path: Path) -> None:
    folder = fleet(tmp_path)
    (folder / "notes.txt").write_text("nothing of ours\n")
    ran = preflight("gpu-health", "--from", str(folder), "--only", "fleet.gpu.*", "-v")
    assert "NVIDIA H100 80GB HBM3, expected all the same" in ran.out
    assert "13 hosts" not in ran.out


def test_redacted_it_names_stand_ins(tmp_path: Path) -> None:
    folder = str(fleet(tmp_path))
    for form in ("text", "json", "markdown", "junit"):
        ran = preflight("gpu-health", "--from", folder, "--redact", "--format", form)
        assert "gpu-a" not in ran.out
        assert "535.104.05; the other 10 have 535.161.08" in ran.out


def test_reports_are_merged_with_what_was_found_over_each_fleet(tmp_path: Path) -> None:
    names = []
    for part in ("a", "b"):
        folder = tmp_path / part
        folder.mkdir()
        hosts = [captured(folder, f"{part}{number}") for number in range(3)]
        old = H100.replace("535.161.08", "535.104.05")
        captured(folder, f"{part}9", old)
        names.append(str(tmp_path / f"{part}.json"))
        chosen = [option for host in [*hosts, str(folder / f"{part}9.capture.gz")]
                  for option in ("--from", host)]  # fmt: skip
        preflight("gpu-health", *chosen, "--save", names[-1], "-q")
    told = json.loads(preflight("report", *names, "--format", "json").out)
    assert odd(told) == [
        ("fleet.driver.same", "a9", "FAIL"), ("fleet.driver.same", "b9", "FAIL"),
    ]  # fmt: skip


def test_an_older_capture_of_a_host_is_left_out_and_no_host(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    old = captured(tmp_path / "old", "n1", H100.replace("535.161.08", "535.104.05"))
    new = captured(tmp_path, "n1")
    other = captured(tmp_path, "n2")
    options = [option for file in (old, new, other) for option in ("--from", file)]
    ran = preflight("gpu-health", *options, "--save-hosts", str(tmp_path / "x"))
    assert f"note: n1 is also in {old}, asked " in ran.err
    assert "2 hosts, 2 answered" in ran.out
    assert "without results" not in ran.out
    assert "not read in full" not in ran.out
    assert "535.104.05" not in ran.out


def test_a_sites_own_check_over_the_fleet(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(
        "- id: site.product\n  title: One product on a kernel\n  fact: gpus[*].serial\n"
        "  across: fleet\n  like: [.product, identity.kernel]\n  fail_unless: {uniform: true}\n"
        "  why: A site's reason.\n  fix: [look]\n  action: inspect\n  runbook: fleet-unlike\n"
    )
    folder = tmp_path / "hosts"
    folder.mkdir()
    ran = preflight(
        "gpu-health", "--from", str(fleet(folder)), "--checks", str(tmp_path / "site.yaml"),
        "--only", "site.*", "--format", "json",
    )  # fmt: skip
    told = json.loads(ran.out)["fleet"]
    assert {one["check"] for one in told} == {"site.product"}
    assert {one["status"] for one in told} == {"WARN", "FAIL"} - {"WARN"}


def silent(folder: Path) -> list[str]:
    """Five hosts, of which n3's adapters are not known."""
    for number in range(1, 6):
        name = f"n{number}"
        smi = Raw(name, "nvidia-smi-q", ("nvidia-smi", "-q"), 0, H100)
        nics = Raw(name, "nics", ("sh",), 0, NICS)
        if number == 3:
            nics = Raw(name, "nics", ("sh",), 124, elapsed_s=12.0)
        with Writer(folder / f"{name}.capture.gz") as writer:
            writer.write(
                [Raw(name, "identity", ("sh",), 0, f"hostname {name}\nuid 0\n"), smi, nics]
            )
    return ["run", "--from", str(folder), "--only", "fleet.*", "--only", "gpu.ecc.pending"]


def test_a_host_that_did_not_tell_is_no_pass_and_gets_no_job(tmp_path: Path) -> None:
    (tmp_path / "hosts").mkdir()
    ran = preflight(*silent(tmp_path / "hosts"), "--save-hosts", "x", cwd=tmp_path)
    assert ran.rc == 3
    assert "n3 nics  nics: the script nics did not end within 12 s" in ran.out
    assert (tmp_path / "x.fail").read_text().split() == ["n3"]
    assert (tmp_path / "x.pass").read_text().split() == ["n1", "n2", "n4", "n5"]


def test_a_stated_driver_is_held_against_every_host_and_told(tmp_path: Path) -> None:
    command = ("gpu-health", "--from", str(fleet(tmp_path)), "--only", "fleet.driver.same")
    ran = preflight(*command, "--set", "fleet.driver.same=535.104.05")
    assert ran.rc == 1
    assert "gpu-a[01-02,04-06,08-12]  535.161.08; 535.104.05 was stated" in ran.out
    assert "fleet.driver.same=535.104.05 (--set)" in ran.out
    refused = preflight(*command, "--set", "fleet.driver.same=535.1")
    assert refused.rc == 2
    assert "fleet.driver.same='1.10'" in refused.err


def test_heat_of_which_the_load_is_not_known_is_told_as_that(tmp_path: Path) -> None:
    text = re.sub(r"(Utilization\n +Gpu +: )\d+ %", r"\1N/A", H100)
    for number in range(3):
        captured(tmp_path, f"n{number}", text)
    ran = preflight("gpu-health", "--from", str(tmp_path), "--only", "fleet.gpu.temperature", "-v")
    assert "the load is not known: utilisation is N/A" in ran.out
