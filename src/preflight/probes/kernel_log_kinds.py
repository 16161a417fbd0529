"""The messages that make a kernel event, as a table: kind, pattern, who writes it."""

from __future__ import annotations

import re

from msgspec import Struct

BDF = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-7])?"

KERNEL = frozenset({"kernel"})
_LIBRARIES = r"lib(?:nccl|cu(?:da|blas|dnn|fft|sparse|rand|solver|pti|file)|nv|torch|c10|caffe2)"
# Ends of containers and virtual machines come and go with them: no link of the machine.
_NO_LINK = r"(?!docker|br-|veth|cali|cni|cilium|flannel|lxc|virbr|vnet|tap|tun|vxlan|kube|lo\b)"
# Neither do optical drives, floppies and images tell of storage that a job uses.
_NO_DISK = r"(?!loop|sr\d|fd\d)"
_NVRM_GPU = rf"NVRM: (?:GPU ?(?P<subject>{BDF}): )?"


class Kind(Struct, frozen=True):
    """A message that makes an event; the group `subject` says whom it is about.

    `secondary` tells the same fault again: it counts only where no first line tells it. `of_gpu`:
    the subject is a GPU, in the form of Gpu.bus_id.
    """

    kind: str
    pattern: re.Pattern[str]
    programs: frozenset[str] = KERNEL
    secondary: bool = False
    of_gpu: bool = False


