"""The hex words of Xid 74 and 144-150, as NVIDIA's catalogue reads them."""

from __future__ import annotations

import pytest

from preflight import datafiles, strict_yaml
from preflight.judge.kernel_log.nvlink_decode import decoded
from preflight.model import Result, Status
from tests.judge.test_kernel_log import judged, of, xid

NVLINK5 = [
    # code, text, status, action, what it means
    (
        144,
        "SAW_MVB Nonfatal XC0 i0 Link 00 (0x00000001 0x00000001 0x0 0x0)",
        "WARN",
        "watch",
        "handled",
    ),
    (
        144,
        "SAW_MVB Fatal XC0 i0 Link 00 (0x00000021 0x00000002 0x0 0x0)",
        "FAIL",
        "reset-gpu",
        "reset",
    ),
    (
        145,
        "RLW_REMAP Nonfatal XC0 i0 Link 00 (0x00000004 0x00000001 0x0 0x0)",
        "WARN",
        "watch",
        "154",
    ),
    (
        145,
        "RLW_REMAP Fatal XC0 i0 Link 00 (0x00000004 0x00000040 0x0 0x0)",
        "FAIL",
        "reset-gpu",
        "reset",
    ),
    (
        145,
        "RLW_RXPIPE Nonfatal XC0 i0 Link 13 (0x0409a0c2 0x00000008 0x00000001 0x0 0x00100000 0x4)",
        "WARN",
        "watch",
        "link 13",
    ),
    (
        145,
        "RLW_RXPIPE Fatal XC0 i0 Link 13 (0x0409a0c2 0x00000001)",
        "FAIL",
        "reset-gpu",
        "fatal here",
    ),
    (
        145,
        "RLW_SRC_TRACK Fatal XC0 i0 Link 00 (0x00000007 0x00000020)",
        "FAIL",
        "reset-gpu",
        "reset",
    ),
    (
        145,
        "RLW_TAGSTATE Nonfatal XC0 i0 Link 00 (0x00000008 0x80000000)",
        "WARN",
        "watch",
        "handled",
    ),
    (
        146,
        "TLW_RX/TLW_RX_PIPE0 Fatal XC0 i0 Link 00 (0x0000000a 0x00000004)",
        "FAIL",
        "reset-gpu",
        "PIPE0",
    ),
    (147, "TREX Nonfatal XC0 i0 Link 00 (0x0000000e 0x80000000)", "WARN", "watch", "handled"),
    (
        148,
        "NVLPW_CTRL/NVLPW Nonfatal XC0 i0 Link 00 (0x0000000f 0x80000000)",
        "WARN",
        "watch",
        "NVLPW",
    ),
    (
        149,
        "NETIR_BER_EVENT Nonfatal XC0 i0 Link 00 (0x00000013 0x00000001)",
        "WARN",
        "watch",
        "cable",
    ),
    (
        149,
        "NETIR_MFDE_EVENT Fatal XC0 i0 Link 00 (0x00000014 0x00000004)",
        "FAIL",
        "reset-gpu",
        "reset",
    ),
    (
        149,
        "NETIR_MFDE_EVENT Nonfatal XC0 i0 Link 00 (0x00000014 0x00000003)",
        "WARN",
        "watch",
        "handled",
    ),
    # The unit by its bits, where the line names only the block.
    (
        149,
        "NETIR Fatal XC0 i0 Link -1 (0x000fe406 0x00000000 0x0 0x0 0x0 0x0)",
        "FAIL",
        "reset-gpu",
        "NETIR_INT",
    ),
    (
        150,
        "MSE_WATCHDOG Fatal XC0 i0 Link 00 (0x00000000 0x00000000)",
        "FAIL",
        "reset-gpu",
        "reset",
    ),
    # Why a link is down: bits 20-25 of the first word, before and since driver 575.
    (
        149,
        "NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 (0x021425c6 0x00000000 0x0 0x0 0x0 0x0)",
        "FAIL",
        "reset-gpu",
        "other end",
    ),
    (
        149,
        "NETIR_LINK_DOWN Fatal XC0 i0 Link 02 (0x00200011 0x00000000)",
        "FAIL",
        "reset-gpu",
        "signal",
    ),
    # Whatever the second word says.
    (
        149,
        "NETIR_LINK_DOWN Fatal XC0 i0 Link 02 (0x00200011 0x00000007)",
        "FAIL",
        "reset-gpu",
        "signal",
    ),
    # One bit more in the first word makes it worse, another one before driver 575 than since.
    *(
        (145, f"RLW_RXPIPE Nonfatal XC1 i0 Link 10 ({info} {error} 0x0 0x0)", *verdict)
        for info, error, verdict in (
            ("0x00000006", "0x00000002", ("WARN", "watch", "handled")),
            ("0x00000086", "0x00000002", ("FAIL", "reset-gpu", "needs a reset")),
            ("0x000000c2", "0x00000002", ("WARN", "watch", "handled")),
            ("0x000004c2", "0x00000001", ("FAIL", "reset-gpu", "needs a reset")),
            ("0x00000086", "0x00000008", ("WARN", "watch", "handled")),
        )
    ),
    (
        149,
        "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x02a001c6 0x00000000)",
        "FAIL",
        "reset-gpu",
        "cable",
    ),
    (
        149,
        "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x00f001c6 0x00000000)",
        "FAIL",
        "reset-gpu",
        "user",
    ),
    (149, "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x026001c6 0x00000000)", "WARN", "watch", "user"),
    (149, "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x028001c6 0x00000000)", "WARN", "watch", "host"),
    (
        149,
        "NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x03f001c6 0x00000000)",
        "FAIL",
        "reset-gpu",
        "not known",
    ),
]


