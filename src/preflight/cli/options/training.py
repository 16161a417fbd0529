"""Options of the training loop."""

from __future__ import annotations

from preflight.cli.options.option import Option

TRAIN = (
    "preset", "ranks", "sharding", "mesh", "precision", "steps", "batch", "length", "accumulation",
    "kv_heads", "compiled", "recompute", "comm_hook", "clip", "data", "folder", "workers",
    "prefetch", "threads", "seed", "no_resume", "interface", "even_if_busy", "sweep", "inject",
)  # fmt: skip

OPTIONS: dict[str, Option] = {
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
}  # fmt: skip
