"""`preflight versions --lock` and `--against` a lock, on this machine and on recorded hosts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from preflight.capture import Writer
from preflight.model import Raw
from tests.cli.command import Ran, preflight
from tests.conftest import SAMPLES, sample

ONLY = ("--only", "versions.lock.*", "--color", "never")


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder of packages that this machine's Python finds first."""
    folder = tmp_path / "site"
    for name in ("torch-2.5.1+cu124", "flash_attn-2.6.3", "triton-3.1.0"):
        (folder / f"{name}.dist-info").mkdir(parents=True)
    put_torch(folder, "2.5.1+cu124")
    return folder


def put_torch(folder: Path, version: str) -> None:
    """What would be imported counts, and this machine may have a torch of its own."""
    (folder / "torch").mkdir(exist_ok=True)
    (folder / "torch" / "version.py").write_text(f"__version__ = {version!r}\ncuda = None\n")


@pytest.fixture
def run(packages: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    path = os.pathsep.join(filter(None, (str(packages), os.environ.get("PYTHONPATH"))))
    monkeypatch.setenv("PYTHONPATH", path)
    monkeypatch.setenv("NCCL_DEBUG", "WARN")
    return preflight


def entries(lock: Path) -> dict[str, str]:
    found = json.loads(lock.read_text(encoding="utf-8"))["entries"]
    return {f"{one['kind']} {one['name']}": one["value"] for one in found}


def note(lock: Path, name: str, text: str) -> None:
    """What a person writes into a lock."""
    document = json.loads(lock.read_text(encoding="utf-8"))
    for one in document["entries"]:
        if one["name"] == name:
            one["note"], one["since"] = text, "2024-09-30"
    lock.write_text(json.dumps(document, indent=1), encoding="utf-8")


def test_what_is_locked_passes_and_what_is_changed_is_named(
    tmp_path: Path, packages: Path, run: Callable[..., Ran]
) -> None:
    lock = tmp_path / "env.lock.json"
    made = run("versions", "--lock", str(lock), *ONLY)
    assert made.rc == 0, made.err
    assert f"wrote {lock}: " in made.err
    found = entries(lock)
    assert found["package torch"] == "2.5.1+cu124"
    assert found["env NCCL_DEBUG"] == "WARN"
    assert found["kernel linux"] == Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert run("versions", "--against", str(lock), *ONLY).rc == 0

    note(lock, "torch", "verified with FSDP")
    (packages / "torch-2.5.1+cu124.dist-info").rename(packages / "torch-2.6.0+cu124.dist-info")
    put_torch(packages, "2.6.0+cu124")
    (packages / "flash_attn-2.6.3.dist-info").rmdir()
    (packages / "xformers-0.0.28.dist-info").mkdir()
    ran = run("versions", "--against", str(lock), *ONLY, "--format", "json")
    assert ran.rc == 1
    report = json.loads(ran.out)
    results = {one["subject"]: one for one in report["hosts"][0]["results"]}
    assert {name for name, one in results.items() if one["status"] == "FAIL"} == {
        "package torch", "package flash-attn",
    }  # fmt: skip
    torch = results["package torch"]
    assert (torch["measured"], torch["expected"]) == ("2.6.0+cu124", "2.5.1+cu124")
    assert torch["reason"] == "newer, locked at 2.5.1+cu124 since 2024-09-30: verified with FSDP"
    assert "locked for more than 12 months: package torch 2.5.1" in " ".join(report["hints"])


def test_what_is_new_is_listed_and_no_fault(
    tmp_path: Path, packages: Path, run: Callable[..., Ran]
) -> None:
    lock = tmp_path / "env.lock.json"
    assert run("versions", "--lock", str(lock), *ONLY).rc == 0
    (packages / "xformers-0.0.28.dist-info").mkdir()
    ran = run("versions", "--against", str(lock), *ONLY, "-v")
    assert ran.rc == 0
    assert "not in the lock: package xformers" in " ".join(ran.out.split())


def test_a_variable_that_is_new_is_a_warning(
    tmp_path: Path, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "env.lock.json"
    assert run("versions", "--lock", str(lock), *ONLY).rc == 0
    monkeypatch.setenv("NCCL_ALGO", "Tree")
    ran = run("versions", "--against", str(lock), *ONLY, "--format", "json")
    results = json.loads(ran.out)["hosts"][0]["results"]
    assert [one["subject"] for one in results if one["status"] == "WARN"] == ["env NCCL_ALGO"]
    meant = ("--set", "versions.lock.new=[NCCL_ALGO]")
    assert "WARN " not in run("versions", "--against", str(lock), *ONLY, *meant).out


def test_no_secret_is_locked_or_told(
    tmp_path: Path, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, report = tmp_path / "env.lock.json", tmp_path / "report.json"
    for name in ("OMP_PASSPHRASE", "NCCL_Password", "NCCL_JWT"):
        monkeypatch.setenv(name, "hunter2")
    assert run("versions", "--lock", str(lock), *ONLY).rc == 0
    assert entries(lock)["env NCCL_JWT"] == "***"
    ran = run("versions", "--against", str(lock), "--save", str(report), "--facts", "-v")
    for text in (lock.read_text(), report.read_text(), ran.out):
        assert "hunter2" not in text


def test_a_lock_that_holds_secrets_tells_none(tmp_path: Path, run: Callable[..., Ran]) -> None:
    lock = tmp_path / "env.lock.json"
    told = [{"kind": "env", "name": name, "value": "hunter2"} for name in ("NCCL_JWT", "NCCL_KEY")]
    lock.write_text(json.dumps({"schema": "preflight.lock/1", "entries": told}))
    ran = run("versions", "--against", str(lock), *ONLY, "-v")
    assert "env NCCL_JWT" in ran.out
    assert "hunter2" not in ran.out


def test_notes_and_dates_are_kept_when_the_lock_is_written_again(
    tmp_path: Path, packages: Path, run: Callable[..., Ran]
) -> None:
    lock = tmp_path / "env.lock.json"
    run("versions", "--lock", str(lock), *ONLY)
    note(lock, "torch", "why")
    note(lock, "triton", "why too")
    (packages / "triton-3.1.0.dist-info").rename(packages / "triton-3.2.0.dist-info")
    assert run("versions", "--lock", str(lock), *ONLY).rc == 0
    found = {one["name"]: one for one in json.loads(lock.read_text())["entries"]}
    assert (found["torch"]["since"], found["torch"]["note"]) == ("2024-09-30", "why")
    assert found["triton"]["value"] == "3.2.0"
    assert found["triton"]["note"] == ""
    assert found["triton"]["since"] > "2026"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--lock", "no/such/folder/x.json"), "there is no directory"),
        (("--lock", "."), "is a directory"),
        (("--lock", "other.txt"), "there is another file, and no lock"),
        (("--lock", "/dev/full"), "is no plain file"),
        (("--lock", "/dev/stdout"), "is no plain file"),
        (("--lock", "/dev/zero"), "is no plain file"),
        (("--lock", "-"), "is no plain file"),
        (("--against", "/dev/zero"), "is no plain file"),
        (("--against", "."), "Is a directory"),
        (("--against", "empty.lock.json"), "no entry is in it"),
        (("--against", "large.lock.json"), "large.lock.json is over 16 MiB"),
        (("--against", "broken.lock.json"), "broken.lock.json:"),
        (("--against", "good.lock.json", "--lock", "x.lock.json"), "leave one of them out"),
    ],
)
def test_what_cannot_be_is_refused_at_once(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "other.txt").write_text("dear diary")
    (tmp_path / "broken.lock.json").write_text('{"schema": "preflight.lock/1",\n "entries": [')
    (tmp_path / "empty.lock.json").write_text('{"schema": "preflight.lock/1", "entries": []}')
    with (tmp_path / "large.lock.json").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "good.lock.json").write_text(
        '{"schema": "preflight.lock/1", "entries":\n'
        '[{"kind": "package", "name": "torch", "value": "2.5.1"}]}'
    )
    ran = preflight("versions", *arguments, cwd=tmp_path)
    assert (ran.rc, ran.out) == (2, "")
    assert ran.err.startswith("error: ")
    assert said in ran.err.replace("\n", " ")
    assert "hint: " in ran.err
    assert (tmp_path / "other.txt").read_text() == "dear diary"


