"""The payload's commands."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys

from .lines import Lines
from .parent import die_with_launcher
from .watch import Watch


def main() -> None:
    """Run one command of the payload and exit with its status: 0 done, 2 usage, 3 it could not be
    done, 130 interrupted."""
    parser = argparse.ArgumentParser(prog="preflight.pyz")
    commands = parser.add_subparsers(dest="command", required=True)
    watch = commands.add_parser("watch", help="sample every GPU by NVML, as JSON lines")
    watch.add_argument("--seconds", type=float, default=60.0)
    watch.add_argument("--interval", type=float, default=1.0)
    train = commands.add_parser("train", help="a small training run, as JSON lines")
    train.add_argument("--plan", default="{}", help="what to do, as JSON: training/plan.py")
    asked = parser.parse_args()
    if asked.command == "watch" and not (0 < asked.interval <= asked.seconds):
        parser.error("expected 0 < --interval <= --seconds")
    die_with_launcher()
    lines = Lines()
    if asked.command == "train":
        status = _train(asked.plan, lines)
    else:
        _remove_self()
        status = Watch(asked.seconds, asked.interval, lines).run()
    # Not sys.exit: a worker that cannot be killed must not be waited for.
    sys.stderr.flush()
    os._exit(status)


def _train(plan: str, lines: Lines) -> int:
    """Torch may be missing, or may not load: then that is what there is to tell."""
    import warnings

    warnings.filterwarnings("ignore")  # of torch, about itself: they would be told per rank
    try:
        from .training.harness import harness
        from .training.plan import read
    except (ImportError, OSError) as error:  # OSError: a library of CUDA that does not load
        _remove_self()
        text = f"{sys.executable} cannot import what trains: {error}"
        lines.write({"kind": "cannot", "text": text})
        return 0
    _remove_self()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        harness(read(plan), lines.write)
    except KeyboardInterrupt:
        lines.write({"kind": "interrupted"})
        return 130
    except BrokenPipeError:  # nobody reads any more
        return 130
    return 0


def _remove_self() -> None:
    """All modules are imported: the shipped file has done its work. One that a user put somewhere
    by another name is the user's."""
    path = sys.argv[0]
    if os.path.basename(path).startswith(".preflight-") and path.endswith(".pyz"):  # noqa: PTH119
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108
