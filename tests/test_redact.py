"""Reports, captures and real outputs without secrets and names: they still say the same."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from preflight.cli.asking import Captures
from preflight.errors import ParseError
from preflight.model import (
    Evidence,
    HostReport,
    Missing,
    MissingProbe,
    Override,
    Raw,
    Result,
    Status,
)
from preflight.probes.kernel_log.log import kernel_log
from preflight.probes.nvidia_smi.text import nvidia_smi_text
from preflight.probes.nvidia_smi.xml import nvidia_smi_xml
from preflight.redact.redactor import Redactor, redact_raw, redact_report
from preflight.reports import render
from preflight.reports.json import encode
from tests.conftest import SAMPLES, sample
from tests.reports.built import host, passed, report, rich
from tests.transports.whole import recorded

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


def _same_facts(parse: Any, text: str) -> bool:
    """Whether the redacted text reads as the text, but for names; also where neither is read."""
    try:
        facts = parse(text)
    except ParseError:
        with pytest.raises(ParseError):
            parse(full(text))
        return True
    return bool(_but(parse(full(text))) == _but(facts))


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("nvidia_smi_*/*")), ids=lambda path: path.name)
def test_a_redacted_answer_of_any_gpu_reads_as_before(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    assert _same_facts(nvidia_smi_xml if path.suffix == ".xml" else nvidia_smi_text, text)


def test_a_redacted_answer_holds_no_name_of_a_gpu() -> None:
    text = sample("nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml")
    assert re.search(r"GPU-[0-9a-f]{8}", text)
    assert not re.search(r"GPU-[0-9a-f]{8}", full(text))
    blackwell = sample("nvidia_smi_xml/rtx_pro_6000_blackwell_590.44_v13.xml")
    pdi = re.findall("<pdi>0x(.*?)</pdi>", blackwell)
    assert pdi
    assert not [one for one in pdi if one in full(blackwell)]


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("kernel_log/*")), ids=lambda path: path.name)
def test_a_redacted_kernel_log_holds_the_same_events(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", "replace")
    found, plain = kernel_log(full(text)), kernel_log(text)
    assert len(found.hosts) == len(plain.hosts)
    assert replace(found, hosts=plain.hosts) == plain


def test_a_large_answer_is_redacted_in_about_half_a_second() -> None:
    xml = sample("nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml")
    log = sample("kernel_log/boot_xe9680_h100_mlx5_insufficient_power.log")[:250_000]
    xml = (xml * (300_000 // len(xml) + 1))[:300_000]
    redactor = Redactor(["node-07"], tag="7c3f")
    began = time.process_time()
    for text in (xml, log):
        redact_raw(Raw("node-07", "x", stdout=text), redactor)
    assert time.process_time() - began < 2  # 0.5 s on a laptop


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
        "file-1",
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
        b"\xff ipv4-1", "2026-01-02T03:04:05Z", source="file-1",
        missing=Missing("denied", "host-1: denied"), line_offset=3,
    )  # fmt: skip
    kept = redact_raw(raw, Redactor(["node-07"]), full=False)
    assert kept.stdout == "HOSTNAME=node-07\nTOKEN=***\n"
    assert kept.host == "node-07"


def test_an_answer_held_by_a_file_names_the_file_nowhere() -> None:
    raw = Raw(
        "input", "kernel-log", stdout="read secret-node-17.txt\n", source="a/secret-node-17.txt"
    )
    clean = redact_raw(raw, Redactor(tag="7c3f"))
    assert (clean.source, clean.stdout) == ("file-7c3f-1", "read file-7c3f-1\n")
    assert redact_raw(clean, Redactor(tag="00ff")) == clean


def _refused(name: str, why: str) -> Any:
    return HostReport(name, Status.ERROR, (MissingProbe(name, "unreadable", why),))


def test_a_report_names_no_file_not_even_one_that_could_not_be_read() -> None:
    seen = Evidence("nvidia-smi", "Pending : Yes", 7, source="logs/secret-node-17.txt")
    told = report(
        host("node-17", Result("gpu.x", "gpu0", Status.FAIL, 1, "0", evidence=(seen,))),
        _refused("logs/secret-node-18.txt", "is empty"),
        _refused(
            "secret-node-19.txt",
            "not judged: logs/secret-node-20.txt answers the same for host node-17; give each host "
            "its name, --from NAME=FILE",
        ),
        _refused("a capture of node-17", "not judged: a later capture answers the same for host x"),
        _refused("standard input", "is empty"),
        argv=("run", "--from", "node-17=logs/secret-node-17.txt", "--save", "secret.json"),
        profile="secret.yaml",
        overrides=(Override("a.b", 1, "profile secret.yaml"), Override("a.c", 2, "--set")),
    )
    clean = redact_report(told, Redactor())
    shown = encode(clean) + "".join(render(clean, "text")) + "".join(render(clean, "markdown"))
    assert "secret" not in shown
    assert "node-" not in shown
    assert clean.argv == ("run", "--from", "host-1=file-1", "--save", "file-2")
    assert clean.hosts[0].results[0].evidence[0].source == "file-1"
    assert [one.host for one in clean.hosts] == [
        "host-1", "file-3", "file-4", "a capture of host-1", "standard input",
    ]  # fmt: skip
    assert all(one.missing[0].probe == one.host for one in clean.hosts[1:])
    assert clean.hosts[2].missing[0].text.startswith("not judged: file-5 answers the same for host")
    assert (clean.profile, clean.overrides[0].source) == ("file-6", "profile file-6")
    assert clean.overrides[1].source == "--set"
    assert redact_report(clean, Redactor()) == clean


def test_a_report_on_redacted_captures_gives_out_none_of_their_stand_ins() -> None:
    seen = (Evidence("kernel-log", "x", 7, source="file-1"), Evidence("x", "y", 8, source="b.txt"))
    told = report(
        host("host-1", Result("gpu.x", "gpu0", Status.FAIL, 1, "0", evidence=seen[:1])),
        host("node-17", Result("gpu.x", "gpu0", Status.FAIL, 1, "0", evidence=seen[1:])),
    )
    clean = redact_report(told, Redactor())
    assert [one.host for one in clean.hosts] == ["host-1", "host-2"]
    assert [one.results[0].evidence[0].source for one in clean.hosts] == ["file-1", "file-2"]


def _captured(path: Path, name: str) -> Path:
    """A redacted capture of one host, as the commands write it."""
    with Captures([path], redact=True).opened() as keeper:
        assert keeper
        log = f"Jan  2 03:04:05 {name} kernel: NVRM: Xid (PCI:0000:3b:00): 79, x\n"
        keeper.put([Raw(name, "kernel-log", ("dmesg",), stdout=log)])
    return path


def test_redacted_captures_of_two_machines_stay_two_machines(tmp_path: Path) -> None:
    paths = [_captured(tmp_path / f"{name}.capture.gz", name) for name in ("atlas", "hermes")]
    hosts = recorded(*paths).hosts
    assert len(hosts) == 2
    for name, raws in hosts.items():
        assert re.fullmatch("host-[0-9a-f]{4}-1", name)
        assert (
            raws[0].stdout == f"Jan  2 03:04:05 {name} kernel: NVRM: Xid (PCI:0000:3b:00): 79, x\n"
        )
        assert redact_raw(raws[0], Redactor(tag="00ff")) == raws[0]
