"""How the output of each known tool looks: tables of patterns, matched at the start of a line.

Adding a tool is one row. A pattern sees the line without its indentation, and without what was put
before every line of a paste. No pattern may hold a capturing group.
"""

from __future__ import annotations

from preflight import (
    benchmark_signatures,
    network_signatures,
    software_signatures,
    storage_signatures,
)

_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"\d\d:\d\d:\d\d"
_ISO = rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_FACILITY = r"(?:kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d)"
_LEVEL = "(?:emerg|alert|crit|err|warn|notice|info|debug)"
#: Who writes about hardware, links and the driver in a system log. A log of other programs alone
#: is not taken for one in which a fault would show.
_LOGGERS = (
    r"(?:kernel|dmesg|klogd|netconsole|vmunix|kern|systemd(?:-[\w-]+)?|NetworkManager"
    r"|nvidia-[\w-]+|nv-[\w-]+|mcelog|rasdaemon)"
)
_STAMP = (
    rf"(?=[\dA-Z])(?:{_MONTH} [ \d]\d {_CLOCK}(?:\.\d+)?|{_DAY} {_ISO} [\w+-]+"
    rf"|{_ISO}(?:[.,]\d+)?{_ZONE}?|\d{{10}}\.\d{{6}})"
)
_BARE = (
    r"(?:kernel: |Linux version \d|NVRM: |(?:nvidia|pcieport|mlx[45]_core) [\da-f:.]{7,12}: |mce: "
    r"|nvidia-(?:nvswitch\d*|nvlink|peermem|modeset|uvm)(?:: | nv_)"
    r"|(?:\{\d+\})?\[Hardware Error\]: )"
)
_SYSLOG = rf"(?:<\d{{1,3}}>)?(?:1 )?{_STAMP} (?:\S+ )?[\w.@/-]+(?:\[\d+\])?: "
#: As it is, with digits blotted out, and as the oldest drivers wrote it.
_BUS_ID = (
    r"(?:[\dA-FXa-fx]{4,8}:[\dA-FXa-fx]{2}:[\dA-FXa-fx]{2}\.[\dA-FXa-fx]|\d{1,3}:\d{1,3}:\d{1,3})"
)
_ADDRESS = r"(?:[\da-f]{4,8}:)?[\da-f]{2}:[\da-f]{2}\.[0-7]"
_SECTIONS = (
    r"(?:E[Cc][Cc] (?:Errors|Mode)|Retired Pages|Remapped Rows|Max (?:Customer Boost )?Clocks"
    r"|Clocks (?:Throttle|Event) Reasons(?: Counters)?|(?:Default )?Applications Clocks|MIG Mode"
    r"|(?:FB|BAR1|Conf Compute Protected) Memory Usage|(?:GPU |Module |GPU Memory )?Power Readings"
    r"|Encoder Stats|FBC Stats|GPU (?:Operation|Virtualization) Mode|Inforom Version|Fabric)"
)
_FIELDS = (
    "(?:GPU UUID|Product Architecture|Performance State|Persistence Mode|Compute Mode"
    "|VBIOS Version|GPU Part Number|MultiGPU Board|Addressing Mode)"
)
#: JSON of dcgmi, whose last lines may be indented less than its first, a warning above it.
_DCGM_JSON = (
    r"(?:WARNING[^\n]{0,200}\n[ \t>]*)?\{[\s>]*(?:\"iterations\"\s*:\s*\[[\s>]*\{[\s>]*)?"
    r"\"DCGM (?:GPU )?Diagnostic\"\s*:"
)
#: An entry of the BMC's log; its number is indented the more the smaller it is.
_SEL_ENTRY = r"[\da-f]{1,8} ?\| {1,2}(?:\d{1,2}/\d{1,2}/\d{2,4}|\d{4}-\d\d-\d\d|Pre-Init) {0,2}\|"
#: The status of an IPMI sensor.
_IPMI_STATUS = r"(?:ok|n[scra]|cr|[lu](?:nc|cr|nr)|us)"

