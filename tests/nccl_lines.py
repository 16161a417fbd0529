"""Logs of NCCL as its versions write them; hosts, addresses and figures are made up."""

# ruff: noqa: E501

from __future__ import annotations

from collections.abc import Callable, Iterable

IB8 = " ".join(f"[{n}]mlx5_{n}:1/IB" for n in range(8))
Prefix = Callable[[int, int], str]


def plain(_host: int, _gpu: int) -> str:
    """Nothing before a line."""
    return ""


#: What launchers and collectors put before a line.
PREFIXES: dict[str, Prefix] = {
    "plain": plain,
    "torchrun": lambda _, gpu: f"[default{gpu}]:",
    "rank": lambda host, gpu: f"[rank{8 * host + gpu}]: ",
    "slurm": lambda host, gpu: f"{8 * host + gpu:2}: ",
    "mpi": lambda host, gpu: f"[1,{8 * host + gpu}]<stdout>:",
    "pdsh": lambda host, _: f"node-{host + 1:02}: ",
    "kubernetes": lambda *_: "2026-01-02T03:04:05.123456789Z stdout F ",
    "compose": lambda host, _: f"trainer-{host}  | ",
    "syslog": lambda host, _: f"Jan  2 03:04:05 node-{host + 1:02} trainer[4242]: ",
    "logger": lambda *_: "2026-01-02 03:04:05,123 [INFO] ",
}


class Job:
    """Two H100 hosts of eight GPUs and eight adapters, NCCL 2.21, all as it should be. Methods
    change one thing; `text` writes it."""

    def __init__(self, hosts: int = 2, gpus: int = 8, version: str = "2.21.5") -> None:
        self.hosts, self.gpus, self.version = hosts, gpus, version
        self.listed: dict[int, str] = {}  # host -> what stands behind Using
        self.network: dict[int, str] = {}
        self.own_version: dict[int, str] = {}
        self.gpudirect: dict[int, str] = {}
        self.adapter: Callable[[int], int] = lambda gpu: gpu
        self.intra: dict[int, str] = {}
        self.absent: set[int] = set()  # ranks
        self.after: list[str] = []
        self.before: dict[int, list[str]] = {}  # host -> lines of its first GPU

    def text(self, prefix: Prefix = plain) -> str:
        """The log, as it is printed."""
        return "".join(f"{line}\n" for line in [*self._lines(prefix), *self.after])

    def _lines(self, prefix: Prefix) -> Iterable[str]:
        for host in range(self.hosts):
            for gpu in range(self.gpus):
                if host * self.gpus + gpu in self.absent:
                    continue
                head = f"{prefix(host, gpu)}node-{host + 1:02}:{4000 + gpu}:{4100 + gpu} [{gpu}] NCCL INFO "
                yield from (head + line for line in self._of(host, gpu))

    def _of(self, host: int, gpu: int) -> Iterable[str]:
        rank, ranks = host * self.gpus + gpu, self.hosts * self.gpus
        network = self.network.get(host, "IB")
        listed = self.listed.get(host, f"NET/IB : Using {IB8} [RO]; OOB eth0:10.0.0.{host + 1}<0>")
        yield "cudaDriverVersion 12040"
        yield f"Bootstrap : Using eth0:10.0.0.{host + 1}<0>"
        yield f"NCCL version {self.own_version.get(host, self.version)}+cuda12.4"
        if gpu == 0:
            yield from self.before.get(host, [])
        yield "NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin."
        yield listed
        yield "Using non-device net plugin version 0"
        yield f"Using network {network}"
        comm = f"comm 0x55d{host}{gpu}10 rank {rank} nranks {ranks} cudaDev {gpu} nvmlDev {gpu} busId {gpu + 1}b000 commId 0x5eaf00d"
        yield f"ncclCommInitRank {comm} - Init START"
        yield f"NVLS multicast support is available on dev {gpu}"
        yield f"comm 0x55d{host}{gpu}10 rank {rank} nRanks {ranks} nNodes {self.hosts} localRanks {self.gpus} localRank {gpu} MNNVL 0"
        if rank == 0:
            yield "Channel 00/16 :    0   7   6   5   4   3   2   1   8  15  14  13  12  11  10   9"
        yield "Trees [0] 1/8/-1->0->-1 [1] 1/-1/-1->0->7"
        yield from self._ways(host, gpu, rank, ranks, network)
        yield "16 coll channels, 16 collnet channels, 0 nvls channels, 16 p2p channels, 2 p2p channels per peer"
        if not self.absent:
            yield f"ncclCommInitRank {comm} - Init COMPLETE"

    def _ways(self, host: int, gpu: int, rank: int, ranks: int, network: str) -> Iterable[str]:
        if self.absent:
            return
        for channel in range(2):
            if gpu + 1 < self.gpus:
                yield f"Channel {channel:02}/0 : {rank}[{gpu}] -> {rank + 1}[{gpu + 1}] via {self.intra.get(host, 'P2P/CUMEM/read')}"
            if self.hosts == 1:
                continue
            own, suffix = self.adapter(gpu), self.gpudirect.get(host, "/GDRDMA")
            suffix = "" if network == "Socket" else suffix
            yield f"Channel {channel:02}/0 : {(rank - self.gpus) % ranks}[{gpu}] -> {rank}[{gpu}] [receive] via NET/{network}/{own}{suffix}"
            yield f"Channel {channel:02}/0 : {rank}[{gpu}] -> {(rank + self.gpus) % ranks}[{gpu}] [send] via NET/{network}/{own}{suffix}"


