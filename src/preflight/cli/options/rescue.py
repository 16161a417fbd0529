"""Options of rescuing a run."""

from __future__ import annotations

from preflight.cli.options.option import Option

RESCUE = ("follow", "checkpoints", "execute", "undo_moves", "signal", "python")

OPTIONS: dict[str, Option] = {
    "follow": Option(
        bool, ("--follow",),
        "Watch the log while it grows: a line for each event, and the whole report with the first "
        "that fails.",
    ),
    "checkpoints": Option(
        list[str], ("--checkpoints",),
        "The folder of the run's checkpoints: each is read whole, and the plan says which to go on "
        "from. Repeatable.", "DIR",
    ),
    "execute": Option(
        str, ("--execute",),
        "Do these steps of the plan, by name: quarantine, tracker. What is moved is never deleted.",
        "STEP[,STEP]",
    ),
    "undo_moves": Option(
        str, ("--undo",), "Undo what --execute did: the file that it named.", "FILE"
    ),
    "signal": Option(
        int, ("--signal",),
        "Send the process the signal on which its framework saves, if it catches it and the "
        "weights are worth saving.", "PID",
    ),
}  # fmt: skip
