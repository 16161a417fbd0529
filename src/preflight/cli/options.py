"""Every option once: its type, flags, help and default. Commands name the groups they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
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
    size: str | None = None
    runtime: str | None = None
    job: str | None = None
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
    optimizer: str | None = None
    tokens_per_gpu: str | None = None
    mfu: float | None = None
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
    keep: int | None = None
    transfers: int | None = None


def are_many(options: Options) -> bool:
    """Whether the options name hosts other than this machine."""
    return bool(options.hosts or options.hostfile or options.slurm or options.slurm_args)


class Option(Struct, frozen=True):
    """One option as typer takes it."""

    kind: Any
    flags: tuple[str, ...]
    help: str
    metavar: str | None = None
    count: bool = False


_DEFAULTS = Options()

OPTIONS: dict[str, Option] = {
    "from_": Option(
        list[str], ("--from",),
        "Judge recorded answers instead of this machine: a capture, or the output of a tool. "
        "- is standard input, a directory its files. Repeatable.", "[NAME=]FILE",
    ),
    "hosts": Option(
        list[str], ("--hosts",),
        "Ask these hosts over SSH: 'node[01-16],ops@login:2222'. Repeatable.", "HOSTS"
    ),
    "hostfile": Option(
        list[str], ("--hostfile",), "The same, one a line; - is standard input.", "FILE"
    ),
    "ssh": Option(
        str, ("--ssh",), "`system` takes the ssh command: Kerberos, smart cards, certificates.",
        "builtin|system",
    ),
    "accept_new_host_keys": Option(
        bool, ("--accept-new-host-keys",),
        "Write the key of a host without one into known_hosts; a changed key is refused.",
    ),
    "slurm": Option(
        bool, ("--slurm",), "Ask the nodes of the Slurm allocation, by one srun."
    ),
    "slurm_args": Option(
        list[str], ("--slurm-args",),
        "Outside of an allocation: what srun takes, such as '-p gpu -N 4'.", "ARGS"
    ),
    "sudo": Option(bool, ("--sudo",), "Put `sudo -n` before the commands that need root."),
    "host_timeout": Option(
        str,
        ("--host-timeout",),
        "Most time for one host; being watched (--duration) and training have their own beside it.",
        "TIME",
    ),
    "duration": Option(
        str, ("--duration",), "Watch the GPUs for so long: clocks, power, heat, errors.", "TIME"
    ),
    "python": Option(
        str, ("--python",), "What starts Python 3.9 or later to watch GPUs or to train.", "CMD"
    ),
    "pid": Option(
        list[int], ("--pid",),
        "Also look at this process: limits, open files, variables, NCCL. Repeatable.", "PID",
    ),
    "level": Option(
        str, ("--level",), "How much is done: quick is passive and takes seconds.",
        "quick|standard|full",
    ),
    "profile": Option(str, ("--profile",), "Values for a kind of site.", "NAME|FILE"),
    "only": Option(list[str], ("--only",), "Judge only checks of this name. Repeatable.", "GLOB"),
    "skip": Option(list[str], ("--skip",), "Leave checks of this name out. Repeatable.", "GLOB"),
    "set_": Option(
        list[str], ("--set",),
        "Another threshold: gpu.count=8; ID.warn= or ID.fail= where a check has both. Repeatable.",
        "ID=VALUE",
    ),
    "checks": Option(
        list[str], ("--checks",), "A site's own checks, *.yaml. Repeatable.", "DIR"
    ),
    "nics": Option(
        str, ("--nics",),
        "The adapters for training, as in NCCL_IB_HCA: mlx5_0,mlx5_1:1, =mlx5_0, ^mlx5_4 (all "
        "but). Else those that NCCL_IB_HCA names here, else those near the GPUs. They are judged, "
        "advised, measured.", "LIST",
    ),
    "format": Option(
        str, ("--format",), "What goes to standard output.", "text|json|jsonl|junit|markdown"
    ),
    "save": Option(
        list[str], ("--save",),
        "Also write a file, by suffix: .json .jsonl .xml .md .txt .svg .capture.gz. Repeatable.",
        "FILE",
    ),
    "save_hosts": Option(
        str, ("--save-hosts",),
        "Also write the names of the hosts that can take a job to PREFIX.pass, of the others to "
        "PREFIX.fail: for srun --nodelist=./PREFIX.pass, mpirun --hostfile, --hostfile. In .fail "
        "are hosts that failed, are silent or undetermined, or odd by a failure; those odd by a "
        "warning are in .pass, unless with --strict.", "PREFIX",
    ),
    "against": Option(
        str, ("--against",),
        "Also tell what changed since an earlier report, or differs from a lock.", "FILE"
    ),
    "lock": Option(
        str, ("--lock",),
        "Write the versions found to this file, an entry a line, for --against. Notes that "
        "somebody wrote into it are kept.", "FILE"
    ),
    "redact": Option(
        bool, ("--redact",), "Names, addresses, UUIDs and serials become stand-ins."
    ),
    "facts": Option(bool, ("--facts",), "Put the facts of every host into the JSON."),
    "dry_run": Option(bool, ("--dry-run",), "Print what would be run where; run nothing."),
    "strict": Option(bool, ("--strict",), "Exit with 1 on a warning too."),
    "exit_zero": Option(bool, ("--exit-zero",), "Exit with 0 whatever the verdict."),
    "quiet": Option(bool, ("--quiet", "-q"), "Print the verdict only."),
    "verbose": Option(
        int, ("--verbose", "-v"), "-v shows passing checks, -vv everything.", count=True
    ),
    "color": Option(str, ("--color",), "Colour in text.", "auto|always|never"),
    "debug": Option(bool, ("--debug",), "Show a traceback where preflight itself fails."),
    "fix_script": Option(
        bool, ("--fix-script",),
        "Print a shell script that sets what warns or fails, to be read and then run as root; of "
        "many hosts one for each group that needs the same.",
    ),
    "apply": Option(
        bool, ("--apply",),
        "Set it on this machine, as root, so that it stays; an undo file is written first.",
    ),
    "undo": Option(str, ("--undo",), "Put back what --apply changed.", "FILE"),
    "undo_file": Option(
        str, ("--undo-file",), "Where --apply writes it, else /var/lib/preflight.", "FILE"
    ),
    "output": Option(str, ("--output", "-o"), "The capture to write.", "FILE"),
    "preset": Option(
        str, ("--preset",),
        "What is trained: cpu-tiny, gpu-small (8 GB), gpu-1b (24 GB), gpu-7b-slice (32 GB). By the "
        "device where none is named.", "NAME",
    ),
    "ranks": Option(
        int, ("--ranks",), "Processes on each host: one for each GPU, or two.", "N"
    ),
    "sharding": Option(
        str, ("--sharding",), "How several ranks share the work; ddp, of an "
        "estimate fsdp (ZeRO-3), or zero1, zero2.", "single|ddp|fsdp"
    ),
    "mesh": Option(
        str, ("--mesh",), "FSDP in R replicas, each sharded over S ranks.", "RxS"
    ),
    "precision": Option(
        str, ("--precision",), "Else the preset's. fp16 scales the loss.", "bf16|fp16|fp32"
    ),
    "steps": Option(int, ("--steps",), "Optimizer steps.", "N"),
    "batch": Option(int, ("--batch",), "Sequences of one rank and pass.", "N"),
    "length": Option(int, ("--length",), "Tokens of a sequence.", "N"),
    "accumulation": Option(int, ("--accumulation",), "Passes of a step.", "N"),
    "compiled": Option(bool, ("--compile",), "By torch.compile."),
    "recompute": Option(
        bool, ("--activation-checkpointing",), "Compute activations twice, to keep fewer."
    ),
    "comm_hook": Option(
        str, ("--comm-hook",), "What DDP makes of gradients on their way.",
        "none|bf16|fp16|powersgd|topk|onebit",
    ),
    "clip": Option(
        str, ("--clip",), "Of gradients: global:1, layer:1, quantile:0.9, none.", "POLICY",
    ),
    "kv_heads": Option(int, ("--kv-heads",), "Heads of keys and values.", "N"),
    "data": Option(
        str, ("--data",),
        "Your own token shards: .bin (uint16), .npy, .arrow. Else synthetic ones.", "DIR",
    ),
    "folder": Option(
        str, ("--folder",),
        "For shards and checkpoints, else the temporary folder. One that all hosts share, for a "
        "run over several to be killed and resumed.", "DIR",
    ),
    "workers": Option(int, ("--workers",), "Processes of a rank that load.", "N"),
    "prefetch": Option(int, ("--prefetch",), "Batches that each of them has ready.", "N"),
    "threads": Option(int, ("--threads",), "Threads of a rank on CPUs.", "N"),
    "seed": Option(int, ("--seed",), "Of weights, data and order.", "N"),
    "no_resume": Option(bool, ("--no-resume",), "Train once; kill and resume nothing."),
    "interface": Option(
        str, ("--interface",), "Over which several hosts talk, else the default route's; several, "
        "A,B, are used in turn, and nccl-bench tells which is slow.", "NAME",
    ),
    "even_if_busy": Option(
        bool, ("--even-if-busy",), "Work beside what others run on the GPUs."
    ),
    "sweep": Option(
        list[str], ("--sweep",),
        "Instead train a few steps with each setting of an axis, and say which to take: loader "
        "(values: workers, or workers x batches ahead), length (tokens), batch (sequences), "
        "scaling (devices), recompute (shares of the blocks, or operators), clip (as --clip), "
        "kv-heads (that divide the heads), comm-hook (as --comm-hook). Repeatable.",
        "AXIS[=V,V]",
    ),
    "inject": Option(
        list[str], ("--inject",),
        "A fault on purpose, to see it told. N is the rank (else the last) of slow-rank, kill, "
        "stop, flip-weight, flip-gradient; the step (else a third of all) of stall, nan, "
        "bad-batch; milliseconds of slow-loader, objects of pickle-heavy, times of rate-x100. On "
        "the resume: lost-optimizer, repeated-data, corrupt-checkpoint, half-checkpoint, "
        "full-disk; also gc-pauses. On GPUs only: pageable, churn, tiny-kernels (N operations). "
        "Repeatable.",
        "NAME[:N]",
    ),
    "stress": Option(
        bool, ("--stress",),
        "Put every GPU under load, or the processors: products, memory, copies, attention, right "
        "and fast. With --duration a soak of that time. No GPU is undetermined: --set gpu.count=0 "
        "where none is expected.",
    ),
    "devices": Option(
        int, ("--devices",), "For --stress: so many GPUs, or so many parts of the processors.", "N"
    ),
    "drill": Option(
        list[str], ("--inject",),
        "For --stress: a fault on purpose, of device N: wedge, zero-work, corrupt, memory, slow, "
        "lost. Repeatable.",
        "NAME[:N]",
    ),
    "attention": Option(
        str, ("--attention",),
        "For --stress: the attention of your model, BATCHxHEADSxKV_HEADSxLENGTHxSIZE.", "SHAPE",
    ),
    "collective": Option(
        list[str], ("--collective",),
        "Time this one: all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, "
        "sendrecv; all of them where none is named. Repeatable.", "NAME",
    ),
    "begin": Option(str, ("--begin", "-b"), "The smallest size.", "SIZE"),
    "end": Option(str, ("--end", "-e"), "The largest size.", "SIZE"),
    "factor": Option(int, ("--factor", "-f"), "From one size to the next.", "N"),
    "dtype": Option(str, ("--dtype",), "Type of numbers.", "float32|float16|bfloat16"),
    "repeats": Option(
        int, ("--repeats",), "Measurements of each test of the search, of which the median counts.",
        "N",
    ),
    "pairwise": Option(
        bool, ("--pairwise",),
        "Try each pair of hosts, as is done with up to eight: a round for each host. Shown as a "
        "map; --save heat.svg draws it.",
    ),
    "dir": Option(
        str, ("--dir",),
        "Where to write and read: a directory of the file system in question. Else one of a local "
        "disk: $TMPDIR, /tmp, /var/tmp, $HOME. What is written is removed.", "DIR",
    ),
    "size": Option(
        str, ("--size",),
        "Bytes of all files at once, else 4G; hosts share them where they share the file system.",
        "SIZE",
    ),
    "runtime": Option(str, ("--runtime",), "Of all jobs together, else 60s.", "TIME"),
    "job": Option(
        str, ("--job",),
        "Your own job file of fio in place of the built-in jobs. Its files are made in the "
        "directory: it may name no other, nor a device.", "FILE",
    ),
    "model_params": Option(
        str, ("--model-params",),
        "Also reckon the checkpoint of a model with so many parameters: its bytes, and the time to "
        "save and to load it at the speeds that are measured.", "N",
    ),
    "model_ranks": Option(
        int, ("--ranks",), "For --model-params: ranks that the checkpoint is divided among.", "N"
    ),
    "no_locate": Option(bool, ("--no-locate",), "Look for no slow host or link."),
    "settings": Option(
        list[str], ("--sweep",),
        "Hold a variable of NCCL or gloo with these values against it unset, in fresh processes "
        "and in turns, at -b and -e; a faster one is told only where it is beyond the spread. "
        "Between semicolons values may hold commas. Repeatable.", "NAME=V,V",
    ),
    "lasting": Option(
        str, ("--duration",), "Repeat one collective for so long: level, trend, drops.", "TIME"
    ),
    "wire": Option(
        str, ("--wire",),
        "Time the links too, without collectives: RDMA by perftest, or TCP where there is none.",
        "auto|rdma|tcp",
    ),
    "nccl_tests": Option(
        str, ("--nccl-tests",),
        "Measure with the binaries of nccl-tests in DIR (or DIR/build, on every host) in place of "
        "torch: one process on one host; on several mpirun of this machine, or srun, starts a "
        "rank for each GPU.", "DIR",
    ),
    "params": Option(str, ("--params",), "Parameters of the model: 7e9, 7B.", "N"),
    "active_params": Option(
        str, ("--active-params",), "Those that a token passes through, in a mixture of experts.",
        "N",
    ),
    "tokens": Option(str, ("--tokens",), "Tokens to train on: 2e12, 2T.", "N"),
    "gpus": Option(int, ("--gpus",), "GPUs of the run.", "N"),
    "gpu": Option(
        str, ("--gpu",), "Their model, as nvidia-smi calls it, where no report tells it.", "NAME"
    ),
    "layers": Option(int, ("--layers",), "Layers of the model, for attention.", "N"),
    "width": Option(int, ("--width",), "Width of the model.", "N"),
    "optimizer": Option(
        str, ("--optimizer",), "What the state holds; adamw.",
        "adamw|adamw-8bit|adafactor|sgd|momentum|lion|muon|none",
    ),
    "tokens_per_gpu": Option(
        str, ("--tokens-per-gpu",), "Tokens of one GPU in one pass, for communication.", "N"
    ),
    "mfu": Option(float, ("--mfu",), "MFU, in place of a report of micro-train.", "PERCENT"),
    "busbw": Option(
        float, ("--busbw",), "Bus bandwidth in GB/s, in place of a report of nccl-bench.", "GB/s"
    ),
    "write_speed": Option(
        str, ("--write-speed",), "Of checkpoints, in place of a report of io-bench: 5GB/s.", "RATE"
    ),
    "read_speed": Option(str, ("--read-speed",), "The same for reading.", "RATE"),
    "power": Option(float, ("--power",), "Of one GPU at work, where no report has it.", "WATTS"),
    "mtbf": Option(
        str, ("--mtbf",), "Time of the whole job from one failure to the next: 2.3d.", "TIME"
    ),
    "restart": Option(str, ("--restart",), "From a failure to the next step, loading too.", "TIME"),
    "interval": Option(
        str, ("--interval",), "Training between two saves; of an estimate else the best.", "TIME"
    ),
    "stall": Option(
        str, ("--stall",), "What a save takes from the steps; else the whole write.", "TIME"
    ),
    "wait": Option(
        float, ("--wait",), "Waiting for machines, retries by hand, as a part of the steps.",
        "PERCENT",
    ),
    "price": Option(float, ("--price",), "Of a GPU-hour, in your money.", "PRICE"),
    "price_kwh": Option(float, ("--price-kwh",), "Of a kWh.", "PRICE"),
    "price_storage": Option(float, ("--price-storage",), "Of a GB (1e9) and month.", "PRICE"),
    "price_transfer": Option(float, ("--price-transfer",), "Of a GB that is read out.", "PRICE"),
    "keep": Option(int, ("--keep",), "Checkpoints that are kept; 2.", "N"),
    "transfers": Option(int, ("--transfers",), "Checkpoints that are read out; 0.", "N"),
}  # fmt: skip

ARGUMENTS: dict[str, Option] = {
    "words": Option(
        list[str],
        (),
        "A check id, an Xid, a runbook, an error text (- is standard input, or a file) or words of "
        "a symptom.",
        "WORDS",
    ),
    "reports": Option(list[str], (), "Reports in JSON, as --format json wrote them.", "REPORT"),
}

HOSTS = ("hosts", "hostfile", "slurm", "slurm_args", "ssh", "accept_new_host_keys")
WHERE = ("from_", *HOSTS, "sudo", "host_timeout", "duration", "python")
JUDGE = ("level", "profile", "only", "skip", "set_", "checks")
WRITE = (
    "format", "save", "save_hosts", "against", "redact", "facts", "strict", "exit_zero", "quiet",
    "verbose", "color",
)  # fmt: skip
RUN = ("dry_run", "debug")
TRAIN = (
    "preset", "ranks", "sharding", "mesh", "precision", "steps", "batch", "length", "accumulation",
    "kv_heads", "compiled", "recompute", "comm_hook", "clip", "data", "folder", "workers",
    "prefetch", "threads", "seed", "no_resume", "interface", "even_if_busy", "sweep", "inject",
)  # fmt: skip
STRESS = ("stress", "devices", "attention", "even_if_busy", "drill")
BENCH = (
    "collective", "begin", "end", "factor", "dtype", "ranks", "threads", "repeats", "pairwise",
    "no_locate", "nccl_tests", "interface", "even_if_busy", "settings", "lasting", "wire",
)  # fmt: skip
STORE = ("dir", "size", "runtime", "job", "even_if_busy")
PROJECT = ("model_params", "optimizer", "model_ranks", "interval")
ESTIMATE = (
    "params", "active_params", "tokens", "gpus", "gpu", "layers", "width", "length", "sharding",
    "optimizer", "tokens_per_gpu", "accumulation", "mfu", "busbw", "write_speed", "read_speed",
    "power", "mtbf", "restart", "interval", "stall", "wait", "price", "price_kwh",
    "price_storage", "price_transfer", "keep", "transfers",
)  # fmt: skip
FIX = ("fix_script", "apply", "undo", "undo_file")


def command(
    action: Callable[[Options], int], names: tuple[str, ...], doc: str
) -> Callable[..., int]:
    """A function with the signature that typer reads; it fills Options and calls `action`."""

    def call(**values: Any) -> int:
        return action(
            Options(**{name: value for name, value in values.items() if value is not None})
        )

    parameters = [_parameter(name) for name in names]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    call.__doc__ = doc
    return call


def _parameter(name: str) -> inspect.Parameter:
    default = getattr(_DEFAULTS, name) or None
    if isinstance(getattr(_DEFAULTS, name), bool):
        default = False
    if name in ARGUMENTS:
        option = ARGUMENTS[name]
        info: Any = typer.Argument(help=option.help, metavar=option.metavar, show_default=False)
    else:
        option = OPTIONS[name]
        info = typer.Option(
            *option.flags, help=option.help, metavar=option.metavar, count=option.count,
            show_default=isinstance(default, str),
        )  # fmt: skip
    kind = option.kind if default is not None or option.count else option.kind | None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=0 if option.count else default,
        annotation=Annotated[kind, info],
    )
