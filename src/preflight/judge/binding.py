"""The rule `binding`: whether a process that the user named runs, and has its memory, beside its
GPUs. The advice begins with the command for this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from preflight import cpulists
from preflight.expect.memory_policy import may_bind_memory
from preflight.facts.host import Host
from preflight.facts.system import Binding
from preflight.judge.results import result, undetermined
from preflight.model import Check, Evidence, Missing, Result, Status
from preflight.units import format_bytes

#: Less is the interpreter and its libraries, wherever it was started.
_LITTLE_BYTES = 1 << 30


def judge_binding(host: Host, checks: Sequence[Check]) -> list[Result]:
    """A result for each process and check."""
    bindings = host.bindings
    assert not isinstance(bindings, Missing), "judge_rule sees to that"
    return [_judge(host, check, binding) for check in checks for binding in bindings]


def _judge(host: Host, check: Check, binding: Binding) -> Result:
    about = check.id.rpartition(".")[2]
    unknown = _unknown(binding, ("gpus", *_NEEDS[about]))
    if unknown is not None:
        return _open(check, binding, unknown)
    if _is_one_node(host):
        shown = f"{_SHOWN[about](binding)}: the host has one NUMA node"
        return result(check, binding.name, Status.PASS, shown, "anywhere")
    unknown = _unknown(binding, ("gpu_nodes", "near_cpus"))
    if unknown is not None:
        return _open(check, binding, unknown)
    return _JUDGES[about](host, check, binding)


def _open(check: Check, binding: Binding, why: Missing) -> Result:
    """Reports tell reasons apart from their subjects: of several processes each is named."""
    return undetermined(check, binding.name, replace(why, text=f"{binding.name}: {why.text}"))


def _unknown(binding: Binding, names: Sequence[str]) -> Missing | None:
    values = (getattr(binding, name) for name in names)
    return next((value for value in values if isinstance(value, Missing)), None)


def _is_one_node(host: Host) -> bool:
    """Whether all of the machine is near."""
    if not isinstance(host.numa_nodes, Missing):
        return len(host.numa_nodes) == 1 or sum(node.cpus != 0 for node in host.numa_nodes) == 1
    return not isinstance(host.cpu, Missing) and host.cpu.numa_nodes == 1


def _cpus(host: Host, check: Check, binding: Binding) -> Result:
    shown = _shown_cpus(binding)
    expected = f"CPUs {binding.near_cpus}, NUMA {_nodes(binding)} of {_gpus(binding)}"
    try:
        allowed, near = map(set, map(cpulists.parse, (binding.cpus_allowed, binding.near_cpus)))  # type: ignore[arg-type]
    except ValueError as error:
        return undetermined(check, binding.name, Missing("unreadable", str(error)))
    if allowed <= near:
        return result(check, binding.name, Status.PASS, shown, expected)
    if allowed & near:
        status, reason = Status.WARN, "it is bound to no node: it may run far from its GPU"
    else:
        status, reason = Status.FAIL, "it is bound to another NUMA node than its GPU's"
    pid = binding.name.removeprefix("pid ")
    now = (
        f"taskset -acp {binding.near_cpus} {pid}   # at once; what memory it has stays where it is"
    )
    then = _at_next_start(host, binding)
    return _bad(check, binding, status, shown, expected, reason, (now, then))


def _memory(host: Host, check: Check, binding: Binding) -> Result:
    shown = _shown_memory(binding)
    expected = f"memory of NUMA {_nodes(binding)}, of {_gpus(binding)}"
    near, shares = binding.near_percent, binding.memory
    if isinstance(near, Missing) or isinstance(shares, Missing):
        return result(check, binding.name, Status.PASS, shown, expected)
    if near >= check.warn_unless["min"]:
        return result(check, binding.name, Status.PASS, shown, expected)
    if sum(one.held_bytes for one in shares) < _LITTLE_BYTES:
        little = f"{shown}, far from its GPU, but too little as yet to judge by: ask again later"
        return undetermined(check, binding.name, Missing("not-applicable", little))
    nodes: tuple[int, ...] = binding.gpu_nodes  # type: ignore[assignment]
    far = ",".join(str(one.node) for one in shares if one.node not in nodes)
    pid, to = binding.name.removeprefix("pid "), ",".join(map(str, nodes))
    now = f"migratepages {pid} {far} {to}   # of the package numactl; the process stands meanwhile"
    reason = f"{100 - near:.0f} % of it is on another NUMA node than its GPU"
    then = _at_next_start(host, binding)
    return _bad(check, binding, Status.WARN, shown, expected, reason, (now, then))


def _at_next_start(host: Host, binding: Binding) -> str:
    """With its memory where that may be bound; else memory follows the processors."""
    if not may_bind_memory(host.container):
        start = f"taskset -c {binding.near_cpus} python3 ..."
        return f"{start}   # at the next start; containers mostly may not set a memory policy"
    nodes: tuple[int, ...] = binding.gpu_nodes  # type: ignore[assignment]
    to = ",".join(map(str, nodes))
    return f"numactl --cpunodebind={to} --membind={to} python3 ...   # at the next start"


def _bad(
    check: Check, binding: Binding, status: Status, shown: str, expected: str, reason: str,
    first: tuple[str, ...],
) -> Result:  # fmt: skip
    advised = replace(check, fix=(*first, *check.fix))
    evidence = (Evidence(binding.probe, line=binding.line),) if binding.probe else ()
    return result(advised, binding.name, status, shown, expected, reason=reason, evidence=evidence)


def _shown_cpus(binding: Binding) -> str:
    return f"CPUs {binding.cpus_allowed}"


def _shown_memory(binding: Binding) -> str:
    shares = () if isinstance(binding.memory, Missing) else binding.memory
    told = (f"{format_bytes(one.held_bytes)} on node {one.node}" for one in shares)
    return ", ".join(told) or "no memory"


def _nodes(binding: Binding) -> str:
    nodes = () if isinstance(binding.gpu_nodes, Missing) else binding.gpu_nodes
    return f"{'node' if len(nodes) == 1 else 'nodes'} {', '.join(map(str, nodes))}"


def _gpus(binding: Binding) -> str:
    return ", ".join(() if isinstance(binding.gpus, Missing) else binding.gpus)


#: The last word of a check's id -> what must be known, how it is shown, who judges.
_NEEDS = {"cpus": ("cpus_allowed",), "memory": ("memory",)}
_SHOWN = {"cpus": _shown_cpus, "memory": _shown_memory}
_JUDGES: dict[str, Callable[[Host, Check, Binding], Result]] = {"cpus": _cpus, "memory": _memory}
