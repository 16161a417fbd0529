"""What NCCL says of itself in its log: which ways it took, and what failed.

A log may be of many hosts. Its records are named after the host as NCCL calls it: "node-02",
"node-02 gpu3", "node-02 rank 3"; what has no host is called after its line: "line 7".
"""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class NcclVersion(Struct, frozen=True):
    """A version that was announced, once for each host. `name`: the host, or "line 7"."""

    name: str
    version: str  # 2.10.3
    cuda: str = ""  # 11.3: what it was built for
    line: int = 0
    probe: str = ""


class NcclAdapter(Struct, frozen=True):
    """One port of an adapter in the list of NET/IB, in the order of the list."""

    name: str  # mlx5_0
    port: int = 1
    layer: str = ""  # IB | RoCE


class NcclSelection(Struct, frozen=True):
    """The networks that a host's processes found, once where they all found the same."""

    name: str
    host: str
    network: str  # IB | Socket | FastSocket ...
    adapters: tuple[NcclAdapter, ...] = ()
    interfaces: tuple[str, ...] = ()  # of sockets
    layers: str = ""  # "IB", "RoCE", "IB, RoCE"; of bonds only where there is nothing else
    bonds: tuple[str, ...] = ()  # adapters that are bonds, beside others that are none
    oob: Known[str] = NOT_IN_INPUT  # the interface over which processes find each other
    relaxed_ordering: bool = False
    line: int = 0
    probe: str = ""


class NcclVariable(Struct, frozen=True):
    """A variable of NCCL that was in force."""

    name: str  # NCCL_IB_HCA
    value: str
    host: str = ""
    line: int = 0
    probe: str = ""


class NcclRank(Struct, frozen=True):
    """One process' place in a communicator. `state`: started | complete | destroyed | aborted."""

    name: str  # node-02 rank 3
    host: str
    pid: int
    device: int
    rank: int
    ranks: int  # of the communicator
    communicator: str
    bus_id: Known[str] = NOT_IN_INPUT  # 1a000: bus, device and function in one number
    nvml_device: Known[int] = NOT_IN_INPUT
    state: str = "complete"
    line: int = 0
    probe: str = ""


class NcclCommunicator(Struct, frozen=True):
    """Processes that work together. Without an id those of one size are told apart by order."""

    name: str  # 32 ranks; 8 ranks, 2nd; 32 ranks, 0xadcb40
    ranks: int
    seen: int  # of how many the log tells
    complete: int
    hosts: int
    absent: str = ""  # ranks that the log does not name: 8-15
    incomplete: str = ""  # ranks that began and did not come to an end
    announced: bool = False  # whether this NCCL tells of the beginning as well as of the end
    line: int = 0
    probe: str = ""


class NcclConnection(Struct, frozen=True):
    """One way from rank to rank, over however many channels. The ends are numbered as in the
    communicator of whoever wrote the line; devices are bus addresses (2.7 to 2.18) or numbers."""

    name: str  # node-02 rank 1 -> 2
    host: str
    device: int  # of the process that wrote the line
    source: int
    target: int
    transport: str  # P2P | SHM | NET | NVLS | COLLNET
    way: str = ""  # IPC/read, CUMEM, direct pointer; of a network its name: IB, Socket
    source_device: str = ""
    target_device: str = ""
    direction: str = ""  # send | receive, of networks
    adapter: Known[int] = NOT_IN_INPUT  # its number in the list of adapters
    gpudirect: bool = False
    proxy: Known[int] = NOT_IN_INPUT  # the rank whose adapter is used
    channels: int = 1
    line: int = 0
    probe: str = ""


class NcclGraph(Struct, frozen=True):
    """A search for rings or trees: what its worst path is, within a host and to the adapters."""

    name: str
    pattern: str
    channels: int
    intra: str  # NVL | PIX | PXB | PHB | SYS ...
    inter: str
    line: int = 0
    probe: str = ""


