"""How texts look that benchmarks of the network and of storage print: rows of signatures.TOOLS."""

from __future__ import annotations

#: What stands behind a label that could be any word: a line of nccl-tests or of perftest.
_BEHIND = (
    r"(?=[ \t]*(?:#|\d{1,18}[ \t]+\d{1,18}[ \t]+[a-z\d]|\|\s*payload\b|Test (?:NCCL|CUDA|timeout)\b"
    r"|(?:Bidirectional |Dual-port )?(?:RDMA_Write|RDMA_Read|Send|Atomic\w*|Raw Ethernet) "
    r"[^\n]*Test"
    r"|Completion with error|Failed (?:to|status) |Couldn't |Unable to ))"
)
#: A stamp of Kubernetes, Docker and the container runtime; what stands before a line of the
#: journal; hosts of pdsh and clush; pods of kubectl logs --prefix; services of compose; Ray's
#: actors; ranks of MPICH and Intel MPI.
_ANY = (
    r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)? (?:std\w{3} [FP] )?"
    r"|(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S{8,32}) \S{1,255} [\w.-]{1,64}"
    r"(?:\[\d{1,9}\])?: "
    r"|[A-Za-z][\w.-]{0,255}(?:\[[\d,-]{1,80}\][\w.-]{0,80})?: "
    r"|\[[A-Za-z][\w./-]{0,255}\]:? |[A-Za-z][\w.-]{0,255}[ \t]{0,32}\| "
    r"|\((?:[\w.-]{1,64} )?(?:pid|ip)=[\w=,. -]{1,80}\) )"
)
#: `3: ` of srun --label, `[1,3]<stdout>:` of mpirun --tag-output, of Open MPI 5 with the name of
#: the job, `[default3]:` of torchrun, and `[rank3]: ` of torch.
_RANKED = (
    r"(?:\d{1,6}: ?|\[(?:[\w.-]{1,255}@)?\d{1,9},\d{1,6}\]<std\w{2,4}>: ?"
    r"|\[(?:default|rank)\d{1,6}\]: ?)"
)
_BARE = r"\[\d{1,6}\] "
#: All that may stand before a line, with no group of its own.
LABEL = rf"(?:(?:{_ANY}|{_BARE}){{1,3}}(?:{_RANKED})?{_BEHIND}|{_RANKED}|)"
#: The same before what may be indented.
_LABEL = rf"{LABEL}[ \t]*"
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
        # Of the first form each rank its number, then what it measured.
        r"\d{1,6}:[ \t]*\n[ \t]+duration: [\d.]{1,12} sec\b",
    ),
    "perftest": (
        rf"(?<![ \t]){_LABEL}{_TITLE}",
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
    "perftest": rf"{_LABEL}(?:\d{{1,12}}[ \t]+\d{{1,12}}[ \t]+\d|#bytes[ \t]"
    r"|(?:local|remote) address: LID |GID: )",
    "all-reduce-bench": rf"{_LABEL}(?:duration: [\d.]{{1,12}} sec\b|busbw: [\d.]{{1,12}} +Gbps\b"
    r"|algo throughput: |\d{1,6}:[ \t]*$|ignore me \d)",
    "fio": r"[ \t]*[\]}\"]",
}
#: As signatures.INDENTED.
INDENTED: dict[str, tuple[str, ...]] = {"perftest": (rf"[ \t]{{1,64}}{_TITLE}",)}
#: The same lines behind anything, in a text in which none of TOOLS' was found.
BEHIND_WORDS: dict[str, str] = {
    "nccl-tests": r"^[^\n#]{1,200}#\s{1,20}(?:size\s+count\s+type\b|Out of bounds values *:"
    r"|Avg bus bandwidth *:)",
    "perftest": r"^[^\n#]{1,200}#bytes[ \t]+#iterations[ \t]",
}
