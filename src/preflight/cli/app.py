"""The commands as a table, and the one place where errors become words and exit statuses."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer
from msgspec import Struct

from preflight import __version__
from preflight.cli.exit import Exit
from preflight.cli.options import (
    BENCH,
    CHECKPOINT,
    DIAGNOSE,
    ESTIMATE,
    FIX,
    HOSTS,
    JUDGE,
    PROJECT,
    RESCUE,
    RUN,
    SHARD,
    STORE,
    STRESS,
    TELL,
    TRAIN,
    WHERE,
    WRITE,
    Options,
    command,
)
from preflight.cli.standard import hold_streams
from preflight.errors import PreflightError, ToldInterrupt

HELP = """Will these machines train this model? If not: which GPU, link, node, disk, setting or
version is at fault, and what to type.

Exit status: 0 pass or warnings, 1 something failed, 2 could not start, 3 something could not be
determined, 70 a bug in preflight, 130 interrupted."""


class Spec(Struct, frozen=True):
    """One subcommand; its module in preflight.cli has run(options, streams). A name of two words is
    of a group, and a command in it."""

    name: str
    module: str
    help: str
    takes: tuple[str, ...]
    examples: tuple[str, ...]


COMMANDS = (
    Spec(
        "run", "run",
        "The whole checklist for this hardware.",
        (*WHERE, "pid", *JUDGE, "nics", *WRITE, *RUN),
        ("preflight run", "preflight run --hosts 'node[001-128]'",
         "preflight run --save report.json --save ticket.md",
         "preflight run --from node-07.capture.gz", "preflight run --set gpu.count=8 --strict"),
    ),
    Spec(
        "gpu-health", "gpu_health",
        "GPUs: memory, heat, power, PCIe, driver, Xid errors.",
        (*WHERE, *STRESS, *JUDGE, *WRITE, *RUN),
        ("preflight gpu-health", "nvidia-smi -q | preflight gpu-health --from -",
         "preflight gpu-health --from node-07=smi.xml --from node-07=dmesg.txt",
         "preflight gpu-health --duration 60s",
         "preflight gpu-health --stress", "preflight gpu-health --stress --duration 10m",
         "preflight gpu-health --only 'gpu.ecc.*' --format json"),
    ),
    Spec(
        "topo", "topo",
        "GPUs, network adapters, NUMA: how they are joined, how to start a job on them.",
        (*WHERE, "pid", *JUDGE, "nics", *WRITE, *RUN),
        ("preflight topo", "preflight topo --hosts 'node[01-16]'",
         "nvidia-smi topo -m | preflight topo --from -",
         "preflight topo --from node-07=topo.txt --from node-07=lspci.txt --save topo.svg",
         "preflight topo --from nccl.log", "preflight topo --pid 4711",
         "preflight topo --nics =mlx5_0,mlx5_1"),
    ),
    Spec(
        "nccl-bench", "nccl_bench",
        "Is the network as fast as this hardware allows, and if not, which host or link is slow?",
        (*(name for name in WHERE if name not in ("sudo", "duration")), *BENCH, "nics",
         *(name for name in JUDGE if name != "level"), *WRITE, *RUN),
        ("preflight nccl-bench", "preflight nccl-bench --collective all_reduce -e 8G",
         "preflight nccl-bench --hosts 'node[01-16]' --interface bond0",
         "preflight nccl-bench --slurm --pairwise --save heat.svg",
         "preflight nccl-bench --slurm --nics ^mlx5_4,mlx5_5",
         "preflight nccl-bench --nccl-tests ~/nccl-tests --hosts 'node[01-16]' -e 8G",
         "all_reduce_perf -b 8 -e 8G -f 2 -g 8 | preflight nccl-bench --from -",
         "preflight nccl-bench --from nccl.log --from ibstat.txt",
         "preflight nccl-bench --from write_bw.log --from ibstat.txt"),
    ),
    Spec(
        "io-bench", "io_bench",
        "Is storage as fast as training needs it, and was it storage that was measured?",
        (*(name for name in WHERE if name not in ("sudo", "duration")), *STORE, *PROJECT, *SHARD,
         *(name for name in JUDGE if name != "level"), *WRITE, *RUN),
        ("preflight io-bench", "preflight io-bench --dir /data --size 16G --runtime 3m",
         "preflight io-bench --url s3://BUCKET/PREFIX",
         "preflight io-bench --hosts 'node[01-16]' --dir /scratch/me",
         "preflight io-bench --dir /data --patterns dataloader --demand-mbps 800",
         "preflight io-bench --dir /data --job my.fio", "preflight io-bench --dir /data --dry-run",
         "preflight io-bench --dir /data --model-params 70e9 --ranks 64 --interval 30m",
         "preflight io-bench --shard /data/train-0001.tar.zst --demand-mbps 800",
         "fio --output-format=json --output=fio.json job.fio; preflight io-bench --from fio.json",
         "preflight io-bench --from node-01=a.json --from node-02=b.json"),
    ),
    Spec(
        "sysctl", "sysctl",
        "The system under the run: kernel parameters, limits, CPU, memory, disks.",
        (*WHERE, "pid", *JUDGE, *FIX, *WRITE, *RUN),
        ("preflight sysctl", "preflight sysctl --hosts 'node[001-128]'",
         "preflight sysctl --pid 4711 --only 'system.limits.*'",
         "sysctl -a | preflight sysctl --from -", "preflight sysctl --fix-script > fix.sh",
         "sudo preflight sysctl --apply",
         "sudo preflight sysctl --undo /var/lib/preflight/undo-20260102T030405Z.json"),
    ),
    Spec(
        "versions", "versions",
        "Driver, CUDA, NCCL, Python packages: do they fit each other?",
        (*WHERE, "pid", "lock", *JUDGE, *WRITE, *RUN),
        ("preflight versions", "preflight versions --lock env.lock.json",
         "preflight versions --against env.lock.json",
         "preflight versions --python /venv/bin/python",
         "preflight versions --pid 4711 --only 'versions.env.*'",
         "python -m torch.utils.collect_env | preflight versions --from -"),
    ),
    Spec(
        "micro-train", "micro_train",
        "Train a small model for a minute: speed, numerics, ranks, kill and resume.",
        (*(name for name in WHERE if name not in ("sudo", "duration")), *TRAIN,
         *(name for name in JUDGE if name != "level"), *WRITE, *RUN),
        ("preflight micro-train", "preflight micro-train --preset gpu-1b --compile",
         "preflight micro-train --sharding fsdp --ranks 4",
         "preflight micro-train --hosts 'node[01-04]' --interface bond0",
         "preflight micro-train --slurm --python /venv/bin/python3 --folder /scratch/me",
         "preflight micro-train --inject slow-rank:1",
         "preflight micro-train --from train.capture.gz"),
    ),
    Spec(
        "capture", "capture",
        "Write the answers of this machine, or of many, to a file for --from.",
        ("output", *HOSTS, "sudo", "host_timeout", "duration", "python", "checks", "redact",
         "quiet", *RUN),
        ("preflight capture", "preflight capture --hostfile hosts.txt -o all.capture.gz",
         "preflight capture -o node-07.capture.gz --redact"),
    ),
    Spec(
        "report", "report",
        "Convert stored reports, merge several into one, tell what changed.",
        ("reports", "format", "save", "save_hosts", "against", "redact", "strict", "exit_zero",
         "quiet", "verbose", "color", "debug"),
        ("preflight report report.json --format markdown",
         "preflight report node-*.json --save all.json -q",
         "preflight report report.json --against last-good.json"),
    ),
    Spec(
        "estimate", "estimate",
        "Time, GPU-hours, energy and cost of a run, from stored reports.",
        ("reports", "from_", *ESTIMATE, "format", "save", "redact", "exit_zero", "quiet",
         "verbose", "color", "debug"),
        ("preflight estimate train.json bench.json io.json --params 7e9 --tokens 2e12 --gpus 64",
         "preflight estimate train.json --params 70B --tokens 15T --gpus 1024 --mtbf 2.3d "
         "--price 2.5",
         "preflight estimate --params 7B --tokens 2T --gpus 64 --mfu 40 "
         "--gpu 'NVIDIA H100 80GB HBM3'"),
    ),
    Spec(
        "diagnose-step-time", "diagnose_step_time",
        "Why is it slow, or stuck: from logs, traces, dumps, stacks, a PID.",
        ("targets", *WHERE, *DIAGNOSE, *TELL, *RUN),
        ("preflight diagnose-step-time train.log",
         "preflight diagnose-step-time traces/ --save step.svg",
         "preflight diagnose-step-time dumps/ train.log --save why.json",
         "preflight diagnose-step-time 4711 --duration 30s",
         "preflight diagnose-step-time --hosts 'node[01-16]' --save look.capture.gz",
         "SLURM_JOB_ID=123456 preflight diagnose-step-time --slurm"),
    ),
    Spec(
        "divergence-rescue", "divergence_rescue",
        "What went wrong with the loss, since when, and why: from logs.",
        ("targets", "from_", *RESCUE, *TELL, "debug"),
        ("preflight divergence-rescue train.log",
         "preflight divergence-rescue train.log --checkpoints runs/llm",
         "preflight divergence-rescue train.log --checkpoints runs/llm --execute quarantine",
         "preflight divergence-rescue runs/llm/trainer_state.json --save loss.svg",
         "preflight divergence-rescue train.log gpu-health.json"),
    ),
    Spec(
        "checkpoint verify", "checkpoint_verify",
        "Which checkpoints are whole, and which can a run go on from?",
        ("paths", "from_", *HOSTS, "host_timeout", "python", *CHECKPOINT, *TELL, *RUN),
        ("preflight checkpoint verify runs/llm/checkpoint-2000",
         "preflight checkpoint verify runs/llm --save checkpoints.md",
         "preflight checkpoint verify runs/llm --compare base-model/config.json",
         "preflight checkpoint verify /nvme/run --hosts 'node[01-16]' --sample 100G"),
    ),
    Spec(
        "explain", "explain",
        "What a check, an Xid, an error or a symptom means.",
        ("words", "profile", "set_", "checks", "debug"),
        ("preflight explain gpu.remap.pending", "preflight explain 79",
         "preflight explain loss is zero", "preflight explain - < err.txt",
         "preflight explain 'RuntimeError: CUDA error: device-side assert triggered'"),
    ),
)  # fmt: skip


def build(asked: str | None = None) -> typer.Typer:
    """The typer application: one command per row of the table. `asked`: the one that is run; the
    others are then there by name only, for building the options of all takes longer than most
    commands read."""
    settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
    app = typer.Typer(
        name="preflight", help=HELP, no_args_is_help=True, add_completion=False,
        rich_markup_mode=None, pretty_exceptions_enable=False, context_settings=settings,
    )  # fmt: skip
    app.callback()(_root)
    groups = {"": app}
    for spec in COMMANDS:
        group, _, name = spec.name.rpartition(" ")
        if group not in groups:
            groups[group] = typer.Typer(
                no_args_is_help=True, rich_markup_mode=None, help=spec.help,
                context_settings=settings,
            )  # fmt: skip
            app.add_typer(groups[group], name=group, short_help=spec.help)
            groups[group].callback()(lambda: None)
        takes = spec.takes if asked in (None, group or name) else ()
        function = command(_Call(spec).run, takes, spec.help)
        epilog = "\b\nExamples:\n" + "\n".join(f"  {example}" for example in spec.examples)
        groups[group].command(name, epilog=epilog, short_help=spec.help)(function)
    return app


class _Call(Struct, frozen=True):
    """A command whose module is imported when it is run, not when the help is printed."""

    spec: Spec

    def run(self, options: Options) -> int:
        from preflight.cli.streams import open_streams

        streams = open_streams(options.color)
        try:
            module = import_module(f"preflight.cli.{self.spec.module}")
            status: int = module.run(options, streams)
        except KeyboardInterrupt as error:
            streams.done()
            return _interrupted(error)
        finally:
            streams.done()
        return status


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"preflight {__version__}")
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    pass


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command line and exit: the only place that catches everything."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    try:
        _take_signals()
        hold_streams()
        status = _dispatch(arguments)
    except KeyboardInterrupt as error:
        status = _interrupted(error)
    except PreflightError as error:
        _say(error.what, error.hint)
        status = Exit.COULD_NOT_START
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = Exit.OK
    except Exception as error:  # a bug must not look like a verdict
        if debug:
            raise
        _say(f"a bug in preflight: {type(error).__name__}: {error}",
             "run it again with --debug and report what it prints")  # fmt: skip
        status = Exit.BUG
    sys.exit(status)


#: So long after a signal another one is the same: a nervous hand, or a shell and a terminal that
#: both send it, must not end the saving of what is there.
_SAVES_WITHIN_S = 1.0
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _take_signals() -> None:
    """A scheduler that ends the job, or a closed terminal, must leave the partial capture too; what
    the caller has ignored (nohup, a shell's &) stays so."""
    first_s: list[float] = []

    def interrupt(number: int, _frame: Any) -> None:
        first_s.append(time.monotonic())
        if len(first_s) > 1 and first_s[-1] - first_s[0] < _SAVES_WITHIN_S:
            return
        first_s[:] = first_s[-1:]
        raise KeyboardInterrupt(number)

    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, interrupt)


