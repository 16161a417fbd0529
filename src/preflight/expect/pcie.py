"""What a PCIe link carries."""

from __future__ import annotations

#: The share of the bits on the wire that is data. 8b/10b up to 5 GT/s, 128b/130b up to 32 GT/s (PCI
#: Express Base Specification 3.0 and later, 4.2); 64 GT/s sends flits of 256 bytes with 242 for
#: packets (6.0, 4.2.3).
_CODING = ((5.0, 8 / 10), (32.0, 128 / 130))
_FLITS = 242 / 256


def link_gbps(speed_gtps: float, width: int) -> float:
    """GB/s of one direction: GT/s x lanes x coding / 8 bits. Gen3 x16 15.8, Gen4 31.5, Gen5 63."""
    coding = next((share for most, share in _CODING if speed_gtps <= most), _FLITS)
    return round(speed_gtps * width * coding / 8, 2)
