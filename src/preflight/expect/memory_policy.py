"""Where processes may not bind their memory to a NUMA node."""

from __future__ import annotations

from preflight.model import Known

#: Their default seccomp profile keeps set_mempolicy(2) from processes without CAP_SYS_NICE
#: (Docker's documentation of seccomp security profiles).
_REFUSE = ("docker", "podman", "kubernetes", "container")


def may_bind_memory(container: Known[str]) -> bool:
    """Whether `numactl --membind` may be advised: not within most containers."""
    return container not in _REFUSE