#: Tables of nvidia-smi topo: a header of devices, then a row for each. The header is indented, and
#: underlined where the colours of a terminal were kept (their escape may be lost).
_PATH = r"(?:NV\d{1,2}|PIX|PXB|PHB|NODE|SYS|SOC)"
_P2P = r"(?:OK|CNS|GNS|TNS|DR|NS|U)"
_TOPO_HEAD = (
    r"(?:\[\d{1,2}m)?GPU\d{1,3}"
    r"(?:[ \t]+(?:GPU\d{1,3}|NIC\d{1,3}|[a-z]\w{1,40}\d\w{0,20})){0,63}[ \t]*"
)
_TOPO_ROW = rf"{_TOPO_HEAD}\n[ \t>]{{0,40}}GPU\d{{1,3}}[ \t]+(?:X[ \t]+)?(?:ERR![ \t]+){{0,63}}"
_TOPO_FORMS = (rf"{_TOPO_HEAD}[ \t]CPU Affinity\b", rf"{_TOPO_ROW}{_PATH}\b")
_P2P_FORMS = (
    rf"{_TOPO_ROW}{_P2P}(?=[ \t\n])",
    r"GPU\d{1,3}[ \t]*\n[ \t>]{0,40}GPU\d{1,3}[ \t]+X[ \t]*$",
)

#: What `lspci -vv` says of a link.
_PCI_LINK = r"Lnk(?:Cap|Sta|Ctl)2?:[ \t]*\S"

#: A line that a list of GPUs begins with. No name has a bracket, and no two ways to match are left.
_UUID_OF = r"GPU \d{1,3}: [^\n(]{1,100}\(UUID: "

