"""How texts look that benchmarks of the network and of storage print: rows of signatures.TOOLS."""

from __future__ import annotations

#: What launchers put before a line.
_LABEL = r"(?:\d{1,6}: ?|\[\d{1,9},\d{1,6}\]<std\w{2,4}>: ?|\[(?:default|rank)\d{1,6}\]: ?)?"
#: A line of nccl-tests' table: size, elements, type, then times.
_ROW = r"[ \t]*\d{1,18}[ \t]+\d{1,18}[ \t]+[a-z]\w{2,20}[ \t]+(?:[a-z]\w{1,20}[ \t]+)?-?\d"
#: perftest sets it in the middle of its line.
_TITLE = (
    r"(?:Bidirectional |Dual-port )?(?:RDMA_Write|RDMA_Read|Send|Atomic\w*|Raw Ethernet)"
    r" [\w -]{0,40}(?:BW|Latency)[\w -]{0,40}\bTest[ \t]*$"
)

#: As signatures.TOOLS.
TOOLS: dict[str, tuple[str, ...]] = {
    "nccl-tests": (
        rf"{_LABEL}#\s*(?:nThreads? \d|size\s+count\s+type\b|Using devices"
        r"|Collective test starting|nccl-tests version \d)",
        rf"{_LABEL}#\s+Rank\s+\d{{1,7}}\s+(?:Group\s+\d+\s+)?Pid\s+\d",
        rf"{_LABEL}(?:[\w.-]{{1,255}}: )?Test (?:(?:NCCL|CUDA) failure \S{{1,200}}:\d|timeout \()",
        r"There are not enough slots available in the system to satisfy the \d+\s*\n"
        r"(?:[^\n]{0,200}\n){1,4}[^\n]{0,200}_perf\b",
        rf"{_LABEL}(?:bash: (?:line \d+: )?)?[\w./-]{{0,200}}_perf: (?:error while loading shared"
        r" libraries|command not found|No such file or directory)",
    ),
    "all-reduce-bench": (
        rf"{_LABEL}The average bandwidth of all_reduce (?:over|with) ",
        rf"{_LABEL}\|\s*payload\s*\|\s*busbw\s*\|\s*algbw\s*\|",
        rf"{_LABEL}- hardware: _CudaDeviceProperties\(",
    ),
    "perftest": (
        rf"(?<![ \t]){_TITLE}",
        r"Couldn't connect to [\w.:-]{1,255}:\d{4,5}[ \t]*$",
    ),
    "fio": (
        r"\{[\s>]*\"fio version\" *:",
        r"fio: (?:pid=\d+, err=|io_u error on file |terminating on signal |failed parsing "
        r"|job \S+ dropped)",
    ),
}
#: As signatures.GOES_ON.
GOES_ON: dict[str, str] = {
    "nccl-tests": rf"{_LABEL}(?:{_ROW}|#\s)",
    "perftest": r"[ \t]*(?:\d{1,12}[ \t]+\d{1,12}[ \t]+\d|(?:local|remote) address: LID |GID: )",
    "fio": r"[ \t]*[\]}\"]",
}
#: As signatures.INDENTED.
INDENTED: dict[str, tuple[str, ...]] = {"perftest": (rf"[ \t]{{1,64}}{_TITLE}",)}
