"""Many hosts over SSH, against a real sshd: every fault of a host, and no other host harmed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from preflight.assemble.sources import commands_for
from preflight.capture import read
from preflight.judge.load import DOMAINS, load
from preflight.model import HostReport, Report, Status
from tests.lab.asking import REPORTED, alone, asked, by_host, faults, judged, the_fault, wait_for
from tests.lab.fleet import FAULTY, HOSTS, NOWHERE, SOUND
from tests.lab.sshd import Lab, lab

pytestmark = pytest.mark.lab

#: Starts what it is given, silently; prints how it ended and the most memory of it, in KiB.
_PEAK_OF_CHILD = """import resource, subprocess, sys
quiet = subprocess.DEVNULL
status = subprocess.call(sys.argv[1:], stdout=quiet, stderr=quiet)
print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"""
#: Of a run in which no host is faulty, on two busy cores.
SOON_S = 45


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(tmp_path_factory.mktemp("lab"), HOSTS, banner="Authorised use only\n") as running:
        yield running


@pytest.fixture(scope="module", params=["own", "system"])
def everywhere(made: Lab, request: pytest.FixtureRequest) -> dict[str, HostReport]:
    """One run over all sound and all faulty hosts."""
    names = ",".join((*SOUND, *FAULTY, NOWHERE))
    how = ["--ssh", "system"] if request.param == "system" else []
    return by_host(asked(made, names, "--host-timeout", "40s", *how))


@pytest.mark.parametrize("name", [*FAULTY, NOWHERE])
def test_each_fault_has_its_name(everywhere: dict[str, HostReport], name: str) -> None:
    fault = "name-unknown" if name == NOWHERE else FAULTY[name][1]
    # ssh itself cannot tell a server that leaves from one that speaks something else.
    as_ssh_tells = {"closes": "failed", "web": "failed"}
    found = the_fault(everywhere[name]).fault
    assert found == fault or found == as_ssh_tells.get(name)
    assert everywhere[name].verdict is Status.ERROR


def test_each_fault_has_its_sentence(everywhere: dict[str, HostReport]) -> None:
    texts = {name: the_fault(everywhere[name]).text for name in (*FAULTY, NOWHERE)}
    assert all(texts.values())
    by_fault: dict[str, set[str]] = {}
    for name, text in texts.items():
        by_fault.setdefault(the_fault(everywhere[name]).fault, set()).add(text)
    said = list(by_fault.values())
    assert sum(map(len, said)) == len(set().union(*said)), said


@pytest.mark.parametrize("name", SOUND)
def test_hosts_beside_faulty_ones_are_judged_as_in_a_run_of_their_own(
    made: Lab, everywhere: dict[str, HostReport], name: str
) -> None:
    assert faults(everywhere[name]) == []
    found, own = judged(everywhere[name]), alone(made)
    if name == "full":  # which is told, and changes nothing else
        disks = ("system.disk.", "system.shm.")
        assert ("system.disk.free", "/srv/home/dash", Status.FAIL) in found
        found, own = (
            tuple(one for one in each if not one[0].startswith(disks)) for each in (found, own)
        )
    assert found == own


def test_a_host_that_was_not_reached_has_no_results(everywhere: dict[str, HostReport]) -> None:
    for name, (_, fault) in FAULTY.items():
        assert bool(everywhere[name].results) == (fault == "died"), name


def test_of_a_connection_that_dies_the_answers_before_are_judged(
    made: Lab, everywhere: dict[str, HostReport]
) -> None:
    host = everywhere["dies"]
    unreadable = {missing.probe for missing in host.missing}
    assert "nvidia-smi" in unreadable and "identity" not in unreadable
    sound = {result[:2]: result[2] for result in alone(made)}
    same = [result for result in judged(host) if sound.get(result[:2]) == result[2]]
    assert len(same) > 20
    # Unknown never passes: what hangs on the answer that broke off is told as an error.
    assert any(result.check.startswith("gpu.") and result.status is Status.ERROR
               for result in host.results)  # fmt: skip


def test_a_command_that_hangs_costs_its_limit_and_its_own_answers_only(made: Lab) -> None:
    began = time.monotonic()
    report = by_host(asked(made, "hangs,node-1", "--host-timeout", "14s"))
    assert time.monotonic() - began < 14 + SOON_S
    hung = {missing.probe: missing for missing in report["hangs"].missing}
    assert hung["nvidia-smi"].kind == "timeout"
    assert faults(report["hangs"]) == []
    kernel = [result for result in report["hangs"].results if result.check.startswith("kernel.")]
    assert kernel and any(result.status is Status.PASS for result in kernel)
    assert judged(report["node-1"]) == alone(made)


def test_a_grandchild_that_holds_the_channel_open_is_not_waited_for(made: Lab) -> None:
    began = time.monotonic()
    report = by_host(asked(made, "holds"))
    assert time.monotonic() - began < SOON_S
    assert judged(report["holds"]) == alone(made)


def test_an_answer_of_400_mb_is_cut_and_told(made: Lab, tmp_path: Path) -> None:
    words = ("run", "--hosts", "floods,node-1", "--format", "json", "--save")
    argv = made.inside(made.program(*words, str(tmp_path / "report.json")))
    # By a process between: the kernel counts for a child what its parent held when it began.
    between = [sys.executable, "-c", _PEAK_OF_CHILD, *argv]
    done = subprocess.run(between, capture_output=True, text=True, check=True)
    status, peak_kib = map(int, done.stdout.split()[-2:])
    assert status in REPORTED
    assert peak_kib * 1024 < 550e6, peak_kib  # 320 to 460 MB; held whole, 330 MB more
    report = by_host(msgspec.json.decode((tmp_path / "report.json").read_bytes(), type=Report))
    assert "nvidia-smi" in {missing.probe for missing in report["floods"].missing}
    assert report["floods"].verdict in (Status.ERROR, Status.FAIL)
    assert judged(report["node-1"]) == alone(made)


def test_without_a_disk_to_write_to_the_watch_says_so_and_the_rest_is_judged(made: Lab) -> None:
    report = by_host(asked(made, "full,node-1", "--duration", "1s"))
    [watch] = [missing for missing in report["full"].missing if missing.probe == "watch"]
    assert "No space left" in watch.text
    passive = {result for result in alone(made) if not result[0].startswith("gpu.watch")}
    assert len(passive & set(judged(report["full"]))) > 0.9 * len(passive)


@pytest.mark.parametrize("how", [(), ("--ssh", "system")], ids=["own", "system"])
def test_dead_hosts_cost_their_deadline_and_not_the_runs(made: Lab, how: tuple[str, ...]) -> None:
    began = time.monotonic()
    report = by_host(asked(made, "off-[01-80],node-1,node-2", "--host-timeout", "5s", *how))
    assert time.monotonic() - began < 5 + SOON_S
    for name, host in report.items():
        if name.startswith("off"):
            assert faults(host) == ["no-answer" if not how else "silent"], host.missing
        else:
            assert judged(host) == alone(made)


def test_one_machine_under_two_names_is_judged_once(made: Lab) -> None:
    report = by_host(asked(made, "twin-a,twin-b,node-1"))
    twins = [report["twin-a"], report["twin-b"]]
    assert sorted(map(faults, twins)) == [[], ["same-host"]]
    [second] = [twin for twin in twins if faults(twin)]
    [first] = [twin for twin in twins if not faults(twin)]
    assert first.host in the_fault(second).text
    assert second.verdict is Status.ERROR and not second.results
    assert judged(first) == alone(made)
    assert faults(report["node-1"]) == []


def test_one_name_given_twice_is_asked_once(made: Lab) -> None:
    done = made.preflight("run", "--hosts", "node-1,node-[1-2]", "--format", "json")
    report = msgspec.json.decode(done.stdout, type=Report)
    assert sorted(host.host for host in report.hosts) == ["node-1", "node-2"]
    assert "node-1" in done.stderr


def test_hosts_from_a_file_as_user_at_host_and_port(made: Lab, tmp_path: Path) -> None:
    """The port of `ported` is only known here by what is written."""
    place = made.places["ported"]
    bash = made.places["bash"].address
    hostfile = tmp_path / "hosts"
    hostfile.write_text(f"# rack 7\nnode-1 slots=8\nbash@{bash}  # by address\n\n")
    words = ("--hosts", f"dash@{place.address}:{place.port}", "--hostfile", str(hostfile))
    done = made.preflight("run", *words, "--format", "json")
    assert done.returncode in REPORTED, done.stderr
    report = by_host(msgspec.json.decode(done.stdout, type=Report))
    assert set(report) == {"node-1", bash, f"{place.address}:{place.port}"}
    for host in report.values():
        assert judged(host) == alone(made), host.host


def test_sudo_stands_before_the_commands_that_need_root_and_no_other(made: Lab) -> None:
    log = made.base / "home" / "dash" / "sudo.log"
    asked(made, "sudoer")
    assert not log.exists()
    asked(made, "sudoer", "--sudo")
    needing = {command.argv for command in commands_for(load(DOMAINS).checks) if command.needs_root}
    lines = log.read_text().splitlines()
    assert needing
    # A script's text has lines of its own; its first words tell it from the others.
    begun = {" ".join(["-n", *argv]).splitlines()[0] for argv in needing}
    assert begun <= set(lines)
    assert sum(line.startswith("-n ") for line in lines) == len(needing)


def test_what_was_captured_of_a_run_gives_its_report_again(made: Lab, tmp_path: Path) -> None:
    capture = str(tmp_path / "x.capture.gz")
    live = by_host(asked(made, "node-1,refuses,dies,stranger", "--save", capture))
    done = made.preflight("run", "--from", capture, "--format", "json")
    assert done.returncode in REPORTED, done.stderr
    again = by_host(msgspec.json.decode(done.stdout, type=Report))
    assert set(again) == set(live)
    for name, host in live.items():
        assert host.missing == again[name].missing
        assert judged(host) == judged(again[name])


def test_ctrl_c_keeps_what_has_come(made: Lab, tmp_path: Path) -> None:
    capture, mark = tmp_path / "x.capture.gz", made.base / "home" / "dash" / "hangs"
    mark.unlink(missing_ok=True)
    words = ("run", "--hosts", "node-1,hangs", "--format", "json", "--save", str(capture))
    process = subprocess.Popen(
        made.inside(made.program(*words)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for(mark, 30)
    time.sleep(3)  # node-1 has its answers by then
    [inner] = psutil.Process(process.pid).children()
    inner.send_signal(signal.SIGINT)
    shown, told = process.communicate(timeout=20)
    assert process.returncode == 130, told
    assert str(capture) in told
    raws = read(capture).raws
    answered = {host: {raw.probe for raw in raws if raw.host == host and not raw.missing}
                for host in ("node-1", "hangs")}  # fmt: skip
    assert {"identity", "nvidia-smi"} <= answered["node-1"]
    assert "identity" in answered["hangs"] and "nvidia-smi" not in answered["hangs"]
    report = by_host(msgspec.json.decode(shown, type=Report))
    assert judged(report["node-1"]) == alone(made)
    assert faults(report["hangs"]) == ["interrupted"]


def test_a_clock_wrong_by_a_day_is_told(made: Lab) -> None:
    report = asked(made, "ahead,node-1,node-2")
    [clock] = [one for one in report.fleet if one.check == "fleet.clock.same"]
    assert (clock.status, clock.subject) == (Status.FAIL, "ahead")
    assert isinstance(clock.measured, str) or clock.measured == pytest.approx(86400, abs=60)
    hosts = by_host(report)
    assert judged(hosts["node-1"]) == judged(hosts["node-2"]) == judged(hosts["ahead"])
