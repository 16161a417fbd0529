"""--save-hosts and --against, as a user types them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from preflight.capture import Writer
from preflight.model import Raw, Report
from preflight.reports import render
from tests.cli.command import preflight
from tests.reports.built import host, passed, report, warm, width
from tests.reports.fleet import broken, cluster, yesterday

SAMPLES = Path(__file__).parents[1] / "samples"


def stored(folder: Path, name: str, told: Report) -> str:
    (folder / name).write_text("".join(render(told, "json")), encoding="utf-8")
    return name


def names(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_the_two_files_hold_every_host_once(tmp_path: Path) -> None:
    done = preflight("report", stored(tmp_path, "r.json", cluster()), "-q", "--save-hosts", "all",
                     cwd=tmp_path)  # fmt: skip
    assert done.rc == 1
    bad = [f"node{i:03}" for i in (3, 7, 17, 30, 42, 64, 99, 108, 111)]
    assert names(tmp_path / "all.fail") == bad
    assert len(names(tmp_path / "all.pass")) == 119
    assert "saved all.pass\nsaved all.fail\n" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.fail", "all.pass", "r.json"]


def test_both_are_written_even_where_one_is_empty(tmp_path: Path) -> None:
    (tmp_path / "x.fail").write_text("n9\n")
    told = report(host("n1", passed("a.b", "gpu0", 1, "1"), warm("gpu0", 90)))
    arguments = ("report", stored(tmp_path, "r.json", told), "-q", "--save-hosts", "x")
    assert preflight(*arguments, cwd=tmp_path).rc == 0
    assert (names(tmp_path / "x.pass"), names(tmp_path / "x.fail")) == (["n1"], [])
    assert preflight(*arguments, "--strict", cwd=tmp_path).rc == 1
    assert (names(tmp_path / "x.pass"), names(tmp_path / "x.fail")) == ([], ["n1"])


def test_what_is_no_hosts_name_is_a_comment(tmp_path: Path) -> None:
    good = passed("a.b", "gpu0", 1, "1")
    told = report(host("a capture of n1", good), host("n2\n# n3", good), host("me@n4:2222", good))
    preflight("report", stored(tmp_path, "r.json", told), "-q", "--save-hosts", "x", cwd=tmp_path)
    assert names(tmp_path / "x.pass") == [
        "# no host: a capture of n1", "# no host: n2\\x0a# n3", "me@n4:2222",
    ]  # fmt: skip


def test_a_node_that_slurm_does_not_know_is_a_comment(tmp_path: Path) -> None:
    good = host("n1", passed("a.b", "gpu0", 1, "1"))
    told = report(good, broken("zz", "node-unknown", "zz is no node"), broken("n2", "refused", "x"))
    preflight("report", stored(tmp_path, "r.json", told), "-q", "--save-hosts", "x", cwd=tmp_path)
    assert names(tmp_path / "x.fail") == ["# no host: zz", "n2"]


def test_a_recorded_host_goes_into_them_too(tmp_path: Path) -> None:
    sample = next((SAMPLES / "nvidia_smi_xml").glob("rtx4000*.xml"))
    done = preflight("gpu-health", "--from", f"n1={sample}", "-q", "--save-hosts", "x",
                     cwd=tmp_path)  # fmt: skip
    assert done.rc == 0, done.err
    assert (names(tmp_path / "x.pass"), names(tmp_path / "x.fail")) == (["n1"], [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--save-hosts", "none/x"), "error: --save-hosts none/x.pass: No such file"),
        (("--save-hosts", "out/"), "hint: --save-hosts out/hosts"),
        (("--save-hosts", "x", "--redact"), "error: --save-hosts writes the names that --redact"),
        (("--against", "none.json"), "error: there is no none.json\nhint: a report is made with"),
        (("--against", "."), "error: . cannot be read: Is a directory"),
        (("--against", "x.gz"), "error: x.gz is no JSON"),
        (
            ("--against", "n1.capture.gz"),
            "error: n1.capture.gz is a capture, not a report\n"
            "hint: preflight run --from n1.capture.gz --save report.json",
        ),
        (("--against", "unpacked.jsonl"), "error: unpacked.jsonl is a capture, not a report"),
        (("--against", "no.json"), "error: no.json is no JSON"),
        (("--against", "other.json"), "is no preflight report: its schema is 'x/1'"),
    ],
)
def test_what_cannot_be_is_said_before_the_work(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "no.json").write_text("hello")
    (tmp_path / "x.gz").write_bytes(gzip.compress(b"hello"))
    with Writer(tmp_path / "n1.capture.gz") as writer:
        writer.write(Raw("n1", "identity"))
    unpacked = gzip.decompress((tmp_path / "n1.capture.gz").read_bytes())
    (tmp_path / "unpacked.jsonl").write_bytes(unpacked)
    (tmp_path / "other.json").write_text('{"schema": "x/1"}')
    name = stored(tmp_path, "r.json", cluster())
    for command in (("report", name), ("gpu-health", "--from", name)):
        done = preflight(*command, *arguments, cwd=tmp_path)
        assert (done.rc, done.out) == (2, "")
        assert said in done.err
    assert not list(tmp_path.glob("*.pass")) + list(tmp_path.glob(".*part"))


def test_dry_run_names_the_two_files(tmp_path: Path) -> None:
    done = preflight("gpu-health", "--dry-run", "--save-hosts", "x", cwd=tmp_path)
    assert "would write x.pass, x.fail" in done.out
    assert list(tmp_path.iterdir()) == []


def test_against_tells_what_changed_and_the_verdict_stays(tmp_path: Path) -> None:
    now, then = stored(tmp_path, "now.json", cluster()), stored(tmp_path, "old.json", yesterday())
    done = preflight("report", now, "--against", then, "--save", "both.json", cwd=tmp_path)
    assert done.rc == 1
    assert "since 2026-01-01 03:04:05 UTC: silent on 2 hosts" in done.out
    assert "failed   pcie.width  node[017,042] gpu3  was x16, now x8\n" in done.out
    again = preflight("report", "both.json", cwd=tmp_path)
    assert again.out == done.out


def test_redacted_no_name_is_left_in_what_changed(tmp_path: Path) -> None:
    now, then = stored(tmp_path, "now.json", cluster()), stored(tmp_path, "old.json", yesterday())
    for fmt in ("text", "json", "jsonl", "markdown"):
        done = preflight("report", now, "--against", then, "--redact", "--format", fmt,
                         cwd=tmp_path)  # fmt: skip
        assert done.rc == 1
        assert "node" not in done.out
        assert "silent" in done.out


def test_a_machine_against_its_own_earlier_report(tmp_path: Path) -> None:
    sample = next((SAMPLES / "nvidia_smi_xml").glob("rtx4000*.xml"))
    told = ("gpu-health", "--from", f"n1={sample}")
    preflight(*told, "--save", "old.json", "-q", cwd=tmp_path)
    done = preflight(*told, "--against", "old.json", cwd=tmp_path)
    assert ": nothing changed; 1 host compared\n" in done.out
    (tmp_path / "new.xml").write_text(
        sample.read_text().replace("95.04.53.00.01", "95.04.99.00.01"), encoding="utf-8"
    )
    done = preflight("gpu-health", "--from", "n1=new.xml", "--against", "old.json",
                     "--format", "json", "--save", "x.md", cwd=tmp_path)  # fmt: skip
    assert '"about": "gpus.vbios"' in done.out
    ticket = (tmp_path / "x.md").read_text()
    assert "**changed** gpus.vbios, gpu0, was 95.04.53.00.01, now 95.04.99.00.01" in ticket


def test_of_one_host_that_failed_the_change_is_told(tmp_path: Path) -> None:
    good = passed("pcie.width", "gpu3", "x16", "x16")
    now = stored(tmp_path, "now.json", report(host("n1", width("gpu3", 1))))
    then = stored(tmp_path, "old.json", report(host("n1", good), started_at="2026-01-01T00:00:00Z"))
    done = preflight("report", now, "--against", then, cwd=tmp_path)
    assert "failed   pcie.width  gpu3  was x16, now x8\n" in done.out