#: Probe -> the lines at which its tool's output begins, or surely goes on. The kernel log is
#: first: its files are the large ones.
TOOLS: dict[str, tuple[str, ...]] = {
    "kernel-log": (
        # dmesg, -T, -d, --reltime. UCX too writes [seconds], but since 1970.
        rf"(?:<\d{{1,3}}>)?\[(?: *\d{{1,9}}\.\d{{6}}(?: <[ \d.]+>)?|<[ \d.]+>| *\+\d+\.\d{{6}}"
        rf"|{_DAY} {_MONTH} [ \d]\d {_CLOCK} \d{{4}}(?: <[ \d.]+>)?"
        rf"|{_MONTH} ?\d{{1,2}} \d\d:\d\d)\]",
        rf"{_FACILITY} *:{_LEVEL} *: ",  # dmesg -x
        rf"{_ISO},\d{{6}}{_ZONE} ",  # dmesg --time-format iso
        # syslog, and journalctl's short forms
        rf"(?:<\d{{1,3}}>)?(?:1 )?{_STAMP} (?:\S+ )?(?:[a-z]+\d?\.[a-z]+ )?"
        rf"{_LOGGERS}(?:\[\d+\])?(?:: | - )",
        rf"\[?{_STAMP}\]? {_BARE}",
        r"-- (?:Logs begin|Journal begins|Boot [\da-f]{32}|Reboot)\b",
        r"\{(?=[^\n]*\"__REALTIME_TIMESTAMP\")(?=[^\n]*\"MESSAGE\")",  # journalctl -o json
        r"\d{1,4},\d+,\d+,[-c+E](?:,[^;\n]*)?;",  # /dev/kmsg
        r"dmesg-(?:erst|efi|ramoops)[\w.-]*:?$|(?:Panic|Oops|Emergency)#\d+ Part\d+",  # pstore
        rf"\[{_MONTH} [ \d]\d \d{{4}} {_CLOCK}\] \[[A-Z]+\] \[tid \d+\]",  # fabric manager
        rf"{_ISO}\.\d{{1,9}}{_ZONE} std(?:out|err) [FP] \[ *\d{{1,9}}\.\d{{6}}\]",  # Kubernetes
        r"\{(?=[^\n]*(?:NVRM: |SXid \(|fallen off the bus))",  # wrapped in JSON by a log collector
        _BARE,  # journalctl -o cat, dmesg -t
        # in place of a log, for want of rights
        r"dmesg: (?:read kernel buffer failed|klogctl)\b|-- No entries --[ \t]*$",
        r"(?:Hint: )?You are currently not seeing messages from other users|No journal files were",
    ),
    "nvidia-smi": (
        r"<\?xml [^>\n]*\?>[\s>]*<(?:!DOCTYPE )?nvidia_smi_log\b",
        r"<!DOCTYPE nvidia_smi_log\b|<nvidia_smi_log>|<gpu id=\"",
    ),
    "nvidia-smi-q": (
        r"=+ ?NVSMI LOG ?=+",
        # `nvidia-smi --version` has fewer blanks
        r"(?:Timestamp|Driver Version|CUDA Version) {15,}: |Attached GPUs +: \d",
        rf"GPU {_BUS_ID}[ \t]*$",
    ),
    "lspci": (
        # plain and -nn, then -n
        rf"{_ADDRESS} (?:[A-Z3][\w ./-]+)(?: \[\w{{4}}\])?: ",
        rf"{_ADDRESS} (?:Class )?[\da-f]{{4}}: [\da-f]{{4}}:[\da-f]{{4}}\b",
        # -mm, -vmm
        rf'{_ADDRESS} "[^"\n]{{1,80}}" "',
        rf"Slot:[ \t]+{_ADDRESS}[ \t]*$",
    ),
    "lspci-tree": (r"-(?:\+-)?\[(?:[\da-f]{4,8}:)?[\da-f]{2}(?:-[\da-f]{2})?\]-",),
    "hwloc": (
        r"(?:<\?xml [^>\n]*\?>[\s>]*)?<!DOCTYPE topology SYSTEM \"hwloc",
        r"(?:<\?xml [^>\n]*\?>[\s>]*)?<topology(?: version=\"\d|>[\s>]*<object type=\")",
    ),
    "driver-module": (r"NVRM version: NVIDIA UNIX ", r"Module +Size +Used by[ \t]*$"),
    "nccl-topo": (
        r"<system(?: [\w-]+=(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}')){0,8}>[\s>]*<(?:cpu|!--)",
    ),
    "services": (
        r"Fabric Manager version is : \d",
        r"[●○×*•↻] nvidia[\w@-]{0,60}\.service(?: - |[ \t]*$)",
        r"Unit nvidia[\w@-]{0,60}\.service could not be found",
        r"(?:Id=nvidia-[\w-]+\.service|LoadState=(?:loaded|not-found|masked)|NRestarts=\d+)[ \t]*$",
    ),
    "nvidia-smi-table": (r"\| {0,9}NVIDIA-SMI [\d.]+ ",),
    # Without a link or a sentence about links it is `nvidia-smi -L`; a GPU may have none.
    "nvlink": (rf"(?:{_UUID_OF}[^\n]{{0,90}}\n[\s>]{{0,40}}){{1,32}}(?:Link \d|NVML: |\[\.)",),
    "nvidia-smi-topo": (
        *(rf"(?<![ \t]){form}" for form in _TOPO_FORMS),
        rf"(?:GPU|NIC)\d{{1,3}}[ \t]+(?:X[ \t]+(?:{_PATH}\b|\d|N/A)|{_PATH}(?=[ \t]|$))",
        rf"(?:mlx|bnxt|hfi|rdma|irdma|roce|ib|efa)\w{{1,40}}(?:[ \t]+{_PATH}\b){{2}}",
    ),
    "nvidia-smi-p2p": (
        *(rf"(?<![ \t]){form}" for form in _P2P_FORMS),
        rf"GPU\d{{1,3}}[ \t]+(?:X[ \t]+)?{_P2P}(?=[ \t]|$)",
    ),
    "npu-smi": (r"\| npu-smi \S+ +Version: \S",),
    "ipmi-sdr": (
        # elist, type
        rf"[^\n|]{{1,64}}\| *[\dA-Fa-f]{{2,3}}h *\| *{_IPMI_STATUS} *\| *\d+\.\d+ *\|",
        r"[^\n|]{17,64}\| (?:no reading|Not Readable|disabled|0x[\da-f]+|-?[\d.,]+ [\w %]{1,30}?) *"
        rf"\| {_IPMI_STATUS}[ \t]*$",
        r"[^\n|]{17,64}\| (?:na|0x[\da-f]+|-?[\d.,]+) *\| [^|\n]{0,24}"  # sensor
        rf"\| (?:{_IPMI_STATUS}|0x[\da-f]{{4}}) *\| (?:na|-?[\d.,]+) *\|",
        r"Unable to send command: |Get Device ID command failed|Could not open device at /dev/ipmi",
    ),
    "ipmi-sel": (
        rf"(?<![ \t]){_SEL_ENTRY}",
        r"SEL has no entries\b",
    ),
    "edac": (
        r"(?:/sys/devices/system/edac/mc/)?mc\d{1,3}/(?:(?:dimm|rank|csrow)\d{1,4}/)?"
        r"(?:[cu]e_\w+|mc_name|size|seconds_since_reset|dimm_\w+|ch\d+_\w+)[: ]",
    ),
    "dmidecode": (r"# dmidecode \d|Handle 0x[\dA-F]{4}, DMI type 17\b|Memory Device[ \t]*$",),
    "dcgmi-diag": (
        r"Successfully ran diagnostic for group\b|\+-{27}\+-{48}\+[ \t]*$",
        r"\| Diagnostic {2,}\| Result",
        r"[|+]-{5}  (?:Metadata|Deployment|Integration|Hardware|Stress|Performance|Custom)  -+\+",
        r"\| (?=[^|\n]{26}\| )[\w./]+(?: [\w./]+){0,4} +\| (?:GPU\d+: )?(?:Pass|Fail|Skip|Warn)\b",
        rf"(?<![ \t]){_DCGM_JSON}",
        r"Error: (?:Diagnostic (?:can|could)|[Uu]nable to (?:complete diagnostic"
        r"|connect to (?:the )?host ?engine|establish a connection to the specified host))\b",
    ),
    # The columns differ by -s; those of pmon begin with gpu and pid.
    "nvidia-smi-dmon": (r"# ?(?:Date,?[ \t]+)?(?:Time,?[ \t]+)?gpu,?[ \t]+(?!pid\b)[a-z]",),
    "dcgmi-dmon": (r"# ?Entity[ \t]+[A-Z]",),
    "watch": (r"\{\"preflight\": ?\"watch/\d",),
    "stress": (r"\{(?:\"kind\": ?\"begin\", ?)?\"preflight\": ?\"stress/\d",),
    "nccl-bench": (r"\{(?:\"kind\": ?\"begin\", ?)?\"preflight\": ?\"nccl-bench/\d",),
    "io-bench": (r"\{(?:\"kind\": ?\"begin\", ?)?\"preflight\": ?\"io-bench/\d",),
    "objects": (r"\{(?:\"kind\": ?\"begin\", ?)?\"preflight\": ?\"objects/\d",),
    "shard": (r"\{(?:\"kind\": ?\"begin\", ?)?\"preflight\": ?\"shard/\d",),
    "micro-train": (r"\{(?:\"kind\": ?\"begin\", ?)?\"preflight\": ?\"micro-train/\d",),
    **benchmark_signatures.TOOLS,
    **network_signatures.TOOLS,
    **storage_signatures.TOOLS,
    **software_signatures.TOOLS,
}
#: The same where the tool itself indents the line, as far as the pattern begins with.
INDENTED: dict[str, tuple[str, ...]] = {
    "nvidia-smi-q": (
        rf" {{4}}{_SECTIONS}[ \t]*$",
        rf" {{4}}{_FIELDS} {{4,}}: ",
        r" {8}GPU (?:Current|Shutdown|Slowdown|Max Operating|T\.Limit) Temp {4,}: ",
    ),
    "dcgmi-diag": (rf"[ \t]{{0,64}}{_DCGM_JSON}",),
    "nvidia-smi-topo": tuple(rf"[ \t]{{1,64}}{form}" for form in _TOPO_FORMS),
    "nvidia-smi-p2p": tuple(rf"[ \t]{{1,64}}{form}" for form in _P2P_FORMS),
    "ipmi-sel": (rf" {{1,7}}{_SEL_ENTRY}",),
    **benchmark_signatures.INDENTED,
}
#: What nvidia-smi says in place of a report: each is one line, and what follows is not its own.
SENTENCES = (
    r"NVIDIA-SMI (?:has failed because|couldn't find) ",
    r"Failed to initialize NVML: |NVML library version: \d",
    r"Unable to de(?:termine|tect) the device handle for (?:GPU|gpu)",
    r"WARNING: infoROM is corrupted at gpu ",
    r"No (?:supported )?(?:devices|GPUs) were found\.?[ \t]*$|(?:NVIDIA )?Driver Not Loaded[ \t]*$",
)
#: Lines that are surely the tool's own: it goes on with them, even after a line of another tool (a
#: kernel message on the console).
GOES_ON: dict[str, str] = {
    "nvidia-smi-q": r" {4,}\S[^\n]*? : ",
    "kernel-log": _SYSLOG,
    # nvidia-smi indents with blanks, or has tags and single words
    "lspci": rf"\t+[^<\s][^<\n]{{0,60}}[:=+,\]-]|{_ADDRESS} |[ \t]*{_PCI_LINK}",
    "services": (
        r"[A-Z][A-Za-z]{1,40}=| +(?:Loaded|Active|Docs|Process|Main PID|Tasks|Memory|CGroup): "
    ),
    "lspci-tree": r"[ |]{1,400}(?:[+\\]-|\|?$)",
    "hwloc": r"[ \t]*</?(?:object|info|page_type|topology|support|cpukind|distances2?)\b",
    "nccl-topo": r"[ \t]*</?(?:system|cpu|pci|gpu|nic|net|nvlink|c2c|pcilink|!--)\b",
    "nvlink": rf"[ \t]*(?:{_UUID_OF}|Link \d)",
    "dcgmi-diag": r"[|+][^\n|+]{27}[|+]",
    **benchmark_signatures.GOES_ON,
    # What NVML told beside the tests stands among its lines, with a header of its own.
    "stress": r"\{(?!\"preflight\": ?\"(?:micro-train|nccl-bench|io-bench|objects|shard)/)",
    **network_signatures.GOES_ON,
    **storage_signatures.GOES_ON,
    **software_signatures.GOES_ON,
}