def test_a_dry_run_names_the_lock(tmp_path: Path) -> None:
    ran = preflight("versions", "--lock", "x.lock.json", "--dry-run", cwd=tmp_path)
    assert "would write x.lock.json" in ran.out
    assert not (tmp_path / "x.lock.json").exists()


def test_gpu_health_says_who_compares_locks(tmp_path: Path) -> None:
    lock = tmp_path / "env.lock.json"
    lock.write_text(
        '{"schema": "preflight.lock/1", "entries":\n[{"kind": "a", "name": "b", "value": ""}]}'
    )
    ran = preflight("gpu-health", "--against", str(lock))
    assert ran.rc == 2
    assert "preflight versions" in ran.err


def captured(folder: Path, name: str, torch: str) -> str:
    path = folder / f"{name}.capture.gz"
    packages = f"python 3.11.4 /usr/bin/python3\npackage torch {torch}\nend\n"
    with Writer(path) as writer:
        writer.write(
            [
                Raw(name, "identity", ("sh",), 0, f"hostname {name}\nkernel 5.15.0-94\nuid 0\n"),
                Raw(name, "packages", ("python3",), 0, packages),
            ]
        )
    return str(path)


def test_hosts_that_differ_give_no_lock_and_are_named(tmp_path: Path) -> None:
    lock = tmp_path / "env.lock.json"
    hosts = [captured(tmp_path, f"gpu-{at}", "2.5.1" if at < 4 else "2.4.0") for at in range(1, 5)]
    given = [word for host in hosts for word in ("--from", host)]
    ran = preflight("versions", *given, "--lock", str(lock))
    assert ran.rc == 2
    assert "package torch: 2.5.1 on gpu-[1-3], 2.4.0 on gpu-4" in ran.err
    assert not lock.exists()
    assert [name.name for name in tmp_path.glob(".*")] == []
    ran = preflight("versions", *given[:6], "--lock", str(lock))
    assert ran.rc == 0, ran.err
    assert entries(lock)["package torch"] == "2.5.1"
    ran = preflight("versions", *given, "--against", str(lock), *ONLY)
    assert ran.rc == 1
    assert "package torch" in ran.out
    assert "gpu-4" in ran.out


