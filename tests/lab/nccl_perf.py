"""Stand-ins for the binaries of nccl-tests: they print what those print for the options given, and
as many ranks as there are, under any launcher; or they fail as NCCL_STAND_IN says.

    hang     a rank never comes: it prints its devices, and waits for ever
    silent   nothing is printed
    dies     the second half of the sizes is not measured: NCCL has failed
    wrong    results are wrong, which is told, and the status is 1
    status   all is printed, and the status is 9 nevertheless
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

NAMES = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "alltoall_perf",
         "broadcast_perf", "reduce_perf", "sendrecv_perf")  # fmt: skip

_SCRIPT = r"""#!{python} -IS
import argparse, os, subprocess, sys, time
MPI = {mpi}  # {calls}
name = os.path.basename(sys.argv[0])
asked = argparse.ArgumentParser(prog=name, allow_abbrev=False)
for flag in ("-b", "-e"):
    asked.add_argument(flag, type=int, required=True)
asked.add_argument("-f", type=int, default=1)
asked.add_argument("-g", type=int, default=1)
asked.add_argument("-c", type=int, default=1)
asked.add_argument("-d", choices=["float", "half", "bfloat16"], default="float")
told = asked.parse_args()
def number(*names):
    return next((int(os.environ[one]) for one in names if one in os.environ), None)
processes, process = 1, 0
if MPI:
    processes = number("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS") or 1
    process = number("OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID") or 0
local = number("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID") or 0
seen = os.environ.get("SSH_CONNECTION", "").split()[2:3]  # of orted, which ssh has started
host = os.environ.get("SLURMD_NODENAME") or "".join(seen) or subprocess.run(
    ["hostname"], capture_output=True, text=True).stdout.strip()
mode = os.environ.get("NCCL_STAND_IN", "")
if mode == "silent":
    sys.exit(0)
ranks = processes * told.g
devices = [(process * told.g + at, host, local + at) for at in range(told.g)]
if processes > 1:  # what MPI_Allgather does
    folder = os.path.join("{meet}", name)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "new-%d" % process), "w") as file:
        file.write(repr(devices))
    os.rename(file.name, os.path.join(folder, "rank-%d" % process))
    while len([one for one in os.listdir(folder) if one.startswith("rank-")]) < processes:
        time.sleep(0.01)
    if process == 0:
        files = [os.path.join(folder, one) for one in os.listdir(folder)]
        devices = sorted(sum((eval(open(one).read()) for one in files), []))
def say(line):
    if process == 0:
        print(line, flush=True)
if os.environ.get("NCCL_DEBUG") == "INFO":
    for rank, where, device in devices if process == 0 else []:
        head = "%s:%d:%d [%d] NCCL INFO " % (where, 4000 + rank, 4100 + rank, device)
        for line in {nccl!r}:
            say(head + line.format(rank=rank, ranks=ranks, device=device))
say("# nThread 1 nGpus %d minBytes %d maxBytes %d step: %d(factor) warmup iters: 5 iters: 20 "
    "agg iters: 1 validation: %d graph: 0" % (told.g, told.b, told.e, told.f, told.c))
say("#\n# Using devices")
for rank, where, device in devices:
    say("#  Rank %2d Group  0 Pid %6d on %10s device %2d [0000:%02x:00] NVIDIA H100 80GB HBM3"
        % (rank, 4000 + rank, where, device, 0x1b + device))
if mode == "hang":
    time.sleep(600)
say("#\n#       size         count      type   redop    root     time   algbw   busbw #wrong"
    "     time   algbw   busbw #wrong")
