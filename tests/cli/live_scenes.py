"""Processes for a look, each with something wrong with it. They wait more than they compute: all of
them are looked at at the same time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from tests.cli.command import preflight

#: py-spy is installed beside Python, which is not everywhere in PATH.
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
SLEEPS = """
import time
def stuck():
    time.sleep(90)
print(flush=True)
stuck()
"""
BUSY = "print(flush=True)\nwhile True: pass"
#: The files' names are what stacks of torch's loader have; its worker is forked.
LOADS = """
import gzip, os, time
packed = gzip.compress(os.urandom(1000) * 2000)
names = {"time": time}
def named(file, text):
    exec(compile(text, "/x/torch/utils/data/" + file, "exec"), names)
named("dataloader.py", "def wait():\\n    time.sleep(0.1)\\n")
named("_utils/fetch.py", "def fetch(sample):\\n    sample()\\n")
named("_utils/worker.py", "def work(sample):\\n    while True:\\n        fetch(sample)\\n")
def sample():
    gzip.decompress(packed)
if not os.fork():
    names["work"](sample)
print(flush=True)
while True:
    until = time.monotonic() + 0.02
    while time.monotonic() < until:
        pass
    names["wait"]()
"""
COLLECTS = """
import gc, time
held = [[n] for n in range(300_000)]
print(flush=True)
while True:
    gc.collect()
    time.sleep(0.04)
"""
FORKS = """
import os, time
for _ in range(64):
    if not os.fork():
        time.sleep(60)
        os._exit(0)
print(flush=True)
time.sleep(60)
"""
#: Its child has ended, and it does not ask how.
LEAVES = """
import os, time
child = os.fork()
if not child:
    os._exit(0)
time.sleep(0.1)
print(child, flush=True)
time.sleep(60)
"""


class Looked(Struct):
    """How the command ended, and its report in one line."""

    rc: int
    out: str


def looked(*words: object, under: Sequence[str] = ("env",), duration: str = "3.2s") -> Looked:
    """The command as a process of its own: several of them at once."""
    ran = preflight(
        "diagnose-step-time", *map(str, words), "--duration", duration, under=under, PATH=PATH
    )
    return Looked(ran.rc, " ".join((ran.out + ran.err).split()))


class Scenes(ExitStack):
    """What is started ends with it, and what that has started."""

    def start(self, folder: Path, program: str, **environment: str) -> subprocess.Popen[str]:
        """A program of Python, as a file; it is there once it has printed a line."""
        file = folder / f"{len(list(folder.iterdir()))}.py"
        file.write_text(program)
        return self.run([sys.executable, str(file)], environment)

    def run(self, argv: list[str], environment: Mapping[str, str]) -> subprocess.Popen[str]:
        """Another, which prints a line too."""
        env = {**{k: v for k, v in os.environ.items() if k != "RANK"}, **environment}
        one = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=env,
                               start_new_session=True)  # fmt: skip
        self.callback(_end, one)
        assert one.stdout is not None
        one.line = one.stdout.readline()  # type: ignore[attr-defined]
        return one


def _end(one: subprocess.Popen[str]) -> None:
    os.killpg(one.pid, signal.SIGKILL)
    one.communicate()


def all_at_once(looks: Mapping[str, Callable[[], Looked]]) -> dict[str, Looked]:
    """Each under its name."""
    with ThreadPoolExecutor(len(looks)) as beside:
        asked = {name: beside.submit(look) for name, look in looks.items()}
        return {name: one.result() for name, one in asked.items()}
