"""Whether the texts that were given for one host speak of one host."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.facts.host import Host
from preflight.facts.stack import EnvReport
from preflight.judge.results import result, undetermined
from preflight.judge.stack.answer import skip
from preflight.judge.versions import release
from preflight.model import Check, Evidence, Missing, Result, Status

_MAKER = re.compile(r"^(?:NVIDIA|Tesla|Quadro)\s+", re.IGNORECASE)


def agree(host: Host, check: Check) -> Iterator[Result]:
    """Each report of an environment names the driver and the GPUs that the other answers name."""
    judged = list(_judged(host, check))
    yield from judged or [skip(host, check, "one answer alone tells of driver and GPUs")]


def _judged(host: Host, check: Check) -> Iterator[Result]:
    products, driver = _products(host), _driver(host)
    for report in host.env_reports:
        told = (
            [f"driver {report.driver}, another answer {driver}"] if _other(report, driver) else []
        )
        if strange := _strange(report, products):
            told.append(f"{strange}, another answer {', '.join(sorted(set(products)))}")
        if isinstance(report.driver, Missing) and report.driver.kind == "unreadable":
            yield undetermined(check, host.name, report.driver)
        elif (products and isinstance(report.gpus, tuple)) or isinstance(report.driver, str):
            yield result(
                check, host.name, Status.WARN if told else Status.PASS,
                "; ".join(told) or "alike", "one host, one time", reason="two hosts, or asked at "
                "different times", evidence=(Evidence(report.probe, line=report.line),),
            )  # fmt: skip


def _driver(host: Host) -> str:
    """The driver by nvidia-smi's word, else by that of the first report."""
    told = [host.driver.version] if not isinstance(host.driver, Missing) else []
    told += [report.driver for report in host.env_reports]
    return next((one for one in told if isinstance(one, str)), "")


def _other(report: EnvReport, driver: str) -> bool:
    mine = report.driver
    return isinstance(mine, str) and bool(driver) and release(mine) != release(driver)


def _products(host: Host) -> list[str]:
    if not isinstance(host.gpus, Missing):
        return [gpu.product for gpu in host.gpus if isinstance(gpu.product, str)]
    told = [report.gpus for report in host.env_reports]
    return list(next((one for one in told if isinstance(one, tuple)), ()))


def _strange(report: EnvReport, products: list[str]) -> str:
    """A GPU of a report that is of no model the others name; a container may see fewer, and the
    table of nvidia-smi cuts long names."""
    mine = () if isinstance(report.gpus, Missing) else report.gpus
    strange = (one for one in mine if not any(_alike(one, other) for other in products))
    return next(strange, "") if products else ""


def _alike(name: str, other: str) -> bool:
    name, other = (_MAKER.sub("", one).strip() for one in (name, other))
    cut = other.endswith("...")
    return name.startswith(other[:-3].strip()) if cut else name == other