#: Every message that makes an event. The formats are those of the kernel's sources.
KINDS = (
    Kind("off-bus", re.compile(  # NVIDIA's driver, beside Xid 79 or in its place
        rf"NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?(?P<subject>{BDF}).*fallen off the bus"),
        of_gpu=True),
    Kind("off-bus", re.compile(rf"{_NVRM_GPU}.*GPU lost from the bus"),
        secondary=True, of_gpu=True),
    Kind("init-failed", re.compile(  # NVIDIA's driver, when it starts a GPU
        rf"{_NVRM_GPU}(?:RmInitAdapter failed|rm_init_adapter.* failed)"), of_gpu=True),
    Kind("init-failed", re.compile(rf"NVRM: BAR\d is 0M @ 0x0 \(PCI:(?P<subject>{BDF})\)"),
        of_gpu=True),
    Kind("init-failed", re.compile(  # drivers/base/dd.c, call_driver_probe
        rf"nvidia:? (?:probe of )?(?P<subject>{BDF}):?(?: probe with driver nvidia)? failed with"),
        of_gpu=True),
    Kind("init-failed", re.compile(
        rf"{_NVRM_GPU}(?:[Ff]ailed to copy vbios|The NVIDIA probe routine failed)"),
        secondary=True, of_gpu=True),
    Kind("api-mismatch", re.compile(r"NVRM: API mismatch")),
    Kind("pcie-limited", re.compile(  # drivers/pci/pci.c, __pcie_print_link_status
        rf"\S+ (?P<subject>{BDF}): [\d.]+ Gb/s available PCIe bandwidth, limited by ")),
    Kind("pcie-link-down", re.compile(  # drivers/pci/hotplug/pciehp_ctrl.c
        rf"(?:pcieport |pciehp )?(?P<subject>{BDF})\S* (?:pciehp: )?Slot\([\w-]+\): "
        r"(?:Link Down|Card not present)")),
    Kind("nic-power", re.compile(  # mlx5/core/events.c, mlx5_pcie_event
        rf"mlx5_core (?P<subject>{BDF}):.*[Ii]nsufficient power on the PCIe slot")),
    Kind("nic-unplugged", re.compile(  # mlx5/core/events.c, port_module
        rf"mlx5_core (?P<subject>{BDF}): Port module event.*, Cable unplugged")),
    Kind("nic-health", re.compile(  # mlx5/core/health.c
        rf"mlx5_core (?P<subject>{BDF}):.*(?:health compromised|Health issue observed"
        r"|[Ff]atal error \d+ detected|health recovery (?:flow aborted|failed))")),
    Kind("link-flap", re.compile(  # systemd, networkd-link.c
        rf"(?P<subject>{_NO_LINK}[^\s:]+): (?:[Ll]ost|[Gg]ained) carrier"),
        KERNEL | {"systemd-networkd"}),
    Kind("link-flap", re.compile(  # mlx5 "Link down"; most others "NIC Link is Down"
        rf"(?:.*?\s)?(?P<subject>{_NO_LINK}[\w.@-]+):? (?:NIC )?Link (?:is )?(?:[Uu]p|[Dd]own)\b")),
    Kind("peermem-invalid", re.compile(  # nvidia-peermem.c, nv_get_p2p_free_callback
        r"(?:nvidia[-_]peermem|nv_peer_mem)\b.*invalid context")),
    Kind("segfault-cuda", re.compile(  # arch/x86/mm/fault.c, show_signal_msg
        rf"(?P<subject>.+?)\[\d+\]: segfault at .* in {_LIBRARIES}")),
    Kind("segfault-cuda", re.compile(  # arch/x86/kernel/traps.c, show_signal
        rf"traps: (?P<subject>.+?)\[\d+\] general protection fault\b.* in {_LIBRARIES}")),
    Kind("oom-kill", re.compile(  # mm/oom_kill.c
        r"(?:Memory cgroup out|Out) of memory: Kill(?:ed)? process \d+,? \((?P<subject>[^)]*)\)")),
    Kind("hung-task", re.compile(  # kernel/hung_task.c
        r"INFO: task (?P<subject>.+):\d+ blocked for more than \d+ seconds")),
    Kind("lockup", re.compile(  # kernel/watchdog.c, watchdog_perf.c; kernel/rcu/tree_stall.h
        r"(?:watchdog: )?BUG: soft lockup|(?:NMI )?watchdog: .*hard LOCKUP"
        r"|(?:rcu: )?INFO: rcu_\w+ (?:self-)?detected .*stall")),
    Kind("oops", re.compile(  # arch/x86/mm/fault.c; lib/bug.c; arch/x86/kernel/dumpstack.c
        r"BUG: (?:unable to handle|kernel NULL)|kernel BUG at |(?:Internal error: )?Oops:? "
        r"|general protection fault\b.*\[#\d+\]")),
    Kind("panic-asked", re.compile(  # drivers/tty/sysrq.c; drivers/misc/lkdtm; test modules
        r"Kernel panic - not syncing: (?:sysrq triggered crash|dumptest|Test panic)")),
    Kind("panic", re.compile(r"Kernel panic - not syncing: ")),  # kernel/panic.c
    Kind("mce", re.compile(  # arch/x86/kernel/cpu/mce; drivers/firmware/efi/cper.c
        r"(?:mce: )?(?:\{\d+\})?\[Hardware Error\]: "
        r"(?:event severity: |Uncorrected|.*Machine Check(?: Exception)?: )")),
    Kind("mce", re.compile(r"mce: \[Hardware Error\]: Machine check events logged"),
        secondary=True),
    Kind("edac-uncorrected", re.compile(  # the module's label stands in the message, if it has one
        r"EDAC MC\d+: (?:[1-9]\d* )?UE .{0,80}? on (?!any memory|unknown)(?P<subject>\S+) \(")),
    Kind("edac-uncorrected", re.compile(  # drivers/edac/edac_mc.c, edac_ue_error
        r"EDAC (?P<subject>MC\d+): (?:[1-9]\d* )?UE\b")),
    Kind("edac-uncorrected", re.compile(r"Memory failure: 0x[\da-f]+: "),  # mm/memory-failure.c
        secondary=True),
    Kind("edac-corrected", re.compile(
        r"EDAC MC\d+: (?:[1-9]\d* )?CE .{0,80}? on (?!any memory|unknown)(?P<subject>\S+) \(")),
    Kind("edac-corrected", re.compile(  # edac_ce_error
        r"EDAC (?P<subject>MC\d+): (?:[1-9]\d* )?CE\b")),
    Kind("cpu-throttled", re.compile(  # arch/x86 (drivers/thermal/intel) therm_throt.c
        r"(?:mce: )?CPU\d+: (?:Core|Package) temperature (?:is )?above threshold")),
    Kind("storage-controller", re.compile(  # drivers/nvme/host/pci.c
        r"nvme (?P<subject>nvme\d+): (?:controller is down|Device not ready|Removing after probe"
        r"|Disabling device after|I/O (?:tag )?\d+ .*timeout)")),
    Kind("storage-controller", re.compile(  # drivers/scsi/scsi_lib.c
        r"sd (?P<subject>[\d:]+): (?:\[\w+\] )?rejecting I/O to offline device")),
    Kind("io-error", re.compile(  # block/blk-core.c, blk_print_req_error
        rf"(?:\w+: )?(?:critical medium|critical target|critical space allocation|I/O) error, "
        rf"dev (?P<subject>{_NO_DISK}[\w-]+), sector")),
    Kind("read-only", re.compile(  # fs/ext4/super.c, ext4_handle_error
        r"EXT[234]-fs (?:error )?\((?:device )?(?P<subject>[^):]+)\).*"
        r"Remounting filesystem read-only")),
    Kind("read-only", re.compile(  # fs/xfs/xfs_fsops.c, xfs_do_force_shutdown
        r"XFS \((?P<subject>[^)]+)\): .*(?:[Ss]hutting down filesystem|Filesystem has been shut"
        r"|xfs_do_force_shutdown)")),
    Kind("read-only", re.compile(  # fs/btrfs/super.c
        r"BTRFS\b.* \(device (?P<subject>[^):]+)[^)]*\).* forced readonly")),
    Kind("aer-uncorrected", re.compile(  # drivers/pci/pcie/aer.c, aer_print_error
        rf"(?:\S+ )?(?P<subject>{BDF}): (?:AER: )?PCIe Bus Error: severity=Uncorrect")),
    Kind("aer-uncorrected", re.compile(  # the root port's notice of it
        rf".*AER: (?:Multiple )?Uncorrect\w+ .*error .*\b(?P<subject>{BDF})$"), secondary=True),
    Kind("aer-corrected", re.compile(
        rf"(?:\S+ )?(?P<subject>{BDF}): (?:AER: )?PCIe Bus Error: severity=Correct")),
    Kind("aer-corrected", re.compile(
        rf".*AER: (?:Multiple )?Correct\w+ .*error .*\b(?P<subject>{BDF})$")),
)  # fmt: skip

#: What to look for in the whole text. Most logs hold few of these; plain searches take
#: two thirds of the time of one pattern with all of them as alternatives (250 KB: 1.9 and 3.0 ms).
NEEDLES = (
    "Xid", "detected NVSwitch", "fallen off the bus", "lost from the bus", "RmInitAdapter failed",
    "rm_init_adapter", "opy vbios", "is 0M @ 0x0", "robe routine failed", " failed with error",
    "API mismatch", "limited by", "Slot(", "nsufficient power on", "Cable unplugged",
    "ealth ", "atal error", "arrier", "Link ", "invalid context", "segfault at",
    "general protection", "ut of memory: Kill", "blocked for more than", "soft lockup",
    "hard LOCKUP", "detected stall", "detected expedited stall", "BUG", "Oops", "Kernel panic",
    "Hardware Error]", "EDAC MC", " temperature ", "Memory failure: ", "nvme nvme",
    "offline device",
    " error, dev ", "read-only", "hutting down filesystem", "has been shut",
    "xfs_do_force_shutdown", "forced readonly", "severity=", "AER: ", '"MESSAGE":[',
    '"MESSAGE": [',
)  # fmt: skip
