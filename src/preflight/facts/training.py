"""What a run of the bundled training loop told. Seconds, tokens, nats, shares in percent."""

from __future__ import annotations

from msgspec import Struct, field

from preflight.facts.sweeps import Scaled, Sweep
from preflight.model import NOT_IN_INPUT, Known, Missing

#: A sweep is asked for by name.
NO_SWEEP = Missing("not-asked", "needs --sweep, such as `preflight micro-train --sweep loader`")


class Spread(Struct, frozen=True):
    """Several measurements of one thing."""

    n: int
    median: float
    low: float  # 10th percentile
    high: float  # 90th


class DeviceLoad(Struct, frozen=True):
    """One GPU beside the steps, as NVML told it each second: medians. Shown, never judged."""

    samples: int
    power_w: Known[float] = NOT_IN_INPUT
    sm_clock_mhz: Known[float] = NOT_IN_INPUT
    sm_percent: Known[float] = NOT_IN_INPUT
    memory_percent: Known[float] = NOT_IN_INPUT


class RankMemory(Struct, frozen=True):
    """Where the memory of one rank is, at its peak where the allocator tells it."""

    weights_bytes: Known[int] = NOT_IN_INPUT
    gradients_bytes: Known[int] = NOT_IN_INPUT
    optimizer_bytes: Known[int] = NOT_IN_INPUT
    activations_bytes: Known[int] = NOT_IN_INPUT
    peak_bytes: Known[int] = NOT_IN_INPUT
    reserved_peak_bytes: Known[int] = NOT_IN_INPUT
    inactive_split_percent: Known[float] = NOT_IN_INPUT  # of what was reserved at the peak
    alloc_retries: Known[int] = NOT_IN_INPUT
    device_used_bytes: Known[int] = NOT_IN_INPUT  # by all processes
    device_total_bytes: Known[int] = NOT_IN_INPUT
    host_peak_bytes: Known[int] = NOT_IN_INPUT


class TrainRank(Struct, frozen=True):
    """One process of the run."""

    name: str  # rank 0
    device: Known[str] = NOT_IN_INPUT  # its model
    ended: Known[bool] = NOT_IN_INPUT  # it came to its end
    trouble: str = ""  # why not
    steps: int = 0  # of the whole run that it told
    step_s: Known[float] = NOT_IN_INPUT  # medians after the first steps
    busy_s: Known[float] = NOT_IN_INPUT  # without data, communication and checkpoint
    shares: dict[str, float] = field(default_factory=dict)  # of its steps by part, percent
    behind_percent: Known[float] = NOT_IN_INPUT  # busy for so much longer than the others
    data_s: Known[float] = NOT_IN_INPUT
    gc_percent: Known[float] = NOT_IN_INPUT  # of its steps, in Python's garbage collector
    gc_longest_s: Known[float] = NOT_IN_INPUT
    #: Hashes of losses, gradients and parameters after a few steps from one seed, the first try.
    hashes: Known[tuple[str, ...]] = NOT_IN_INPUT
    #: The same where its device is of the model that most of the host's are.
    peer_hashes: Known[tuple[str, ...]] = NOT_IN_INPUT
    #: Whether a second try gave the same.
    repeats: Known[bool] = NOT_IN_INPUT
    #: Pieces of the parameters that the ranks of its host hold: all, or with FSDP 1, 2 of 4.
    pieces: str = "all"
    #: The hash of these where replicas were first not alike, or were last looked at.
    replica: Known[str] = NOT_IN_INPUT
    memory: RankMemory = field(default_factory=RankMemory)
    load: Known[DeviceLoad] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Proof(Struct, frozen=True):
    """Two ways to the same numbers, and how far they are apart: the worst over the ranks."""

    name: str  # accumulation | attention | compile
    loss: Known[float] = NOT_IN_INPUT  # relative
    gradient: Known[float] = NOT_IN_INPUT  # relative, L2 over all parameters
    norm_ratio: Known[float] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class TrainFailure(Struct, frozen=True):
    """A rank that did not come to its end. `kind`: died | failed | silent."""

    name: str  # rank 1
    kind: str
    launch: str
    text: str
    step: int = -1  # the last that it told
    line: int = 0
    probe: str = ""


class Resume(Struct, frozen=True):
    """A run that was killed in the middle of a save and went on from the last whole checkpoint."""

    trouble: Known[str] = NOT_IN_INPUT  # why it did not come to its end; "" where it did
    step: Known[int] = NOT_IN_INPUT  # where it went on
    elapsed_s: Known[float] = NOT_IN_INPUT  # reading and checking the checkpoint
    loss_difference: Known[float] = NOT_IN_INPUT  # the largest to the run that was not interrupted
    same_parameters: Known[bool] = NOT_IN_INPUT  # bit for bit, at the end
    same_samples: Known[bool] = NOT_IN_INPUT
    snapshot_whole: Known[bool] = NOT_IN_INPUT  # what was read is what was there when it was saved
    damaged: Known[tuple[str, ...]] = NOT_IN_INPUT  # checkpoints that were not as written
    line: int = 0
    probe: str = ""


class Layer(Struct, frozen=True):
    """The gradient norm of one layer, over the steps at which it was looked at."""

    name: str
    mean: float
    high: float


class Job(Struct, frozen=True):
    """The run over several hosts that this host's is a part of, as whoever started it saw it."""

    host: str  # what this one is called in it
    hosts: tuple[str, ...]  # in the order of their ranks
    ranks: int  # on each
    meets: str = ""  # where, on the first host: 10.0.0.1:40000
    interface: str = ""
    #: Hosts that were to be part of it: h2: why it is not.
    without: tuple[str, ...] = ()
    #: What took all of them with it: a rank, or a host that was lost.
    causes: tuple[str, ...] = ()
    #: From one host to another: that were tried before it began, and that there are.
    ways: tuple[int, ...] = ()


