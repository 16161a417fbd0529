"""Collectives of a trace: of NCCL's kernels, or of what the host was annotated with."""

from __future__ import annotations

import re
from collections import Counter

from msgspec import Struct

from preflight.facts.traces import Collective
from preflight.traces.events import Args, Event

#: Of a trace the last so many are told.
MOST = 20_000
#: Bytes of an element, as PyTorch and NCCL call its type.
ELEMENT_BYTES = {
    "float": 4, "float32": 4, "double": 8, "float64": 8, "half": 2, "float16": 2, "bfloat16": 2,
    "int": 4, "int32": 4, "long": 8, "int64": 8, "short": 2, "char": 1, "byte": 1, "int8": 1,
    "uint8": 1, "bool": 1, "float8_e4m3fn": 1, "float8_e5m2": 1, "complexfloat": 8,
}  # fmt: skip
_OF_KERNEL = re.compile(r"^(?:void )?nccl(?:Dev)?Kernel_?([A-Za-z]+?)(?:_|$|\()")
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")
#: What one thing is called in several places.
_ALIKE = {
    "allreduce": "all_reduce", "allgather": "all_gather", "reducescatter": "reduce_scatter",
    "alltoall": "all_to_all", "alltoallv": "all_to_all", "all_to_allv": "all_to_all",
    "_allgather_base": "all_gather", "_all_gather_base": "all_gather",
    "allgather_base": "all_gather",
    "_reduce_scatter_base": "reduce_scatter", "reduce_scatter_base": "reduce_scatter",
    "reduce_scatter_tensor_coalesced": "reduce_scatter",
    "allgather_into_tensor_coalesced": "all_gather", "allreduce_coalesced": "all_reduce",
}  # fmt: skip


class Seen(Struct):
    """One collective before its step is known. `row`: of the activities; -1 of the host."""

    name: str
    start_us: float
    duration_us: float
    row: int
    args: Args | None


class Collectives:
    """As they come; of more than a bounded number the earliest are let go."""

    def __init__(self) -> None:
        self.device: list[Seen] = []
        self.host: list[Seen] = []  # spans of the backend: gloo:all_reduce
        self.told: list[Seen] = []  # record_param_comms, with group and number
        self.dropped = 0
        self.has_groups = self.has_seq = False

    def on_device(self, event: Event, row: int) -> None:
        args = event.args
        told = args.collective if args is not None else None
        name = told or kernel_collective(event.name)
        self._note(args)
        self._keep(self.device, Seen(plain(name), event.ts, event.dur, row, args))

    def on_host(self, event: Event) -> None:
        backend, _, name = event.name.partition(":")
        if backend in ("gloo", "mpi", "ucc", "xccl"):
            self._keep(self.host, Seen(plain(name), event.ts, event.dur, -1, event.args))
        elif event.name == "record_param_comms" and event.args and event.args.collective:
            if plain(event.args.collective) in ("wait", "init", "barrier"):
                return
            self._note(event.args)
            seen = Seen(plain(event.args.collective), event.ts, event.dur, -1, event.args)
            self._keep(self.told, seen)

    def _note(self, args: Args | None) -> None:
        if args is not None:
            self.has_groups |= args.group is not None
            self.has_seq |= args.seq is not None

    def _keep(self, seen: list[Seen], one: Seen) -> None:
        seen.append(one)
        if len(seen) > 4 * MOST:
            seen.sort(key=lambda one: one.start_us)
            self.dropped += len(seen) - 2 * MOST
            del seen[: -2 * MOST]


def plain(name: str) -> str:
    """all_reduce, whatever it is called."""
    name = name.strip().lower()[:80]
    return _ALIKE.get(name, name)


def kernel_collective(kernel: str) -> str:
    """ncclDevKernel_AllReduce_Sum_bf16_RING_LL(...) -> all_reduce."""
    match = _OF_KERNEL.match(kernel)
    return _WORDS.sub("_", match[1]).lower() if match else "communication"


def numbered(seen: list[Seen], steps: list[int]) -> list[Collective]:
    """With their steps, in the order of time. Where no sequence number is told, they are counted
    within the step."""
    counts: Counter[tuple[int, str, str]] = Counter()
    found = []
    for one, step in sorted(zip(seen, steps, strict=True), key=lambda pair: pair[0].start_us):
        args = one.args or Args()
        group = "" if args.group is None else str(args.group)[:200]
        key = (step, group, one.name)
        counts[key] += 1
        dtype = (args.dtype or "").lower()
        elements = max(args.elements_in or 0, args.elements_out or 0)
        size = int(min(elements, 1e15)) * ELEMENT_BYTES.get(dtype, 0)
        found.append(
            Collective(
                group, counts[key] - 1 if args.seq is None else args.seq, one.name, step,
                one.start_us, one.duration_us, size, args.group_size or 0, dtype,
                counted=args.seq is None,
            )
        )  # fmt: skip
    return found[-MOST:]