#: Lines between outputs: Markdown fences, `script`, the rules of nvidia-bug-report.
BOUNDARIES = (
    r"(?:```|~~~)\w*[ \t]*$",
    r"Script (?:started|done)\b",
    r"_{20,}[ \t]*$|\*{3} [/\w]|journalctl -b -\d\b[^\n]*$",
)
_COMMANDS = (
    "nvidia-smi|nvidia-bug-report|dcgmi|dmesg|journalctl|lspci|lsmod|modinfo|lscpu|numactl|sysctl"
    r"|ulimit|prlimit|pip3?|uv|conda|mamba|micromamba|ds_report|env|printenv|accelerate|transformers(?:-cli)?|ibstat|ibstatus|ibv_devinfo|ib_\w+|rdma|show_gids|ibdev2netdev|\w+_perf|mlnx_qos|mlxlink|mlxconfig|ipmitool"
    r"|dmidecode(?! \d)|fio|ethtool|ip|preflight|nvme|smartctl|lsblk|nfsstat|lfs|quota"
    "|systemctl|cat|tail|head|less|more|zcat|grep|egrep|zgrep|sed|awk|ls|ll|cd|pwd|echo|date|uptime"
    "|uname|hostname|ps|top|htop|free|df|mount|history|clear|exit|logout|watch|su|ssh|srun|salloc"
    "|sbatch|sinfo|scontrol|mpirun|torchrun|python3?|docker|kubectl|modprobe|rmmod|reboot|type"
    "|Get-Content"
)
_BRACKETED, _USER_AT = r"\[[^\]\n@]{1,64}@[^\]\n]{1,200}\]", r"[\w.-]{1,64}@[\w.-]{1,64}"
_MARK = (
    r"(?:\([\w .+-]{1,64}\) ?)?(?:"  # (a Python environment)
    rf"(?:{_BRACKETED}|{_USER_AT}(?:[: ][^$#%>\n]{{0,200}})?)[$#%>] ?"  # root@node-07:~#
    r"|PS [A-Z]:\\[^>\n]{0,200}> ?|[A-Z]:\\[^>\n]{0,200}>"  # PowerShell, cmd
    r"|[\w.:~/-]{0,64} ?[$#%❯➜λ] +)"  # $, #, bash-5.1$, node-07:~ #
)
#: A prompt with a command that is known, or an unmistakable one with none. Less would cut at a
#: process' name or a value.
PROMPTS = (
    rf"{_MARK}(?:sudo +(?:-\S+ +)*|time +|\w+=\S* +)*(?:[\w./\\:-]*[/\\])?"
    rf"(?:{_COMMANDS})(?:\.exe|\.sh)?(?=[\s|;&<>]|$)",
    rf"(?:{_BRACKETED}|{_USER_AT}:[^$#%>\n]{{0,200}})[$#%][ \t]*$",
)

