"""The rare checks that need code: name of the rule -> the function that judges them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from msgspec import Struct

from preflight.facts.host import Host
from preflight.judge.results import undetermined
from preflight.model import Check, Missing, Result

_OF_HOST = Missing("not-applicable", "belongs to the host, not to a container")


class Rule(Struct, frozen=True):
    """`judge`: module and function, from host and checks to results, loaded when it is needed.
    `part` of the host: where that is missing, so are all results. `of_host`: inside a container it
    belongs to the host. `worst`: the status of what does not pass, where that is one for all."""

    judge: str
    part: str = ""
    of_host: bool = False
    worst: str = ""


RULES: dict[str, Rule] = {
    "kernel-log": Rule("kernel_log.log:judge_kernel_log", "kernel_log", of_host=True),
    "gpu-present": Rule("gpu_present:judge_gpu_present"),
    "gpu-processes": Rule("gpu_processes:judge_gpu_processes"),
    "bmc-states": Rule("bmc_states:judge_states", "chassis", of_host=True),
    "sel": Rule("sel:judge_sel", "sel", of_host=True),
    "persisted": Rule("persisted:judge_persisted", "persisted", of_host=True, worst="WARN"),
    "dcgm": Rule("dcgm:judge_dcgm", "dcgm"),
    "stack": Rule("stack.judged:judge_stack"),
    "known-bad": Rule("stack.known_bad:judge_known_bad"),
    "ports": Rule("network.ports:judge_ports", "nic_ports"),
    "nics": Rule("network.nics:judge_nics"),
    "lock": Rule("lock:judge_lock"),
    "binding": Rule("binding:judge_binding", "bindings"),
    "nccl-topo": Rule("nccl_file.rule:judge_nccl_topo", "nccl_topo"),
    "nccl": Rule("nccl.rule:judge_nccl", "nccl"),
    "located": Rule("located:judge_located", "localisation", worst="FAIL"),
    "failures": Rule("failures:judge_failures", "object_stores"),
    "inside": Rule("inside:judge_inside", "inside", worst="FAIL"),
    "environment": Rule("environment.rule:judge_environment", "environment"),
    # By what the others said: judged after them.
    "drill": Rule("drill:judge_drill", "training", worst="WARN"),
}


def judge_rule(name: str, host: Host, checks: Sequence[Check]) -> list[Result]:
    """Results of the checks that share a rule."""
    rule = RULES[name]
    part = getattr(host, rule.part) if rule.part else None
    if isinstance(part, Missing):
        contained = isinstance(host.container, str) and host.container != "none"
        missing = _OF_HOST if rule.of_host and contained else part
        return [undetermined(check, host.name, missing) for check in checks]
    module, _, function = rule.judge.partition(":")
    found: list[Result] = getattr(import_module(f"preflight.judge.{module}"), function)(
        host, checks
    )
    return found
