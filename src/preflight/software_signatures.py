"""How texts look that tell of software, limits and parameters: rows of signatures.TOOLS.

They are tried last, for some of them are plain: NAME=value, name==version.
"""

from __future__ import annotations

import re

from preflight import network_signatures, storage_signatures

_NAME = r"[A-Za-z0-9][\w.-]{0,79}"
#: A package as `pip freeze` writes it.
_FROZEN = (
    rf"(?:{_NAME}(?:\[[\w,. -]{{0,80}}\])?"
    r"(?:={2,3}v?\d[^\s=]{0,80}| @ [a-z+]{2,12}:\S{1,300})"
    r"|-e (?:git|hg|svn|bzr)\+\S{1,300}|-e /\S{1,300}|# Editable \w[^\n]{1,200})[ \t]*"
)
_NEXT = r"\n[ \t>]{0,40}"
_BLANKS = r"[ \t\n>]{0,40}"
_OLD_LISTED = rf"{_NAME} \(\d[\w.+!-]{{0,60}}(?:, [^)\n]{{0,200}})?\)[ \t]*"
#: So well known that a line alone is enough, as of `pip freeze | grep torch`.
_KNOWN = (
    r"(?:torch(?:vision|audio)?|pytorch[\w-]{0,40}|nvidia-[\w-]{2,40}|triton|flash[_-]attn|numpy"
    r"|transformer[_-]engine|deepspeed|vllm|sglang|megatron[_-]core|apex|xformers|transformers"
    r"|accelerate|bitsandbytes|jax|jaxlib|tensorflow)"
)
_FAMILY = (
    r"(?:NCCL|TORCH|PYTORCH|CUDA|CUBLAS|CUDNN|NVIDIA|NVTE|OMP|KMP|MKL|UCX|FI|OMPI|GLOO|HCCL|ASCEND"
    r"|HSA|ROCR|HIP|RCCL)_[A-Z0-9_]{1,80}"
)
_PLAIN = r"(?:PATH|HOME|SHELL|PWD|USER|LOGNAME|LANG|TERM|SHLVL|HOSTNAME|LD_LIBRARY_PATH|LD_PRELOAD)"
_EXPORT = r"(?:export |declare -x )?"
_SYSCTL = (
    r"(?:abi|crypto|debug|dev|fs|kernel|net|user|vm|sunrpc|fscache|xen|lnet)\.[\w./@:-]{1,200}"
)
#: vm.swappiness=60, net/core/somaxconn = 4096, and what `grep -r . /proc/sys/vm` prints.
_SYSCTL_PATH = (
    r"(?:(?:fs|kernel|net|vm)\.[\w./@:-]{1,200}=|(?:fs|kernel|net|vm)/[\w./@:-]{1,200} ?="
    r"|/proc/sys/[a-z]{2,8}/[\w./@-]{1,200}:)"
)
_COLLECTED = (
    r"(?:OS|GCC version|Clang version|CMake version|Libc version|Python version|Python platform"
    r"|Is debug build|CUDA runtime version|CUDA_MODULE_LOADING set to|GPU models and configuration"
    r"|Nvidia driver version|cuDNN version|HIP runtime version|MIOpen runtime version"
    r"|Is XNNPACK available|(?:CUDA|ROCM) used to build PyTorch|Is CUDA available)"
)
_OF_TOPO = (
    r"(?:GPU0[ \t]+(?:GPU1|NIC0|CPU Affinity)"
    r"|(?:GPU|NIC)\d{1,3}[ \t]+(?:X|NV\d{1,2}|PIX|PXB|PHB|NODE|SYS)(?=[ \t]|$))"
)
#: Its first row; in another language by its value. With -J it is JSON.
_OF_LSCPU = (
    r"(?:Architecture: +\w|[^\W\d_][^:\uff1a\n]{1,24}[:\uff1a][ \t]+"
    r"(?:x86_64|i686|aarch64|ppc64le|s390x|riscv64|loongarch64)[ \t]*$)"
)
_OF_LSCPU_JSON = r"\{\s*\"lscpu\"\s*:"

