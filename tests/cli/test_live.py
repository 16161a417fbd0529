"""A live host whose nvidia-smi is ours: eight sound GPUs, and each way in which it can go wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bench.inputs import gpus_like
from tests.cli.command import Ran, preflight, replaying, with_tool
from tests.conftest import sample
from tests.lab.frozen import frozen_directory
from tests.lab.pci import machine_with_gpus

RTX = sample("nvidia_smi_xml/rtx3060_570.124.xml")
SOUND = gpus_like(RTX)
LOST = "Unable to determine the device handle for GPU 0000:47:00.0: GPU is lost.  Reboot the system"


def _report(ran: Ran) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(ran.out)
    return report


def _results(ran: Ran, *statuses: str) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in _report(ran)["hosts"][0]["results"]:
        if one["status"] in statuses:
            found.setdefault(one["check"], []).append(one)
    return found


def _health(path: str, *arguments: str) -> Ran:
    return preflight("gpu-health", "--format", "json", *arguments, PATH=path)


def test_eight_sound_gpus_pass(tmp_path: Path) -> None:
    path = replaying(tmp_path, SOUND)
    for name in ("dmesg", "journalctl"):  # what befell the machine of the tests is not asked
        with_tool(tmp_path, name, "echo '[    0.000000] Linux version 6.8.0'")
    ran = _health(path)
    assert ran.rc == 0
    report = _report(ran)
    assert report["verdict"] == "PASS"
    assert report["hosts"][0]["summary"].startswith("8 x NVIDIA GeForce RTX 3060, driver 570.124")
    assert len(_results(ran, "PASS")["gpu.throttle.power_brake"]) == 8


def test_the_number_of_gpus_is_held_where_it_is_stated(tmp_path: Path) -> None:
    path = replaying(tmp_path, SOUND)
    assert _health(path, "--set", "gpu.count=8").rc == 0
    ran = _health(path, "--set", "gpu.count=16")
    assert ran.rc == 1
    (count,) = _results(ran, "FAIL")["gpu.count"]
    assert (count["measured"], count["expected"]) == (8, "16")


def test_a_tool_that_never_ends_is_an_error_and_the_rest_is_there(tmp_path: Path) -> None:
    path = with_tool(tmp_path, "nvidia-smi", "exec sleep 600")
    ran = preflight("run", "--format", "json", "--host-timeout", "10s", PATH=path)
    assert ran.rc == 3
    answers = _results(ran, "ERROR")["gpu.driver.running"]
    assert "nvidia-smi did not end within" in answers[0]["reason"]
    assert "kernel.memory.available" in _results(ran, "PASS")


@pytest.mark.lab
def test_a_tool_in_uninterruptible_sleep_is_an_error_and_the_rest_is_there(tmp_path: Path) -> None:
    with frozen_directory(tmp_path) as frozen:
        path = with_tool(tmp_path / "bin", "nvidia-smi", f"exec touch {frozen}/x")
        ran = preflight("run", "--format", "json", "--host-timeout", "10s", PATH=path)
        assert ran.rc == 3
        assert "gpu.driver.running" in _results(ran, "ERROR")
        assert "kernel.memory.available" in _results(ran, "PASS")


@pytest.mark.parametrize("where", ["instead", "before", "after", "on stderr"])
def test_a_lost_gpu_is_found_though_nvidia_smi_exits_with_0(tmp_path: Path, where: str) -> None:
    one_gone = re.sub(r"[ \t]*<gpu id=\"00000000:47:00.0\">.*?</gpu>\n", "", SOUND, flags=re.DOTALL)
    text = {"instead": LOST, "before": f"{LOST}\n{one_gone}", "after": f"{one_gone}\n{LOST}"}
    then = f"echo '{LOST}' >&2" if where == "on stderr" else "exit 0"
    ran = _health(replaying(tmp_path, text.get(where, one_gone), then))
    assert ran.rc == 1
    (lost,) = _results(ran, "FAIL")["gpu.answers"]
    assert (lost["device"], lost["action"]) == ("00000000:47:00.0", "reboot")
    assert "GPU is lost" in lost["evidence"][0]["text"]
    if where != "instead":
        assert lost["subject"] == "gpu2"
        assert len(_results(ran, "PASS")["gpu.answers"]) == 7


@pytest.mark.parametrize(
    ("text", "status", "kind"),
    [
        ("[Unknown Error]", "ERROR", "Unknown Error"),
        ("ERR!", "ERROR", "ERR!"),
        ("N/A", "SKIP", "N/A"),
        ("[Not Supported]", "SKIP", "nvidia-smi says"),
    ],
)
def test_a_value_that_is_none(tmp_path: Path, text: str, status: str, kind: str) -> None:
    broken = re.sub(r"(<gpu_temp>)[^<]*", rf"\g<1>{text}", SOUND, count=1)
    ran = _health(replaying(tmp_path, broken))
    assert ran.rc == (3 if status == "ERROR" else 0)
    (unread,) = _results(ran, status)["gpu.temperature"]
    assert unread["subject"] == "gpu0"
    assert kind in unread["reason"]


@pytest.mark.lab
@pytest.mark.parametrize(
    ("said", "rc", "failed"),
    [
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            9,
            "gpu.driver.running",
        ),
        ("Failed to initialize NVML: Driver/library version mismatch", 18, "gpu.driver.matches"),
        ("segmentation fault", 139, ""),
        ("", 0, ""),
        ("", 1, ""),
    ],
)
def test_a_driver_that_does_not_answer(tmp_path: Path, said: str, rc: int, failed: str) -> None:
    under = machine_with_gpus(tmp_path, 8)
    path = replaying(tmp_path, said, f"exit {rc}")
    ran = preflight("gpu-health", "--format", "json", under=under, PATH=path)
    assert list(_results(ran, "FAIL")) == ([failed] if failed else [])
    assert {"gpu.count", "gpu.temperature"} <= set(_results(ran, "ERROR"))
    assert ran.rc == (1 if failed else 3)


def test_text_that_is_no_utf8_and_holds_escapes_is_shown_safe(tmp_path: Path) -> None:
    name = b"NVIDIA \x1b[2J\x1b]0;owned\x07 \xff\xfe H100"
    text = SOUND.encode().replace(b"NVIDIA GeForce RTX 3060", name)
    path = replaying(tmp_path, text)
    for form in ("text", "json", "jsonl", "junit", "markdown"):
        ran = preflight("gpu-health", "--format", form, "-vv", PATH=path)
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", ran.out + ran.err), form


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.7, 0.999])
def test_an_answer_cut_short_never_passes(tmp_path: Path, keep: float) -> None:
    ran = _health(replaying(tmp_path, SOUND[: int(len(SOUND) * keep)]), "--set", "gpu.count=8")
    assert ran.rc in (1, 3)


def test_no_gpu_at_all(tmp_path: Path) -> None:
    path = with_tool(tmp_path, "nvidia-smi", "echo No devices were found; exit 6")
    asked = preflight("gpu-health", "--format", "json", PATH=path)
    present = _results(asked, "PASS", "FAIL", "ERROR")["gpu.present"][0]
    if present["status"] == "PASS":
        pytest.skip("this machine has an NVIDIA GPU")
    assert (asked.rc, present["status"]) == (3, "ERROR")
    assert present["reason"].startswith("no NVIDIA GPU on PCI")
    whole = preflight("run", "--format", "json", PATH=path)
    assert whole.rc == 0
    assert _results(whole, "SKIP")["gpu.present"][0]["reason"].startswith("no NVIDIA GPU on PCI")
    for command in ("gpu-health", "run"):
        stated = preflight(command, "--set", "gpu.count=8", "--format", "json", PATH=path)
        assert stated.rc == 1
        assert {"gpu.present", "gpu.count"} <= set(_results(stated, "FAIL"))


@pytest.mark.lab
@pytest.mark.parametrize("command", ["gpu-health", "run"])
def test_gpus_on_pci_without_a_driver(tmp_path: Path, command: str) -> None:
    under = machine_with_gpus(tmp_path, 8, driver="")
    path = with_tool(tmp_path, "nvidia-smi", "exit 127")
    ran = preflight(command, "--format", "json", under=under, PATH=path)
    assert ran.rc == 1
    unbound, *others = _results(ran, "FAIL")["gpu.driver.bound"]
    assert (unbound["measured"], len(others)) == ("none", 7)
    assert unbound["subject"].startswith("0000:")
    assert "modprobe nvidia" in unbound["fix"][0]
    assert "nvidia-utils" in _results(ran, "ERROR")["gpu.driver.running"][0]["reason"]
    assert _report(ran)["hosts"][0]["summary"].startswith("8 x NVIDIA GPU on PCI; ")


@pytest.mark.lab
@pytest.mark.parametrize(
    ("listed", "status"), [(4, "PASS"), (3, "FAIL")], ids=["its four", "one of its four is gone"]
)
def test_a_container_that_is_given_4_of_8_gpus(tmp_path: Path, listed: int, status: str) -> None:
    under = machine_with_gpus(tmp_path, 8, nodes=4, container=True)
    few = gpus_like(RTX, listed)
    ran = preflight("gpu-health", "--format", "json", under=under, PATH=replaying(tmp_path, few))
    (count,) = _results(ran, status)["gpu.count"]
    assert (count["measured"], count["expected"]) == (listed, "4")
    assert ran.rc == (0 if status == "PASS" else 1)
    assert _results(ran, "SKIP")["gpu.xid.79"][0]["reason"].startswith("belongs to the host")


@pytest.mark.lab
def test_a_host_that_shows_4_of_its_8_gpus(tmp_path: Path) -> None:
    under = machine_with_gpus(tmp_path, 8)
    few = gpus_like(RTX, 4)
    ran = preflight("gpu-health", "--format", "json", under=under, PATH=replaying(tmp_path, few))
    (count,) = _results(ran, "FAIL")["gpu.count"]
    assert (ran.rc, count["measured"]) == (1, 4)
    assert count["expected"].startswith("8 (on PCI, and nvidia-smi does not list 0000:")


def test_without_the_right_to_read_the_kernel_log(tmp_path: Path) -> None:
    said = "dmesg: read kernel buffer failed: Operation not permitted"
    path = with_tool(tmp_path, "dmesg", f"echo '{said}' >&2; exit 1")
    path = with_tool(tmp_path, "journalctl", "echo '-- No entries --'").replace(f"{tmp_path}:", "")
    ran = preflight("run", "--format", "json", PATH=f"{tmp_path}:{path}")
    inside = _report(ran)["hosts"][0]["facts"]["container"] != "none"
    (found,) = _results(ran, "SKIP" if inside else "ERROR")["gpu.xid.79"]
    assert ("belongs to the host" if inside else "sudo dmesg") in found["reason"]
