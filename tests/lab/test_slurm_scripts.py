"""The scripts of contrib/slurm, run by a real slurmd: what drains a node, what does not."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from preflight.model import Command
from preflight.transports.slurm.fleet import Slurm
from tests.lab.slurm import Cluster, slurm

pytestmark = pytest.mark.lab

CONTRIB = Path(__file__).resolve().parents[2] / "contrib" / "slurm"
VERDICT = "FAIL: 1 failed, 0 warned, 20 passed, 3 skipped, 0 undetermined"
REPORT = f"FAIL   gpu.xid.79  gpu3  1, expected 0\n\n{VERDICT}"
#: As of a venv whose preflight is gone: Python ends with 1, as preflight does for a failed check.
BROKEN = """\
exec python3 -u -c 'print("FAIL   gpu.count  n1"); from preflight.nowhere_to_be_found import cli'"""

#: What stands in for preflight: it does what a file says that the test writes for each node.
STAND_IN = """\
#!/bin/sh
echo "$@" >>{base}/asked-$SLURMD_NODENAME
. {base}/act-$SLURMD_NODENAME
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    base = tmp_path_factory.mktemp("slurm") / "lab"
    scripts = base / "scripts"
    scripts.mkdir(parents=True)
    stand_in = scripts / "preflight"
    stand_in.write_text(STAND_IN.format(base=base))
    stand_in.chmod(0o755)
    (scripts / "preflight.conf").write_text(
        f"PREFLIGHT={stand_in}\nPREFLIGHT_LOG={base}/log\nPREFLIGHT_LIMIT_S=2\n"
        f"if [ -e {base}/may-drain ]; then PREFLIGHT_DRAIN=yes; fi\n"
        f"SLURM_CONF={base}/slurm.conf; export SLURM_CONF\n"
    )
    for name in ("prolog.sh", "health-check.sh"):
        (scripts / name).write_bytes((CONTRIB / name).read_bytes())
        (scripts / name).chmod(0o755)
    options = {
        "Prolog": f"{scripts}/prolog.sh", "PrologFlags": "Alloc", "PrologEpilogTimeout": "20",
        "HealthCheckProgram": f"{base}/health", "HealthCheckInterval": "2",
        "HealthCheckNodeState": "ANY",
    }  # fmt: skip
    # Run every few seconds once a test puts it there.
    (base / "health").write_text(
        f"#!/bin/sh\n[ ! -e {base}/on ] || exec {scripts}/health-check.sh\n"
    )
    (base / "health").chmod(0o755)
    with slurm(base, ("n1", "n2"), options) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _whole(cluster: Cluster) -> Iterator[None]:
    for node in cluster.nodes:
        _act(cluster, node, "exit 0")
    (cluster.base / "log").write_text("")
    yield
    for name in ("on", "may-drain"):
        (cluster.base / name).unlink(missing_ok=True)
    for node in cluster.nodes:
        _act(cluster, node, "exit 0")
    cluster.mend()


def _act(cluster: Cluster, node: str, what: str) -> None:
    (cluster.base / f"act-{node}").write_text(f"{what}\n")


def _log(cluster: Cluster) -> str:
    return (cluster.base / "log").read_text()


def test_a_job_does_not_start_where_a_check_fails_and_the_node_is_drained(cluster: Cluster) -> None:
    _act(cluster, "n1", f"echo '{REPORT}'; exit 1")
    ran = cluster.base / "ran"
    job = cluster.command(
        "sbatch", "--parsable", "-w", "n1", "-o", "/dev/null", "--wrap", f"touch {ran}"
    ).strip()
    cluster.wait_until("n1", "drain")
    assert "Prolog error" in cluster.command("sinfo", "-h", "-R", "-o", "%E")
    told = cluster.command("scontrol", "show", "job", job)
    assert "JobState=PENDING" in told  # back in the queue, or held there
    assert not ran.exists()
    assert "FAIL, the node is drained: gpu.xid.79 gpu3" in _log(cluster)
    assert cluster.state("n2") == "idle"
    asked = (cluster.base / "asked-n1").read_text()
    assert "gpu-health --host-timeout 1s" in asked


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("exit 0", ""),
        ("echo undetermined: 3; exit 3", "exit status 3: undetermined: 3"),
        ("exit 2", "exit status 2: nothing said"),
        ("exit 70", "exit status 70"),
        ("exit 127", "exit status 127"),
        ("exit 1", "exit status 1 without a verdict of preflight: nothing said"),
        (BROKEN, "exit status 1 without a verdict of preflight: ModuleNotFoundError"),
        ("exec sleep 977", "no answer within 2 s"),
        ("trap '' TERM; while :; do sleep 1; done", "no answer within 2 s"),
    ],
)
def test_anything_but_a_failed_check_lets_the_job_start(
    cluster: Cluster, what: str, said: str
) -> None:
    _act(cluster, "n1", what)
    assert cluster.command("srun", "-w", "n1", "echo", "ran").strip() == "ran"
    cluster.wait_until("n1", "idle")
    assert said in _log(cluster)
    assert ("let through" in _log(cluster)) == bool(said)


