"""What follows a command without a flag."""

from __future__ import annotations

from preflight.cli.options.option import Option

ARGUMENTS: dict[str, Option] = {
    "words": Option(
        list[str],
        (),
        "A check id, an Xid, a runbook, an error text (- is standard input, or a file) or words of "
        "a symptom.",
        "WORDS",
    ),
    "targets": Option(
        list[str],
        (),
        "Training logs, traces, dumps, stacks, reports of micro-train, folders of these (- is "
        "standard input), or the PID of a running process.",
        "TARGET",
    ),
    "paths": Option(
        list[str],
        (),
        "Checkpoints: a folder or a file of one, or the folder of a run with all of its own.",
        "PATH",
    ),
    "reports": Option(list[str], (), "Reports in JSON, as --format json wrote them.", "REPORT"),
}
