"""Options of where, how, what is judged and written: the same of every command."""

from __future__ import annotations

from preflight.cli.options.option import Option

HOSTS = ("hosts", "hostfile", "slurm", "slurm_args", "ssh", "accept_new_host_keys")
WHERE = ("from_", *HOSTS, "sudo", "host_timeout", "duration", "python")
JUDGE = ("level", "profile", "only", "skip", "set_", "checks")
WRITE = (
    "format", "save", "save_hosts", "against", "redact", "facts", "strict", "exit_zero", "quiet",
    "verbose", "color",
)  # fmt: skip
#: Of commands that conclude about a run and not about hosts.
TELL = tuple(one for one in WRITE if one not in ("save_hosts", "against", "facts"))
RUN = ("dry_run", "debug")

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
    "output": Option(str, ("--output", "-o"), "The capture to write.", "FILE"),
}  # fmt: skip