share = (ranks - 1) / ranks
factor, middle = {{
    "all_reduce_perf": (2 * share, "sum -1"), "all_gather_perf": (share, "none -1"),
    "reduce_scatter_perf": (share, "sum -1"), "alltoall_perf": (share, "none -1"),
    "broadcast_perf": (1.0, "none 0"), "reduce_perf": (1.0, "sum 0"),
    "sendrecv_perf": (1.0, "none -1"),
}}[name]
size, shown = told.b, []
while size <= told.e:
    if mode == "dies" and size * 16 > told.e:
        say("%s: Test NCCL failure common.cu:303 'remote process exited or there was a network "
            "error / '" % host)
        sys.exit(3)
    time_us = 20 + size * (factor or 1) / {busbw} / 1e3
    algbw = size / time_us / 1e3
    wrong = 7 if mode == "wrong" and size == told.b else 0
    side = "%9.2f %7.2f %7.2f %6d" % (time_us, algbw, algbw * factor, wrong)
    say("%12d %12d %9s %s %s %s" % (size, size // 4, told.d, middle, side, side))
    shown.append(algbw * factor)
    size = size * told.f if told.f > 1 else told.e + 1
say("# Out of bounds values : %s" % ("14 FAILED" if mode == "wrong" else "0 OK"))
say("# Avg bus bandwidth    : %.4f" % (sum(shown) / len(shown)))
say("#")
sys.exit({{"wrong": 1, "status": 9}}.get(mode, 0))
"""
#: What a rank says of itself on a host whose GPUs are joined by NVLink.
NCCL = (
    "cudaDriverVersion 12040",
    "NCCL version 2.21.5+cuda12.4",
    "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>",
    "Using network IB",
    "ncclCommInitRank comm 0x55d{rank}10 rank {rank} nranks {ranks} cudaDev {device} nvmlDev "
    "{device} busId {device}b000 commId 0x5eaf00d - Init START",
    "ncclCommInitRank comm 0x55d{rank}10 rank {rank} nranks {ranks} cudaDev {device} nvmlDev "
    "{device} busId {device}b000 commId 0x5eaf00d - Init COMPLETE",
)


def binaries(
    folder: Path, *, mpi: bool = False, busbw: float = 370.0, names: Iterable[str] = NAMES,
    nccl: tuple[str, ...] = NCCL,
) -> Path:  # fmt: skip
    """The folder with them in it. `busbw`: in GB/s, of large sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    meet = folder / "meet"
    meet.mkdir(exist_ok=True)
    meet.chmod(0o777)
    text = _SCRIPT.format(
        python=sys.executable, mpi=mpi, calls="MPI_Init" if mpi else "", meet=meet, busbw=busbw,
        nccl=nccl,
    )  # fmt: skip
    for name in names:
        path = folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    return folder


_MPIRUN = r"""#!{python} -IS
import os, subprocess, sys
if sys.argv[1:] == ["--version"]:
    print("{version}")
    sys.exit(0)
words = iter(sys.argv[1:])
env, hosts, per = dict(os.environ), [], 0
for word in words:
    if word == "-np":
        ranks = int(next(words))
    elif word == "-H":
        for one in next(words).split(","):
            name, _, slots = one.partition(":")
            hosts += [name] * int(slots)
    elif word == "-ppn":
        per = int(next(words))
    elif word == "-hosts":
        hosts = [one for one in next(words).split(",") for _ in range(per)]
    elif word == "-x":
        name, _, text = next(words).partition("=")
        env[name] = text
    elif word == "-genv":
        name = next(words)
        env[name] = next(words)
    elif word in ("--map-by", "--bind-to"):
        next(words)
    elif word.startswith("-"):
        sys.exit("mpirun: unrecognized option " + word)
    else:
        break
if {refuses!r}:
    sys.stderr.write({refuses!r})
    sys.exit(1)
assert ranks == len(hosts), (ranks, hosts)
argv, started = [word, *words], []
for rank, host in enumerate(hosts):
    env.update(SSH_CONNECTION="10.0.0.9 1 %s 22" % host, {prefix}_RANK=str(rank),
               {prefix}_SIZE=str(ranks), {local}=str(hosts[:rank].count(host)))
    started.append(subprocess.Popen(argv, env=env))
status = [one.wait() for one in started]
sys.exit(max(status))
"""


def mpirun(folder: Path, *, hydra: bool = False, refuses: str = "") -> Path:
    """The folder with an mpirun in it that starts the ranks of all hosts here. `refuses`: what it
    says in place of that."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "mpirun"
    text = _MPIRUN.format(
        python=sys.executable, refuses=refuses,
        version="HYDRA build details:" if hydra else "mpirun (Open MPI) 4.1.4",
        prefix="PMI" if hydra else "OMPI_COMM_WORLD",
        local="MPI_LOCALRANKID" if hydra else "OMPI_COMM_WORLD_LOCAL_RANK",
    )  # fmt: skip
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return folder
