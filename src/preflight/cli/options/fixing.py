"""Options of settings that are written and put back."""

from __future__ import annotations

from preflight.cli.options.option import Option

FIX = ("fix_script", "apply", "undo", "undo_file")

OPTIONS: dict[str, Option] = {
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
}  # fmt: skip
