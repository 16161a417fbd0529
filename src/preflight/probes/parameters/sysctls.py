"""Parameters of the kernel that training feels: /proc/sys, sysfs, the kernel's command line.

What the kernel computes from the size of memory, so that hosts differ without anybody's doing, is
`scaled` where it is judged by itself, else in no list (vm.min_free_kbytes, net.ipv4.tcp_mem,
user.max_user_namespaces); nor are counters, random values, and names of the host.
Sources: Documentation/admin-guide/sysctl, kernel-parameters.txt and the ABI of sysfs of the kernel.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.setup import Sysctl
from preflight.model import Known, Missing
from preflight.probes.spec import probe

_PROBE = "sysctls"

#: Below /proc/sys.
_SYSCTLS = (
    # Host memory of loaders, of checkpoints in flight, of pinned buffers.
    "vm/swappiness",
    "vm/overcommit_memory",  # 2: forks and large maps fail
    "vm/overcommit_ratio",
    "vm/zone_reclaim_mode",  # 1: reclaims near memory, with stalls, though far memory is free
    "vm/max_map_count",  # frameworks with many maps fail above it
    "vm/nr_hugepages",  # memory that nobody else gets
    "vm/nr_overcommit_hugepages",
    "vm/compaction_proactiveness",  # stalls where huge pages are made
    "vm/watermark_scale_factor",
    "vm/vfs_cache_pressure",  # how long names of the data set stay known
    "vm/oom_kill_allocating_task",
    "vm/panic_on_oom",
    # When written checkpoints go to the disk, and how long writers wait for it.
    "vm/dirty_ratio",
    "vm/dirty_background_ratio",
    "vm/dirty_bytes",
    "vm/dirty_background_bytes",
    "vm/dirty_expire_centisecs",
    "vm/dirty_writeback_centisecs",
    # Jitter: one slow rank is a slow step for all.
    "kernel/numa_balancing",  # moves pages, and faults to learn where
    "kernel/nmi_watchdog",
    "kernel/watchdog_thresh",
    "kernel/timer_migration",
    "kernel/sched_autogroup_enabled",
    "kernel/sched_rt_runtime_us",
    # What a process may: shared memory and peers' memory (NCCL, MPI), profilers, containers.
    "kernel/shmmax",
    "kernel/shmall",
    "kernel/shmmni",
    "kernel/pid_max",
    "kernel/threads-max",
    "kernel/yama/ptrace_scope",  # 1 and more: neither py-spy nor copies between processes
    "kernel/perf_event_paranoid",
    "kernel/unprivileged_userns_clone",
    "fs/aio-max-nr",  # storage libraries and fio fail above it
    "fs/nr_open",
    "fs/file-max",
    "fs/inotify/max_user_instances",
    # What happens after a fault: stand still for ever, or boot again.
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/hung_task_timeout_secs",
    # A network namespace, and so most containers, has its own of those below.
    # Buffers and queues of NCCL over sockets, of storage and of rendezvous.
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/core/rmem_default",
    "net/core/wmem_default",
    "net/core/netdev_max_backlog",
    "net/core/netdev_budget",
    "net/core/somaxconn",  # thousands of ranks connect to one at once
    "net/ipv4/tcp_max_syn_backlog",
    "net/ipv4/tcp_syncookies",
    "net/core/default_qdisc",
    "net/core/busy_poll",
    "net/core/busy_read",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_mtu_probing",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_window_scaling",
    "net/ipv4/tcp_slow_start_after_idle",
    # How soon a peer that is gone is noticed.
    "net/ipv4/tcp_retries2",
    "net/ipv4/tcp_syn_retries",
    "net/ipv4/tcp_keepalive_time",
    "net/ipv4/ip_local_port_range",
    "net/ipv4/ip_local_reserved_ports",
    # Several adapters in one subnet: who answers for which address (RoCE on rails).
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/conf/all/arp_ignore",
    "net/ipv4/conf/all/arp_announce",
    "net/ipv4/conf/all/arp_filter",
    "net/ipv4/neigh/default/gc_thresh1",  # neighbours of a large cluster
    "net/ipv4/neigh/default/gc_thresh2",
    "net/ipv4/neigh/default/gc_thresh3",
)

#: Names of those below /proc/sys, as people write them.
NAMES = frozenset(name.replace("/", ".") for name in _SYSCTLS)
#: Computed by the kernel from the size of memory, or of the processor, where nobody sets them.
_SCALED = frozenset({
    "fs.file-max", "kernel.threads-max", "net.ipv4.tcp_max_syn_backlog",
})  # fmt: skip
#: Of three numbers (least, at first, most) the last is what is judged.
_TRIPLES = frozenset({"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"})

#: Below /proc/sys, but no numbers: names, a range, a list.
_WORDS = frozenset({
    "net.core.default_qdisc", "net.ipv4.tcp_congestion_control", "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
})  # fmt: skip
#: Whose value is a number wherever there is one.
_NUMBERS = (NAMES - _WORDS) | {"cpu.no_turbo", "cpu.boost"}

#: Our name -> files; several are one value, or "mixed". Where a value stands in brackets among
#: those possible, it is the one.
FILES = {
    "thp.enabled": "/sys/kernel/mm/transparent_hugepage/enabled",
    "thp.defrag": "/sys/kernel/mm/transparent_hugepage/defrag",  # always: stalls on allocation
    "cpu.governor": "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor",
    "cpu.driver": "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_driver",
    "cpu.preference": "/sys/devices/system/cpu/cpu[0-9]*/cpufreq/energy_performance_preference",
    "cpu.no_turbo": "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "cpu.boost": "/sys/devices/system/cpu/cpufreq/boost",
    "cpu.smt": "/sys/devices/system/cpu/smt/control",
    "cpu.online": "/sys/devices/system/cpu/online",  # processors that somebody switched off
    "cpu.isolated": "/sys/devices/system/cpu/isolated",  # processors that get no work by themselves
    "cpuidle.driver": "/sys/devices/system/cpu/cpuidle/current_driver",
    "cpuidle.governor": "/sys/devices/system/cpu/cpuidle/current_governor",
    # hpet: the kernel distrusts the TSC, and each look at the clock costs a microsecond.
    "clocksource": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "pcie_aspm.policy": "/sys/module/pcie_aspm/parameters/policy",
}

#: Options of the command line, as patterns of the shell. Named one by one: others hold addresses,
#: UUIDs, sometimes secrets, and never leave the host.
_OPTIONS = (
    "iommu=*", "iommu.*", "intel_iommu=*", "amd_iommu=*", "pci=*", "pcie_*", "swiotlb=*",
    "numa=*", "numa_balancing=*", "transparent_hugepage=*", "default_hugepagesz=*",
    "hugepagesz=*", "hugepages=*", "isolcpus=*", "nohz=*", "nohz_full=*", "rcu_nocbs=*",
    "irqaffinity=*", "skew_tick=*", "preempt=*", "threadirqs", "idle=*", "processor.*",
    "intel_idle.*", "intel_pstate=*", "amd_pstate=*", "cpufreq.*", "cpuidle.*", "maxcpus=*",
    "nr_cpus=*", "mem=*", "nosmt", "nosmt=*", "mitigations=*", "nopti", "pti=*", "spectre_v2=*",
    "nospectre_v2", "retbleed=*", "tsc=*", "clocksource=*", "hpet=*", "mce=*", "nowatchdog",
    "nmi_watchdog=*", "nosoftlockup", "cgroup_*", "systemd.unified_cgroup_hierarchy=*", "cma=*",
    "init_on_alloc=*", "init_on_free=*", "page_poison=*", "slub_debug=*", "audit=*", "selinux=*",
    "apparmor=*", "security=*", "lockdown=*", "module_blacklist=*", "modprobe.blacklist=*",
    "rd.driver.blacklist=*", "nouveau.*", "nvidia*", "nvme*", "vfio*", "mlx*", "rdma*", "ib_*",
    "ipv6.disable=*", "net.ifnames=*", "biosdevname=*", "crashkernel=*", "log_buf_len=*",
)  # fmt: skip

#: Options of the nvidia module (/proc/driver/nvidia/params), as patterns: what a file in
#: /etc/modprobe.d changes. Others name a host's GPUs or files.
_DRIVER_OPTIONS = (
    "Enable*", "NvLinkDisable", "RmProfilingAdminOnly", "DynamicPowerManagement",
    "RegistryDwords", "DmaRemapPeerMmio", "CoherentGPUMemoryMode", "GrdmaPciTopoCheckOverride",
    "InitializeSystemMemoryAllocations", "PreserveVideoMemoryAllocations", "ImexChannelCount",
    "UsePageAttributeTable",
)  # fmt: skip

# One process for /proc/sys: `read` takes byte after byte in some shells, and the kernel gives the
# rest of a number to nobody who comes back for it. The other files are read by the shell itself,
# and told at once: over SSH each line that is written by itself is a packet.
_ASK = f"""\
cd /proc/sys || exit 2
grep -s -H '' {" ".join(_SYSCTLS)}
told=; say() {{ told="$told$1
"; }}
one() {{ n=$1; shift; a=
  for f in "$@"; do
    v=; {{ read -r v <"$f"; }} 2>/dev/null || continue
    case $a in ''|"$v") a=$v ;; *) a=mixed; break ;; esac
  done
  [ -z "$a" ] || say "$n $a"
}}
{chr(10).join(f"one {name} {files}" for name, files in FILES.items())}
s=; for d in /sys/devices/system/cpu/cpu0/cpuidle/state[0-9]*; do
  n=; x=; {{ read -r n <"$d/name"; read -r x <"$d/disable"; }} 2>/dev/null
  case $n:$x in :*) ;; *:1) s="$s $n=off" ;; *) s="$s $n" ;; esac
