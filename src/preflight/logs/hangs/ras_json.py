"""The JSON of NCCL's RAS service, since 2.28.7: one object for each answer."""

from __future__ import annotations

import time
from typing import Any

from preflight.errors import ParseError
from preflight.facts.ras import Comm, CommRank, Counted, Failed, Peer, RasReport
from preflight.logs.hangs.json_values import values

_MOST_OBJECTS = 2_000_000
#: ncclResult_t of nccl.h: 0 and 7 (in progress) are none.
_ERRORS = {1: "Unhandled CUDA error", 2: "System error", 3: "Internal error",
           4: "Invalid argument", 5: "Invalid usage", 6: "Remote process error"}  # fmt: skip


def is_json(head: bytes) -> bool:
    """By keys that stand among the first."""
    if head.lstrip()[:1] != b"{":
        return False
    return (b'"communicators_count"' in head and b'"nccl_version"' in head) or (
        b'"event"' in head and b'"group"' in head and b"PEER_" in head
    )


def of_json(data: bytes) -> tuple[RasReport, ...]:
    """ParseError where nothing whole is in it. A later answer that is cut is left out."""
    if data.count(b"{") > _MOST_OBJECTS:
        raise ParseError(f"it holds more than {_MOST_OBJECTS:,} objects")
    text = data.decode("utf-8", "replace")
    found = [one for line, told in values(text, "{") if (one := _report(told, line)) is not None]
    return tuple(found)


def _report(told: dict[str, Any], line: int) -> RasReport | None:
    report = RasReport(line, str(told.get("nccl_version") or "")[:60], _time(told.get("timestamp")))
    if told.get("event") == "PEER_DEAD":
        report.peers = (_peer(_dict(told.get("peer")), line, dead=True),)
        report.dead = 1
        return report
    if not isinstance(told.get("communicators"), list):
        return None
    report.has_counts = True
    peers: dict[tuple[str, int | None], Peer] = {}
    comms = []
    for one in _dicts(told["communicators"]):
        comms.append(_comm(one, line))
        for missing in _dicts(one.get("missing_ranks")):
            status = _dict(missing.get("status"))
            # What answers, and is no member any more, has left the communicator by itself.
            if status.get("unresponsive") is True or status.get("considered_dead") is True:
                dead = status.get("considered_dead") is True
                peer = _peer(missing, line, dead=dead)
                peers[peer.host, peer.pid] = peer
    report.comms, report.peers = tuple(comms), tuple(peers.values())
    report.dead = sum(one.dead for one in report.peers)
    report.missing = len(report.peers) - report.dead
    report.timeouts = _int(_dict(told.get("ras")).get("timeouts_count")) or 0
    report.gpus = max((one.size or 0 for one in comms), default=0) or None
    return report


def _comm(told: dict[str, Any], line: int) -> Comm:
    name = str(told.get("hash") or "")[:40]
    gone = [one for one in _dicts(told.get("missing_ranks"))
            if _dict(one.get("status")).get("unresponsive") is not False
            or _dict(one.get("status")).get("considered_dead") is True]  # fmt: skip
    comm = Comm(name, name.removeprefix("0x"), _int(told.get("size")), tuple(map(_rank, gone)),
                len(gone), line=line)  # fmt: skip
    counts: dict[tuple[str, int], list[CommRank]] = {}
    failed: dict[str, list[CommRank]] = {}
    for one in _dicts(told.get("ranks")):
        rank, status = _rank(one), _dict(one.get("status"))
        for operation, count in _dict(one.get("collective_counts")).items():
            if (value := _int(count)) is not None:
                counts.setdefault((str(operation)[:40], value), []).append(rank)
        for key in ("init_state", "async_error"):
            code = _int(status.get(key))
            if code not in (None, 0, 7):
                failed.setdefault(_ERRORS.get(code or 0, f"error {code}"), []).append(rank)
        state = _status(status)
        comm.statuses[state] = comm.statuses.get(state, 0) + 1
    comm.counts = tuple(Counted(operation, value, len(ranks), tuple(ranks), line)
                        for (operation, value), ranks in counts.items())  # fmt: skip
    comm.failed = tuple(Failed(text, len(ranks), tuple(ranks), line)
                        for text, ranks in failed.items())  # fmt: skip
    return comm


def _status(told: dict[str, Any]) -> str:
    if told.get("abort_flag") is True:
        return "ABORT"
    if told.get("finalize_called") is True or told.get("destroy_flag") is True:
        return "FINALIZE"
    return "RUNNING" if _int(told.get("init_state")) == 0 else "INIT"


def _rank(told: dict[str, Any]) -> CommRank:
    rank, gpu = _int(told.get("rank")), _int(told.get("cuda_dev"))
    return CommRank(-1 if rank is None else rank, str(told.get("host") or "")[:100],
                    _int(told.get("pid")), "" if gpu is None else str(gpu))  # fmt: skip


def _peer(told: dict[str, Any], line: int, *, dead: bool) -> Peer:
    devices = told.get("cuda_devs", told.get("cuda_dev"))
    gpus = ",".join(str(one) for one in devices[:64]) if isinstance(devices, list) else devices
    host = str(told.get("host") or told.get("addr") or "")[:100]
    return Peer(host, _int(told.get("pid")), "" if gpus is None else str(gpus)[:200], dead, line)


def _time(value: object) -> float | None:
    try:
        return time.mktime(time.strptime(str(value)[:19], "%Y-%m-%d %H:%M:%S"))
    except (ValueError, OverflowError):
        return None


def _dicts(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
