"""Published combinations of driver, CUDA, torch and GPU, and what the checks say of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from preflight.assemble.software.stack import stack_of
from preflight.facts.host import Host
from preflight.facts.stack import EnvReport, EnvVar
from preflight.judge.evaluate import judge
from preflight.judge.load import load
from preflight.model import NOT_IN_INPUT

ROWS: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "compat_matrix.yaml").read_text(encoding="utf-8")
)["rows"]
JUDGED = (
    "versions.cuda.driver",
    "versions.cuda.compat",
    "versions.torch.gpu",
    "versions.driver.gpu",
)
#: Answer -> the statuses of these checks; None where any will do, for another says it already.
STATUSES: dict[str, tuple[str | None, ...]] = {
    "runs": ("PASS", "PASS", "PASS", "PASS"),
    "minor": ("PASS", "WARN", "PASS", "PASS"),
    "forward": ("PASS", "WARN", "PASS", "PASS"),
    "ptx": ("PASS", "PASS", "WARN", "PASS"),
    "too-old": ("FAIL", "SKIP", None, None),
    "unfit": ("FAIL", "SKIP", None, None),
    "no-code": (None, None, "FAIL", "PASS"),
    "no-gpu": (None, None, None, "FAIL"),
    "unknown": ("PASS", "PASS", "SKIP", "PASS"),
}


def _host(row: dict[str, Any]) -> Host:
    package = row.get("package", "")
    variables = {"LD_LIBRARY_PATH": "/usr/local/cuda/compat/lib", "CUDA_DRIVER_VERSION": package}
    report = EnvReport(
        torch=row["torch"], torch_cuda=row["cuda"], driver=row["driver"], gpus=(row["gpu"],),
        torch_archs=tuple(row["archs"].split()) if "archs" in row else NOT_IN_INPUT,
        environment=tuple(EnvVar(*item) for item in variables.items()) if package else (),
        probe="collect-env",
    )  # fmt: skip
    host = Host("node-07", env_reports=(report,))
    return Host("node-07", env_reports=(report,), stack=stack_of(host, NOT_IN_INPUT))


def _name(row: dict[str, Any]) -> str:
    return f"{row['driver']}-{row['torch']}-cu{row['cuda']}-{row['gpu']}-{row['answer']}"


def test_the_table_is_large_and_every_answer_is_in_it() -> None:
    assert len(ROWS) >= 60
    assert {row["answer"] for row in ROWS} == set(STATUSES)
    assert all(set(row["source"].split()) <= set("nmfacd") for row in ROWS)
    assert len({_name(row) for row in ROWS}) > len(ROWS) - 5


@pytest.mark.parametrize("row", ROWS, ids=_name)
def test_the_answer_is_the_published_one(row: dict[str, Any]) -> None:
    checks = [check for check in load(("versions",)).checks if check.id in JUDGED]
    found = {one.check: one for one in judge(_host(row), checks)}
    for check, wanted in zip(JUDGED, STATUSES[row["answer"]], strict=True):
        assert wanted in (None, found[check].status.value), found[check]
