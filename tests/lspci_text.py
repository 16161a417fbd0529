"""What lspci -vvv prints of a server with a GPU and a NIC below one switch, in few lines."""

from __future__ import annotations

HEADS = """\
0000:00:00.0 Host bridge [0600]: Intel Corporation Device [8086:3258] (rev 10)
\tCapabilities: [e0] Vendor Specific Information: Len=0c <?>

"""


def function(
    address: str, head: str, port: str, can: str, now: str, *,
    bus: str = "", driver: str = "pcieport", uesta: str = "", acs: str = "",
) -> str:  # fmt: skip
    """One function; `can` and `now` as "32 16": GT/s and lanes. `uesta`, `acs`: the flags set."""
    speed_can, width_can = can.split()
    speed, width = now.split()
    flags = ("DLP", "SDES", "TLP", "FCP", "CmpltTO", "MalfTLP", "UnsupReq", "ACSViol")
    error = " ".join(f"{flag}{'+' if flag in uesta.split() else '-'}" for flag in flags)
    control = " ".join(
        f"{flag}{'+' if flag in acs.split() else '-'}" for flag in ("SrcValid", "ReqRedir")
    )
    words = [
        "ok" if float(one) >= float(most) else "downgraded"
        for one, most in ((speed, speed_can), (width, width_can))
    ]
    buses = bus.split()
    lines = [
        f"{address} {head}",
        *(["\tBus: primary={}, secondary={}, subordinate={}, sec-latency=0".format(*buses)]
          if buses else []),
        "\tNUMA node: 0",
        "\tIOMMU group: 12",
        f"\tCapabilities: [60] Express (v2) {port}, MSI 00",
        "\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0",
        "\t\tDevCtl:\tCorrErr+ NonFatalErr+ FatalErr+ UnsupReq+",
        "\t\t\tMaxPayload 256 bytes, MaxReadReq 4096 bytes",
        f"\t\tLnkCap:\tPort #0, Speed {speed_can}GT/s, Width x{width_can}, ASPM not supported",
        f"\t\tLnkSta:\tSpeed {speed}GT/s ({words[0]}), Width x{width} ({words[1]})",
        "\tCapabilities: [100 v1] Advanced Error Reporting",
        f"\t\tUESta:\t{error}",
        f"\t\tUEMsk:\t{error.replace('+', '-')}",
        "\t\tCESta:\tRxErr+ BadTLP- BadDLLP- Rollover- Timeout- AdvNonFatalErr-",
        *(["\tCapabilities: [158 v1] Access Control Services", f"\t\tACSCtl:\t{control}"]
          if buses else []),
        f"\tKernel driver in use: {driver}",
        "",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def flat() -> str:
    """A virtual machine: a GPU and a NIC on the root bus, with no bridge above them."""
    return HEADS + "".join(
        function(address, head, "Endpoint", "32 16", "32 16", driver=driver)
        for address, head, driver in (
            (
                "0000:00:05.0",
                "3D controller [0302]: NVIDIA Corporation GH100 [10de:2330]",
                "nvidia",
            ),
            (
                "0000:00:06.0",
                "Infiniband controller [0207]: Mellanox MT2910 [15b3:1021]",
                "mlx5_core",
            ),
        )
    )


def server(
    *, gpu: str = "32 16", slot: str = "32 16", slot_can: str = "32 16", uplink: str = "32 16",
    uplink_can: str = "32 16", root_can: str = "32 16", nic: str = "32 16", uesta: str = "",
    root_uesta: str = "", acs: str = "",
) -> str:  # fmt: skip
    """Root port 15:01.0, switch 16:00.0, its ports 17:00.0 (NIC 18:00.0), 17:01.0 (GPU 19:00.0)."""
    bridge = "PCI bridge [0604]: Broadcom / LSI PEX890xx PCIe Gen 5 Switch [1000:c030] (rev b0)"
    root = "PCI bridge [0604]: Intel Corporation Device [8086:352a] (rev 04)"
    return HEADS + "".join(
        [
            function("0000:15:01.0", root, "Root Port (Slot+)", root_can, uplink,
                     bus="15 16 19", uesta=root_uesta),
            function("0000:16:00.0", bridge, "Upstream Port", uplink_can, uplink, bus="16 17 19"),
            function("0000:17:00.0", bridge, "Downstream Port (Slot+)", "32 16", nic,
                     bus="17 18 18", acs=acs),
            function("0000:17:01.0", bridge, "Downstream Port (Slot+)", slot_can, slot,
                     bus="17 19 19", acs=acs),
            function("0000:18:00.0",
                     "Ethernet controller [0200]: Mellanox Technologies MT2910 [15b3:1021]",
                     "Endpoint", "32 16", nic, driver="mlx5_core"),
            function("0000:19:00.0",
                     "3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330]"
                     " (rev a1)", "Endpoint", "32 16", gpu, driver="nvidia", uesta=uesta),
        ]
    )  # fmt: skip
