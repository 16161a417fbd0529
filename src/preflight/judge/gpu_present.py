"""Whether there is a GPU at all."""

from __future__ import annotations

from collections.abc import Sequence

from preflight.facts.host import Host
from preflight.judge.results import result, undetermined
from preflight.model import Check, Missing, Result, Status


def judge_gpu_present(host: Host, checks: Sequence[Check]) -> list[Result]:
    """Is there a GPU at all? None is nothing to complain of (SKIP), unless the user asked about
    GPUs (ERROR) or stated how many there should be (FAIL)."""
    return [_present(host, check) for check in checks]


def _present(host: Host, check: Check) -> Result:
    inventory = host.gpu_inventory
    gpus = 0 if isinstance(host.gpus, Missing) else len(host.gpus)
    counts = (inventory.on_pci, inventory.listed)
    seen = [gpus, *(count for count in counts if isinstance(count, int))]
    if any(seen):
        return result(check, host.name, Status.PASS, max(seen), "at least 1")
    if isinstance(inventory.on_pci, Missing) and isinstance(inventory.listed, Missing):
        missing = min(inventory.on_pci, inventory.listed, key=_in_input)
        return undetermined(check, host.name, missing, expected="at least 1")
    # A driver that runs and lists none was installed for a GPU.
    runs = not isinstance(host.driver, Missing) and host.driver.state == "answers"
    status = Status.ERROR if check.row.get("asked") or runs else Status.SKIP
    status = Status.FAIL if check.row.get("stated") else status
    others = f"; there is {', '.join(inventory.other_vendors)}" if inventory.other_vendors else ""
    where = "listed" if isinstance(inventory.on_pci, Missing) else "on PCI"
    reason = f"no NVIDIA GPU {where}{others}"
    return result(check, host.name, status, 0, "at least 1", reason=reason)


def _in_input(missing: Missing) -> bool:
    return missing.kind == "not-in-input"
