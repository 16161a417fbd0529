"""How the GPUs, network adapters and processors of a host are joined.

A path between two devices is told in nvidia-smi's words, best first: NV (NVLink), PIX (one PCIe
switch), PXB (several), PHB (a host bridge), NODE (host bridges of one NUMA node), SYS (between NUMA
nodes). The old word SOC is SYS here.
"""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known

#: Best first.
PATHS = ("NV", "PIX", "PXB", "PHB", "NODE", "SYS")


class Link(Struct, frozen=True):
    """What lies between two devices; each pair once, in the order of the matrix."""

    a: str  # gpu0
    b: str  # gpu1, or an adapter: mlx5_0
    path: Known[str]  # one of PATHS
    nvlinks: int = 0  # how many are bonded, where the path is NV
    line: int = 0
    probe: str = ""


class MatrixDevice(Struct, frozen=True):
    """A row of `nvidia-smi topo -m`. Rows of adapters have no affinity."""

    name: str  # gpu0; mlx5_1, by the legend where the column is NIC0
    kind: str  # gpu | nic
    label: str  # as the header has it: GPU0, NIC0, mlx5_0
    cpus: Known[str] = NOT_IN_INPUT  # 0-47,96-143
    numa_node: Known[int] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Matrix(Struct, frozen=True):
    """One answer of `nvidia-smi topo -m`. `whole`: every row of its header is there."""

    devices: tuple[MatrixDevice, ...]
    links: tuple[Link, ...]
    whole: bool = True
    line: int = 1
    probe: str = ""


class P2pPair(Struct, frozen=True):
    """Whether one GPU may reach the memory of another: OK, or why not: CNS (chipset), GNS (GPU),
    TNS (topology), DR (disabled by a key of the registry), NS (not supported), U (unknown)."""

    a: str
    b: str
    status: Known[str]
    line: int = 0
    probe: str = ""


class P2p(Struct, frozen=True):
    """One answer of `nvidia-smi topo -p2p`. `capability`: read | write | nvlink | atomics | prop,
    where the input tells which."""

    pairs: tuple[P2pPair, ...]
    capability: Known[str] = NOT_IN_INPUT
    line: int = 1
    probe: str = ""


class GpuPlace(Struct, frozen=True):
    """Where a GPU sits."""

    name: str  # gpu0
    bus_id: Known[str] = NOT_IN_INPUT
    numa_node: Known[int] = NOT_IN_INPUT
    cpus: Known[str] = NOT_IN_INPUT  # those of its node: 0-47,96-143
    domain: Known[str] = NOT_IN_INPUT  # the name of its NVLink domain; "none" where it has none
    nvlinks: Known[int] = NOT_IN_INPUT  # the sum over its peers, or those into switches
    nvlink_gbps: Known[float] = NOT_IN_INPUT  # of all these, one way, by its model
    peers: Known[str] = NOT_IN_INPUT  # to the other GPUs, as "7 x NV18"; alike for equals
    #: Of these the ones over NVLink, where the board joins all its GPUs alike.
    nvlink_peers: Known[str] = NOT_IN_INPUT
    nics: Known[tuple[str, ...]] = NOT_IN_INPUT  # the nearest that carry training
    nic_path: Known[str] = NOT_IN_INPUT  # the path to these
    #: Whether one of these is below the same PCIe switch, where most GPUs of the host have one.
    nic_beside: Known[bool] = NOT_IN_INPUT
    p2p: Known[str] = NOT_IN_INPUT  # the worst status to a peer that P2pPair knows: OK ...
    bridged: Known[bool] = NOT_IN_INPUT  # a card that NVLink joins to another, as most here
    #: "fits", or what is within a NUMA node with it and said to be of another one.
    node_fits: Known[str] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class GpuP2p(Struct, frozen=True):
    """The worst that `nvidia-smi topo -p2p` says of one GPU and its peers, those left out that no
    peer reaches. Missing where its kind has no such access by design."""

    name: str  # gpu0
    status: Known[str]
    line: int = 0
    probe: str = ""


class NvlinkDomain(Struct, frozen=True):
    """GPUs that reach each other over NVLink alone, each pair directly or through switches."""

    name: str  # gpu[0-7]
    gpus: tuple[str, ...]
    nvlinks: int  # between two of its GPUs; of an uneven mesh the least
    even: bool  # every pair is joined by as many links
    complete: bool  # every pair is joined at all
    switched: Known[bool] = NOT_IN_INPUT  # by NVSwitches
    line: int = 0
    probe: str = ""


class NicPlace(Struct, frozen=True):
    """Where an adapter sits, and whether training uses it."""

    name: str  # mlx5_0
    address: Known[str] = NOT_IN_INPUT
    numa_node: Known[int] = NOT_IN_INPUT
    gpus: Known[tuple[str, ...]] = NOT_IN_INPUT  # the nearest
    gpu_path: Known[str] = NOT_IN_INPUT  # the path to these
    #: training | other (slower than those of training and beside no GPU, a bond for logins and
    #: storage) | left-out (fit for training, and not in the list of Host.nic_choice) | down
    role: Known[str] = NOT_IN_INPUT
    rate_gbits: Known[float] = NOT_IN_INPUT
    link_layer: Known[str] = NOT_IN_INPUT  # InfiniBand | Ethernet
    line: int = 0
    probe: str = ""


class Topology(Struct, frozen=True):
    """The host as NCCL would see it. `source`: what told the links: the matrix of nvidia-smi, or
    the way of each device on PCI, which knows no NVLink.

    An adapter carries training where it is below one PCIe switch with a GPU (PIX, PXB) and not
    slower than half of the fastest, or is of one kind with such, whatever its rate is now; where
    not most GPUs have such an adapter, also the fastest of the others and their kind. Virtual
    functions and bonds do so only where nothing else does, or is beside a GPU.
    """

    source: Known[str] = NOT_IN_INPUT  # nvidia-smi topo | pci
    gpus: Known[tuple[GpuPlace, ...]] = NOT_IN_INPUT
    nics: Known[tuple[NicPlace, ...]] = NOT_IN_INPUT
    links: Known[tuple[Link, ...]] = NOT_IN_INPUT
    domains: Known[tuple[NvlinkDomain, ...]] = NOT_IN_INPUT
    matrix: Known[Matrix] = NOT_IN_INPUT
    p2p: Known[tuple[P2p, ...]] = NOT_IN_INPUT
    gpu_p2p: Known[tuple[GpuP2p, ...]] = NOT_IN_INPUT
    matrix_gpus: Known[int] = NOT_IN_INPUT  # how many the matrix holds in full
    #: The best path between two GPUs of one NUMA node that NVLink does not join.
    node_path: Known[str] = NOT_IN_INPUT
    gpu_nodes: Known[int] = NOT_IN_INPUT  # NUMA nodes of the GPUs of a board with NVSwitches
    board_gpus: Known[int] = NOT_IN_INPUT  # that a board with NVSwitches shows
    training_places: Known[int] = NOT_IN_INPUT  # PCIe switches or slots with adapters of training
    line: int = 1
    probe: str = ""
