"""Mounts, block devices and their health as our questions and tools print them, on a sound machine.

Written by hand: mountinfo by proc_pid_mountinfo(5) and nfs(5), nfsstat by nfsstat(8), mdstat by the
kernel's drivers/md/md.c, the SMART logs by what nvme-cli and smartctl print, quotas by quota(1) and
lfs-quota(1), block devices by sysfs-block and lsblk(8).
"""

from __future__ import annotations

NFS4 = (
    "rw,vers=4.1,rsize=1048576,wsize=1048576,namlen=255,hard,proto=tcp,nconnect=8,timeo=600,"
    "retrans=2,sec=sys,clientaddr=10.0.0.7,local_lock=none,addr=10.0.0.9"
)
NFS3 = (
    "ro,vers=3,rsize=524288,wsize=524288,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,"
    "mountaddr=10.0.0.8,mountvers=3,mountport=635,mountproto=udp,local_lock=none,addr=10.0.0.8"
)
MOUNTINFO = f"""\
24 29 0:22 / /proc rw,nosuid,nodev,noexec,relatime shared:14 - proc proc rw
29 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme8n1p2 rw,errors=remount-ro
31 29 0:25 / /dev/shm rw,nosuid,nodev shared:4 - tmpfs tmpfs rw,size=1056740616k,inode64
40 29 9:0 / /raid rw,noatime shared:30 - xfs /dev/md0 rw,attr2,inode64,logbufs=8,swidth=2048,noquota
41 29 9:0 /docker /var/lib/docker rw,noatime shared:31 - xfs /dev/md0 rw,attr2,inode64,noquota
44 41 0:80 / /var/lib/docker/overlay2/9f/merged rw,relatime - overlay overlay rw,lowerdir=/l
52 29 0:60 / /data rw,relatime shared:40 - nfs4 nas-1:/export/data {NFS4}
53 29 0:61 / /models ro,relatime shared:41 - nfs nas-2:/models {NFS3}
54 29 0:62 / /home rw,relatime shared:42 - autofs /etc/auto.home rw,fd=6,timeout=300,indirect
55 54 0:63 / /home/alice rw,relatime shared:43 - nfs4 nas-1:/home/alice {NFS4}
60 29 2163:512 / /scratch rw,relatime shared:44 - lustre 10.0.1.1@o2ib:/scratch rw,flock,lazystatfs
"""
#: 400 TB with 300 used; 50 TB; 2 PB of Lustre.
ANSWERS = """\
asked /data
asked /models
asked /home/alice
asked /scratch
answer 0 /models 1048576 50000000 20000000 20000000 1000000000 900000000
answer 0 /data 1048576 400000000 100000000 100000000 4000000000 3000000000
answer 0 /home/alice 1048576 400000000 100000000 100000000 4000000000 3000000000
answer 0 /scratch 4096 500000000000 250000000000 240000000000 9000000000 5000000000
stripe /scratch 4 1048576
"""
CACHES = """\
cache HF_HOME /raid/cache/hf
cache TRITON_CACHE_DIR /raid/cache/triton
cache TMPDIR /raid/tmp
"""
MOUNTS = f"{CACHES}{MOUNTINFO}{ANSWERS}end\n"
#: The same list as mount(8) prints it, and what nfsstat(8) tells of its NFS.
MOUNT = f"""\
proc on /proc type proc (rw,nosuid,nodev,noexec,relatime)
/dev/nvme8n1p2 on / type ext4 (rw,relatime,errors=remount-ro)
tmpfs on /dev/shm type tmpfs (rw,nosuid,nodev,size=1056740616k,inode64)
/dev/md0 on /raid type xfs (rw,noatime,attr2,inode64,logbufs=8,noquota)
nas-1:/export/data on /data type nfs4 (rw,relatime,{NFS4[3:]})
10.0.1.1@o2ib:/scratch on /scratch type lustre (rw,relatime,flock,lazystatfs)
"""
NFSSTAT = f"""\
/data from nas-1:/export/data
 Flags:\trw,relatime,{NFS4[3:]}

/models from nas-2:/models
 Flags:\tro,relatime,{NFS3[3:]}

"""
MDSTAT = """\
Personalities : [raid0] [raid1] [raid6] [raid5] [raid4] [raid10]
md0 : active raid0 nvme3n1[3] nvme2n1[2] nvme1n1[1] nvme0n1[0]
      15002423296 blocks super 1.2 512k chunks

md1 : active raid1 nvme9n1p1[1] nvme8n1p1[0]
      1046528 blocks super 1.2 [2/2] [UU]

md2 : active raid6 sde[4] sdd[3] sdc[2] sdb[1] sda[0]
      23441682432 blocks super 1.2 level 6, 512k chunk, algorithm 2 [5/5] [UUUUU]
      bitmap: 2/59 pages [8KB], 65536KB chunk

unused devices: <none>
"""
#: One disk has failed and another takes its place.
REBUILT = MDSTAT.replace(
    "md2 : active raid6 sde[4] sdd[3] sdc[2] sdb[1] sda[0]",
    "md2 : active raid6 sdf[5] sde[4](F) sdd[3] sdc[2] sdb[1] sda[0]",
).replace(
    "[5/5] [UUUUU]\n",
    "[5/4] [UUUU_]\n"
    "      [=>...................]  recovery =  9.4% (734523904/7813894144) finish=601.2min"
    " speed=196231K/sec\n",
)
#: The serial numbers of its disks are nobody's business: the question does not ask for them.
_NVME = """\
device nvme{at}n1
  path /sys/devices/pci0000:{bus}/0000:{bus}:01.0/0000:{up}:00.0/nvme/nvme{at}/nvme{at}n1
  dev 259:{minor}
  size 7501476528
  queue/rotational 0
  queue/scheduler [none] mq-deadline kyber bfq
  queue/nr_requests 1023
  queue/read_ahead_kb 128
  device/model SAMSUNG MZQL23T8HCLS-00A07
  device/transport pcie
  hangs /sys/devices/pci0000:{bus}/0000:{bus}:01.0/0000:{up}:00.0/nvme/nvme{at}
  address 0000:{up}:00.0
  transport pcie
"""
#: On the buses of the drives of tests/topology_hosts.py.
_BUSES = ("15", "37", "48", "59")
NVMES = "".join(
    _NVME.format(at=at, bus=bus, up=f"{int(bus, 16) + 3:02x}", minor=10 * at)
    for at, bus in enumerate(_BUSES)
)
_WAY = "/sys/devices/pci0000:00/0000:00:17.0/ata{port}/host{port}/target{port}:0:0/{port}:0:0:0"
_SATA = """\
device sd{name}
  path <WAY>/block/sd{name}
  dev 8:{minor}
  size 15628053168
  queue/rotational {turns}
  queue/scheduler [mq-deadline] none
  queue/nr_requests 64
  queue/read_ahead_kb 128
  device/model {model}
  device/queue_depth 32
  partition sd{name}1 8:{part} 15628051120
  hangs <WAY>
  sata 6.0 Gbps
""".replace("<WAY>", _WAY)
DISKS_OF_SATA = "".join(
    _SATA.format(name=name, port=at + 1, minor=16 * at, part=16 * at + 1, turns=int(turns),
                 model=model)
    for at, (name, turns, model) in enumerate(
        [("a", False, "SAMSUNG MZ7LH3T8"), *((name, True, "ST8000NM0055-1RM") for name in "bcde")]
    )
)  # fmt: skip
BLOCK_DEVICES = f"""\
{NVMES}{DISKS_OF_SATA}device md0
  path /sys/devices/virtual/block/md0
  dev 9:0
  size 30004846592
  queue/rotational 0
  queue/scheduler none
  queue/read_ahead_kb 4096
  md/level raid0
  md/raid_disks 4
  below nvme0n1
  below nvme1n1
  below nvme2n1
  below nvme3n1
device md2
  path /sys/devices/virtual/block/md2
  dev 9:2
  size 46883364864
  queue/rotational 1
  queue/scheduler none
  md/level raid6
  md/raid_disks 4
  below sdb1
  below sdc1
  below sdd1
  below sde1
device dm-0
  path /sys/devices/virtual/block/dm-0
  dev 252:0
  size 15628053168
  dm/name vg-scratch
  below sda1
device loop0
  path /sys/devices/virtual/block/loop0
  dev 7:0
  size 204800
  loop/backing_file /raid/image.ext4
device vda
  path /sys/devices/pci0000:00/0000:00:04.0/virtio1/block/vda
  dev 254:0
  size 536870912
  queue/rotational 1
  hangs /sys/devices/pci0000:00/0000:00:04.0/virtio1
end
"""
NVME_LOG = """\
{
  "critical_warning" : 0,
  "temperature" : 311,
  "avail_spare" : 100,
  "spare_thresh" : 10,
  "percent_used" : 3,
  "endurance_grp_critical_warning_summary" : 0,
  "data_units_read" : 180122345,
  "unsafe_shutdowns" : 12,
  "media_errors" : 0,
  "num_err_log_entries" : 0,
  "temperature_sensor_1" : 311
}
"""
#: The same for people.
NVME_LOG_TEXT = """\
Smart Log for NVME device:nvme0 namespace-id:ffffffff
critical_warning\t\t\t: 0
temperature\t\t\t\t: 38 \u00b0C (311 K)
available_spare\t\t\t\t: 100%
available_spare_threshold\t\t: 10%
percentage_used\t\t\t\t: 3%
endurance group critical warning summary: 0
Data Units Read\t\t\t\t: 180,122,345 (92.22 TB)
media_errors\t\t\t\t: 0
num_err_log_entries\t\t\t: 0
Temperature Sensor 1\t\t\t: 38 \u00b0C (311 K)
"""
SMARTCTL_NVME = """\
{
  "json_format_version": [
    1,
    0
  ],
  "smartctl": {
    "version": [
      7,
      4
    ],
    "exit_status": 0
  },
  "device": {
    "name": "/dev/nvme1",
    "type": "nvme"
  },
  "model_name": "SAMSUNG MZQL23T8HCLS-00A07",
  "smart_status": {
    "passed": true
  },
  "nvme_smart_health_information_log": {
    "critical_warning": 0,
    "temperature": 39,
    "available_spare": 100,
    "available_spare_threshold": 10,
    "percentage_used": 4,
    "media_errors": 0
  }
}
"""
SMARTCTL_SATA = """\
{
  "json_format_version": [
    1,
    0
  ],
  "device": {
    "name": "/dev/sda",
    "type": "sat"
  },
  "model_name": "ST8000NM0055-1RM",
  "smart_status": {
    "passed": true
  },
  "ata_smart_attributes": {
    "table": [
      {
        "id": 5,
        "name": "Reallocated_Sector_Ct",
        "raw": {
          "value": 8,
          "string": "8"
        }
      },
      {
        "id": 197,
        "name": "Current_Pending_Sector",
        "raw": {
          "value": 0,
          "string": "0"
        }
      }
    ]
  },
  "temperature": {
    "current": 33
  }
}
"""
DISK_HEALTH = (
    f"disk nvme0 SAMSUNG MZQL23T8HCLS-00A07\n{NVME_LOG}\ndisk nvme1\n{SMARTCTL_NVME}\n"
    f"disk sda\n{SMARTCTL_SATA}\nend\n"
)
QUOTAS = """\
Disk quotas for user alice (uid 1001):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
nas-1:/home/alice 52428800  94371840 104857600       0  120000  900000 1000000       0
      /dev/md0     2048       0       0       0      10       0       0       0
Disk quotas for usr alice (uid 1001):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
       /scratch 1073741824  9663676416 10737418240       -  400000 2000000 2200000       -
uid 1001 is using default file quota setting
end
"""
LSBLK = """\
{
   "blockdevices": [
      {"name":"nvme0n1", "maj:min":"259:0", "rm":false, "size":3840755982336, "ro":false, "type":"disk", "model":"SAMSUNG MZQL23T8HCLS-00A07", "rota":false, "sched":"none", "rq-size":1023, "ra":128, "tran":"nvme",
         "children": [
            {"name":"md0", "maj:min":"9:0", "rm":false, "size":15362481455104, "ro":false, "type":"raid0", "model":null, "rota":false, "tran":null}
         ]
      },
      {"name":"nvme1n1", "maj:min":"259:10", "rm":false, "size":3840755982336, "ro":false, "type":"disk", "model":"SAMSUNG MZQL23T8HCLS-00A07", "rota":false, "sched":"none", "rq-size":1023, "ra":128, "tran":"nvme",
         "children": [
            {"name":"md0", "maj:min":"9:0", "rm":false, "size":15362481455104, "ro":false, "type":"raid0", "model":null, "rota":false, "tran":null}
         ]
      },
      {"name":"sda", "maj:min":"8:0", "rm":false, "size":"7.3T", "ro":false, "type":"disk", "model":"ST8000NM0055-1RM", "rota":"1", "tran":"sata",
         "children": [
            {"name":"sda1", "maj:min":"8:1", "rm":false, "size":"7.3T", "ro":false, "type":"part"}
         ]
      }
   ]
}
"""  # noqa: E501

