"""Reports, captures and real outputs without secrets and names: they still say the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from preflight.model import Missing, MissingProbe, Raw, Result, Status
from preflight.probes.kernel_log import kernel_log
from preflight.probes.nvidia_smi_text import nvidia_smi_text
from preflight.probes.nvidia_smi_xml import nvidia_smi_xml
from preflight.redact.redactor import Redactor, redact_raw, redact_report
from preflight.reports.json import encode
from tests.conftest import SAMPLES, sample
from tests.reports.built import host, passed, report, rich

UUID = "GPU-1a2b3c4d-1111-2222-3333-444455556666"


def full(text: str, *hosts: str, users: tuple[str, ...] = ()) -> str:
    return Redactor(hosts, users).full(text)


SAMPLE_TEXTS = sorted(
    path
    for path in SAMPLES.rglob("*")
    if path.suffix in (".txt", ".xml", ".log") and path.is_file()
)


@pytest.mark.parametrize("path", SAMPLE_TEXTS, ids=lambda path: path.name)
def test_real_outputs_keep_their_lines_and_stay_redacted(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    redactor = Redactor()
    once = redactor.full(text)
    assert once.count("\n") == text.count("\n")
    assert redactor.full(once) == once
    assert not re.search(r"GPU-[0-9a-f]{8}-[0-9a-f]{4}", once)


def _but(facts: Any) -> Any:
    return [msgspec.structs.replace(gpu, uuid="", serial="") for gpu in facts.gpus]


@pytest.mark.parametrize(
    ("path", "parse"),
    [
        ("nvidia_smi_xml/a10g_515.105.xml", nvidia_smi_xml),
        ("nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml", nvidia_smi_xml),
        ("nvidia_smi_q/h100_sxm_x8_535.183_one_gpu_throttled.txt", nvidia_smi_text),
        ("nvidia_smi_q/rtx4090_x8_535.154_idle.txt", nvidia_smi_text),
    ],
)
def test_a_redacted_answer_reads_as_before(path: str, parse: Any) -> None:
    text = sample(path)
    assert UUID[:4] in text
    clean = full(text)
    assert clean != text
    assert _but(parse(clean)) == _but(parse(text))


@pytest.mark.parametrize(
    "name", ["xid119_gsp_rpc_timeout_h100.log", "xid79_then_sxid20034_fatal.log"]
)
def test_a_redacted_kernel_log_holds_the_same_events(name: str) -> None:
    text = sample(f"kernel_log/{name}")
    before, after = kernel_log(text), kernel_log(full(text))
    assert before.xids
    assert after == before


def test_a_report_is_redacted_through_and_through() -> None:
    told = report(
        host(
            "node-07.corp",
            passed("versions.cudnn", "node-07", "9.1.0.70", "at least 9.1.0.70"),
            Result(
                "gpu.busy", "gpu0", Status.SKIP, title="t",
                reason="held by pid 4711 of user jdoe on 10.0.0.1",
            ),
            Result("gpu.x", "gpu1", Status.FAIL, 1, "0", device="1322621000000"),
            missing=[MissingProbe("ssh", "denied", "ssh: connect to host node-07 port 22: x")],
            summary="8 x H100",
            facts={
                "identity": {"hostname": "realname", "boot_id": UUID[4:]},
                "gpus": [{"serial": "1322621000000", "uuid": UUID, "bus_id": "00000000:91:00.0"}],
                "driver": {"version": "10.0.0.1"},
                "owner": "jdoe",
                "api_token": "hunter2",
            },
        ),
        argv=("preflight", "run", "--hosts", "node-07", "--password", "hunter2", "/home/jdoe/x"),
        hints=("ask realname",),
    )  # fmt: skip
    clean = redact_report(told, Redactor())
    text = encode(clean)
    for name in ("node-07", "corp", "realname", "jdoe", "hunter2", "1322621000000", "1a2b3c4d"):
        assert name not in text
    first = clean.hosts[0]
    assert first.host == "host-1"
    assert first.results[0].subject == "host-1"
    assert first.results[0].measured == "9.1.0.70"
    assert first.results[0].expected == "at least 9.1.0.70"
    assert first.results[2].device == first.facts["gpus"][0]["serial"] == "serial-1"  # type: ignore[index]
    assert first.facts["driver"]["version"] == "10.0.0.1"  # type: ignore[index]
    assert first.facts["gpus"][0]["bus_id"] == "00000000:91:00.0"  # type: ignore[index]
    assert clean.argv == (
        "preflight",
        "run",
        "--hosts",
        "host-1",
        "--password",
        "***",
        "/home/user-1/x",
    )
    assert (clean.verdict, clean.counts, clean.schema) == (told.verdict, told.counts, told.schema)


def test_a_rich_report_keeps_its_meaning() -> None:
    clean = redact_report(rich(), Redactor())
    assert "node-0" not in encode(clean)
    assert clean.fleet[1].subject == "host-[1-3]"
    assert [one.verdict for one in clean.hosts] == [one.verdict for one in rich().hosts]
    assert [one.check for one in clean.hosts[2].results] == [
        one.check for one in rich().hosts[2].results
    ]


def test_without_full_only_secrets_go() -> None:
    told = report(host("node-07"), argv=("preflight", "--token=hunter2", "--hosts", "10.0.0.1"))
    clean = redact_report(told, Redactor(), full=False)
    assert clean.argv == ("preflight", "--token=***", "--hosts", "10.0.0.1")
    assert clean.hosts[0].host == "node-07"
    assert redact_report(rich(), Redactor(), full=False) == rich()


def test_an_answer_of_a_host_is_redacted() -> None:
    raw = Raw(
        "node-07", "env", ("env", "--password", "hunter2"), 0, "HOSTNAME=node-07\nTOKEN=hunter2\n",
        b"\xff 10.0.0.1", "2026-01-02T03:04:05Z", source="/home/jdoe/dump.txt",
        missing=Missing("denied", "node-07: denied"), line_offset=3,
    )  # fmt: skip
    clean = redact_raw(raw, Redactor(["node-07"]))
    assert clean == Raw(
        "host-1", "env", ("env", "--password", "***"), 0, "HOSTNAME=host-1\nTOKEN=***\n",
        b"\xff ipv4-1", "2026-01-02T03:04:05Z", source="/home/user-1/dump.txt",
        missing=Missing("denied", "host-1: denied"), line_offset=3,
    )  # fmt: skip
    kept = redact_raw(raw, Redactor(["node-07"]), full=False)
    assert kept.stdout == "HOSTNAME=node-07\nTOKEN=***\n"
    assert kept.host == "node-07"
