"""Whether the texts that were given for one host speak of one host."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from preflight.facts.host import Host
from preflight.facts.stack import EnvReport
from preflight.judge.results import result, undetermined
from preflight.judge.stack.answer import skip
from preflight.judge.versions import release
from preflight.model import Check, Evidence, Missing, Result, Status

_MAKER = re.compile(r"^(?:NVIDIA|Tesla|Quadro)\s+", re.IGNORECASE)


def agree(host: Host, check: Check) -> Iterator[Result]:
    """Each report of an environment names the driver and the GPUs that the other answers name."""
    unread = [one.driver for one in host.env_reports if isinstance(one.driver, Missing)]
    unread = [one for one in unread if one.kind == "unreadable"]
    held = [one for one in host.env_reports if _is_comparable(host, one)]
    told = [words for one in held for words in _against_others(host, one)]
    if unread and not told:
        yield undetermined(check, host.name, unread[0])
    elif not held:
        yield skip(host, check, "one answer alone tells of driver and GPUs")
    else:
        yield result(
            check, host.name, Status.WARN if told else Status.PASS, told[0] if told else "alike",
            "one host, one time", reason="two hosts, or asked at different times",
            evidence=tuple(Evidence(one.probe, line=one.line) for one in held),
        )  # fmt: skip


def _others(host: Host, report: EnvReport) -> list[EnvReport]:
    return [one for one in host.env_reports if one is not report]


def _is_comparable(host: Host, report: EnvReport) -> bool:
    others = _others(host, report)
    gpus = bool(_products(host, others)) and isinstance(report.gpus, tuple)
    return gpus or (bool(_driver(host, others)) and isinstance(report.driver, str))


def _against_others(host: Host, report: EnvReport) -> Iterator[str]:
    others = _others(host, report)
    driver, products = _driver(host, others), _products(host, others)
    if _other(report, driver):
        yield f"driver {report.driver}, another answer {driver}"
    if strange := _strange(report, products):
        yield f"{strange}, another answer {', '.join(sorted(set(products)))}"


def _driver(host: Host, others: Sequence[EnvReport]) -> str:
    """The driver by nvidia-smi's word, else by that of another report."""
    told = [host.driver.version] if not isinstance(host.driver, Missing) else []
    told += [report.driver for report in others]
    return next((one for one in told if isinstance(one, str)), "")


def _other(report: EnvReport, driver: str) -> bool:
    mine = report.driver
    return isinstance(mine, str) and bool(driver) and release(mine) != release(driver)


def _products(host: Host, others: Sequence[EnvReport]) -> list[str]:
    if not isinstance(host.gpus, Missing):
        return [gpu.product for gpu in host.gpus if isinstance(gpu.product, str)]
    return list(next((one.gpus for one in others if isinstance(one.gpus, tuple)), ()))


def _strange(report: EnvReport, products: list[str]) -> str:
    """A GPU of a report that is of no model the others name; a container may see fewer, and the
    table of nvidia-smi cuts long names."""
    mine = () if isinstance(report.gpus, Missing) else report.gpus
    if all(any(_alike(other, one) for one in mine) for other in products):
        return ""
    strange = (one for one in mine if not any(_alike(one, other) for other in products))
    return next(strange, "")


def _alike(name: str, other: str) -> bool:
    name, other = (_MAKER.sub("", one).strip() for one in (name, other))
    cut = other.endswith("...")
    return name.startswith(other[:-3].strip()) if cut else name == other
