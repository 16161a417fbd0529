"""Options of reading checkpoints."""

from __future__ import annotations

from preflight.cli.options.option import Option

CHECKPOINT = ("compare", "checksums_only", "sample")

OPTIONS: dict[str, Option] = {
    "compare": Option(
        str, ("--compare",),
        "Also hold the newest checkpoint against another one, or against a config.json: "
        "vocabulary, layers, heads, types.", "PATH",
    ),
    "checksums_only": Option(
        bool, ("--quick",), "Structure and checksums only: no search for NaN, Inf and lost pages."
    ),
    "sample": Option(
        str, ("--sample",),
        "Read at most so much of the tensors, spread evenly: 200G. The report says so.", "SIZE",
    ),
}  # fmt: skip