def _interrupted(error: BaseException | None) -> Exit:
    if not isinstance(error, ToldInterrupt):
        typer.echo("interrupted; there is no report", err=True)
    for number in _SIGNALS:  # the exit status is to be ours
        signal.signal(number, signal.SIG_IGN)
    return Exit.INTERRUPTED


def _dispatch(arguments: list[str]) -> int:
    # typer brings its own copy of click, of which only this exception is needed.
    from typer.exceptions import Abort, TyperException

    try:
        asked = next((word for word in arguments if not word.startswith("-")), "")
        status = build(asked)(args=arguments, prog_name="preflight", standalone_mode=False)
    except Abort:
        return Exit.INTERRUPTED
    except TyperException as error:
        shown = error.format_message() if hasattr(error, "format_message") else str(error)
        if type(error).__name__ == "NoArgsIsHelpError":
            typer.echo(shown, err=True)
            return Exit.COULD_NOT_START
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "preflight"
        if shown:
            _say(shown, f"{path} --help")
        return Exit.COULD_NOT_START
    if status == Exit.INTERRUPTED and not isinstance(status, Exit):
        return _interrupted(None)  # typer makes a bare number of what came outside of a command
    return status if isinstance(status, int) else Exit.OK


def _say(what: str, hint: str) -> None:
    typer.echo(f"error: {what}", err=True)
    if hint:
        typer.echo(f"hint: {hint}", err=True)