def on_sockets(hosts: Iterable[int], job: Job | None = None) -> Job:
    """The job whose hosts of these numbers fell back to TCP."""
    job = job or Job()
    for host in hosts:
        job.listed[host] = f"NET/Socket : Using [0]eth0:10.0.0.{host + 1}<0>"
        job.network[host] = "Socket"
        job.before[host] = ["NET/IB : No device found."]
        job.adapter = lambda _: 0
    return job


#: Of single hosts, as older versions write: 2.4, 2.7, 2.12.
OLD = {
    "2.4.8": """\
node-01:3384:3384 [0] NCCL INFO NET/Socket : Using [0]ib0:10.0.0.1<0>
node-01:3384:3384 [0] NCCL INFO NET/Plugin : No plugin found (libnccl-net.so).
node-01:3384:3384 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB ib0:10.0.0.1<0>
NCCL version 2.4.8+cuda10.0
node-01:3385:3385 [1] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB ; OOB ib0:10.0.0.1<0>
node-01:3384:3414 [0] NCCL INFO Setting affinity for GPU 0 to 03f03f
node-01:3384:3414 [0] NCCL INFO Channel 00 :    0   1
node-01:3384:3414 [0] NCCL INFO Ring 00 : 0[0] -> 1[1] via P2P/IPC
node-01:3385:3415 [1] NCCL INFO Ring 00 : 1[1] -> 0[0] via direct shared memory
node-01:3384:3414 [0] NCCL INFO Using 256 threads, Min Comp Cap 7, Trees enabled up to size -2
node-01:3384:3414 [0] NCCL INFO comm 0x7fe3d4001980 rank 0 nranks 2 cudaDev 0 nvmlDev 0 - Init COMPLETE
node-01:3385:3415 [1] NCCL INFO comm 0x7fe3d4001990 rank 1 nranks 2 cudaDev 1 nvmlDev 1 - Init COMPLETE
""",
    "2.7.8": """\
node-01:8640:8763 [0] NCCL INFO NCCL_IB_HCA set by environment to mlx5_0.
node-01:8640:8763 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE ; OOB eth0:10.0.0.1<0>
node-01:8640:8763 [0] NCCL INFO Using network IB
NCCL version 2.7.8+cuda11.0
node-01:8641:8784 [1] NCCL INFO Could not enable P2P between dev 1(=3d000) and dev 0(=1a000)
node-01:8641:8784 [1] NCCL INFO Channel 00 : 1[3d000] -> 0[1a000] via direct shared memory
node-01:8640:8763 [0] NCCL INFO Channel 00 : 0[1a000] -> 1[3d000] via direct shared memory
node-01:8640:8763 [0] NCCL INFO comm 0x14dbb0001060 rank 0 nranks 2 cudaDev 0 busId 1a000 - Init COMPLETE
node-01:8641:8784 [1] NCCL INFO comm 0x14dbb0001070 rank 1 nranks 2 cudaDev 1 busId 3d000 - Init COMPLETE
""",
    "2.29.2": """\
node-01:50292:50292 [0] NCCL INFO ENV/Plugin: Could not find: libnccl-env.so
node-01:50292:50292 [0] NCCL INFO NCCL version 2.29.2+cuda12.8
node-01:50292:50400 [0] NCCL INFO NET/Plugin: Loaded net plugin Libfabric (v11)
node-01:50292:50400 [0] NCCL INFO Successfully loaded external network plugin /opt/lib/libnccl-net.so
node-01:50292:50400 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.18.0
node-01:50292:50400 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa-direct (found 32 nics)
node-01:50292:50400 [0] NCCL INFO TUNER/Plugin: Using nccl_ofi_tuner (v3)
node-01:50292:50400 [0] NCCL INFO PROFILER/Plugin: Could not find: libnccl-profiler.so.
node-01:50292:50400 [0] NCCL INFO Initialized NET plugin Libfabric
node-01:50292:50400 [0] NCCL INFO Assigned NET plugin Libfabric to comm
node-01:50292:50400 [0] NCCL INFO Using network Libfabric
node-01:50292:50400 [0] NCCL INFO ncclCommInitRankConfig comm 0x55b0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 53000 commId 0x93bd8130993d7c36 - Init START
node-01:50292:50400 [0] NCCL INFO Pattern 4, crossNic 0, nChannels 8, bw 40.000000/40.000000, type NVL/PIX, sameChannels 1
node-01:50292:50400 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Libfabric/0/GDRDMA/Shared
node-01:50292:50400 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Libfabric/0(4)/GDRDMA(PCI)/Shared
node-01:50292:50400 [0] NCCL INFO ncclCommInitRankConfig comm 0x55b0 rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId 53000 commId 0x93bd8130993d7c36 - Init COMPLETE
[2026-05-05 06:16:47] node-01:50292:50400 [0] misc/socket.cc:58 NCCL WARN socketProgress: Connection closed by remote peer node-02<41234>
""",
}
#: What it warns of when it is asked for warnings alone.
WARN_ONLY = "node-01:5776:5902 [0] init.cc:1044 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1a000\n"


