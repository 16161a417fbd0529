"""One pass over the events of a trace: what its steps are made of, compact.

Some thirty bytes are kept of a kernel or copy, nothing of an operator but the union of spans it
belongs to. A call and its kernel find each other by correlation, and the call is let go.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable

from msgspec import Struct, field

from preflight.facts.traces import KERNEL_CLASSES
from preflight.traces.calls import Collectives
from preflight.traces.events import LATEST_US, LONGEST_US, Args, Event
from preflight.traces.names import MOST_NAMES, Kinds
from preflight.traces.spans import Spans

#: Kernels and copies beyond are counted, and their time is not: a trace of some 3 GB.
MOST_ACTIVITIES = 3_000_000
#: Streams, threads and steps of which more are not told apart.
_MOST_STREAMS, _MOST_THREADS, _MOST_STEPS = 60_000, 4096, 100_000
_LONGEST_NAME = 2000
_MOST_OPEN = 100_000
#: Calls that wait for their kernels, or kernels for their calls. In files they are near each other.
_MOST_WAITING = 1_500_000
#: Operators of a thread so near to each other are told as one span.
SLACK_US = 20.0
NAN = float("nan")
NO_ARGS = Args()
CODES = {name: code for code, name in enumerate(KERNEL_CLASSES)}


class Activities(Struct):
    """Work on devices, each row one kernel, copy or set."""

    start: array[float] = field(default_factory=lambda: array("d"))
    end: array[float] = field(default_factory=lambda: array("d"))
    launch: array[float] = field(default_factory=lambda: array("d"))  # NaN: not recorded
    call_us: array[float] = field(default_factory=lambda: array("f"))  # the launch took
    code: array[int] = field(default_factory=lambda: array("B"))  # of KERNEL_CLASSES
    stream: array[int] = field(default_factory=lambda: array("H"))  # index of streams

    def add(self, start: float, end: float, code: int, stream: int) -> int:
        self.start.append(start)
        self.end.append(end)
        self.launch.append(NAN)
        self.call_us.append(0.0)
        self.code.append(code)
        self.stream.append(stream)
        return len(self.start) - 1


class NameTotal(Struct):
    """A kernel by name. Of many durations every so manieth is kept for the median."""

    code: int
    count: int = 0
    total_us: float = 0.0
    sample: array[float] = field(default_factory=lambda: array("f"))
    stride: int = 1

    def add(self, duration_us: float) -> None:
        if self.count % self.stride == 0:
            self.sample.append(duration_us)
            if len(self.sample) >= 512:
                self.sample = self.sample[::2]
                self.stride *= 2
        self.count += 1
        self.total_us += duration_us


class Gathered:
    """What the pass leaves."""

    def __init__(self) -> None:
        self.absurd = 0  # times that no clock gives
        self.unkept = 0  # activities beyond the most
        self.activities = Activities()
        self.streams: dict[tuple[object, object], int] = {}
        self.names: dict[str, NameTotal] = {}
        self.steps: dict[int, tuple[float, float]] = {}
        self.step_tid: object = None
        self.spans: dict[str, Spans] = {}  # by the kinds of trace_names.yaml
        self.operators: dict[object, Spans] = {}  # by thread
        self.launches, self.syncs, self.allocs = array("d"), array("d"), array("d")  # when called
        self.copies: dict[int, tuple[int, bool]] = {}  # activity -> bytes of HtoD, pageable
        self.collectives = Collectives()
        self.has_calls = self.has_graphs = self.has_stacks = False
        self.recorded: tuple[float, float] | None = None  # when the profiler looked
        self.low, self.high = float("inf"), float("-inf")
        self._calls: dict[int, complex] = {}  # correlation -> start, duration
        self._graphs: dict[int, complex] = {}
        self._sizes: dict[int, float] = {}
        self._waiting: dict[int, int] = {}  # correlation -> activity whose call is to come
        self._open: dict[tuple[object, object], list[Event]] = {}
        self._call_kinds, self._host_kinds = Kinds("calls", "other"), Kinds("host", "operator")
        self._python_kinds = Kinds("python", "other")
        self._kernel_kinds = Kinds("kernels", "other")
        self._handlers = self._by_category()

    def _by_category(self) -> dict[str, Callable[[Event], None] | None]:
        """In small letters and as older profilers wrote them."""
        handlers: dict[str, Callable[[Event], None] | None] = {
            "kernel": self._kernel, "gpu_memcpy": self._copy, "memcpy": self._copy,
            "gpu_memset": self._set, "memset": self._set, "cuda_runtime": self._call,
            "runtime": self._call, "cuda_driver": self._call, "driver": self._call,
            "hip_runtime": self._call, "xpu_runtime": self._call, "xpu_driver": self._call,
            "python_function": self._python, "trace": self._trace, "gpu_user_annotation": None,
            "cuda_sync": None, "overhead": None, "ac2g": None, "async": None, "fwdbwd": None,
            "concurrent_kernel": self._kernel,
        }  # fmt: skip
        return handlers | {name.title(): one for name, one in handlers.items()}

    def take(self, events: Iterable[Event]) -> None:
        """In any order; each is let go."""
        handler, host = self._handlers.get, self._host
        for event in events:
            if event.ph == "X":
                handle = handler(event.cat, host)
                if handle is None:
                    continue
                if 0.0 <= event.dur < LONGEST_US and -LATEST_US < event.ts < LATEST_US:
                    handle(event)
                else:
                    self.absurd += 1
            elif event.ph == "B" or event.ph == "E":
                self._half(event)

    def _half(self, event: Event) -> None:
        """Begin and end of a span as two events, each thread a stack."""
        key = (event.pid, event.tid)
        if event.ph == "B":
            stack = self._open.setdefault(key, [])
            if len(stack) < 1000 and len(self._open) < _MOST_OPEN:
                stack.append(event)
            return
        if not self._open.get(key):
            return
        begun = self._open[key].pop()
        begun.ph, begun.dur = "X", event.ts - begun.ts
        begun.args = begun.args or event.args
        self.take((begun,))

    def _trace(self, event: Event) -> None:
        """How long the profiler looked: the longest that is told."""
        span = (event.ts, event.ts + event.dur)
        if self.recorded is None or event.dur > self.recorded[1] - self.recorded[0]:
            self.recorded = span

    def _reach(self, start: float, end: float) -> None:
        if start < self.low:
            self.low = start
        if end > self.high:
            self.high = end

    def _host(self, event: Event) -> None:
        """Annotations and operators."""
        kind = self._host_kinds[event.name]
        start, end = event.ts, event.ts + event.dur
        if kind == "operator":
            track = self.operators.get(event.tid)
            if track is None or start < track.low or end > track.high:
                self._operator(event.tid, start, end)
            return
        self._reach(start, end)
        if kind == "nothing":
            if event.name.startswith("ProfilerStep"):
                self._step(event)
            return
        if kind == "communication" or kind == "call":
            self.collectives.on_host(event)
        self._span(kind, start, end)
        if kind == "backward" and event.cat != "user_annotation":
            self._operator(event.tid, start, end)

    def _operator(self, tid: object, start: float, end: float) -> None:
        track = self.operators.get(tid)
        if track is None:
            if len(self.operators) > _MOST_THREADS:
                return
            track = self.operators[tid] = Spans(SLACK_US)
        track.add(start, end)
        self._reach(start, end)

    def _step(self, event: Event) -> None:
        """The longest span of a number: it is mirrored by threads and devices."""
        number = event.name.partition("#")[2]
        if not number.isdecimal() or len(number) > 18 or len(self.steps) > _MOST_STEPS:
            return
        old = self.steps.get(int(number))
        if old is None or old[1] - old[0] < event.dur:
            self.steps[int(number)] = (event.ts, event.ts + event.dur)
            self.step_tid = event.tid

    def _span(self, kind: str, start: float, end: float) -> None:
        spans = self.spans.get(kind)
        if spans is None:
            spans = self.spans[kind] = Spans()
        spans.add(start, end)

    def _python(self, event: Event) -> None:
        self.has_stacks = True
        kind = self._python_kinds[event.name]
        if kind != "other":
            self._span(kind, event.ts, event.ts + event.dur)

    def _call(self, event: Event) -> None:
        """Of the runtime or driver."""
        self.has_calls = True
        kind = self._call_kinds[event.name]
        if kind == "other":
            return
        if kind == "sync" or kind == "alloc":
            self._span(kind, event.ts, event.ts + event.dur)
            (self.syncs if kind == "sync" else self.allocs).append(event.ts)
            return
        if kind != "copy":
            self.launches.append(event.ts)
        correlation = event.args.correlation if event.args else None
        if correlation is not None:
            self._launched(kind, correlation, event)

    def _launched(self, kind: str, correlation: int, event: Event) -> None:
        call = complex(event.ts, event.dur)  # two floats in one object
        if kind == "graph":
            self.has_graphs = True
            self._graphs[correlation] = call
            return
        row = self._waiting.pop(correlation, None)
        if row is not None:
            self.activities.launch[row], self.activities.call_us[row] = event.ts, event.dur
            return
        if len(self._calls) >= _MOST_WAITING:
            self._calls.clear()
        self._calls[correlation] = call
        if kind == "copy" and event.args and event.args.size:
            self._sizes[correlation] = event.args.size

    def _activity(self, event: Event, code: int) -> int:
        """Its row; -1 where there are too many."""
        rows = self.activities
        if len(rows.start) >= MOST_ACTIVITIES:
            self.unkept += 1
            return -1
        args = event.args or NO_ARGS
        key = (event.pid if args.device is None else args.device,
               event.tid if args.stream is None else args.stream)  # fmt: skip
        stream = self.streams.get(key, -1)
        if stream < 0:
            stream = min(len(self.streams), _MOST_STREAMS)
            if stream < _MOST_STREAMS:
                self.streams[key] = stream
        row = rows.add(event.ts, event.ts + event.dur, code, stream)
        correlation = args.correlation
        if correlation is not None:
            call = self._calls.pop(correlation, None) or self._graphs.get(correlation)
            if call is not None:
                rows.launch[row], rows.call_us[row] = call.real, call.imag
            elif len(self._waiting) < _MOST_WAITING:
                self._waiting[correlation] = row
        return row

    def _kernel(self, event: Event) -> None:
        name = event.name[:_LONGEST_NAME]
        total = self.names.get(name)
        if total is None:
            total = NameTotal(CODES[self._kernel_kinds[name]])
            if len(self.names) < MOST_NAMES:
                self.names[name] = total
        total.add(event.dur)
        row = self._activity(event, total.code)
        if row >= 0 and total.code == CODES["communication"]:
            self.collectives.on_device(event, row)

    def _copy(self, event: Event) -> None:
        row = self._activity(event, CODES["copy"])
        if row < 0 or "HtoD" not in event.name:
            return
        args = event.args or NO_ARGS
        size = args.bytes
        if size is None:
            size = self._sizes.pop(args.correlation or -1, 0.0)
        self.copies[row] = (int(min(size, 1e18)), "Pageable" in event.name)

    def _set(self, event: Event) -> None:
        self._activity(event, CODES["set"])