done
[ -z "$s" ] || say "cpuidle.states$s"
{{ while read -r k v; do
  case ${{k%:}} in {"|".join(_DRIVER_OPTIONS)}) say "nvidia.${{k%:}} $v" ;; esac
done </proc/driver/nvidia/params; }} 2>/dev/null
set -f; l=; {{ read -r l </proc/cmdline; }} 2>/dev/null && for o in $l; do
  case $o in
    --) break ;;
    {"|".join(_OPTIONS)}) say "option $o" ;;
  esac
done
if [ -n "$l" ]; then say cmdline; fi
say end; printf %s "$told"
"""

#: Drivers whose governor `powersave` leaves the clock to the processor and its preference.
_BY_PREFERENCE = frozenset({"intel_pstate", "amd-pstate-epp", "amd_pstate_epp"})

_LINE = re.compile(r"([a-z][\w./-]{0,79})(?:[: ](.*))?", re.ASCII)
_CHOSEN = re.compile(r"\[([^\][]{1,60})\]")
_NUMBER = re.compile(r"-?[0-9]{1,20}", re.ASCII)


@probe(_PROBE, ["sh", "-c", _ASK], timeout_s=10)
def sysctls(text: str) -> tuple[Sysctl, ...]:
    """`vm/swappiness:60` and `cpu.governor performance` lines; the options of the command line
    become one value."""
    lines = [line.strip() for line in text.strip().split("\n")]
    if lines[-1] != "end":
        raise ParseError("the list of parameters is cut short: no closing `end`", len(lines))
    found: dict[str, Sysctl] = {}
    options: list[str] = []
    whole = ended = 0  # what was told of the command line, and the line that ends it
    for number, line in enumerate(lines[:-1], 1):
        key, value = match.groups("") if (match := _LINE.fullmatch(line)) else ("", "")
        if key == "option":
            options.append(value.strip())
        elif key == "cmdline":
            whole, ended = len(options), number
        elif key:
            one = _parameter(key, value, number)
            found.setdefault(one.name, one)
    if ended:
        found["cmdline"] = _cmdline(_by_name(options[:whole]), ended)
    if not found:
        raise ParseError("expected lines such as `vm/swappiness:60`", 1)
    if governor := found.get("cpu.governor"):
        found["cpu.governor"] = replace(governor, works_as=_works_as(governor, found))
    return tuple(found.values())


def _cmdline(told: str, line: int) -> Sysctl:
    return Sysctl("cmdline", told, number=number_of("cmdline", told), line=line, probe=_PROBE)


def _works_as(governor: Sysctl, found: Mapping[str, Sysctl]) -> Known[str]:
    """intel_pstate.rst (active mode) and amd-pstate.rst of Documentation/admin-guide/pm."""
    told = {name: found[name].value for name in ("cpu.driver", "cpu.preference") if name in found}
    preferred = told.get("cpu.preference") == "performance"
    return (
        "performance" if told.get("cpu.driver") in _BY_PREFERENCE and preferred else governor.value
    )


def _parameter(key: str, value: str, line: int) -> Sysctl:
    """One parameter by its path below /proc/sys, vm/swappiness, or by a name of ours."""
    chosen = _CHOSEN.search(value)
    told = chosen[1] if chosen else " ".join(value.split())
    name = key.replace("/", ".")
    return Sysctl(
        name=name,
        value=told or "none",
        number=number_of(name, told),
        of_host=not key.startswith("net/"),
        scaled=name in _SCALED,
        line=line,
        probe=_PROBE,
    )


def number_of(name: str, value: str) -> Known[float]:
    """The number that the parameter's value is; of a buffer's three the largest."""
    word = value.split()[-1] if name in _TRIPLES and value.strip() else value.strip()
    if _NUMBER.fullmatch(word):
        return int(word)
    told = f"{name} is {value.strip()[:60] or 'empty'}, which is no number"
    return Missing("unreadable" if name in _NUMBERS else "not-applicable", told)


def _by_name(options: list[str]) -> str:
    """In one order on all hosts; those of one name keep theirs, for the last of them counts."""
    return " ".join(sorted(options, key=lambda option: option.partition("=")[0])) or "none"