def test_a_prolog_whose_grandchild_holds_its_output_does_not_hang(cluster: Cluster) -> None:
    _act(cluster, "n1", "sleep 60 & exit 0")
    assert cluster.command("srun", "-w", "n1", "echo", "ran", timeout_s=15).strip() == "ran"


def test_the_health_check_says_what_to_type_and_drains_nothing_unasked(cluster: Cluster) -> None:
    _act(cluster, "n1", f"echo '{REPORT}'; exit 1")
    (cluster.base / "on").touch()
    line = 'scontrol update nodename=n1 state=drain reason="preflight: gpu.xid.79 gpu3"'
    cluster.wait(lambda: f"FAIL: {line}" in _log(cluster), "the health check")
    assert cluster.state("n1") == "idle"
    assert "n2" not in _log(cluster)


def test_where_it_may_the_health_check_drains_and_only_what_failed(cluster: Cluster) -> None:
    _act(cluster, "n1", f"echo '{REPORT}'; exit 1")
    _act(cluster, "n2", "exit 3")
    (cluster.base / "may-drain").touch()
    (cluster.base / "on").touch()
    cluster.wait_until("n1", "drain")
    assert cluster.command("sinfo", "-h", "-R", "-o", "%E").strip() == "preflight: gpu.xid.79 gpu3"
    cluster.wait(lambda: "node n2: not determined: exit status 3" in _log(cluster), "n2's turn")
    assert cluster.state("n2") == "idle"


def test_a_preflight_that_is_broken_drains_nothing(cluster: Cluster) -> None:
    _act(cluster, "n1", BROKEN)
    (cluster.base / "may-drain").touch()
    (cluster.base / "on").touch()
    said = "n1: not determined: exit status 1 without a verdict of preflight: ModuleNotFoundError"
    cluster.wait(lambda: said in _log(cluster), "the health check")
    assert cluster.state("n1") == "idle"


def test_where_slurms_tools_fail_the_log_has_their_words_and_what_to_type(cluster: Cluster) -> None:
    _act(cluster, "n1", f"echo '{REPORT}'; exit 1")
    nowhere = cluster.base / "nowhere.conf"
    environment = {**cluster.environment, "SLURMD_NODENAME": "n1"}
    conf = cluster.base / "scripts" / "preflight.conf"
    ours = conf.read_text()
    conf.write_text(f"{ours}PREFLIGHT_DRAIN=yes\nSLURM_CONF={nowhere}\n")
    try:
        done = subprocess.run(
            [str(cluster.base / "scripts" / "health-check.sh")], env=environment,
            capture_output=True, text=True, timeout=30,
        )  # fmt: skip
    finally:
        conf.write_text(ours)
    line = 'scontrol update nodename=n1 state=drain reason="preflight: gpu.xid.79 gpu3"'
    assert (done.returncode, done.stdout) == (0, f"{line}\n")
    assert "left alone, for sinfo failed: sinfo:" in _log(cluster)
    assert str(nowhere) in _log(cluster)
    assert line in _log(cluster)
    assert cluster.state("n1") == "idle"


def test_a_node_that_somebody_else_drained_keeps_its_reason(cluster: Cluster) -> None:
    cluster.command("scontrol", "update", "nodename=n1", "state=drain", "reason=mine")
    _act(cluster, "n1", f"echo '{REPORT}'; exit 1")
    (cluster.base / "may-drain").touch()
    (cluster.base / "on").touch()
    cluster.wait(lambda: "left alone, its state is drained" in _log(cluster), "the health check")
    assert cluster.command("sinfo", "-h", "-R", "-o", "%E").strip() == "mine"


def test_a_node_that_is_well_again_is_not_brought_back(cluster: Cluster) -> None:
    cluster.command("scontrol", "update", "nodename=n1", "state=drain", "reason=mine")
    (cluster.base / "may-drain").touch()
    (cluster.base / "asked-n1").write_text("")
    (cluster.base / "on").touch()
    cluster.wait(lambda: bool((cluster.base / "asked-n1").read_text()), "the health check")
    assert cluster.state("n1") == "drained"


@pytest.mark.parametrize(("hosts", "args"), [(("n1", "n2"), ()), ((), ("-N", "2"))])
def test_a_node_whose_prolog_fails_is_named_and_the_others_are_asked(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, hosts: tuple[str, ...], args: tuple[str, ...]
) -> None:
    for name, value in cluster.environment.items():
        monkeypatch.setenv(name, value)
    _act(cluster, "n1", f"echo '{REPORT}'; exit 1")
    question = Command("name", ("sh", "-c", "echo $SLURMD_NODENAME"))
    told = dict(Slurm(hosts, args, deadline_s=20).run((question,)))
    assert sorted(told) == ["n1", "n2"]
    missing = told["n1"][-1].missing
    assert missing
    assert (missing.fault, missing.text) == (
        "node-failed", "srun says: Prolog failure on node n1",
    )  # fmt: skip
    assert (told["n2"][0].stdout, told["n2"][0].missing) == ("n2\n", None)


@pytest.mark.parametrize("script", ["prolog.sh", "health-check.sh"])
def test_they_are_plain_sh(script: str) -> None:
    assert os.access(CONTRIB / script, os.X_OK)
    done = subprocess.run(["dash", "-n", str(CONTRIB / script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