#: As signatures.TOOLS.
TOOLS: dict[str, tuple[str, ...]] = {
    "collect-env": (
        r"PyTorch version {0,40}: |Collecting environment information\.\.\.",
        rf"{_COLLECTED} {{0,40}}:(?: |$)",
        r"Versions of relevant libraries:?[ \t]*$|\[(?:pip\d?|conda)\] \w",
    ),
    "sglang-env": (
        r"Python: \d+\.\d+\.\d+ [^\n\[]{0,80}\[",
        r"CUDA available: (?:True|False)[ \t]*$|PyTorch: \d+\.\d+|CUDA Driver Version: \d",
        r"GPU \d{1,3}(?:(?:,\d{1,3}){1,255}|(?:,\d{1,3}){0,255} Compute Capability): \S",
    ),
    "hf-env": (
        r"- (?:🤗 )?`?(?:[Tt]ransformers|Accelerate|Diffusers|Huggingface_hub)`? version: ",
        r"- PyTorch version(?: \([^)\n]{1,20}\))?: ",
    ),
    "lightning-env": (
        rf"\* (?:CUDA|Lightning|System):[ \t]*{_NEXT}- (?:GPU|available|OS|lightning[\w-]*):",
    ),
    "ds-report": (
        r"DeepSpeed C\+\+/CUDA extension op report|DeepSpeed general environment info:",
        r"No CUDA runtime is found, using CUDA_HOME=|op name \.{3,40} installed ",
        r"(?:torch (?:cuda |hip )?version|deepspeed info|nvcc version|deepspeed wheel compiled w\.)"
        r" \.{3,60} ",
        r"\w{1,60}[ .]{1,60}\[(?:YES|NO|OKAY|FAIL)\](?:[ .]|$)",
    ),
    "pip-list": (
        rf"Package[ \t]{{1,200}}Version[^\n]{{0,300}}{_NEXT}-{{3,}} -{{3,}}",
        rf"\[{_BLANKS}\{{{_BLANKS}\"name\": ?\"[^\"\n]{{1,80}}\",{_BLANKS}\"version\": ?\"",
        rf"{_OLD_LISTED}{_NEXT}{_OLD_LISTED}$",
    ),
    "conda-list": (
        r"# packages in environment at |# Name[ \t]+Version[ \t]+Build|List of packages in envi",
        r"# This file may be used to create an environment using:",
        rf"\[{_BLANKS}\{{{_BLANKS}\"base_url\": ?\"",
    ),
    "pip-freeze": (
        rf"{_KNOWN}={{2,3}}v?\d[^\s=]{{0,80}}[ \t]*$",
        rf"{_FROZEN}{_NEXT}{_FROZEN}$",
    ),
    "lscpu": (_OF_LSCPU, _OF_LSCPU_JSON),
    "meminfo": (r"MemTotal: +\d+ kB[ \t]*$",),
    "numactl": (r"available: \d{1,4} nodes? \(",),
    "sysctl": (
        rf"{_SYSCTL} = ?|{_SYSCTL_PATH}",
        r"sysctl: (?:permission denied on key|reading key|cannot stat|unable to open directory)",
    ),
    "proc-limits": (r"Limit +Soft Limit +Hard Limit|Max (?:cpu time|open files) {4,}\S+ +\S+",),
    "prlimit": (r"RESOURCE +DESCRIPTION +SOFT +HARD",),
    "ulimit": (
        r"(?:core file size|max locked memory|open files|real-time non-blocking time) +\(",
        r"-[tfdscmunlvxieqrR]: [a-z][\w -]{2,40}(?:\(\w+\))? +(?:unlimited|-?\d+)[ \t]*$",  # zsh
        r"(?:time\(seconds\)|coredump\(blocks\)|locked memory\(\w+\)|nofiles) +(?:unlimited|\d+)",
        r"(?:address space limit|locked address space|nofile) +(?:\(\w+\) +)?\(-\w\) ",  # ksh
        r"Maximum (?:size of core files created|number of open file descriptors) +\(",  # fish
    ),
    # Two in a row: one alone is a line of somebody's script. Small letters: loss=2.3 of a log.
    "env": (
        rf"{_EXPORT}(?:{_FAMILY}|{_PLAIN})=[^\n]{{0,20000}}{_NEXT}{_EXPORT}[A-Z_][A-Z0-9_]{{0,120}}=",
    ),
}

#: As signatures.GOES_ON: what a report holds of other tools is its own.
GOES_ON: dict[str, str] = {
    "collect-env": (
        rf"{_OF_LSCPU}|{_OF_TOPO}|GPU \d{{1,3}}: |[A-Z_][A-Z0-9_]{{1,120}}=|={{8,}}[ \t]*$"
        r"|CUDA (?:available|Archs): |\s+GPU0[ \t]"
    ),
    "sglang-env": rf"\s*(?:{_OF_TOPO}|{_OF_LSCPU})",
    # What torch and the launcher print between the lines.
    "ds-report": (r"\[[\d-]{10} [\d:,]{12}\] \[[A-Z]+\] |[A-Z_]{2,40}=\S*[ \t]*$|-{20,}[ \t]*$"),
    "sysctl": rf"[a-z][\w-]{{0,40}}(?:\.[\w@:/-]{{1,120}})+ = ?|{_SYSCTL_PATH}",
    # Not Id=, LoadState=: those are of systemctl.
    "env": (rf"{_EXPORT}(?:[A-Z_][A-Z0-9_]{{0,120}}|[a-z_][a-z0-9_]{{0,120}})=|BASH_FUNC_"),
    "conda-list": (
        r"# (?:Name|packages|This file|platform|\$ conda)"
        r"|[A-Za-z0-9_][\w.-]{0,79}=\d[^\s=]{0,80}=\S"
    ),
}

