"""The payload's commands."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, NoReturn

from .active import ACTIVE, active
from .lines import Lines
from .parent import die_with_launcher, end_with_reader


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
    look = commands.add_parser("look", help="running processes from outside, as JSON lines")
    look.add_argument("--plan", default="{}", help="which, and for how long: look/look.py")
    site = commands.add_parser("site", help="what this host has for a job over several")
    site.add_argument("--plan", default="{}", help="of that job, as JSON")
    stress = commands.add_parser("stress", help="every device under load, as JSON lines")
    stress.add_argument("--plan", default="{}", help="what to do, as JSON: stress/plan.py")
    bench = commands.add_parser("bench", help="collectives timed and proved, as JSON lines")
    bench.add_argument("--plan", default="{}", help="what to do, as JSON: collectives/plan.py")
    io = commands.add_parser("io", help="files written and read by fio, as JSON lines")
    io.add_argument("--plan", default="{}", help="what to do, as JSON: storage/plan.py")
    objects = commands.add_parser("objects", help="objects put and got, as JSON lines")
    objects.add_argument("--plan", default="{}", help="what to do, as JSON: objects/plan.py")
    shard = commands.add_parser("shard", help="a file of data decoded, as JSON lines")
    shard.add_argument("--plan", default="{}", help="what to do, as JSON: storage/shard.py")
    checkpoint = commands.add_parser("checkpoint", help="files of checkpoints, as JSON lines")
    checkpoint.add_argument("--plan", required=True, help="as JSON: checkpoint/plan.py")
    program = commands.add_parser("program", help="a program that loads the GPUs, by itself here")
    program.add_argument("--job", default="", help="what tells our own processes on this host")
    program.add_argument("--even-if-busy", action="store_true")
    program.add_argument("argv", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    if asked.command == "watch" and not (0 < asked.interval <= asked.seconds):
        parser.error("expected 0 < --interval <= --seconds")
    die_with_launcher()
    if asked.command == "program":  # what it writes is its own
        from .programs.run import run_program

        _leave(run_program(asked.argv, job=asked.job, even_if_busy=asked.even_if_busy))
    lines = Lines()
    if asked.command in ACTIVE:
        status = active(ACTIVE[asked.command], asked.plan, lines)
    elif asked.command == "look":
        from .look.look import look as looked

        status = looked(json.loads(asked.plan), lines)
    elif asked.command == "site":
        status = _site(json.loads(asked.plan), lines)
    elif asked.command == "checkpoint":
        status = _checkpoint(json.loads(asked.plan), lines)
    else:
        from .watch import Watch

        status = Watch(asked.seconds, asked.interval, lines).run()
    _leave(status)


def _leave(status: int) -> NoReturn:
    """Not sys.exit: a worker that cannot be killed must not be waited for."""
    sys.stderr.flush()
    os._exit(status)


def _checkpoint(plan: dict[str, Any], lines: Lines) -> int:
    import warnings

    from . import pythons
    from .checkpoint.harness import harness
    from .checkpoint.plan import Plan

    warnings.filterwarnings("ignore")  # of numpy and torch, about themselves
    pythons.add_users_modules()
    end_with_reader(lines.fd)
    harness(Plan(**plan), lines.write)
    return 0


def _site(plan: dict[str, Any], lines: Lines) -> int:
    from . import pythons
    from .site import site

    pythons.add_users_modules()
    told = site(plan["interface"], plan["job"], even_if_busy=plan["even_if_busy"])
    if plan.get("tests"):
        from .programs.nccl_tests import look

        told["tests"] = look(plan["tests"]["folder"], plan["tests"]["names"])
        told["granted"] = os.environ.get("CUDA_VISIBLE_DEVICES")
        told["nccl"] = {name: text for name, text in os.environ.items() if name.startswith("NCCL_")}
    lines.write(told)
    return 0
