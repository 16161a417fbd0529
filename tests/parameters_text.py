"""Parameters of a host as training needs them, and its counters; the values are made up."""

from __future__ import annotations

PARAMETERS = """\
vm/swappiness:1
vm/overcommit_memory:0
vm/zone_reclaim_mode:0
vm/max_map_count:262144
kernel/numa_balancing:0
kernel/hung_task_timeout_secs:120
kernel/shmmax:18446744073692774399
kernel/pid_max:4194304
kernel/threads-max:16511058
fs/aio-max-nr:1048576
fs/file-max:9223372036854775807
net/core/rmem_max:16777216
net/core/wmem_max:16777216
net/core/netdev_max_backlog:5000
net/core/somaxconn:65535
net/ipv4/tcp_max_syn_backlog:65535
net/ipv4/tcp_rmem:4096\t131072\t6291456
net/ipv4/tcp_wmem:4096\t16384\t4194304
net/ipv4/tcp_sack:1
net/ipv4/tcp_window_scaling:1
thp.enabled always [madvise] never
thp.defrag always defer defer+madvise [madvise] never
cpu.governor performance
cpu.driver acpi-cpufreq
cpu.no_turbo 0
cpu.boost 1
clocksource tsc
pcie_aspm.policy [default] performance powersave powersupersave
end
"""
#: Two processors; the limits are the kernel's own, and some of each was reached a little.
COUNTERS = """\
/proc/net/softnet_stat:3b9aca00 00000080 00000800 00000000 00000000 00000000 00000000
/proc/net/softnet_stat:3b9aca00 00000000 00000000 00000000 00000000 00000000 00000000
/proc/net/netstat:TcpExt: PruneCalled ListenOverflows Drops SyncookiesRecv TCPReqQFullDrop
/proc/net/netstat:TcpExt: 0 120 130 110 0
/proc/net/netstat:IpExt: InNoRoutes InOctets
/proc/net/netstat:IpExt: 0 8123
/proc/net/snmp:Ip: Forwarding DefaultTTL
/proc/net/snmp:Ip: 2 64
/proc/net/snmp:Tcp: RtoAlgorithm MaxConn ActiveOpens PassiveOpens
/proc/net/snmp:Tcp: 1 -1 5000 1000000
/proc/net/stat/arp_cache:entries  allocs   table_fulls
/proc/net/stat/arp_cache:00000003 000000ad 00000000
/proc/net/stat/arp_cache:00000003 000000ad 00000002
/proc/sys/fs/file-nr:4096\t0\t2097152
/proc/sys/fs/aio-nr:1024
/proc/sys/fs/aio-max-nr:65536
/proc/loadavg:3.20 3.10 3.00 4/2048 912345
/proc/sys/kernel/pid_max:4194304
/proc/sys/kernel/threads-max:16511058
end
"""
#: The kernel's own values, which the checks of limits that were reached are for.
DEFAULTS = """\
net/core/somaxconn:4096
net/core/netdev_max_backlog:1000
net/ipv4/tcp_max_syn_backlog:4096
end
"""
#: sysctl.d of two folders; all that it sets runs.
FILES = """\
file /etc/sysctl.d/90-site.conf
file /usr/lib/sysctl.d/50-default.conf
file /usr/lib/tmpfiles.d/thp.conf
file /etc/sysctl.conf
systemd
/etc/sysctl.d/90-site.conf:2:vm.swappiness = 1
/etc/sysctl.d/90-site.conf:3:net/core/somaxconn=65535
/etc/sysctl.d/90-site.conf:4:net.ipv4.tcp_max_syn_backlog=65535
/etc/sysctl.d/90-site.conf:5:net.core.netdev_max_backlog=5000
/etc/sysctl.d/90-site.conf:8:fs.aio-max-nr = 1048576
/etc/sysctl.d/90-site.conf:9:net.core.rmem_max = 16777216
/etc/sysctl.d/90-site.conf:10:net.core.wmem_max = 16777216
/etc/sysctl.d/90-site.conf:11:vm.max_map_count = 262144
/usr/lib/sysctl.d/50-default.conf:9:vm.swappiness = 30
/usr/lib/tmpfiles.d/thp.conf:1:w /sys/kernel/mm/transparent_hugepage/enabled - - - - madvise
/etc/sysctl.conf:7:vm.swappiness = 90
end
"""
MEMORY = "MemTotal: 2113481236 kB\nMemAvailable: 2013481236 kB\nSwapTotal: 8388604 kB\n"
PROCESSORS = (
    "CPU(s): 192\nModel name: AMD EPYC 9654 96-Core Processor\nSocket(s): 2\n"
    "NUMA node(s): 2\nFlags: fpu sse2\n"
)

#: Inputs for the table of checks: probe -> its answer, the one that is edited first.
BASES = {
    "parameters": {"sysctls": PARAMETERS, "meminfo": MEMORY, "lscpu": PROCESSORS},
    "files": {"persisted": FILES, "sysctls": PARAMETERS},
    "hits": {"network-counters": COUNTERS, "sysctls": DEFAULTS},
}
