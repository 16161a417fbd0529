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
# How many errors a line of EDAC tells of.
_MANY = r"(?:(?P<count>[1-9]\d{0,8}) )?"
_NVRM_GPU = rf"NVRM: (?:GPU ?(?P<subject>{BDF}): )?"


class Kind(Struct, frozen=True):
    """A message that makes an event; the group `subject` says whom it is about, `count` how many
    it tells of. One of `needles` stands in every such message.

    `secondary` tells the same fault again: it counts only where no first line tells it. `of_gpu`:
    the subject is a GPU, in the form of Gpu.bus_id.
    """

    kind: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    programs: frozenset[str] = KERNEL
    secondary: bool = False
    of_gpu: bool = False


#: Every message that makes an event. The formats are those of the kernel's sources.
KINDS = (
    # NVIDIA's driver, beside Xid 79 or in its place
    Kind("off-bus", ("fallen off the bus",), re.compile(
        rf"NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?(?P<subject>{BDF}).*fallen off the bus"),
        of_gpu=True),
    Kind("off-bus", ("lost from the bus",), re.compile(rf"{_NVRM_GPU}.*GPU lost from the bus"),
        secondary=True, of_gpu=True),
    # NVIDIA's driver, when it starts a GPU
    Kind("init-failed", ("RmInitAdapter failed", "rm_init_adapter"), re.compile(
        rf"{_NVRM_GPU}(?:RmInitAdapter failed|rm_init_adapter.* failed)"), of_gpu=True),
    Kind("init-failed", ("is 0M @ 0x0",), re.compile(
        rf"NVRM: BAR\d is 0M @ 0x0 \(PCI:(?P<subject>{BDF})\)"),
        of_gpu=True),
    # drivers/base/dd.c, call_driver_probe
    Kind("init-failed", (
        "nvidia: probe of", "probe with driver nvidia", "nvidia probe"), re.compile(
        rf"nvidia:? (?:probe of )?(?P<subject>{BDF}):?(?: probe with driver nvidia)? failed with"),
        of_gpu=True),
    Kind("init-failed", ("opy vbios", "robe routine "), re.compile(
        rf"{_NVRM_GPU}(?:[Ff]ailed to copy vbios|The NVIDIA probe routine failed)"),
        secondary=True, of_gpu=True),
    # NVIDIA's driver, when it finds no GPU for itself (nv.c, nvidia_init_module)
    Kind("no-gpu", (
        "NVRM: No", "robe routine "), re.compile(
        r"NVRM: (?:No NVIDIA (?:GPU found|graphics adapter|devices probed)"
        r"|None of the NVIDIA \w+(?: \w+)? were initialized"
        r"|The NVIDIA probe routine was not called for \d+ device)")),
    Kind("gpu-unsupported", ("installed in this ",), re.compile(
        r"NVRM: (?:The NVIDIA .*)?installed in this (?:vGPU host )?system "
        r"(?:is (?:not )?supported|requires use)")),
    # kernel/module: check_version, check_modinfo, mod_verify_sig; the kernel's lockdown
    Kind("module-refused", (
        "version magic", "disagrees about version of symbol", "nsigned module", "unavailable key",
        ), re.compile(
        r"nvidia(?:_drm|_modeset|_uvm)?: (?:version magic|disagrees about version of symbol)"
        r"|Loading of (?:unsigned module|module with unavailable key) is rejected"
        r"|Lockdown: .*unsigned module loading is restricted")),
    # drivers/base/firmware_loader, for NVIDIA's driver and not for nouveau
    Kind("gpu-firmware", ("Direct firmware load for nvidia/",), re.compile(
        rf"nvidia (?P<subject>{BDF}): Direct firmware load for nvidia/\S*gsp\S* failed"),
        of_gpu=True),
    Kind("switch-init", ("ailed to initialize",), re.compile(
        r"(?P<subject>nvidia-nvswitch\d+): [Ff]ailed to initialize")),
    # drivers/iommu/amd/init.c, iommu_print_event; drivers/iommu/intel/dmar.c
    Kind("iommu-fault", ("IO_PAGE_FAULT",), re.compile(
        rf"\S+ (?P<subject>{BDF}): AMD-Vi: Event logged \[IO_PAGE_FAULT"), of_gpu=True),
    Kind("iommu-fault", ("DMAR: [",), re.compile(
        r"DMAR: \[\w[^\]]*\] Request device \[(?P<subject>[\da-fA-F:.]{7,12})\]"), of_gpu=True),
    Kind("api-mismatch", ("API mismatch",), re.compile(r"NVRM: API mismatch")),
    # and the fabric manager of another version; long lines may be cut at the terminal's width
    Kind("fabric-mismatch", ("driver interface version",), re.compile(
        r"(?:[Ff]abric ?[Mm]anager )?NVIDIA GPU driver interface version \S+ "
        r"(?:don't|does not) match"),
        programs=frozenset({"nv-fabricmanager"})),
    # drivers/pci/pci.c, __pcie_print_link_status
    Kind("pcie-limited", ("bandwidth, limited by",), re.compile(
        rf"\S+ (?P<subject>{BDF}): [\d.]+ Gb/s available PCIe bandwidth, limited by ")),
    Kind("pcie-link-down", ("Slot(",), re.compile(  # drivers/pci/hotplug/pciehp_ctrl.c
        rf"(?:pcieport |pciehp )?(?P<subject>{BDF})\S* (?:pciehp: )?Slot\([\w-]+\): "
        r"(?:Link Down|Card not present)")),
    Kind("nic-power", ("nsufficient power on",), re.compile(  # mlx5/core/events.c, mlx5_pcie_event
        rf"mlx5_core (?P<subject>{BDF}):.*[Ii]nsufficient power on the PCIe slot")),
    Kind("nic-unplugged", ("Cable unplugged",), re.compile(  # mlx5/core/events.c, port_module
        rf"mlx5_core (?P<subject>{BDF}): Port module event.*, Cable unplugged")),
    Kind("nic-cable", ("Cable error",), re.compile(  # the same function
        rf"mlx5_core (?P<subject>{BDF}): Port module event.*, Cable error, ")),
    # mlx5/core/health.c; cmd.c, wait_func
    Kind("nic-health", (
        "health compromised", "Health issue", "atal error ", "health recovery",
        "Will cause a leak",
        ), re.compile(
        rf"mlx5_core (?P<subject>{BDF}):.*(?:health compromised|Health issue observed"
        r"|[Ff]atal error (?:\d+ )?detected|timeout\. Will cause a leak of a command"
        r"|health recovery (?:flow aborted|failed))")),
    Kind("link-flap", ("ost carrier", "ained carrier"), re.compile(  # systemd, networkd-link.c
        rf"(?P<subject>{_NO_LINK}[^\s:]+): (?:[Ll]ost|[Gg]ained) carrier"),
        KERNEL | {"systemd-networkd"}),
    # mlx5 "Link down"; most others "NIC Link is Down"
    Kind("link-flap", (
        "Link up", "Link Up", "Link down", "Link Down", "Link is "), re.compile(
        rf"(?:.*?\s)?(?P<subject>{_NO_LINK}[\w.@-]+):? (?:NIC )?Link (?:is )?(?:[Uu]p|[Dd]own)\b")),
    # nvidia-peermem.c, nv_get_p2p_free_callback
    Kind("peermem-invalid", ("invalid context",), re.compile(
        r"(?:nvidia[-_]peermem|nv_peer_mem)\b.*invalid context")),
    Kind("segfault-cuda", ("segfault at",), re.compile(  # arch/x86/mm/fault.c, show_signal_msg
        rf"(?P<subject>.+?)\[\d+\]: segfault at .* in {_LIBRARIES}")),
    # arch/x86/kernel/traps.c, show_signal
    Kind("segfault-cuda", ("general protection",), re.compile(
        rf"traps: (?P<subject>.+?)\[\d+\] general protection fault\b.* in {_LIBRARIES}")),
    Kind("oom-kill", ("ut of memory: Kill",), re.compile(  # mm/oom_kill.c
        r"(?:Memory cgroup out|Out) of memory: Kill(?:ed)? process \d+,? \((?P<subject>[^)]*)\)")),
    Kind("hung-task", ("blocked for more than",), re.compile(  # kernel/hung_task.c
        r"INFO: task (?P<subject>.+):\d+ blocked for more than \d+ seconds")),
    # kernel/watchdog.c, watchdog_perf.c; kernel/rcu/tree_stall.h
    Kind("lockup", (
        "soft lockup", "hard LOCKUP", "detected stall", "detected expedited stall"), re.compile(
        r"(?:watchdog: )?BUG: soft lockup|(?:NMI )?watchdog: .*hard LOCKUP"
        r"|(?:rcu: )?INFO: rcu_\w+ (?:self-)?detected .*stall")),
    # arch/x86/mm/fault.c; lib/bug.c; arch/x86/kernel/dumpstack.c
    Kind("oops", (
        "BUG: unable", "BUG: kernel NULL", "kernel BUG at", "Oops", "general protection",
        ), re.compile(
        r"BUG: (?:unable to handle|kernel NULL)|kernel BUG at |(?:Internal error: )?Oops:? "
        r"|general protection fault\b.*\[#\d+\]")),
    # drivers/tty/sysrq.c; drivers/misc/lkdtm; test modules
    Kind("panic-asked", ("Kernel panic",), re.compile(
        r"Kernel panic - not syncing: (?:sysrq triggered crash|dumptest|Test panic)")),
    Kind("panic", ("Kernel panic",), re.compile(r"Kernel panic - not syncing: ")),  # kernel/panic.c
    # arch/x86/kernel/cpu/mce; drivers/firmware/efi/cper.c
    Kind("mce", ("Hardware Error]",), re.compile(
        r"(?:mce: )?(?:\{\d+\})?\[Hardware Error\]: "
        r"(?:event severity: |Uncorrected|.*Machine Check(?: Exception)?: )")),
    Kind("mce", ("Hardware Error]",), re.compile(
        r"mce: \[Hardware Error\]: Machine check events logged"),
        secondary=True),
    # the module's label stands in the message, if it has one
    Kind("edac-uncorrected", ("EDAC MC",), re.compile(
        rf"EDAC MC\d+: {_MANY}UE .{{0,80}}? on (?!any memory|unknown)(?P<subject>\S+) \(")),
    Kind("edac-uncorrected", ("EDAC MC",), re.compile(  # drivers/edac/edac_mc.c, edac_ue_error
        rf"EDAC (?P<subject>MC\d+): {_MANY}UE\b")),
    # mm/memory-failure.c
    Kind("edac-uncorrected", ("Memory failure: ",), re.compile(r"Memory failure: 0x[\da-f]+: "),
        secondary=True),
    Kind("edac-corrected", ("EDAC MC",), re.compile(
        rf"EDAC MC\d+: {_MANY}CE .{{0,80}}? on (?!any memory|unknown)(?P<subject>\S+) \(")),
    Kind("edac-corrected", ("EDAC MC",), re.compile(  # edac_ce_error
        rf"EDAC (?P<subject>MC\d+): {_MANY}CE\b")),
    # arch/x86 (drivers/thermal/intel) therm_throt.c
    Kind("cpu-throttled", ("above threshold",), re.compile(
        r"(?:mce: )?CPU\d+: (?:Core|Package) temperature (?:is )?above threshold")),
    Kind("storage-controller", ("nvme nvme",), re.compile(  # drivers/nvme/host/pci.c
        r"nvme (?P<subject>nvme\d+): (?:controller is down|Device not ready|Removing after probe"
        r"|Disabling device after|I/O (?:tag )?\d+ .*timeout)")),
    Kind("storage-controller", ("offline device",), re.compile(  # drivers/scsi/scsi_lib.c
        r"sd (?P<subject>[\d:]+): (?:\[\w+\] )?rejecting I/O to offline device")),
    Kind("io-error", (" error, dev ",), re.compile(  # block/blk-core.c, blk_print_req_error
        rf"(?:\w+: )?(?:critical medium|critical target|critical space allocation|I/O) error, "
        rf"dev (?P<subject>{_NO_DISK}[\w-]+), sector")),
    Kind("array-degraded", ("Disk failure on",), re.compile(  # drivers/md/raid*.c
        r"md/\w+:(?P<subject>\w+): Disk failure on ")),
    # fs/ext4/super.c, ext4_handle_error
    Kind("read-only", ("ing filesystem read-only",), re.compile(
        rf"EXT[234]-fs (?:error )?\((?:device )?(?P<subject>(?!device ){_NO_DISK}[^):]+)\).*"
        r"Remounting filesystem read-only")),
    # fs/xfs/xfs_fsops.c, xfs_do_force_shutdown
    Kind("read-only", (
        "hutting down filesystem", "has been shut", "xfs_do_force_shutdown"), re.compile(
        rf"XFS \((?P<subject>{_NO_DISK}[^)]+)\): .*(?:[Ss]hutting down filesystem"
        r"|Filesystem has been shut|xfs_do_force_shutdown)")),
    Kind("read-only", ("forced readonly",), re.compile(  # fs/btrfs/super.c
        rf"BTRFS\b.* \(device (?P<subject>{_NO_DISK}[^):]+)[^)]*\).* forced readonly")),
    Kind("aer-uncorrected", ("severity=",), re.compile(  # drivers/pci/pcie/aer.c, aer_print_error
        rf"(?:\S+ )?(?P<subject>{BDF}): (?:AER: )?PCIe Bus Error: severity=Uncorrect")),
    Kind("aer-uncorrected", ("AER: ",), re.compile(  # the root port's notice of it
        rf".*AER: (?:Multiple )?Uncorrect\w+ .*error .*\b(?P<subject>{BDF})$"), secondary=True),
    Kind("aer-corrected", ("severity=",), re.compile(
        rf"(?:\S+ )?(?P<subject>{BDF}): (?:AER: )?PCIe Bus Error: severity=Correct")),
    Kind("aer-corrected", ("AER: ",), re.compile(
        rf".*AER: (?:Multiple )?Correct\w+ .*error .*\b(?P<subject>{BDF})$")),
    Kind("pci-lost", ("power state from",), re.compile(  # drivers/pci/pci.c, pci_power_up
        rf"\S+ (?P<subject>{BDF}): "
        r"(?:Unable to|can't) change power state from \w+ to D0.*inaccessible")),
    Kind("gpu-locked", ("RC watchdog: GPU",), re.compile(  # NVIDIA's driver, krcWatchdog
        rf"{_NVRM_GPU}.*RC watchdog: GPU is probably locked"), of_gpu=True),
    Kind("pcie-contained", ("DPC: containment event",), re.compile(  # drivers/pci/pcie/dpc.c
        rf"(?:pcieport )?(?P<subject>{BDF}): DPC: containment event")),
    Kind("nic-hot", ("igh temperature on sensors",), re.compile(  # mlx5/core/events.c, temp_warn
        rf"mlx5_core (?P<subject>{BDF}):.*High temperature on sensors")),
    Kind("network-storage", (" not responding, ",), re.compile(  # fs/nfs, net/sunrpc
        r"(?:nfs: )?server (?P<subject>\S+) not responding, (?:still trying|timed out)")),
    Kind("network-storage", ("in progress operations",), re.compile(  # lustre/ptlrpc/import.c
        r"Lustre(?:Error)?: .*?(?:Connection to|evicted by) (?P<subject>[\w.-]+).*"
        r"in progress operations using this service")),
)  # fmt: skip

#: syslogd's line in place of the one above it.
AGAIN = "last message repeated "
#: Lines that tell of messages which are not in the log.
LEFT_OUT = ("kernel messages", " suppressed", "to rate-limiting")
#: Looked for beside those of the kinds: Xids and SXids, JSON that holds a message as bytes, and the
#: line that names the GPU of "fallen off the bus" below it.
_MORE_NEEDLES = (
    "Xid",
    "XID ",
    AGAIN,
    *LEFT_OUT,
    "detected NVSwitch",
    '"MESSAGE":[',
    '"MESSAGE": [',
    "NVRM: The NVIDIA GPU",
)

#: What to look for in the whole text: no line without one of these is an event. Most logs hold few;
#: plain searches take two thirds of the time of one pattern with all of them as alternatives
#: (250 KB: 1.9 and 3.0 ms).
NEEDLES = tuple(dict.fromkeys((*_MORE_NEEDLES, *(one for kind in KINDS for one in kind.needles))))