#: Probe -> what stands in it once, and what is typed for one; with a second group: what may stand
#: there again with the same value.
SINGLE = {
    "collect-env": (r"^[ \t]*(PyTorch version) {0,40}:", "python -m torch.utils.collect_env"),
    "sglang-env": (r"^[ \t]*(PyTorch):", "python3 -m sglang.check_env"),
    "hf-env": (r"^[ \t]*- (PyTorch version|Platform)(?: \(.{1,20}\))?: ([^\n]*)", "accelerate env"),
    "lightning-env": (r"^[ \t]*(\* CUDA):", "collect_env_details.py"),
    "ds-report": (r"^[ \t]*(torch version) \.", "ds_report"),
    "pip-list": (r"^[ \t]*(Package)[ \t]+Version\b", "pip list"),
    "conda-list": (r"^(# packages in environment at|[ \t]*List of packages in env)", "conda list"),
    "pip-freeze": (rf"^[ \t]*({_NAME})==(\S{{1,80}})", "pip freeze"),
    "lscpu": (
        r"^[ \t]*(Model name|CPU\(s\)|NUMA node\(s\)|NUMA node\d+ CPU\(s\)):[ \t]*([^\n]*)",
        "lscpu",
    ),
    "meminfo": (r"^[ \t]*(MemTotal):[ \t]*(\d+)", "cat /proc/meminfo"),
    "numactl": (r"^[ \t]*(available): \d", "numactl -H"),
    "nccl-topo": (r"^[ \t]*(<system)[ >]", "NCCL_TOPO_DUMP_FILE"),
    "sysctl": (
        r"^[ \t]*(?:/proc/sys/)?((?:fs|kernel|net|vm)[./][\w./@-]{1,200}?)(?: ?= ?|:)([^\n]*)",
        "sysctl -a",
    ),
    "proc-limits": (r"^[ \t]*(Max open files)", "cat /proc/PID/limits"),
    "prlimit": (r"^[ \t]*(NOFILE)\b", "prlimit"),
    "ulimit": (r"^([^\d\n]{4,80}?)[ \t]+(unlimited|\d{1,20})[ \t]*$", "ulimit -a"),
}
#: Above limits of a shell: which of the two kinds, which look alike, was asked for.
_ASKED_LIMITS = re.compile(
    r"\bulimit -(?:(Ha|aH|H -a|a -H)|(?:Sa|aS|S -a|a -S|a))\b[^\n]{0,80}\n"
    r"(?:[^\n$#]{0,80}(?:unlimited|\d)[ \t]*\n){0,3}[\s>]{0,40}\Z"  # rows that look like nothing
)
#: Where nothing tells: of the stack nobody has a hard limit unasked, and everybody a soft one.
_NO_LIMIT_OF_STACK = re.compile(
    r"^[^\n]{0,40}\bstack\b[^\n]{0,60}\sunlimited[ \t]*$", re.MULTILINE | re.IGNORECASE
)
SINGLE["ulimit-hard"] = SINGLE["ulimit"]
SINGLE |= network_signatures.SINGLE | storage_signatures.SINGLE

#: Texts of software, and what prints them: it is said what a file was taken for.
TYPED = {
    probe: SINGLE[probe][1]
    for probe in ("collect-env", "sglang-env", "hf-env", "lightning-env", "ds-report", "pip-list",
                  "conda-list", "pip-freeze")
} | {"env": "env"}  # fmt: skip


def is_hard(above: str, text: str) -> bool:
    """Whether limits that a shell listed are hard ones, else they are soft. Where nothing above
    it tells, a listing is taken for what shows least: the soft limits may be lower."""
    asked = _ASKED_LIMITS.search(above)
    return bool(asked[1] if asked else _NO_LIMIT_OF_STACK.search(text))


def reports(probe: str, text: str) -> int:
    """How many reports of one tool a text holds."""
    seen: dict[str, list[str]] = {}
    above: re.Match[str] | None = None
    for match in re.finditer(SINGLE[probe][0], text, re.MULTILINE):
        goes_on = above is not None and _goes_on(above, match)
        above = match
        if goes_on:
            continue
        values = seen.setdefault(match[1], [])
        if match.re.groups == 1 or match[2] not in values:
            values.append(match[match.re.groups])
    return max((len(values) for values in seen.values()), default=1)


def _goes_on(above: re.Match[str], line: re.Match[str]) -> bool:
    """Whether a line is one more of the value above it: sysctl repeats the name in each. Of two
    numbers each is a value."""
    if line.re.pattern != SINGLE["sysctl"][0] or above.end() + 1 != line.start():
        return False
    return above[1] == line[1] and not (
        above[2].strip().isdecimal() and line[2].strip().isdecimal()
    )