#: Probe -> its answer.
STORAGE: dict[str, str] = {
    "mounts": MOUNTS,
    "mdstat": MDSTAT,
    "block-devices": BLOCK_DEVICES,
    "disk-health": DISK_HEALTH,
    "quotas": QUOTAS,
}
#: What people record -> the probe that reads it.
RECORDED: dict[str, str] = {
    "mountinfo": MOUNTINFO,
    "mount": MOUNT,
    "nfsstat-m": NFSSTAT,
    "mdstat": MDSTAT,
    "lsblk": LSBLK,
    "smart": NVME_LOG,
    "quotas": QUOTAS.removesuffix("end\n"),
}
#: What a bench of storage tells of a directory that it tried (payload/storage/proof.py).
PROOF = """\
{"preflight": "io-bench/1", "kind": "begin", "dir": "/raid/run", "mount": "/raid", "fs": "xfs"}
{"kind": "proof", "fsync": "works", "fsync_n": 50, "fsync_s": 0.0009, "fsync_most_s": 0.004, \
"directory_fsync": "works", "read_back": "works", "flock": "works", "posix_lock": "works", \
"direct": "works", "unnamed": "works", "map": "works", "symlink": "works", "case": "kept", \
"rename": "works", "renames": 200}
{"kind": "end", "elapsed_s": 1.4}
"""
#: The same of three hosts that share it (payload/storage/seen.py).
SEEN = '{"kind": "seen", "other_hosts": "works", "hosts": 3, "other_hosts_s": 3.2}\n'
