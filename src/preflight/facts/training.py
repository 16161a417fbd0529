"""What a run of the bundled training loop told. Seconds, tokens, nats, shares in percent."""

from __future__ import annotations

from msgspec import Struct, field

from preflight.model import NOT_IN_INPUT, Known


class Spread(Struct, frozen=True):
    """Several measurements of one thing."""

    n: int
    median: float
    low: float  # 10th percentile
    high: float  # 90th


class TrainRank(Struct, frozen=True):
    """One process of the run."""

    name: str  # rank 0
    steps: int = 0  # of the whole run that it told
    step_s: Known[float] = NOT_IN_INPUT  # medians after the first steps
    compute_s: Known[float] = NOT_IN_INPUT  # without data, communication and checkpoint
    data_s: Known[float] = NOT_IN_INPUT
    #: Hashes of losses, gradients and parameters after a few steps from one seed, the first try.
    hashes: Known[tuple[str, ...]] = NOT_IN_INPUT
    #: Whether a second try gave the same.
    repeats: Known[bool] = NOT_IN_INPUT
    replica: Known[str] = NOT_IN_INPUT  # the hash of its parameters where replicas were last alike
    weights_bytes: Known[int] = NOT_IN_INPUT
    optimizer_bytes: Known[int] = NOT_IN_INPUT
    peak_bytes: Known[int] = NOT_IN_INPUT
    inactive_split_percent: Known[float] = NOT_IN_INPUT  # of what was reserved at the peak
    alloc_retries: Known[int] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Proof(Struct, frozen=True):
    """Two ways to the same numbers, and how far they are apart: the worst over the ranks."""

    name: str  # accumulation | attention | compile
    loss: float  # relative
    gradient: float  # relative, L2 over all parameters
    norm_ratio: float
    tolerance: float = 0.0  # by precision
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

    step: Known[int] = NOT_IN_INPUT  # where it went on
    elapsed_s: Known[float] = NOT_IN_INPUT  # from the launch to the first step
    loss_difference: Known[float] = NOT_IN_INPUT  # the largest to the run that was not interrupted
    same_parameters: Known[bool] = NOT_IN_INPUT  # bit for bit, at the end
    same_samples: Known[bool] = NOT_IN_INPUT
    snapshot_whole: Known[bool] = NOT_IN_INPUT  # what was read is what was there when it was saved
    damaged: Known[tuple[str, ...]] = NOT_IN_INPUT  # checkpoints that were not as written
    line: int = 0
    probe: str = ""


class Training(Struct, frozen=True):
    """One run. `shares`: of the step by part, of the rank whose step is longest."""

    cannot: Known[str] = NOT_IN_INPUT  # why nothing was trained; "" where it was
    preset: Known[str] = NOT_IN_INPUT
    device: Known[str] = NOT_IN_INPUT
    sharding: Known[str] = NOT_IN_INPUT
    precision: Known[str] = NOT_IN_INPUT
    ranks_asked: Known[int] = NOT_IN_INPUT
    threads: Known[int] = NOT_IN_INPUT
    torch: Known[str] = NOT_IN_INPUT
    injected: tuple[str, ...] = ()
    ended: Known[bool] = NOT_IN_INPUT  # it came to its own end
    steps_asked: Known[int] = NOT_IN_INPUT
    step_s: Known[Spread] = NOT_IN_INPUT
    jitter_percent: Known[float] = NOT_IN_INPUT  # 90th percentile over the median, less 100
    tokens_per_s: Known[float] = NOT_IN_INPUT
    flops_per_token: Known[float] = NOT_IN_INPUT
    shares: dict[str, float] = field(default_factory=dict)
    data_percent: Known[float] = NOT_IN_INPUT
    first_loss: Known[float] = NOT_IN_INPUT
    chance_loss: Known[float] = NOT_IN_INPUT  # ln of the vocabulary
    last_loss: Known[float] = NOT_IN_INPUT  # the mean of the last tenth
    floor_loss: Known[float] = NOT_IN_INPUT
    learned_percent: Known[float] = NOT_IN_INPUT  # of the way from chance to the floor
    not_finite: Known[int] = NOT_IN_INPUT  # steps whose loss or norm is no number, scaler apart
    skipped: Known[int] = NOT_IN_INPUT  # by the scaler of fp16
    scale_low: Known[float] = NOT_IN_INPUT
    norm_first: Known[float] = NOT_IN_INPUT
    norm_high: Known[float] = NOT_IN_INPUT
    spike_step: Known[int] = NOT_IN_INPUT  # where the loss jumped
    outside_optimizer: Known[int] = NOT_IN_INPUT  # trainable parameters that no optimizer has
    twice_in_optimizer: Known[int] = NOT_IN_INPUT
    replicas_agree: Known[bool] = NOT_IN_INPUT
    checkpoint_failed: Known[str] = NOT_IN_INPUT  # why one could not be written; "" if all were
    ranks: Known[tuple[TrainRank, ...]] = NOT_IN_INPUT
    proofs: Known[tuple[Proof, ...]] = NOT_IN_INPUT
    failures: tuple[TrainFailure, ...] = ()
    resume: Resume = field(default_factory=Resume)
    line: int = 1
    probe: str = ""