def wrong(job: Job, line: str) -> Job:
    """The job with one more line at its end."""
    job.after.append(line)
    return job


PATTERN = "Pattern 4, crossNic 0, nChannels 8, bw 40.0/40.0, type {}/PIX, sameChannels 1"


def _job(**fields: object) -> Job:
    """Three hosts, the second of which is as `fields` say."""
    job = Job(hosts=3, gpus=4)
    job.before = {host: [PATTERN.format("NVL")] for host in range(3)}
    job.listed = {
        host: f"NET/IB : Using {IB8} [RO]; OOB eth0:10.0.0.{host + 1}<0>" for host in range(3)
    }
    for name, value in fields.items():
        getattr(job, name).update({1: value} if name != "absent" else value)
    return job


def _one_adapter() -> Job:
    job = _job()
    job.adapter = lambda _: 0
    return job


_FLUSHED = "node-02:4000:1 [0] net_ib.cc:9 NCCL WARN NET/IB : Got completion from peer 10.0.0.1<3> "
_LISTED = "NET/IB : Using [0]mlx5_0:1/IB {}[RO]; OOB eth0:10.0.0.2<0>"
#: What checks are seen to pass and to fail on.
BASES = {
    "nccl": _job(),
    "nccl_sockets": on_sockets([1], _job()),
    "nccl_one_listed": _job(listed=_LISTED.format("")),
    "nccl_one_used": _one_adapter(),
    "nccl_mixed": _job(listed=_LISTED.format("[1]mlx5_1:1/IB [2]mlx5_2:1/RoCE ")),
    "nccl_bond": _job(listed=_LISTED.format("[1]mlx5_bond_0:1/RoCE ")),
    "nccl_hfi": _job(listed="NET/IB : Using [0]hfi1_0:1/IB ; OOB ib0:10.0.0.2<0>"),
    "nccl_no_gdr": _job(gpudirect=""),
    "nccl_shm": _job(intra="SHM/direct/direct"),
    "nccl_pcie": _job(before=[PATTERN.format("PHB")]),
    "nccl_versions": _job(own_version="2.20.5"),
    "nccl_ranks": _job(absent={3}),
    "nccl_error": wrong(_job(), _FLUSHED + "with error 12, opcode 0, len 0, vendor err 129 (Recv)"),
    "nccl_warning": wrong(
        _job(), "node-02:4000:1 [0] a.cc:1 NCCL WARN Cuda failure 'unknown error'"
    ),
}
