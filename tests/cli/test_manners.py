"""How the command behaves: streams, files, exit statuses, interruption, wrong arguments."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.cli.command import PREFLIGHT, preflight, with_tool
from tests.conftest import SAMPLES, require, sample

BRAKE = str(SAMPLES / "nvidia_smi_q" / "h100_sxm_x8_535.161_power_brake.txt")
FINE = str(SAMPLES / "nvidia_smi_xml" / "rtx3060_570.124.xml")
XID = str(SAMPLES / "kernel_log" / "xid79_then_sxid20034_fatal.log")
CUT = str(SAMPLES / "nvidia_smi_q" / "h100_sxm_535.183_truncated.txt")
MIG = str(SAMPLES / "nvidia_smi_xml" / "quadro_p400_418.43_old.xml")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["--from", FINE], 0),
        (["--from", BRAKE], 1),
        (["--from", BRAKE, "--exit-zero"], 0),
        (["--from", MIG], 0),  # warns
        (["--from", MIG, "--strict"], 1),
        (["--from", CUT], 3),
        (["--from", CUT, "--exit-zero"], 0),
        (["--from", "/no/such/file"], 2),
        (["--from", FINE, "--only", "gpu.cuont"], 2),
        (["--from", FINE, "--set", "gpu.temperature=5"], 2),
        (["--from", FINE, "--set", "gpu.temperature.fail=5"], 0),
        (["--from", FINE, "--format", "yaml"], 2),
        (["--from", FINE, "--level", "slow"], 2),
        (["--from", FINE, "--profile", "nowhere"], 2),
        (["--from", FINE, "--save", "x.pdf"], 2),
        (["--from", FINE, "--save", "/no/such/folder/x.json"], 2),
        (["--host-timeout", "soon"], 2),
        (["--from", FINE, "--only", "gpu.xid.*"], 3),  # nothing was judged at all
        (["--frm", FINE], 2),
    ],
)  # fmt: skip
def test_exit_status(arguments: list[str], status: int) -> None:
    ran = preflight("gpu-health", *arguments)
    assert ran.rc == status, ran.err
    if status == 2:
        assert ran.out == ""
        assert ran.err.startswith("error: ")
        assert "\nhint: " in ran.err
        assert "Traceback" not in ran.err


def test_an_unknown_command_and_none() -> None:
    ran = preflight("gpu-heatlh")
    assert (ran.rc, ran.out) == (2, "")
    assert "gpu-health" in ran.err
    ran = preflight()
    assert ran.rc == 2
    assert "gpu-health" in ran.err


def test_one_bad_file_does_not_stop_the_others_and_is_not_overlooked(tmp_path: Path) -> None:
    junk = tmp_path / "junk.bin"
    junk.write_bytes(bytes(range(256)) * 40)
    ran = preflight("gpu-health", "--from", FINE, "--from", str(junk))
    assert ran.rc == 3
    assert "junk.bin" in ran.out
    assert "RTX 3060" in ran.out
    alone = preflight("gpu-health", "--from", str(junk))
    assert alone.rc == 2


def test_a_name_makes_files_one_host_and_stdin_is_a_file() -> None:
    ran = preflight(
        "gpu-health", "--from", f"node-07={FINE}", "--from", "node-07=-", "--format", "json",
        stdin=sample("kernel_log/xid79_then_sxid20034_fatal.log").encode(),
    )  # fmt: skip
    (host,) = json.loads(ran.out)["hosts"]
    assert (host["host"], host["verdict"], ran.rc) == ("node-07", "FAIL", 1)
    by_check = {one["check"]: one["status"] for one in host["results"]}
    assert (by_check["gpu.xid.79"], by_check["gpu.mig.pending"]) == ("FAIL", "SKIP")
    assert by_check["gpu.throttle.hw_thermal"] == "PASS"


def test_text_fits_100_columns_and_failures_come_first() -> None:
    for arguments in (["--from", BRAKE], ["--from", XID, "-v"], ["--from", FINE, "-vv"]):
        ran = preflight("run", *arguments)
        assert max(map(len, ran.out.splitlines())) <= 100
    ran = preflight("gpu-health", "--from", BRAKE, "-v")
    words = re.findall(r"^(FAIL|ERROR|WARN|PASS|SKIP) ", ran.out, re.MULTILINE)
    assert words == sorted(words, key=["FAIL", "ERROR", "WARN", "PASS", "SKIP"].index)
    assert ran.out.splitlines()[-1].startswith("FAIL: 8 failed")


def test_quiet_is_the_verdict_alone() -> None:
    ran = preflight("gpu-health", "--from", BRAKE, "-q")
    assert ran.out.count("\n") == 1
    assert ran.out.startswith("FAIL: 8 failed")


def test_colour_is_asked_for_or_not_there() -> None:
    assert "\x1b[" not in preflight("gpu-health", "--from", BRAKE).out
    assert "\x1b[1;31m" in preflight("gpu-health", "--from", BRAKE, "--color", "always").out
    plain = preflight("gpu-health", "--from", BRAKE, "--color", "never", TERM="xterm")
    assert "\x1b[" not in plain.out


def test_a_locale_without_utf8_is_no_traceback(tmp_path: Path) -> None:
    text = sample("nvidia_smi_xml/rtx3060_570.124.xml").replace("GeForce", "Geförce ✓")
    (tmp_path / "smi.xml").write_text(text, encoding="utf-8")
    ran = preflight("gpu-health", "--from", str(tmp_path / "smi.xml"), LC_ALL="C",
                    PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")  # fmt: skip
    assert ran.rc == 0, ran.err


def test_a_reader_that_goes_away_is_no_error() -> None:
    line = f"{PREFLIGHT} gpu-health --from {BRAKE} -vv | head -n 1; echo ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[-1] == "1"


def test_json_is_one_document_and_nothing_else_is_on_stdout() -> None:
    ran = preflight("gpu-health", "--from", BRAKE, "--format", "json")
    report = json.loads(ran.out)
    assert report["schema"] == "preflight.report/1"
    assert report["argv"][0] == "gpu-health"
    assert report["counts"]["fail"] == 8
    lines = preflight("gpu-health", "--from", BRAKE, "--format", "jsonl").out.splitlines()
    assert all(json.loads(line) for line in lines)


def test_every_kind_of_file_is_saved(tmp_path: Path) -> None:
    names = ["r.json", "r.jsonl", "r.xml", "r.md", "r.txt", "r.capture.gz"]
    saves = [word for name in names for word in ("--save", str(tmp_path / name))]
    ran = preflight("gpu-health", "--from", BRAKE, *saves)
    assert ran.rc == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)
    again = preflight("gpu-health", "--from", str(tmp_path / "r.capture.gz"), "--format", "json")
    first = json.loads((tmp_path / "r.json").read_text())
    assert json.loads(again.out)["hosts"][0]["results"] == first["hosts"][0]["results"]


def test_a_report_is_converted_and_several_are_merged(tmp_path: Path) -> None:
    for name, source in (("a", BRAKE), ("b", FINE)):
        saved = f"{tmp_path}/{name}.json"
        preflight("gpu-health", "--from", f"node-{name}={source}", "--save", saved)
    ran = preflight("report", f"{tmp_path}/a.json", f"{tmp_path}/b.json", "--format", "json")
    report = json.loads(ran.out)
    assert ran.rc == 1
    assert {host["host"]: host["verdict"] for host in report["hosts"]} == {
        "node-a": "FAIL", "node-b": "PASS",
    }  # fmt: skip
    ticket = preflight("report", f"{tmp_path}/a.json", "--format", "markdown")
    assert "<details>" in ticket.out
    assert preflight("report", FINE).rc == 2
    assert preflight("report").rc == 2


def test_redacted_output_names_nobody(tmp_path: Path) -> None:
    text = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
    secret = re.findall(r"GPU-[0-9a-f-]{36}|Serial Number +: (\d+)", text)
    uuids = re.findall(r"GPU-[0-9a-f]{8}-[0-9a-f-]{27}", text)
    assert len(uuids) == 8
    assert secret
    saved = tmp_path / "r.json"
    ran = preflight("gpu-health", "--from", f"ourhost={BRAKE}", "--redact", "--format", "json",
                    "--save", str(saved), "--save", str(tmp_path / "x.capture.gz"))  # fmt: skip
    capture = gzip.decompress((tmp_path / "x.capture.gz").read_bytes()).decode()
    written = ran.out + saved.read_text() + capture
    assert not [uuid for uuid in uuids if uuid in written]
    assert "ourhost" not in written
    assert json.loads(ran.out)["hosts"][0]["verdict"] == "FAIL"


@pytest.mark.lab
def test_a_full_disk_costs_the_file_and_not_the_report(tmp_path: Path) -> None:
    require("root and tmpfs", os.geteuid() == 0 and bool(shutil.which("mount")))
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", small])
    require("tmpfs mounts", mounted.returncode == 0)
    subprocess.run(["dd", "if=/dev/zero", f"of={small}/filler"], capture_output=True)
    try:
        for name in ("r.json", "r.capture.gz"):
            ran = preflight("gpu-health", "--from", BRAKE, "--save", str(small / name))
            assert ran.rc == 1
            assert ran.out.splitlines()[-1].startswith("FAIL: 8 failed")
            assert "No space left on device" in ran.err
            assert "hint: " in ran.err
            assert [path.name for path in small.iterdir()] == ["filler"]
        fine = preflight("gpu-health", "--from", FINE, "--save", str(small / "r.json"))
        assert fine.rc == 2
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.parametrize("gaps_s", [(), (0.0,), (0.003,), (0.01,), (0.03,)])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_saves_what_it_has_and_says_where(
    tmp_path: Path, number: int, gaps_s: tuple[float, ...]
) -> None:
    # Of its own: the same test with the other signal may run beside this one.
    command = f"sleep 617.{int(number)}{int(1000 * sum(gaps_s, 0.001))}"
    path = with_tool(tmp_path / "bin", "nvidia-smi", f"exec {command}")
    running = subprocess.Popen(
        [PREFLIGHT, "run", "--save", "r.json"], cwd=tmp_path, env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_until_asked(running.pid, command)
    running.send_signal(number)
    for gap_s in gaps_s:  # a nervous hand
        time.sleep(gap_s)
        running.send_signal(number)
    out, err = running.communicate(timeout=10)
    assert (running.returncode, out) == (130, "")
    assert not (tmp_path / "r.json").exists()
    (capture,) = tmp_path.glob("*.capture.gz")
    assert str(capture) in err
    assert "Traceback" not in err
    again = preflight("run", "--from", str(capture), "--format", "json")
    checks = {one["check"] for one in json.loads(again.out)["hosts"][0]["results"]}
    assert "kernel.memory.available" in checks
    left = subprocess.run(
        ["pgrep", "-f", f"^{re.escape(command)}$"], capture_output=True, text=True
    )
    assert left.stdout == ""


def wait_until_asked(pid: int, command: str) -> None:
    """Until preflight's script has come to that command, however slow the machine is."""
    until_s = time.monotonic() + 60
    while time.monotonic() < until_s:
        with suppress(psutil.Error):  # one may end meanwhile
            family = psutil.Process(pid).children(recursive=True)
            if any(" ".join(each.cmdline()) == command for each in family):
                return
        time.sleep(0.05)
    raise AssertionError(f"{command} was never asked")