@pytest.mark.parametrize(("code", "text", "status", "action", "means"), NVLINK5)
def test_nvlink5(code: int, text: str, status: str, action: str, means: str) -> None:
    found = decoded("nvlink5", code, text, again=False, alone=True)
    assert found is not None
    assert (found.status.value, found.action.value) == (status, action)
    assert means in found.means


UNKNOWN = ["RLW_CTRL Fatal XC0 i0 Link 05 (0x1)", "a new form 0x1 0x2", "",
           "RLW_CTRL Nonfatal XC0 i0 Link 05 (0x62 0x00000002)"]  # fmt: skip


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_cannot_be_decoded_is_none_and_never_passes(text: str) -> None:
    assert decoded("nvlink5", 145, text, again=False, alone=True) is None
    found = of(judged(xid("9.0", 145, rest=text)), "gpu.xid.145")
    assert found.status in (Status.WARN, Status.FAIL)
    assert "not decoded" in found.reason


def line(words: str, link: int = 6) -> str:
    return f"pid='<unknown>', name=<unknown>, NVLink: fatal error detected on link {link}({words})"


def test_74(words: str = "0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0") -> None:
    found = of(judged(xid("9.0", 74, rest=line(words))), "gpu.xid.74")
    assert (found.status.value, found.action.value) == ("FAIL", "reset-gpu")
    assert "link 6, register 0 bit 16: perhaps hardware" in found.reason


def bits(register: int, *which: int) -> str:
    words = [0] * 7
    words[register] = sum(1 << bit for bit in which)
    return ", ".join(hex(word) for word in words)


XID74 = [
    ((0, 0), "WARN", "watch", "ignored"),
    ((0, 20), "FAIL", "inspect", "none is seen"),
    ((0, 20, 4), "FAIL", "reset-gpu", "parity"),
    ((0, 21), "FAIL", "inspect", "weak signal"),
    ((2, 13), "FAIL", "inspect", "not expected"),
    ((3, 16), "FAIL", "inspect", "none is seen"),
    ((3, 18), "FAIL", "reset-gpu", "fabric"),
    ((4, 20), "WARN", "watch", "corrected"),
    ((4, 19), "FAIL", "reset-gpu", "parity"),
    ((0, 31), "FAIL", "reset-gpu", "not known"),
    ((0,), "FAIL", "reset-gpu", "no bit"),
]


@pytest.mark.parametrize(("which", "status", "action", "means"), XID74)
def test_registers(which: tuple[int, ...], status: str, action: str, means: str) -> None:
    found = of(judged(xid("9.0", 74, rest=line(bits(*which)))), "gpu.xid.74")
    assert (found.status.value, found.action.value) == (status, action)
    assert means in found.reason


def twice(later_s: float, link: int = 6) -> Result:
    text = xid("9.0", 74, rest=line(bits(0, 4))) + xid(9 + later_s, 74, rest=line(bits(0, 4), link))
    return of(judged(text), "gpu.xid.74")


def test_the_same_fault_twice_on_one_link_in_a_day() -> None:
    assert twice(3600.0).action.value == "inspect"
    assert twice(3600.0, link=7).action.value == "reset-gpu"
    assert twice(0.001).action.value == "reset-gpu"


def test_a_secondary_error_gives_way_to_another_xid() -> None:
    text = xid("9.0", 48) + xid("9.5", 74, rest=line(bits(0, 20)))
    assert of(judged(text), "gpu.xid.74").status is Status.WARN


def test_the_tables_are_sound() -> None:
    root = datafiles.root() / "checks" / "data"
    tables = {
        name: strict_yaml.load((root / f"{name}.yaml").read_text(encoding="utf-8"), name)
        for name in ("xid74", "nvlink5")
    }
    bits = [(row["register"], bit) for row in tables["xid74"]["rows"] for bit in row["bits"]]
    assert len(bits) == len(set(bits))
    units = {row["unit"] for row in tables["nvlink5"]["rows"]}
    assert set(tables["nvlink5"]["names"].values()) <= units
    codes = [code for row in tables["nvlink5"]["reasons"] for code in row["codes"]]
    assert len(codes) == len(set(codes))
