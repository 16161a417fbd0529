"""A number that is fast enough over a wrong way does not pass: NCCL's log is judged with it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from preflight import capture
from preflight.cli.together import as_told
from preflight.model import Raw
from tests.bench_lines import logged, on_gpus
from tests.cli.command import preflight
from tests.conftest import SAMPLES
from tests.nccl_lines import Job, on_sockets

IBSTAT = str(SAMPLES / "infiniband" / "ibstat_h100_12hca_active.txt")
HOSTS = ["node-01", "node-02"]


def statuses(out: str, host: str) -> dict[tuple[str, str], str]:
    results = next(one["results"] for one in json.loads(out)["hosts"] if one["host"] == host)
    return {(one["check"], one["subject"]): one["status"] for one in results}


@pytest.mark.parametrize(("job", "status"), [(Job(), "PASS"), (on_sockets([0, 1]), "FAIL")])
def test_the_lines_of_a_bench_hold_its_log(tmp_path: Path, job: Job, status: str) -> None:
    path = tmp_path / "bench.jsonl"
    path.write_text(on_gpus(450.0, logged(job, 0)), encoding="utf-8")
    ran = preflight("nccl-bench", "--from", str(path), "--from", IBSTAT, "--format", "json")
    found = statuses(ran.out, "input")
    fleet = {one["check"]: (one["subject"], one["status"]) for one in json.loads(ran.out)["fleet"]}
    assert fleet["collectives.busbw"] == ("all hosts all_reduce", "PASS")
    assert found["nccl.network", "node-01"] == status
    assert ran.rc == (status == "FAIL"), ran.out


def test_each_host_is_judged_by_its_own_log(tmp_path: Path) -> None:
    """Live, the first host tells what all of them wrote; a capture holds what each is told."""
    log = [*logged(on_sockets([1]), 0), *logged(on_sockets([1]), 1)]
    ibstat = Path(IBSTAT).read_text(encoding="utf-8")
    second = json.dumps({"preflight": "nccl-bench/1", "kind": "begin", "torch": "2.9.1+cu130",
                         "backend": "nccl", "nccl": "2.27.7", "world": 16, "environment": {},
                         "plan": {"device": "cuda", "ranks": 8, "hosts": HOSTS},
                         "host": "node-02"}) + "\n"  # fmt: skip
    answers = {"node-01": on_gpus(450.0, log), "node-02": second + '{"kind":"end"}\n'}
    raws = {host: [Raw(host, "nccl-bench", ("python3",), stdout=text),
                   Raw(host, "ibstat", stdout=ibstat)]
            for host, text in answers.items()}  # fmt: skip
    path = tmp_path / "two.capture.gz"
    with capture.Writer(path) as writer:
        for found in as_told(raws, {"gpus": {}}, False).values():
            writer.write(found)
    ran = preflight("nccl-bench", "--from", str(path), "--format", "json")
    first, other = (statuses(ran.out, host) for host in HOSTS)
    assert first["nccl.network", "node-01"] == "PASS"
    assert other["nccl.network", "node-02"] == "FAIL"
    assert not any(subject == "node-02" for check, subject in first if check == "nccl.network")
    shown = preflight("nccl-bench", "--from", str(path)).out
    assert "via NET/Socket/0" in shown and "node-02:4000:4100 [0] NCCL INFO" in shown
