"""What a job was asked to do: fio's options, with its defaults where any option is told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from preflight.model import NOT_IN_INPUT, Known, Missing

#: Engines that have one request at a time in each process, whatever iodepth says (fio's HOWTO,
#: "I/O engine").
SYNCHRONOUS = frozenset(
    {"sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice", "falloc", "ftruncate",
     "filecreate", "filestat", "filedelete", "rdma", "cpuio", "net"}
)  # fmt: skip
#: Engines that store nothing.
NO_DEVICE = frozenset({"null", "cpuio", "net", "netsplice"})
_SIZE = re.compile(r"(\d{1,18})\s*([kmgtp]?)(i?)b?", re.IGNORECASE)
_TIME = re.compile(r"(\d{1,9})(us|usec|ms|msec|s|m|h|d|)", re.IGNORECASE)
_SECONDS = {"us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "": 1.0, "m": 60.0,
            "h": 3600.0, "d": 86400.0}  # fmt: skip
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
#: Names that an option has besides.
_ALSO = {"rw": "readwrite", "bs": "blocksize", "bsrange": "blocksize_range"}
_UNTOLD = Missing("not-in-input", "this report of fio does not tell the options of its jobs")
_SEVERAL = Missing("not-applicable", "its blocks are of several sizes")


class Asked:
    """The options of one job, with the global ones. `told`: whether the report has any."""

    def __init__(self, options: Mapping[str, Any], told: bool) -> None:
        self.options = {str(name): str(value) for name, value in options.items()}
        self.told = told

    def text(self, name: str, default: str) -> Known[str]:
        """As it was written; Missing where the report tells no options."""
        found = self.options.get(name, self.options.get(_ALSO.get(name, name)))
        if found is None:
            return default if self.told else _UNTOLD
        return found

    def count(self, name: str, default: int) -> Known[int]:
        """A whole number."""
        found = self.text(name, str(default))
        if isinstance(found, Missing):
            return found
        return int(found) if re.fullmatch(r"\d{1,9}", found) else NOT_IN_INPUT

    def on(self, name: str, *, default: bool = False) -> Known[bool]:
        """A switch: 1, or nothing behind its name."""
        found = self.text(name, str(int(default)))
        return found if isinstance(found, Missing) else found not in ("0", "none")

    def direct(self) -> Known[bool]:
        """Past the page cache."""
        buffered = self.options.get("buffered")
        if "direct" not in self.options and buffered is not None:
            return buffered == "0"
        return False if self.text("ioengine", "psync") == "mmap" else self.on("direct")

    def block(self) -> Known[str]:
        """Sizes of its blocks in the user's words."""
        for name in ("bssplit", "bsrange"):
            found = self.text(name, "")
            if isinstance(found, str) and found:
                return found
        return self.text("bs", "4k")

    def block_bytes(self, way: str) -> Known[int]:
        """Of requests of one way: `bs=8k,4k` is 8k to read and 4k to write and trim."""
        several = [self.text(name, "") for name in ("bssplit", "bsrange", "bs_unaligned")]
        if any(isinstance(one, str) and one not in ("", "0") for one in several):
            return _SEVERAL
        found = self.text("bs", "4k")
        if isinstance(found, Missing):
            return found
        sizes = re.split(r"[,/]", found)
        at = ("read", "write", "trim").index(way)
        return self.bytes_of(sizes[min(at, len(sizes) - 1)] or "4k")

    def size_bytes(self) -> Known[int]:
        """What one process works on; a share of a device's size is not known here."""
        found = self.text("size", "") or self.text("filesize", "")
        if isinstance(found, Missing):
            return found
        return self.bytes_of(found) if found else NOT_IN_INPUT

    def runtime_s(self) -> float:
        """The time that it was given, 0 where none; without a unit in seconds."""
        match = _TIME.fullmatch(str(self.options.get("runtime", "")).strip())
        return float(match[1]) * _SECONDS[match[2].lower()] if match else 0.0

    def bytes_of(self, text: str) -> Known[int]:
        """A size in fio's words: with kb_base=1024, as it is by default, k is 1024 and ki is 1000
        (fio's HOWTO, "Parameter types")."""
        match = _SIZE.fullmatch(text.strip())
        if match is None:
            return NOT_IN_INPUT
        plain, other = (1000, 1024) if self.options.get("kb_base") == "1000" else (1024, 1000)
        power = _POWERS[match[2].lower()]
        return int(match[1]) * int((other if match[3] else plain) ** power)

    def depth_reached(self) -> Known[int]:
        """Requests that each process has on their way at most."""
        engine, depth = self.text("ioengine", "psync"), self.count("iodepth", 1)
        if isinstance(engine, Missing) or isinstance(depth, Missing):
            return engine if isinstance(engine, Missing) else depth
        # Linux' native AIO waits within io_submit(2) where the page cache is in between.
        waits = engine == "libaio" and self.direct() is False
        return 1 if engine in SYNCHRONOUS or waits else max(1, depth)
