"""What --url asks of a bench of an object store, as the plan that travels to it."""

from __future__ import annotations

import re
from typing import Any

from preflight.cli.amounts import seconds_of, size_of
from preflight.cli.options import OPTIONS, SHARD, STORE, Options
from preflight.cli.streams import Streams
from preflight.errors import UsageError
from preflight.model import Command
from preflight.units import format_bytes, format_duration

#: What --size and the like say of files they say of objects.
_OURS = ("url", "size", "runtime", "even_if_busy")
_DEFAULTS = Options()
#: The form of its lines.
FORM = "objects/1"
#: By default, the least, the most.
_SIZE, _LEAST_BYTES, _MOST_BYTES = 256 << 20, 64 << 20, 1 << 40
_SECONDS, _LEAST_S, _MOST_S = 30.0, 2.0, 3600.0
_URL = re.compile(r"[a-z][a-z0-9+.-]{0,30}://[^\s]{1,1000}")
#: A listing takes these for a pattern; behind ? and # are versions, signatures and tokens.
_NO_NAME = re.compile(r"[*?#\[\]{}]")
_SECRET = re.compile(r"(?i)(key|token|signature|sig|secret|password|sas)=")
_FILES = ("file", "local", "memory")
#: What fsspec reads out of other files, or makes of other stores.
_NO_STORES = ("zip", "tar", "dir", "data", "cached", "simplecache", "reference", "libarchive")
_EXAMPLE = "--url s3://BUCKET/PREFIX"


def plan_of(options: Options) -> dict[str, Any]:
    """The plan. Raises UsageError, whose words never hold the URL: it may hold a password."""
    if options.from_:
        raise UsageError("--from reads what was recorded, and --url puts objects",
                         "leave one of them out")  # fmt: skip
    for name in (*STORE, *SHARD):
        if name not in _OURS and getattr(options, name) != getattr(_DEFAULTS, name):
            flag = OPTIONS[name].flags[0]
            raise UsageError(f"{flag} is of files, and --url of objects", "leave one of them out")
    plan: dict[str, Any] = {
        "url": _held(options.url or ""),
        "size_bytes": size_of(options.size, _SIZE, _LEAST_BYTES, _MOST_BYTES),
        "seconds": seconds_of(options.runtime, _SECONDS, _LEAST_S, _MOST_S),
    }  # fmt: skip
    return plan | ({"even_if_busy": True} if options.even_if_busy else {})


def _held(url: str) -> str:
    if "::" in url or not _URL.fullmatch(url):
        raise UsageError("--url: expected a store, a bucket and a prefix", _EXAMPLE)
    protocol, _, rest = url.partition("://")
    if protocol in ("http", "https"):
        raise UsageError(f"--url {protocol}://: nothing can be put there by fsspec",
                         f"the endpoint of a store is AWS_ENDPOINT_URL; {_EXAMPLE}")  # fmt: skip
    if protocol not in _FILES and rest.startswith("/"):
        raise UsageError(f"--url {protocol}:///: expected a bucket behind {protocol}://", _EXAMPLE)
    if _SECRET.search(rest):
        raise UsageError("--url: a prefix without keys, tokens and signatures: every user of the "
                         "host would see them (ps)", _EXAMPLE)  # fmt: skip
    if protocol in _NO_STORES:
        raise UsageError(f"--url {protocol}://: that is no store of objects", _EXAMPLE)
    if re.match(r"[^/]*:[^/]*@", rest):
        raise UsageError(
            "--url with a password in it: every user of the host would see it (ps)",
            "credentials as its library takes them: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "AWS_PROFILE, ~/.aws/credentials",
        )
    if _NO_NAME.search(rest):
        raise UsageError("--url: a prefix without * ? # [ ] { }", _EXAMPLE)
    if ".." in rest.split("/"):
        raise UsageError("--url: a prefix without ..", _EXAMPLE)
    return url.rstrip("/") if rest.strip("/") else url


def objects_question(plan: dict[str, Any], python: tuple[str, ...]) -> Command:
    """The question, with what it takes."""
    from preflight.ship import objects_command

    return objects_command(plan, float(plan["seconds"]), python, estimate(plan))


def estimate(plan: dict[str, Any]) -> str:
    """What it takes, for --dry-run."""
    requests = 2 * most_objects(plan["size_bytes"])
    size = format_bytes(plan["size_bytes"])
    return (f"puts at most {size} below {plan['url']} and gets as much, in at most {requests:,} "
            "requests, removed afterwards; about "
            f"{format_duration(plan['seconds'])}")  # fmt: skip


def most_objects(size_bytes: int) -> int:
    """How many payload/objects/phases.py puts; a test holds them together."""
    large_bytes = size_bytes - size_bytes // 8 - min(size_bytes // 8, 512 << 20)
    large = large_bytes // max(1 << 20, min(8 << 20, large_bytes // 96 >> 20 << 20))
    return min(size_bytes // 8 // (16 << 10), 1 << 15) + large


def announced(plan: dict[str, Any], hosts: int, options: Options, streams: Streams) -> None:
    """Tell what is about to be put."""
    if not options.quiet:
        each = f", on each of {hosts} hosts" if hosts > 1 else ""
        streams.note(f"{estimate(plan)}{each}")


def told_of(told: dict[str, Any]) -> str:
    """A line of the payload in words for a terminal; "" for one that is no news."""
    kind = told.get("kind")
    if told.get("preflight") == FORM and kind == "begin":
        return f"puts objects below {told.get('folder')} ({told.get('library')})"
    if kind == "way" and isinstance(told.get("size_bytes"), int):
        return f"{told.get('op')} {format_bytes(told['size_bytes'])}, {told.get('at_once')} at once"
    return "an object in parts" if kind == "parts" else ""