def test_a_capture_of_this_machine_gives_the_same_report(tmp_path: Path) -> None:
    made = preflight("capture", "-o", "here.capture.gz", cwd=tmp_path)
    assert made.rc == 0
    assert "here.capture.gz" in made.out
    live = json.loads(preflight("run", "--format", "json").out)["hosts"][0]
    read = json.loads(
        preflight("run", "--from", str(tmp_path / "here.capture.gz"), "--format", "json").out
    )["hosts"][0]
    assert live["host"] == read["host"]
    statuses = [[(one["check"], one["status"]) for one in host["results"]] for host in (live, read)]
    assert statuses[0] == statuses[1]


@pytest.mark.parametrize(
    "arguments",
    ["--save no/x.json", "--save x.foo", "--save x.svg", "--save no/x.capture.gz",
     "--save-hosts no/x", "--inject stall:999 --preset cpu-tiny", "--folder x.txt", "--python="],
)  # fmt: skip
def test_a_dry_run_refuses_what_a_run_does(tmp_path: Path, arguments: str) -> None:
    (tmp_path / "x.txt").touch()
    ran = preflight("micro-train", "--dry-run", *arguments.split(), cwd=tmp_path)
    assert (ran.rc, ran.out) == (2, "")
    assert ran.err.startswith("error: ") and "\nhint: " in ran.err
    assert [one.name for one in tmp_path.iterdir()] == ["x.txt"]