def test_what_cannot_be_compared_is_no_pass(tmp_path: Path) -> None:
    lock = tmp_path / "env.lock.json"
    good = captured(tmp_path, "gpu-1", "2.5.1")
    assert preflight("versions", "--from", good, "--lock", str(lock)).rc == 0
    bad = tmp_path / "bad.capture.gz"
    with Writer(bad) as writer:
        identity = Raw("gpu-2", "identity", ("sh",), 0, "hostname gpu-2\nkernel 5.15.0-94\nuid 0\n")
        writer.write([identity, Raw("gpu-2", "packages", ("python3",), 1, "", "Traceback")])
    ran = preflight("versions", "--from", str(bad), "--against", str(lock), *ONLY)
    assert ran.rc == 3
    assert "ERROR" in ran.out


def test_stored_reports_are_not_compared_with_a_lock(tmp_path: Path) -> None:
    lock, report = tmp_path / "env.lock.json", tmp_path / "report.json"
    host = captured(tmp_path, "gpu-1", "2.5.1")
    assert preflight("versions", "--from", host, "--lock", str(lock), "--save", str(report)).rc == 0
    ran = preflight("report", str(report), "--against", str(lock))
    assert ran.rc == 2
    assert "is a lock, not a report" in ran.err


def test_what_the_host_says_it_has_not_is_gone(tmp_path: Path) -> None:
    lock = tmp_path / "env.lock.json"
    lock.write_text(
        '{"schema": "preflight.lock/1", "entries": [\n'
        '{"kind": "driver", "name": "nvidia", "value": "550.90.07"},\n'
        '{"kind": "package", "name": "torch", "value": "2.5.1"}]}'
    )
    for container, rc in (("", 1), ("container_file /.dockerenv\n", 0)):
        path = tmp_path / "host.capture.gz"
        identity = f"hostname gpu-1\nkernel 5.15.0-94\nuid 0\n{container}"
        packages = "python 3.11.4 /usr/bin/python3\npackage torch 2.5.1\nend\n"
        with Writer(path) as writer:
            writer.write(
                [
                    Raw("gpu-1", "identity", ("sh",), 0, identity),
                    Raw("gpu-1", "pci", ("sh",), 0, "end\n"),
                    Raw("gpu-1", "nvidia-smi", ("nvidia-smi",), 127),
                    Raw("gpu-1", "packages", ("python3",), 0, packages),
                ]
            )
        ran = preflight("versions", "--from", str(path), "--against", str(lock), *ONLY)
        assert ran.rc == rc, ran.out
        assert ("driver nvidia" in ran.out) is (rc == 1)