class NcclHost(Struct, frozen=True):
    """What one host's processes did, together."""

    name: str
    processes: int
    lines: int
    local_ranks: Known[int] = NOT_IN_INPUT  # of the largest communicator; told since 2.19
    network: Known[str] = NOT_IN_INPUT  # IB; "IB, Socket" where its processes differ
    plugin: Known[str] = NOT_IN_INPUT  # AWS Libfabric (v9); "none" where none was found
    plugin_version: Known[str] = NOT_IN_INPUT  # aws-ofi-nccl 1.13.2-aws
    provider: Known[str] = NOT_IN_INPUT  # of libfabric: efa; tcp;ofi_rxm
    adapters: Known[int] = NOT_IN_INPUT  # in the list of NET/IB
    adapters_used: Known[int] = NOT_IN_INPUT  # that a connection names
    adapters_used_percent: Known[float] = NOT_IN_INPUT
    omnipath_by_verbs: Known[bool] = NOT_IN_INPUT
    p2p: int = 0  # connections
    shm: int = 0
    net: int = 0
    net_gpudirect: int = 0
    p2p_refused: tuple[str, ...] = ()  # 1(=3d000) - 0(=1a000)
    gpudirect_off: Known[str] = NOT_IN_INPUT  # why, in NCCL's words
    nvls: Known[bool] = NOT_IN_INPUT  # multicast of NVSwitches
    nvls_tree: bool = False
    collnet: bool = False  # reduction in the switches of the network
    connected: int = 0  # processes whose connections are all made
    tuner: Known[str] = NOT_IN_INPUT
    profiler: Known[str] = NOT_IN_INPUT
    cumem: Known[bool] = NOT_IN_INPUT
    mnnvl: Known[bool] = NOT_IN_INPUT  # NVLink between hosts
    channels: Known[str] = NOT_IN_INPUT  # 12 coll channels, 16 p2p channels
    rings: int = 0
    trees: int = 0
    line: int = 0
    probe: str = ""


class NcclWarning(Struct, frozen=True):
    """What NCCL warned of, once for each process and text."""

    name: str
    host: str
    text: str
    count: int = 1
    line: int = 0
    probe: str = ""


class NcclCompletion(Struct, frozen=True):
    """Work that an adapter gave back with an error (ibv_wc_status of libibverbs)."""

    name: str
    host: str
    peer: str
    status: int
    vendor_error: Known[int] = NOT_IN_INPUT
    direction: str = ""  # Send | Recv
    adapter: Known[str] = NOT_IN_INPUT
    count: int = 1
    line: int = 0
    probe: str = ""


class NcclReturn(Struct, frozen=True):
    """A call within NCCL that gave back an error: `proxy.cc:679 -> 6` (ncclResult_t)."""

    name: str
    host: str
    place: str
    code: int
    count: int = 1
    line: int = 0
    probe: str = ""


class NcclLog(Struct, frozen=True):
    """All lines of NCCL in the input. Without INFO lines there are warnings and nothing else."""

    lines: int
    info_lines: int
    versions: Known[tuple[NcclVersion, ...]] = NOT_IN_INPUT
    hosts: Known[tuple[NcclHost, ...]] = NOT_IN_INPUT
    selections: Known[tuple[NcclSelection, ...]] = NOT_IN_INPUT
    communicators: Known[tuple[NcclCommunicator, ...]] = NOT_IN_INPUT
    ranks: Known[tuple[NcclRank, ...]] = NOT_IN_INPUT
    connections: Known[tuple[NcclConnection, ...]] = NOT_IN_INPUT
    graphs: Known[tuple[NcclGraph, ...]] = NOT_IN_INPUT
    variables: tuple[NcclVariable, ...] = ()
    warnings: tuple[NcclWarning, ...] = ()
    completions: tuple[NcclCompletion, ...] = ()
    returns: tuple[NcclReturn, ...] = ()
    #: Whether ranks of one job told them: with INFO lines, or where one run has several.
    comparable_versions: bool = False
    left_out: int = 0  # lines of a log too large to be held
    line: int = 1
    probe: str = ""
