"""What trains on other hosts is found over a real sshd; of ranks that wait for each other the one
that is slow is named with its host, and nobody where each is in its turn."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.live_scenes import BUSY, Scenes
from tests.conftest import require
from tests.lab.ssh_hosts import LabHost
from tests.lab.sshd import Lab, lab

pytestmark = pytest.mark.lab
NODES = ("n1", "n2", "n3")
#: Its sshd has processes of its own: the first of them stays, as an init does.
_APART = (
    '[ "$APART" ] || { APART=1 unshare -p -f --mount-proc sh -c \'sh -e "$0"; exec sleep 600\' '
    '"$0" & exit 0; }'
)
#: A step: work, then a meeting of all ranks at counters in a shared file, in a frame that is called
#: as torch's. `way`: who is slow.
_TRAINS = """
import mmap, os, random, sys, time
way, rank, ranks = sys.argv[2], int(os.environ["RANK"]), 3
with open(sys.argv[1], "r+b") as file:
    steps = memoryview(mmap.mmap(file.fileno(), 8 * ranks)).cast("q")
names = {"time": time, "steps": steps, "rank": rank, "goes_on": lambda: os.path.exists(sys.argv[1])}
exec(compile('''def all_reduce():
    steps[rank] += 1
    while min(steps) < steps[rank] and goes_on():
        time.sleep(0.002)
''', "/x/torch/distributed/distributed_c10d.py", "exec"), names)
def forward(seconds):
    time.sleep(seconds)
draw = random.Random(1)
while names["goes_on"]():
    slow = {"one": 1, "turns": draw.randrange(ranks), "none": -1}[way]
    forward(0.1 if rank == slow else 0.02)
    names["all_reduce"]()
"""


def test_the_training_of_other_hosts_is_found(tmp_path: Path) -> None:
    python = f'exec {sys.executable} "$@"'
    host = LabHost(user="root", tools={"python3": python})
    with lab(tmp_path, {"node-1": host, "bare": LabHost(tools={"python3": "exit 127"})}) as made:
        words = ("diagnose-step-time", "--hosts", "node-1,bare", "--duration", "2s")
        none = made.preflight(*words)
        assert none.returncode == 3
        assert "node-1: no training is seen here" in " ".join(none.stdout.split())
        assert "bare: " in none.stdout


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    require("py-spy", bool(shutil.which("py-spy", path=str(Path(sys.executable).parent))))
    base = tmp_path_factory.mktemp("three")
    host = LabHost(user="root", tools={"python3": f'exec {sys.executable} "$@"'}, mounts=_APART)
    with lab(base, dict.fromkeys(NODES, host)) as made:
        (base / "train.py").write_text(_TRAINS)
        yield made


def _diagnosed(made: Lab, way: str) -> tuple[int, str]:
    """Three ranks that train in this way, one on each host, and what a look at all of them says."""
    steps = made.base / f"{way}.steps"
    steps.write_bytes(bytes(8 * len(NODES)))
    train = f"exec {sys.executable} /srv/train.py /srv/{steps.name} {way}"
    ssh = [
        subprocess.Popen(made.inside(["ssh", name, f"RANK={rank} {train}"]),
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for rank, name in enumerate(NODES)
    ]  # fmt: skip
    until_s = time.monotonic() + 20
    while min(memoryview(steps.read_bytes()).cast("q")) < 3 and time.monotonic() < until_s:
        time.sleep(0.05)
    done = made.preflight("diagnose-step-time", "--hosts", made.names, "--duration", "2s")
    steps.unlink()  # that is when they end
    for one in ssh:
        one.wait(timeout=20)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_the_slow_rank_of_several_hosts_is_named_with_its_host(three: Lab) -> None:
    rc, out = _diagnosed(three, "one")
    assert rc == 1 and "straggler n2 rank 1" in out and "forward (/srv/train.py" in out, out


def test_where_each_is_slow_in_its_turn_nobody_is_named(three: Lab) -> None:
    _, out = _diagnosed(three, "turns")
    assert "exposed-communication" in out and "straggler" not in out
    assert not re.search(r"rank \d", out), out


def test_a_stopped_rank_is_named_without_its_pid(tmp_path: Path) -> None:
    with Scenes() as scenes:
        one = scenes.start(tmp_path, BUSY, RANK="5")
        one.send_signal(signal.SIGSTOP)
        done = subprocess.run(
            [sys.executable, "-m", "preflight.payload", "look", "--plan",
             '{"pids":[],"seconds":2}'], capture_output=True, text=True, timeout=30,
        )  # fmt: skip
    assert f'"pid":{one.pid},' in done.stdout and '"rank":5' in done.stdout