COLLECT_ENV = "torch_collect_env/vllm_h100_x8_vm_torch2.5.1_cu124_ngc23.10.txt"


def test_what_a_report_tells_is_locked_too(tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text(
        sample(COLLECT_ENV)
        .replace("550.90.12", "525.105.17")
        .replace("build PyTorch: 12.4", "build PyTorch: 12.1")
        .replace("H100 80GB HBM3", "H200")
    )
    lock = str(tmp_path / "l.json")
    assert preflight("versions", "--from", str(SAMPLES / COLLECT_ENV), "--lock", lock).rc == 0
    ran = preflight(
        "versions",
        "--from",
        str(tmp_path / "new.txt"),
        "--against",
        lock,
        *ONLY,
        "--format",
        "json",
    )
    failed = {one["subject"] for one in json.loads(ran.out)["hosts"][0]["results"]
              if one["status"] == "FAIL"}  # fmt: skip
    assert {"driver nvidia", "torch cuda", "gpu model"} <= failed


def test_a_value_that_is_not_kept_is_not_compared(
    tmp_path: Path, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = str(tmp_path / "l.json")
    monkeypatch.setenv("NCCL_FOO", "one")
    run("versions", "--lock", lock, *ONLY)
    monkeypatch.setenv("NCCL_FOO", "two")
    ran = run("versions", "--against", lock, *ONLY, "-v")
    assert ran.rc == 0
    assert re.search(r"\b1 more by\s+name\s+alone", ran.out)


def test_a_lock_of_what_read_no_variables_says_nothing_of_new_ones(tmp_path: Path) -> None:
    lock = str(tmp_path / "l.json")
    smi = str(SAMPLES / "nvidia_smi_q" / "h100_sxm_x8_535.161_power_brake.txt")
    assert preflight("versions", "--from", smi, "--lock", lock).rc == 0
    ran = preflight("versions", "--from", str(SAMPLES / COLLECT_ENV), "--against", lock, *ONLY)
    assert "made where no variable was read" in " ".join(ran.out.split())


def test_a_choice_of_checks_that_reads_nothing_gives_no_lock(tmp_path: Path) -> None:
    ran = preflight("versions", "--only", "versions.env.*", "--lock", str(tmp_path / "l.json"))
    assert ran.rc == 2
    assert "--only or --skip" in ran.err
