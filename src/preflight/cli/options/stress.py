"""Options of load on GPUs and processors."""

from __future__ import annotations

from preflight.cli.options.option import Option

STRESS = ("stress", "devices", "attention", "even_if_busy", "drill")

OPTIONS: dict[str, Option] = {
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
}  # fmt: skip
