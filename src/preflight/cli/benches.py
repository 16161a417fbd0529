"""What --collective and the like ask of a bench of collectives, as the plan that travels to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from preflight.cli.bench_settings import UNSET, settings_of
from preflight.cli.bench_time import over_hosts
from preflight.cli.nccl_tests.asked import questions as of_tests
from preflight.cli.nccl_tests.asked import tests_of
from preflight.cli.options import Options
from preflight.errors import UsageError
from preflight.model import Check, Command
from preflight.ship import bench_command
from preflight.units import format_bytes, format_duration, parse_bytes, parse_duration

#: Those of payload/collectives; a test holds them together.
COLLECTIVES = (
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "sendrecv",
)  # fmt: skip
DTYPES = ("float32", "float16", "bfloat16")
WIRES = ("auto", "rdma", "tcp")
#: What `run --level standard` times, on hosts with several GPUs: a small size, where the steps
#: count, the plateau and what leads to it.
BETWEEN_GPUS: dict[str, Any] = {
    "device": "cuda", "least_gpus": 2, "collectives": ["all_reduce"], "begin_bytes": 1 << 12,
    "end_bytes": 1 << 32, "factor": 16, "inside": False,
}  # fmt: skip
#: Least and most of numbers.
_RANGES = {"ranks": (1, 1024), "factor": (2, 1 << 20), "repeats": (3, 1000), "threads": (1, 1024)}
_LEAST_BYTES, _MOST_BYTES = 4, 1 << 36
_LEAST_PERCENT, _MOST_PERCENT = 1, 60
_LONGEST_S = 86400.0


def plan_of(options: Options) -> dict[str, Any]:
    """The plan: what was asked for, and nothing that was left open. Raises UsageError."""
    _hold(options)
    names = (
        "ranks", "factor", "repeats", "threads", "dtype", "interface", "even_if_busy", "nics",
    )  # fmt: skip
    plan = {name: value for name in names if (value := getattr(options, name))}
    sizes = {"begin_bytes": options.begin, "end_bytes": options.end}
    plan |= {name: _bytes(name, text) for name, text in sizes.items() if text is not None}
    if plan.get("begin_bytes", 0) > plan.get("end_bytes", _MOST_BYTES):
        raise UsageError(f"-b {options.begin} is more than -e {options.end}", "-b 8 -e 1G")
    plan |= {"interface": each_once(options.interface)} if options.interface else {}
    plan |= {"collectives": list(dict.fromkeys(options.collective))} if options.collective else {}
    plan |= {"pairwise": True} if options.pairwise else {}
    plan |= {"sweep": settings_of(options.settings)} if options.settings else {}
    plan |= {"lasting_s": _lasting_s(options.lasting)} if options.lasting else {}
    plan |= {"wire": options.wire} if options.wire else {}
    plan |= {"tests": tests} if (tests := tests_of(options)) else {}
    return plan | ({"locate": False} if options.no_locate else {})


def each_once(interface: str) -> str:
    """The interfaces that are named, each once, in their order. Raises UsageError."""
    names = [one for one in dict.fromkeys(map(str.strip, interface.split(","))) if one]
    if not names:
        raise UsageError(f"--interface {interface!r} names none", "--interface eth0")
    return ",".join(names)


def looks_for(checks: Sequence[Check]) -> dict[str, Any]:
    """How far below the others what is slow may be: of the checks on what a search finds the one
    with the least. Raises UsageError."""
    found = {one.id: one.fail_unless["max"] for one in checks if one.rule == "located"}
    for name, percent in found.items():
        if not _LEAST_PERCENT <= percent <= _MOST_PERCENT:
            raise UsageError(
                f"{name}={percent} is out of range: it is percent below the others",
                f"{_LEAST_PERCENT} to {_MOST_PERCENT}, such as --set {name}=8",
            )
    return {"behind_percent": min(found.values())} if found else {}


def _lasting_s(text: str) -> float:
    seconds = parse_duration(text)
    if not 1 <= seconds <= _LONGEST_S:
        raise UsageError(f"--duration {text!r} is out of range", "1s to 24h")
    return seconds


def _bytes(name: str, text: str) -> int:
    flag = f"--{name.partition('_')[0]}"
    size = parse_bytes(text)
    if not _LEAST_BYTES <= size <= _MOST_BYTES:
        raise UsageError(f"{flag} {text} is out of range",
                         f"{_LEAST_BYTES} to {format_bytes(_MOST_BYTES)}")  # fmt: skip
    return size


def _hold(options: Options) -> None:
    """Refuse what cannot be, before anything is done."""
    unknown = [one for one in options.collective if one not in COLLECTIVES]
    if unknown:
        raise UsageError(f"--collective {unknown[0]!r} is none", f"one of {', '.join(COLLECTIVES)}")
    if options.dtype is not None and options.dtype not in DTYPES:
        raise UsageError(f"--dtype {options.dtype!r} is none", f"one of {', '.join(DTYPES)}")
    if options.wire is not None and options.wire not in WIRES:
        raise UsageError(f"--wire {options.wire!r} is none", f"one of {', '.join(WIRES)}")
    if options.pairwise and options.no_locate:
        raise UsageError(
            "--pairwise looks for slow links, --no-locate for none", "leave one of them out"
        )
    for name, (least, most) in _RANGES.items():
        value = getattr(options, name)
        if value is not None and not least <= value <= most:
            raise UsageError(f"--{name} {value} is out of range", f"--{name} {least} to {most}")


def questions(plan: dict[str, Any], python: tuple[str, ...]) -> Iterator[Command]:
    """What it asks, by the engine of the plan: the bundled one, or nccl-tests."""
    if "tests" in plan:
        yield from of_tests(plan, python)
    else:
        yield bench_command(plan, python, estimate(plan))


def estimate(plan: dict[str, Any], hosts: int = 1) -> str:
    """What it takes, for --dry-run and for whoever waits. `hosts`: 0 where that is not known."""
    count = len(plan.get("collectives", COLLECTIVES))
    if plan.get("least_gpus"):
        return "about 15 s where there are several GPUs, else nothing"
    if hosts > 1:
        told = over_hosts(plan, hosts, count)
        more = "; where tests differ by chance up to 4 min more"
    else:
        told = f"about {10 + 2 * count} s on processors, {60 + 10 * count} s on GPUs"
        more = "" if hosts else "; on several hosts more, by their number"
    wire = "; links by TCP 10 s a round, by RDMA 45 s for each adapter of a host and round"
    more += wire if plan.get("wire") else ""
    for name, *values in plan.get("sweep", ()):
        more += f"; {name}: {13 * len(values)} launches and more, 10 min at most"
    if plan.get("lasting_s"):
        more += f"; then {format_duration(plan['lasting_s'])} of one collective"
    return f"{told}{more}"


#: Fewer hosts are named.
_MANY = 4


def _few(hosts: Sequence[str]) -> str:
    if len(hosts) <= _MANY:
        return " and ".join(filter(None, (", ".join(hosts[:-1]), hosts[-1])))
    return f"a group of {len(hosts)} hosts"


def _tests(numbers: Sequence[int], pairs: int) -> str:
    """`pairs`: how many tests there are where none is slow; 0: that depends on what is found."""
    first, last = numbers[0], numbers[-1]
    told = f"test {first}" if first == last else f"tests {first} to {last}"
    return f"{told} of {pairs}" if last <= pairs else told


_NEWS: dict[str, Callable[[dict[str, Any]], str]] = {
    "begin": lambda told: f"{told['world']} ranks start",
    "step": lambda told: str(told["name"]),
    "tried": lambda told: f"{told['what']}, {', '.join(told['among'])}".rstrip(", "),
    "wire_round": lambda told: (
        f"links by {told['tool']}, round {told['number']}: "
        + ", ".join(" and ".join(pair) for pair in told["pairs"])
    ),
    "test": lambda told: f"test {told['test']}, of {len(told['among'])} hosts: {told['why']}",
    "round": lambda told: (
        f"{_tests(told['tests'], told['pairs'])}: "
        + ", ".join(_few(hosts) for hosts in told["among"])
    ),
    "lasting": lambda told: f"{told['collective']} for {format_duration(told['lasting_s'])}",
    "window": lambda told: f"{told['at_s'] + told['lasts_s']:.0f} s: {told['median_us']:,.0f} us",
    "setting": lambda told: (
        f"{told['name']}={told['value'] or UNSET}, "
        + (f"turn {told['turn'] + 1}" if told["turn"] >= 0 else "a trial")
        + (f": {told['failed']}" if "failed" in told else "")
    ),
}


#: What takes minutes, by the lines that it tells.
_PARTS: dict[str, Callable[[dict[str, Any]], str]] = {
    **dict.fromkeys(("begin", "started", "step", "size"), lambda _: "collectives, size by size"),
    "round": lambda told: str(told["what"]),
    "wire_round": lambda told: f"links by {told['tool']}, in rounds of pairs",
    "lasting": _NEWS["lasting"],
    "setting": lambda told: f"values of {told['name']} in turns",
}


def part_of(told: dict[str, Any]) -> str:
    """The part of a bench that a line is of, in words; "" for one that tells none."""
    return _in_words(_PARTS, told)


def told_of(told: dict[str, Any]) -> str:
    """A line of the payload in words for a terminal; "" for one that is no news."""
    return _in_words(_NEWS, told)


def _in_words(says: dict[str, Callable[[dict[str, Any]], str]], told: dict[str, Any]) -> str:
    say = says.get(str(told.get("kind", "")))
    try:
        return say(told) if say else ""
    except (KeyError, TypeError, ValueError, IndexError):
        return ""
