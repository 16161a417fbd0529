"""What the user asked for."""

from __future__ import annotations

from msgspec import Struct


class Options(Struct):
    """What the user asked for; a command reads the fields of its own groups."""

    from_: list[str] = []
    hosts: list[str] = []
    hostfile: list[str] = []
    ssh: str = "builtin"
    accept_new_host_keys: bool = False
    slurm: bool = False
    slurm_args: list[str] = []
    sudo: bool = False
    host_timeout: str = "60s"
    duration: str | None = None
    python: str = "python3"
    pid: list[int] = []
    level: str = "quick"
    profile: str | None = None
    only: list[str] = []
    skip: list[str] = []
    set_: list[str] = []
    checks: list[str] = []
    nics: str | None = None
    format: str = "text"
    save: list[str] = []
    save_hosts: str | None = None
    against: str | None = None
    lock: str | None = None
    redact: bool = False
    facts: bool = False
    dry_run: bool = False
    strict: bool = False
    exit_zero: bool = False
    quiet: bool = False
    verbose: int = 0
    color: str = "auto"
    debug: bool = False
    output: str | None = None
    words: list[str] = []
    reports: list[str] = []
    targets: list[str] = []
    paths: list[str] = []
    compare: str | None = None
    checkpoints: list[str] = []
    follow: bool = False
    execute: str | None = None
    undo_moves: str | None = None
    signal: int | None = None
    checksums_only: bool = False
    sample: str | None = None
    fix_script: bool = False
    apply: bool = False
    undo: str | None = None
    undo_file: str | None = None
    preset: str | None = None
    ranks: int | None = None
    sharding: str | None = None
    mesh: str | None = None
    precision: str | None = None
    steps: int | None = None
    batch: int | None = None
    length: int | None = None
    accumulation: int | None = None
    compiled: bool = False
    recompute: bool = False
    comm_hook: str | None = None
    clip: str | None = None
    kv_heads: int | None = None
    data: str | None = None
    folder: str | None = None
    workers: int | None = None
    prefetch: int | None = None
    threads: int | None = None
    seed: int | None = None
    no_resume: bool = False
    interface: str | None = None
    even_if_busy: bool = False
    sweep: list[str] = []
    inject: list[str] = []
    drill: list[str] = []
    stress: bool = False
    devices: int | None = None
    attention: str | None = None
    collective: list[str] = []
    begin: str | None = None
    end: str | None = None
    factor: int | None = None
    dtype: str | None = None
    repeats: int | None = None
    pairwise: bool = False
    no_locate: bool = False
    dir: str | None = None
    url: str | None = None
    size: str | None = None
    runtime: str | None = None
    patterns: str | None = None
    writers: int | None = None
    loaders: int | None = None
    window: str | None = None
    demand_mbps: float | None = None
    job: str | None = None
    shard: str | None = None
    model_params: str | None = None
    model_ranks: int | None = None
    settings: list[str] = []
    lasting: str | None = None
    wire: str | None = None
    nccl_tests: str | None = None
    params: str | None = None
    active_params: str | None = None
    tokens: str | None = None
    gpus: int | None = None
    gpu: str | None = None
    layers: int | None = None
    width: int | None = None
    heads: str | None = None
    vocab: int | None = None
    optimizer: str | None = None
    tokens_per_gpu: str | None = None
    mfu: float | None = None
    peak: float | None = None
    busbw: float | None = None
    write_speed: str | None = None
    read_speed: str | None = None
    power: float | None = None
    mtbf: str | None = None
    restart: str | None = None
    interval: str | None = None
    stall: str | None = None
    wait: float | None = None
    price: float | None = None
    price_kwh: float | None = None
    price_storage: float | None = None
    price_transfer: float | None = None
    price_requests: float | None = None
    keep: int | None = None
    transfers: int | None = None


def are_many(options: Options) -> bool:
    """Whether the options name hosts other than this machine."""
    return bool(options.hosts or options.hostfile or options.slurm or options.slurm_args)
