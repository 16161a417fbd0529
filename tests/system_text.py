"""What the host leaves a process, as our questions print it on a sound machine; made up."""

from __future__ import annotations

_ROWS = """\
Limit                     Soft Limit           Hard Limit           Units
Max cpu time              unlimited            unlimited            seconds
Max stack size            8388608              unlimited            bytes
Max processes             4126046              4126046              processes
Max open files            1048576              1048576              files
Max locked memory         unlimited            unlimited            bytes
"""
LIMITS = f"{_ROWS}CapEff:\t0000000000000000\nend\n"
LIMITS_CONF = f"""\
{_ROWS}nr_open 1048576
conf /etc/security/limits.conf:12 all soft nofile 65536
conf /etc/security/limits.d/90-training.conf:1 all - memlock unlimited
conf /etc/security/limits.d/90-training.conf:2 all - nofile 1048576
end
"""
_NCCL = "maps /venv/nvidia/nccl/lib/libnccl.so.2\nNCCL version 2.20.5\n"
PROCESS = f"process 4711\n{_ROWS}Name:\tpython3\nThreads:\t212\n{_NCCL}files 1512\nend\n"
SERVICE_LIMITS = """\
DefaultLimitNOFILE=524288
DefaultLimitNOFILESoft=1024

Id=slurmd.service
LoadState=loaded
ActiveState=active
LimitNOFILE=131072
LimitNOFILESoft=131072
LimitMEMLOCK=infinity
LimitMEMLOCKSoft=infinity
LimitNPROC=infinity
LimitNPROCSoft=infinity
LimitSTACK=infinity
LimitSTACKSoft=infinity

Id=docker.service
LoadState=not-found
ActiveState=inactive
LimitNOFILE=524288
LimitNOFILESoft=1024
end
"""
_G = "/sys/fs/cgroup/kubepods.slice/pod7.slice/cri:9f"
CGROUP = f"""\
group v2 all /kubepods.slice/pod7.slice/cri:9f
{_G}/cpu.max:6400000 100000
{_G}/cpu.stat:nr_periods 90000
{_G}/cpu.stat:nr_throttled 310
{_G}/cpu.stat:throttled_usec 4200000
{_G}/memory.max:max
{_G}/memory.current:34359738368
{_G}/memory.stat:active_file 4294967296
{_G}/memory.stat:inactive_file 8589934592
{_G}/memory.events:max 0
{_G}/memory.events:oom_kill 0
{_G}/pids.max:max
{_G}/pids.current:900
{_G}/pids.events:max 0
/sys/fs/cgroup/kubepods.slice/pod7.slice/cpu.max:max 100000
/sys/fs/cgroup/kubepods.slice/pod7.slice/memory.max:68719476736
/sys/fs/cgroup/kubepods.slice/pod7.slice/memory.current:34359738368
/sys/fs/cgroup/kubepods.slice/pod7.slice/memory.stat:active_file 4294967296
/sys/fs/cgroup/kubepods.slice/pod7.slice/memory.stat:inactive_file 8589934592
/sys/fs/cgroup/kubepods.slice/pod7.slice/pids.max:16384
/sys/fs/cgroup/kubepods.slice/pod7.slice/pids.current:902
/sys/fs/cgroup/kubepods.slice/pod7.slice/pids.events:max 0
Cpus_allowed_list:\t0-95,192-287
end
"""
SHARED_MEMORY = """\
Filesystem     1024-blocks     Used  Available Capacity Mounted on
tmpfs           1056740616  1048576 1055692040       1% /dev/shm
end
"""
MEMORY_STATE = """\
pswpin 12
pswpout 3400
oom_kill 0
Node 0, zone      DMA      0      0      0      0      0      0      0      0      1      1      3
Node 0, zone   Normal  24854  18936  11443   8075   1021    638    392    323    464    251   3494
Node 1, zone   Normal   4854   8936   1443    875    121     38     92     23     64     51    494
end
"""
CPU_STATE = """\
present:0-3
online:0-3
smt/control:on
cpu0/cpuidle/state0/name:POLL
cpu0/cpuidle/state1/name:C1E
cpu0/cpuidle/state2/name:C6
cpu0/cpuidle/state0/latency:0
cpu0/cpuidle/state1/latency:4
cpu0/cpuidle/state2/latency:170
cpu0/cpuidle/state0/disable:0
cpu0/cpuidle/state1/disable:0
cpu0/cpuidle/state2/disable:1
cpu0/cpufreq/scaling_max_freq:3800000
cpu1/cpufreq/scaling_max_freq:3800000
cpu2/cpufreq/scaling_max_freq:3800000
cpu3/cpufreq/scaling_max_freq:3800000
cpu0/cpufreq/cpuinfo_max_freq:3800000
cpu1/cpufreq/cpuinfo_max_freq:3800000
cpu2/cpufreq/cpuinfo_max_freq:3800000
cpu3/cpufreq/cpuinfo_max_freq:3800000
cpu0/thermal_throttle/core_throttle_count:0
cpu1/thermal_throttle/core_throttle_count:2
cpu0/thermal_throttle/core_throttle_total_time_ms:0
cpu1/thermal_throttle/core_throttle_total_time_ms:14
/proc/loadavg:0.31 0.40 0.52 3/2105 90210
/proc/uptime:864000.00 3400000.00
/proc/stat:cpu  1000 2 300 90000 40 0 50 0 0 0
end
"""
PROCESSES = """\
count 1204
threads 2105
/proc/sys/kernel/pid_max:4194304
/proc/sys/kernel/threads-max:8252092
zombies 2
look
end
"""
_PYTHON = "4711 (python3 (x)) D 1 4711 4711 0 -1 4194304 100 0 0 0 7 0 0 0 20 0 1 0 9"
#: A process that waits for a share, and a thread of the kernel that may.
STUCK = PROCESSES.replace(
    "look\n",
    f"look\n{_PYTHON}\n88 (kworker/3:1) D 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 9\n"
    "wchan 4711 rpc_wait_bit_killable\n"
    "before 4711 voluntary_ctxt_switches: 80\nbefore 4711 nonvoluntary_ctxt_switches: 2\n"
    "wchan 88 worker\nbefore 88 voluntary_ctxt_switches: 1\n"
    "wchan 4711 rpc_wait_bit_killable\n"
    "after 4711 voluntary_ctxt_switches: 80\nafter 4711 nonvoluntary_ctxt_switches: 2\n"
    "wchan 88 worker\nafter 88 voluntary_ctxt_switches: 1\n"
    f"again\n{_PYTHON}\n88 (kworker/3:1) D 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 9\n",
)
DISKS = """\
fstab rw /
mount ext4 rw /dev/nvme0n1p2 /
fstab rw /raid
mount xfs rw /dev/md0 /raid
fstab rw /tmp
mount tmpfs rw tmpfs /tmp
space
Filesystem     1024-blocks      Used Available Capacity Mounted on
/dev/nvme0n1p2   921926144 301220000 573801144      35% /
/dev/md0        7500000000  75000000 7425000000      1% /raid
tmpfs             65536000         4  65535996       1% /tmp
inodes
Filesystem         Inodes   IUsed     IFree IUse% Mounted on
/dev/nvme0n1p2   58605568 1200321  57405247    3% /
/dev/md0       1500000000   10000 1499990000   1% /raid
tmpfs            16384000      12  16383988    1% /tmp
end
"""
CLOCK = """\
keeper chronyd
begin chronyc
Reference ID    : A9FEA97B (169.254.169.123)
Stratum         : 4
Ref time (UTC)  : Fri Jan 02 03:04:05 2026
System time     : 0.000004151 seconds slow of NTP time
Last offset     : -0.000003210 seconds
RMS offset      : 0.000009871 seconds
Leap status     : Normal
begin timedatectl
NTPSynchronized=yes
end
"""

#: Probe -> its answer.
SYSTEM: dict[str, str] = {
    "limits": LIMITS,
    "limits-conf": LIMITS_CONF,
    "process": PROCESS,
    "service-limits": SERVICE_LIMITS,
    "cgroup": CGROUP,
    "shared-memory": SHARED_MEMORY,
    "memory-state": MEMORY_STATE,
    "cpu-state": CPU_STATE,
    "processes": PROCESSES,
    "disks": DISKS,
    "clock": CLOCK,
}
