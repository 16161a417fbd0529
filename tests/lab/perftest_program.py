"""What stands in for a program of perftest (tests/lab/perftest.py): `FILE ib_write_bw ...`."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from typing import Any

_RULE = "-" * 87
_Line = dict[str, Any]


def main() -> int:
    tool, words = sys.argv[1], sys.argv[2:]
    with open(os.environ["PERFTEST"], encoding="utf-8") as file:  # noqa: PTH123
        told = json.load(file)
    name = os.environ.get("HOST", "")
    host = told.get(name, {})
    version = host.get("version", "6.06")
    if "--version" in words:
        print(f"Version: {version}")
        return 1
    if "--help" in words:
        print("Usage:\n" + ("      --use_cuda=<cuda device id>\n" if host.get("cuda") else ""))
        return 0
    asked = _asked(words)
    own = host.get(asked["d"], {})
    started = [name, [tool, *words], sorted(os.sched_getaffinity(0))]
    _write(told["log"], str(os.getpid()), json.dumps(started))
    if own.get("fault") == "memlock":
        print(" Couldn't allocate MR\n failed to create mr\n Couldn't create IB resources")
        return 1
    if asked["d"] not in os.listdir(told["nics"]):  # noqa: PTH208
        print(f" IB device {asked['d']} not found\n Unable to find the Infiniband/RoCE device")
        return 1
    mark = f"{asked['d']}.{os.getpid()}"
    try:
        connection = _met(asked.get("server"), int(asked["p"]), (told["running"], mark))
    except OSError:
        print(f" Couldn't connect to {asked['server']}:{asked['p']}\n Unable to init the socket "
              "connection")  # fmt: skip
        return 1
    return _run(connection, tool, asked, own, version, (told["running"], mark))


def _asked(words: list[str]) -> dict[str, str]:
    """`-d mlx5_0` and `--use_cuda=0`; what stands alone at the end is the server."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            found[name] = value
        elif word.startswith("-"):
            found[word[1:]] = "" if word == "-F" else rest.pop(0)
        else:
            found["server"] = word
    return found


def _write(folder: str, name: str, text: str) -> None:
    with open(f"{folder}/{name}", "w", encoding="utf-8") as file:  # noqa: PTH123
        file.write(text)


def _met(server: str | None, port: int, mark: tuple[str, str]) -> socket.socket:
    if server is not None:
        return socket.create_connection((server, port), 5)
    stars = "*" * 36
    print(f"\n{stars}\n* Waiting for client to connect... *\n{stars}", flush=True)
    _write(*mark, "")
    return socket.create_server(("", port)).accept()[0]


def _said(connection: socket.socket, told: _Line) -> _Line:
    connection.sendall(json.dumps(told).encode() + b"\n")
    found: _Line = json.loads(connection.makefile().readline())
    return found


def _run(
    connection: socket.socket, tool: str, asked: dict[str, str], own: _Line, version: str,
    mark: tuple[str, str],
) -> int:  # fmt: skip
    listened = os.stat(f"{mark[0]}/{mark[1]}").st_mtime if "server" not in asked else 0.0  # noqa: PTH116
    other = _said(connection, {"version": version, "own": own, "listened": listened})
    if other["version"] != version:
        print("Current implementation is not compatible with versions older than 5.70")
        return 1
    faults = {own.get("fault"), other["own"].get("fault")}
    if "hang" in faults:
        time.sleep(60)
    if "retry" in faults:
        print(" Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81")
        return 1
    time.sleep(0.03)
    many = _are_many(asked["d"], mark[0], max(listened, other["listened"]))
    if "server" not in asked:  # before the other end is done: then this one may be killed
        _write(*mark, str(time.time()))
    _said(connection, {"over": True})
    _print(tool, asked, min(_gbits(one, asked, many=many) for one in (own, other["own"])))
    return 0


def _are_many(device: str, folder: str, listened: float) -> bool:
    """Whether a server of another adapter is there, or was when this one began to listen: all of a
    round listen before the first of them is called."""
    for name in os.listdir(folder):  # noqa: PTH208
        if name.partition(".")[0] != device:
            with open(f"{folder}/{name}", encoding="utf-8") as file:  # noqa: PTH123
                ended = file.read()
            if not ended or float(ended) > listened:
                return True
    return False


def _gbits(of: _Line, asked: dict[str, str], *, many: bool) -> float:
    kinds = {"together": many, "many": asked.get("q", "1") != "1", "gpu": "use_cuda" in asked}
    kind = next((kind for kind, is_so in kinds.items() if is_so), "")
    return float(of[kind] if kind in of else of.get("gbits", 392.0))


def _print(tool: str, asked: dict[str, str], value: float) -> None:
    latency, roce = tool.endswith("_lat"), "x" in asked
    print(_RULE)
    print(f"                    RDMA_Write {'Latency' if latency else 'BW'} Test")
    print(f" Dual-port       : OFF\t\tDevice         : {asked['d']}")
    print(f" Number of qps   : {asked.get('q', 1)}\t\tTransport type : IB")
    print(
        " Connection type : RC\t\tUsing SRQ      : OFF\n PCIe relax order: ON\n"
        " TX depth        : 128"
    )
    print(f" Mtu             : 4096[B]\n Link type       : {'Ethernet' if roce else 'IB'}")
    if roce:
        print(f" GID index       : {asked['x']}")
    print(f" Max inline data : 0[B]\n rdma_cm QPs     : OFF\n Data ex. method : Ethernet\n{_RULE}")
    for end, lid in (("local", "0x01"), ("remote", "0x02")):
        print(
            f" {end} address: LID {lid} QPN 0x0127 PSN 0x1b2c3d RKey 0x1fff00 VAddr 0x007f00000000"
        )
    print(_RULE)
    if latency:
        print(" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]"
              "    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] ")  # fmt: skip
        print(" 8       2000          1.10           8.27         1.15               1.16       \t"
              "0.04   \t\t1.31    \t\t8.27")  # fmt: skip
    else:
        print(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]")
        print(f" 8388608    9000             0.00               {value:.2f}               0.005842")
    print(_RULE)


sys.exit(main())
