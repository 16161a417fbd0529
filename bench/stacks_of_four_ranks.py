"""Records tests/samples/own/stacks: THIS FOLDER CASE..., four ranks on gloo, by py-spy and by
faulthandler. Paths of the machine are replaced by common ones."""

from __future__ import annotations

import argparse
import faulthandler
import os
import pdb
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from datetime import timedelta
from pathlib import Path

RANKS = 4
#: Case -> what is asked of py-spy beside the PID, and how often.
CASES: dict[str, tuple[tuple[str, ...], int]] = {
    "loader": (("--subprocesses",), 2),
    "save": (("--locals",), 1),
    "type": (("--json",), 1),
    "ring": (("--native",), 1),
    "moves": ((), 2),
    "debugger": ((), 1),
}
_APART_S = 1.0


def _load_batch(rank: int) -> None:
    """A loader of one process, of which one rank's never gives its second batch."""
    from torch.utils.data import DataLoader

    for _ in DataLoader(_Slow(rank), num_workers=1):
        pass


class _Slow:
    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        if index == 1 and self.rank == 2:
            self.read_shard()
        return index

    def read_shard(self) -> None:
        time.sleep(600)


def _save_checkpoint(folder: str) -> None:
    """To a file system that does not answer: a pipe that nobody reads."""
    path = f"{folder}/pipe"
    os.mkfifo(path)
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(b"weights")


def _train(case: str, rank: int, folder: str) -> None:
    import torch
    import torch.distributed as dist

    out = os.open(f"{folder}/rank{rank}.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    faulthandler.register(signal.SIGUSR1, file=out)
    store = f"file://{folder}/store"
    dist.init_process_group(
        "gloo", init_method=store, rank=rank, world_size=RANKS, timeout=timedelta(seconds=300)
    )
    threading.Thread(target=time.sleep, args=(600,), name="heartbeat", daemon=True).start()
    dist.barrier()
    Path(folder, f"ready{rank}").touch()
    if case == "loader":
        _load_batch(rank)
    if case == "save" and rank == 0:
        _save_checkpoint(folder)
    if case == "debugger" and rank == 1:
        pdb.Pdb(stdin=os.fdopen(os.pipe()[0]), stdout=sys.stderr).set_trace()
    if case == "type" and rank == 2:
        dist.broadcast(torch.ones(8), 0)
    if case == "ring":
        dist.recv(torch.ones(8), (rank + 1) % RANKS)
    for step in range(100_000_000 if case == "moves" else 1):
        _step(step, case, rank)


def _step(step: int, case: str, rank: int) -> None:
    import torch
    import torch.distributed as dist

    if case == "moves":
        time.sleep(0.3 if (step + rank) % 2 else 0.05)
    dist.all_reduce(torch.ones(8))


def _neutral(text: str) -> str:
    """The same with common paths."""
    site, base = sysconfig.get_path("purelib"), sysconfig.get_path("stdlib")
    for own, common in (
        (site, "/opt/venv/lib/python3.11/site-packages"), (base, "/usr/lib/python3.11"),
        (str(Path(__file__).parent), "/job"), (sys.executable, "/opt/venv/bin/python"),
        (os.path.realpath(sys.executable), "/usr/bin/python3.11"),
    ):  # fmt: skip
        text = text.replace(own, common)
    return text


def _spied(pid: int, asked: tuple[str, ...]) -> str:
    """Of a process that moves a stack may be torn: then once more."""
    for _ in range(5):
        done = subprocess.run(["py-spy", "dump", "--pid", str(pid), *asked],
                              capture_output=True, text=True, check=False)  # fmt: skip
        if done.returncode == 0:
            return done.stdout
    raise RuntimeError(done.stderr)


def _record(case: str, folder: Path) -> None:
    asked, times = CASES[case]
    work = Path(os.environ.get("TMPDIR", "/tmp"), f"stacks-{os.getpid()}-{case}")
    work.mkdir()
    folder.mkdir(parents=True, exist_ok=True)
    ranks = [
        subprocess.Popen([sys.executable, __file__, "--local_rank", str(at), "--case", case,
                          "--folder", str(work)], stdin=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL) for at in range(RANKS)
    ]  # fmt: skip
    while len(list(work.glob("ready*"))) < RANKS:
        time.sleep(0.5)
    time.sleep(12)
    for moment in range(times):
        for at, one in enumerate(ranks):
            told = _spied(one.pid, asked).replace(str(work), "/job/run")
            end = "json" if "--json" in asked else "txt"
            name = f"rank{at}_{moment + 1}.{end}" if times > 1 else f"rank{at}.{end}"
            Path(folder, name).write_text(_neutral(told))
        for one in ranks:
            one.send_signal(signal.SIGUSR1)
        time.sleep(_APART_S)
    for one in ranks:
        subprocess.run(["pkill", "-KILL", "-P", str(one.pid)], check=False)
        one.kill()
        one.wait()
    if case in ("loader", "moves"):
        away = folder.with_name(f"{folder.name}_faulthandler")
        away.mkdir(exist_ok=True)
        for at in range(RANKS):
            told = Path(work, f"rank{at}.txt").read_text()
            Path(away, f"rank{at}.txt").write_text(_neutral(told))
    for path in work.iterdir():
        path.unlink()
    work.rmdir()


if __name__ == "__main__":
    if "--case" in sys.argv:
        parser = argparse.ArgumentParser()
        parser.add_argument("--case")
        parser.add_argument("--folder")
        parser.add_argument("--local_rank", type=int)
        told_ = parser.parse_args()
        _train(told_.case, told_.local_rank, told_.folder)
    else:
        for name in sys.argv[2:]:
            _record(name, Path(sys.argv[1], name))
