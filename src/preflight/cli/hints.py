"""What a user would want to do next, by what was asked and found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from preflight.cli.options import Options
from preflight.cli.plan import Plan, Question
from preflight.model import HostReport, Status

NO_GPU = "no NVIDIA GPU"
#: What follows where the host has accelerators of another maker.
_OTHERS = ("AMD GPU", "Ascend accelerator", "Gaudi accelerator")
SHELL_HINT = (
    "variables are those of the shell that preflight asked; of a job that runs: "
    "preflight versions --pid PID"
)
NO_GPU_HINT = "no GPU was judged; where there should be some: "
LEVEL_HINT = (
    "quick looked on, nothing was put under load; --duration 60s watches the GPUs, best at work"
)
#: What the next level of the whole checklist adds.
NEXT_LEVEL_HINT = (
    "--level standard also puts every device under load and trains a small model, for about two "
    "minutes on each host: 16 MB in a temporary folder, 4 GB where there are GPUs, removed; and "
    "1 GiB by fio on a local disk, for ten seconds, removed"
)
EACH_ALONE_HINT = (
    "each host trained by itself, and nothing of the network between them was used; all of them "
    "as one job: preflight micro-train --hosts HOSTS"
)
SWEPT_ALONE_HINT = (
    "each host swept by itself, and nothing of the network between them was used, by no hook "
    "either; what they do as one job: preflight micro-train --hosts HOSTS without --sweep"
)
#: What the log of NCCL is held against.
_OF_MACHINES = ("topo.", "network.", "pcie.")
LOG_HINT = (
    "the log alone does not tell what its hosts have; with `ibstat` and `nvidia-smi topo -m` of "
    "one: preflight topo --from nccl.log --from ibstat.txt --from topo.txt"
)


def hints(
    question: Question, plan: Plan, options: Options, hosts: Sequence[HostReport]
) -> Iterator[str]:
    """What a user would want to do next."""
    if plan.needs:
        only = " ".join(f"--only {quote(one)}" for one in options.only)
        again = f"preflight {question.command} --level {plan.needs} {only}".rstrip()
        yield f"what was chosen is judged from level {plan.needs} on: {again}"
        return
    if any(map(_is_without, hosts)) and not options.set_:
        counted = any(check.id == "gpu.count" for check in plan.checks)
        option = "--set gpu.count=N" if counted else "`preflight run --set gpu.count=N`"
        none = (
            "; where none is expected: --set gpu.count=0" if "gpu.present" in question.asked else ""
        )
        yield f"{NO_GPU_HINT}{option} makes it a failure{none}"
    if options.against is not None:
        from preflight.cli.locking import against, old_pins

        yield from old_pins(against(options))
    if question.trains is None and sum(map(_has_trained, hosts)) > 1 and not options.from_:
        yield EACH_ALONE_HINT
    swept = question.trains is not None and question.trains.get("sweep")
    if swept and not options.from_ and sum(map(_has_trained, hosts)) > 1:
        yield SWEPT_ALONE_HINT
    if _finds_variables(hosts) and not (options.from_ or options.pid):
        yield SHELL_HINT
    if options.from_ and any(map(_is_log_alone, hosts)):
        yield LOG_HINT
    if not options.from_ and options.level == "quick":
        yield LEVEL_HINT
        if question.command == "run":
            yield NEXT_LEVEL_HINT


def _is_without(host: HostReport) -> bool:
    """Whether it has no GPU, nor an accelerator of another maker."""
    others = any(one in host.summary for one in _OTHERS)
    return host.summary.startswith(NO_GPU) and not others


def _has_trained(host: HostReport) -> bool:
    """Whether anything of a training run was judged."""
    unsaid = (Status.SKIP, Status.ERROR)
    return any(
        one.check.startswith("training.") and one.status not in unsaid for one in host.results
    )


def _is_log_alone(host: HostReport) -> bool:
    """Whether NCCL's log is judged and nothing of the machines that wrote it."""
    told = [one.check for one in host.results if one.status is not Status.SKIP]
    logged = any(check.startswith("nccl.") for check in told)
    return logged and not any(check.startswith(_OF_MACHINES) for check in told)


def _finds_variables(hosts: Sequence[HostReport]) -> bool:
    """Whether a variable is at fault."""
    found = (one for host in hosts for one in host.results if one.check.startswith("versions.env."))
    return any(one.status in (Status.FAIL, Status.WARN) for one in found)
