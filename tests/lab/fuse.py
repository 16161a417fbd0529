"""A small file system in memory, served through /dev/fuse without a library: one that has a quota,
and one whose server stops answering while a file is there.

    python -m tests.lab.fuse MOUNTPOINT [--kind fuse.sshfs] [--quota BYTES] [--hang-while FILE]

It serves until it is ended or unmounted. Only what a bench of storage asks is answered. A request
that the server has taken and does not answer holds its caller in uninterruptible sleep, as NFS
does (fuse(4); messages as in include/uapi/linux/fuse.h, version 7.31).
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import os
import select
import signal
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.conftest import require

_IN, _OUT = struct.Struct("<IIQQIIII"), struct.Struct("<IiQ")
_ATTR = struct.Struct("<6Q10I")
_MESSAGE, _MAX_WRITE = 1 << 18, 1 << 17
_SIZE_SET, _MODE_SET = 8, 1
#: Free, of so many blocks of 4 KiB.
_BLOCKS = 1 << 18
#: Requests that get no answer: FORGET, INTERRUPT, BATCH_FORGET.
_SILENT = (2, 36, 42)


class Node:
    """A file, directory or link."""

    def __init__(self, number: int, mode: int) -> None:
        self.number, self.mode = number, mode
        self.data, self.names = bytearray(), dict[bytes, "Node"]()

    def attributes(self) -> bytes:
        now, size = int(time.time()), len(self.data)
        return _ATTR.pack(self.number, size, (size + 511) // 512, now, now, now, 0, 0, 0, self.mode,
                          1, os.getuid(), os.getgid(), 0, 4096, 0)  # fmt: skip

    def entry(self) -> bytes:
        return struct.pack("<4QII", self.number, 0, 0, 0, 0, 0) + self.attributes()


class Memory:
    """Answers by the number of the request: bytes, or OSError."""

    def __init__(self, quota_bytes: int | None) -> None:
        self.nodes = {1: Node(1, stat.S_IFDIR | 0o755)}
        self.last, self.quota_bytes = 1, quota_bytes
        self.answers: dict[int, Callable[[Node, bytes], bytes]] = {
            1: self.lookup, 3: self.attributes, 4: self.change, 5: lambda node, _: bytes(node.data),
            6: self.symlink, 9: self.mkdir, 10: self.remove, 11: self.remove,
            12: lambda node, data: self.rename(node, data, 8),
            14: lambda _node, _data: bytes(16), 15: self.read, 16: self.write, 17: self.space,
            18: lambda _node, _data: b"", 26: self.start, 28: self.entries,
            35: lambda node, data: self.new(node, data[16:], data[4:8], stat.S_IFREG) + bytes(16),
            45: lambda node, data: self.rename(node, data, 16),
        }  # fmt: skip

    def start(self, _node: Node, _data: bytes) -> bytes:
        return struct.pack("<4I2H2I2HI7I", 7, 31, 1 << 17, 1 << 5, 12, 9, _MAX_WRITE, 1,
                           *[0] * 10)  # fmt: skip

    def lookup(self, node: Node, data: bytes) -> bytes:
        return self.named(node, data).entry()

    def named(self, node: Node, data: bytes) -> Node:
        found = node.names.get(data.split(b"\0")[0])
        if found is None:
            raise OSError(errno.ENOENT, "")
        return found

    def attributes(self, node: Node, _data: bytes) -> bytes:
        return bytes(16) + node.attributes()

    def change(self, node: Node, data: bytes) -> bytes:
        valid, _, _, size = struct.unpack_from("<IIQQ", data)
        if valid & _SIZE_SET:
            node.data = node.data[:size].ljust(size, b"\0")
        if valid & _MODE_SET:
            node.mode = stat.S_IFMT(node.mode) | struct.unpack_from("<I", data, 68)[0] & 0o7777
        return self.attributes(node, b"")

    def new(self, node: Node, name: bytes, mode: bytes, kind: int) -> bytes:
        self.last += 1
        made = Node(self.last, kind | struct.unpack("<I", mode)[0] & 0o7777)
        self.nodes[self.last] = node.names[name.split(b"\0")[0]] = made
        return made.entry()

    def mkdir(self, node: Node, data: bytes) -> bytes:
        return self.new(node, data[8:], data[:4], stat.S_IFDIR)

    def symlink(self, node: Node, data: bytes) -> bytes:
        name, target = data.split(b"\0")[:2]
        told = self.new(node, name, struct.pack("<I", 0o777), stat.S_IFLNK)
        node.names[name].data += target
        return told

    def remove(self, node: Node, data: bytes) -> bytes:
        if self.named(node, data).names:
            raise OSError(errno.ENOTEMPTY, "")
        del node.names[data.split(b"\0")[0]]
        return b""

    def rename(self, node: Node, data: bytes, head: int) -> bytes:
        old, new = data[head:].split(b"\0")[:2]
        moved = self.named(node, old)
        del node.names[old]
        self.nodes[struct.unpack_from("<Q", data)[0]].names[new] = moved
        return b""

    def read(self, node: Node, data: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", data)
        return bytes(node.data[offset : offset + size])

    def write(self, node: Node, data: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", data)
        used = sum(len(one.data) for one in self.below(self.nodes[1]))
        more = max(0, offset + size - len(node.data))
        if more and self.quota_bytes is not None and used + more > self.quota_bytes:
            raise OSError(errno.EDQUOT, "")
        node.data += bytes(max(0, offset - len(node.data)))
        node.data[offset : offset + size] = data[40 : 40 + size]
        return struct.pack("<II", size, 0)

    def space(self, _node: Node, _data: bytes) -> bytes:
        return struct.pack("<5Q10I", *[_BLOCKS] * 5, 4096, 255, 4096, *[0] * 7)

    def below(self, node: Node) -> Iterator[Node]:
        yield node
        for one in node.names.values():
            yield from self.below(one)

    def entries(self, node: Node, data: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", data)
        told = b""
        for at, (name, one) in enumerate(list(node.names.items())[offset:], offset + 1):
            head = struct.pack("<QQII", one.number, at, len(name), stat.S_IFMT(one.mode) >> 12)
            entry = (head + name).ljust((len(head + name) + 7) // 8 * 8, b"\0")
            if len(told + entry) > size:
                break
            told += entry
        return told


def _answered(memory: Memory, request: bytes) -> bytes:
    _, number, unique, node, *_ = _IN.unpack_from(request)
    error, told = 0, b""
    try:
        answer = memory.answers.get(number)
        if answer is None:
            raise OSError(errno.ENOSYS, "")
        told = answer(memory.nodes[node or 1], request[_IN.size :])
    except OSError as raised:
        error = -(raised.errno or errno.EIO)
    return _OUT.pack(_OUT.size + len(told), error, unique) + told


def serve(place: str, kind: str, quota_bytes: int | None, hang_while: str) -> None:
    """Until the mount is gone. What came while the server hung is answered when it does no more."""
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"lab", place.encode(), kind.encode(), 0, options.encode()):
        raise SystemExit(f"mount: {os.strerror(ctypes.get_errno())}")
    memory, waiting = Memory(quota_bytes), list[bytes]()
    while True:
        if select.select([fd], [], [], 0.05)[0]:
            try:
                request = os.read(fd, _MESSAGE)
            except FileNotFoundError:  # it was interrupted before it was taken
                continue
            except OSError:
                return
            if _IN.unpack_from(request)[1] not in _SILENT:
                waiting.append(request)
        while waiting and not (hang_while and Path(hang_while).exists()):
            with suppress(FileNotFoundError):  # who asked was killed meanwhile
                os.write(fd, _answered(memory, waiting.pop(0)))


@contextmanager
def served(place: Path, *options: str) -> Iterator[Path]:
    """The file system at `place`; whoever waits for it wakes when the context is left."""
    require("root and /dev/fuse", os.geteuid() == 0 and Path("/dev/fuse").exists())
    place.mkdir()
    server = subprocess.Popen([sys.executable, "-m", "tests.lab.fuse", str(place), *options],
                              cwd=Path(__file__).resolve().parents[2])  # fmt: skip
    try:
        until_s = time.monotonic() + 20
        while not os.path.ismount(place):
            require("mounts through FUSE", server.poll() is None and time.monotonic() < until_s)
            time.sleep(0.02)
        yield place
    finally:
        server.kill()  # it ends all requests, however long they wait
        server.wait()
        subprocess.run(["umount", "-l", place], check=False)


def main() -> None:
    """Serve by the arguments, as long as whoever started it is there."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    parser = argparse.ArgumentParser()
    parser.add_argument("place")
    parser.add_argument("--kind", default="fuse.lab")
    parser.add_argument("--quota", type=int)
    parser.add_argument("--hang-while", default="")
    asked = parser.parse_args()
    serve(asked.place, asked.kind, asked.quota, asked.hang_while)


if __name__ == "__main__":
    main()