def test_a_dry_run_runs_nothing(tmp_path: Path) -> None:
    path = with_tool(tmp_path / "bin", "nvidia-smi", f"touch {tmp_path}/ran")
    ran = preflight("run", "--dry-run", "--save", "x.json", cwd=tmp_path, PATH=path)
    assert ran.rc == 0
    assert "nvidia-smi -q -x" in ran.out
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bin"]


def test_a_sites_own_check_and_question(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(
        """
probes:
- {id: site.answer, argv: [echo, "load 42 %"], timeout_s: 5}
checks:
- id: site.load
  title: The load is low
  fact: site.answer.number
  warn_unless: {max: 40}
  why: It is ours.
  fix: [wait]
  action: watch
  runbook: host-memory
"""
    )
    ran = preflight("run", "--checks", str(tmp_path), "--only", "site.*", "--format", "json")
    (one,) = json.loads(ran.out)["hosts"][0]["results"]
    assert (one["status"], one["measured"]) == ("WARN", 42.0)
    assert one["evidence"][0]["text"] == "load 42 %"
    (tmp_path / "site.yaml").write_text("- id: x\n")
    broken = preflight("run", "--checks", str(tmp_path))
    assert broken.rc == 2
    assert "site.yaml:1" in broken.err


def test_a_profile_states_values(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text("set: {gpu.temperature.warn: 80}\n")
    profile = str(tmp_path / "ours.yaml")
    ran = preflight("gpu-health", "--from", FINE, "--profile", profile, "--format", "json")
    report = json.loads(ran.out)
    assert report["verdict"] == "WARN"
    assert report["overrides"][0]["id"] == "gpu.temperature.warn"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["79"], "gpu.xid.79"),
        (["xid", "79"], "gpu.xid.79"),
        (["sxid", "20034"], "gpu.sxid.20034"),
        (["gpu.remap.pending"], "No row waits for its spare"),
        (["power-brake"], "power brake"),
        (["gpu", "fell", "off", "the", "bus"], "GPU was lost"),
        (["9999"], "gpu.xid.other"),
    ],
)
def test_explain(words: list[str], told: str) -> None:
    ran = preflight("explain", *words)
    assert ran.rc == 0
    assert told in ran.out
    assert max(map(len, ran.out.splitlines())) <= 110


def test_explain_lists_the_checks_and_knows_its_limits() -> None:
    assert "network.port.*" in preflight("explain").out
    assert "pcie.width" in preflight("explain", "pcie.*").out
    ran = preflight("explain", "qwertz", "zuiop")
    assert (ran.rc, ran.out) == (2, "")


def test_help_ends_in_examples() -> None:
    for command in ("run", "gpu-health", "capture", "report", "explain"):
        ran = preflight(command, "--help")
        assert ran.rc == 0
        assert f"preflight {command}" in ran.out.split("Examples:")[1]


def test_version() -> None:
    assert preflight("--version").out.startswith("preflight 0.")