class TrainData(Struct, frozen=True):
    """What the shards hold, by a look at some of it."""

    own: bool  # the user's
    shards: int
    looked_at: int  # of them
    tokens: int  # of all
    sampled: int  # ids that were read
    distinct: int  # of these
    most_id: int  # the most frequent
    most_percent: float  # that it is of them
    stretch_percent: float  # of a shard that is one id throughout; the longest of all shards
    stretch_in: str = ""  # the name of that shard
    line: int = 0
    probe: str = ""


class Jump(Struct, frozen=True):
    """How far the loss of a step, a mean over all ranks, was above the median of the ten before."""

    name: str  # loss
    nats: float
    when: str = ""  # at step 33
    line: int = 0
    probe: str = ""


class Training(Struct, frozen=True):
    """One run. `shares`: of the step by part, of the rank whose step is longest."""

    cannot: str = ""  # why nothing was trained
    lacks_torch: bool = False  # which is why
    busy: str = ""  # whose work on the host was not disturbed
    interrupted: bool = False
    preset: Known[str] = NOT_IN_INPUT
    device: Known[str] = NOT_IN_INPUT  # cuda | cpu
    products: Known[tuple[str, ...]] = NOT_IN_INPUT  # the models of its devices
    sharding: Known[str] = NOT_IN_INPUT
    sharding_asked: str = ""  # where that is another
    precision: Known[str] = NOT_IN_INPUT
    compiled: Known[bool] = NOT_IN_INPUT
    mesh: str = ""  # of fsdp: replicas x pieces
    comm_hook: str = "none"  # what ddp averages gradients in
    accumulation: Known[int] = NOT_IN_INPUT  # micro-batches of a step
    recompute: bool = False  # activation checkpointing
    hosts: Known[int] = NOT_IN_INPUT
    world: Known[int] = NOT_IN_INPUT  # ranks on all hosts
    ranks_asked: Known[int] = NOT_IN_INPUT  # on this host
    threads: Known[int] = NOT_IN_INPUT
    cores: Known[int] = NOT_IN_INPUT
    torch: Known[str] = NOT_IN_INPUT
    data: Known[TrainData] = NOT_IN_INPUT
    injected: tuple[str, ...] = ()  # kill:1
    steps_asked: Known[int] = NOT_IN_INPUT
    step_s: Known[Spread] = NOT_IN_INPUT
    jitter_percent: Known[float] = NOT_IN_INPUT  # 90th percentile over the median, less 100
    tokens_per_s: Known[float] = NOT_IN_INPUT  # of all ranks, without checkpoints
    loader_ratio: Known[float] = NOT_IN_INPUT  # what the loader gives alone, over what a rank takes
    flops_per_token: Known[float] = NOT_IN_INPUT
    parameters: Known[int] = NOT_IN_INPUT
    shares: dict[str, float] = field(default_factory=dict)
    data_percent: Known[float] = NOT_IN_INPUT  # of the step without its checkpoint
    copy_percent: Known[float] = NOT_IN_INPUT
    rest_percent: Known[float] = NOT_IN_INPUT
    data_longest_s: Known[float] = NOT_IN_INPUT  # one wait for data
    checkpoint_stall_s: Known[float] = NOT_IN_INPUT  # the longest that one cost the step
    first_loss: Known[float] = NOT_IN_INPUT
    chance_loss: Known[float] = NOT_IN_INPUT  # ln of the vocabulary
    start_off_nats: Known[float] = NOT_IN_INPUT  # how far the first is from it
    last_loss: Known[float] = NOT_IN_INPUT  # the mean of the last tenth
    floor_loss: Known[float] = NOT_IN_INPUT
    learned_percent: Known[float] = NOT_IN_INPUT  # of the way from chance to the floor
    not_finite: Known[int] = NOT_IN_INPUT  # steps whose loss or norm is no number, scaler apart
    skipped_percent: Known[float] = NOT_IN_INPUT  # steps that the scaler of fp16 left out
    scale_low: Known[float] = NOT_IN_INPUT
    scale_changes: Known[int] = NOT_IN_INPUT
    norm_first: Known[float] = NOT_IN_INPUT
    norm_high: Known[float] = NOT_IN_INPUT
    beta2: Known[float] = NOT_IN_INPUT  # of AdamW
    clip: Known[str] = NOT_IN_INPUT  # the policy: global:1
    clipped_percent: Known[float] = NOT_IN_INPUT  # steps whose norm is above that of a global one
    noise_falls_until: Known[int] = NOT_IN_INPUT  # the step from which gradients jump no less
    layers: tuple[Layer, ...] = ()
    jumps: Known[tuple[Jump, ...]] = NOT_IN_INPUT  # the largest
    outside_optimizer: Known[int] = NOT_IN_INPUT  # trainable parameters that no optimizer has
    twice_in_optimizer: Known[int] = NOT_IN_INPUT
    checkpoint_failed: Known[str] = NOT_IN_INPUT  # why one could not be written; "" if all were
    ranks: Known[tuple[TrainRank, ...]] = NOT_IN_INPUT
    proofs: Known[tuple[Proof, ...]] = NOT_IN_INPUT
    failures: tuple[TrainFailure, ...] = ()
    resume: Resume = field(default_factory=Resume)
    job: Known[Job] = NOT_IN_INPUT
    unmet: Known[str] = NOT_IN_INPUT  # which hosts could not reach where ranks meet; "" if all did
    sweeps: Known[tuple[Sweep, ...]] = NO_SWEEP
    scaling: Known[tuple[Scaled, ...]] = NO_SWEEP
    line: int = 1
    probe: str = ""