_RANK = r"(?:\d+: ?|\[\d+,\d+\]<std\w+>: ?|\[[\w:]+\]: ?|[\w.-]+: )?"
#: What other tools' output is called -> the lines that show it. Moves to TOOLS with its reader.
KNOWN_BUT_UNREAD: dict[str, tuple[str, ...]] = {
    "`nvidia-smi --version` output": (r"NVIDIA-SMI version +: ",),
    "`nvidia-smi --query-gpu` output": (
        r"(?:index|name|uuid|timestamp|serial|driver_version|pci\.bus_id|gpu_\w+)"
        r"(?:, [\w.]+(?: \[[^\]\n]+\])?)+$",
    ),
    "`nvidia-smi -L` output": (_UUID_OF,),
    "`nvidia-smi pmon` output": (r"# ?(?:Date +)?(?:Time +)?gpu +pid\b",),
    "lines of `lspci -vv` without the devices that they are of": (_PCI_LINK,),
    "`ipmitool -c` output": (
        r"[\da-f]{1,8},(?:\d{1,2}/\d{1,2}/\d{2,4}|\d{4}-\d\d-\d\d|Pre-Init),",
        rf"[^,|\n]{{1,64}},[^,\n]{{0,24}},[^,\n]{{0,24}},{_IPMI_STATUS}(?:,|[ \t]*$)",
        rf"[^,|\n]{{1,64}},(?:0x[\da-f]+|-?[\d.]+),{_IPMI_STATUS}[ \t]*$",
    ),
    "`ipmitool sel list -v` output": (r"SEL Record ID +: ",),
    "`ipmitool sel info` output": (r"SEL Information[ \t]*$",),
    "an error of ipmitool": (r"Error: Unable to establish IPMI|Error loading interface \w+",),
    "fio output without JSON": (
        r"fio-\d+\.\d+\S*$",
        r"[\w.%+/-]{1,80}: \(groupid=\d+, jobs=",
        r"[2-5];fio-\d[^;\n]{0,40};",  # --minimal, --output-format=terse
    ),
    "an NCCL watchdog report": (r"(?:\[[^\]\n]{1,80}\]:? ?){1,3}Watchdog caught",),
    "a profiler trace": (
        r"[\[{ ]*\"(?:traceEvents|distributedInfo|deviceProperties|schemaVersion)\" *:",
        r"\[\{\"name\":[^\n]{0,400}?\"ph\": ?\"",
    ),
    "a system log with no line of the kernel": (_SYSLOG,),
    "a training log": (
        rf"{_RANK}(?:iteration +\d+/|step: ?\d+/\d+ |\| epoch \d+:|\{{'(?:eval_|train_)?loss': )",
        r"\[titan\] |\[INFO\|trainer\.py|\[[\d-]{10} [\d:,]{12}\] \[[A-Z]+\] \[\w+\.py:",
        rf"{_RANK}(?:Traceback \(most recent|RuntimeError: |ERROR: Unexpected bus error)",
        rf"{_RANK}(?:terminate called after| ?> (?:datasets|building) )",
    ),
}
#: The same -> which form of it is read.
INSTEAD = {
    "lines of `lspci -vv` without the devices that they are of": "give all of `sudo lspci "
    "-Dvvvnn`, or leave each device's own line in: `sudo lspci -Dvvvnn | grep -E "
    "'^[0-9a-f]|LnkCap:|LnkSta:'`",
    "`ipmitool -c` output": "give it without -c: `ipmitool sdr elist`, `ipmitool sel elist`",
    "fio output without JSON": "run it with --output-format=json --output=fio.json, and give that",
    "`ipmitool sel list -v` output": "give the table: `sudo ipmitool sel elist`",
    "`ipmitool sel info` output": "give the entries: `sudo ipmitool sel elist`; after "
    "`Overflow : true` the log takes no more: `preflight explain bmc-log`",
}
#: Files of another kind, by how they begin.
NOT_TEXT: dict[bytes, str] = {
    b"PK\x03\x04": "a zip archive (a PyTorch checkpoint is one)",
    b"\x80\x02": "a Python pickle (an NCCL flight recorder dump is one), which is never loaded",
    b"\x80\x04": "a Python pickle, which is never loaded",
    b"\x89PNG": "a picture; the text is needed",
    b"\xff\xd8\xff": "a picture; the text is needed",
    b"%PDF-": "a PDF document; the text is needed",
    b"\xfd7zXZ\x00": "packed with xz; unpack it with `xz -dk`",
    b"\x28\xb5\x2f\xfd": "packed with zstd; unpack it with `zstd -dk`",
    b"BZh": "packed with bzip2; unpack it with `bunzip2 -k`",
}
READS = (
    "what is read: `nvidia-smi -q -x`, `nvidia-smi -q`, `nvidia-smi`, `nvidia-smi nvlink`, "
    "`nvidia-smi topo -m`, `nvidia-smi topo -p2p r`, `nvidia-smi dmon`, "
    "a kernel log (`dmesg`, `journalctl -k`, syslog, fabric manager), `lspci`, "
    "`lspci -tv`, `lstopo --of xml`, "
    "`lsmod`, `systemctl status`, `ipmitool sdr`, `sensor` and `sel list`, EDAC counts, "
    "`dmidecode -t 17`, `dcgmi diag`, `dcgmi dmon`, `python -m torch.utils.collect_env`, "
    "`ds_report`, `pip freeze`, `pip list`, `conda list`, `sysctl -a`, `ulimit -a`, `lscpu`, "
    "`numactl -H`, `env`, `ibstat`, `ibstatus`, `ibv_devinfo -v`, `rdma link`, `show_gids`, "
    "`ethtool`, `ip addr`, /proc/net/bonding, `mlnx_qos`, "
    "/proc/self/mountinfo, `mount`, `nfsstat -m`, /proc/mdstat, `lsblk -J`, `nvme smart-log`, "
    "`smartctl -j -a`, `quota`, "
    "NCCL's topology file, an NCCL log (NCCL_DEBUG=INFO), nccl-tests, perftest (ib_write_bw ...), "
    "all_reduce_bench, fio's JSON, a capture of preflight"
)
LOG_FORMS = (
    "forms of a kernel log that are read: `sudo dmesg`, `sudo journalctl -k -o short-iso`, "
    "/var/log/messages or /var/log/kern.log as they are, of one host each"
)
