"""preflight explain: ids, numbers, error texts, symptoms; one screen, and honest of its limits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from preflight.cli import explain
from preflight.cli.explain_rows import branches
from preflight.judge.load import DOMAINS, load
from tests.cli.command import preflight
from tests.conftest import sample_bytes

TRACEBACK = """\
[rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=6463, OpType=ALLREDUCE)
[rank5]: Traceback (most recent call last):
[rank5]: RuntimeError: CUDA error: device-side assert triggered
[rank5]: Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (["RuntimeError: CUDA error: device-side assert triggered"], "CUDA error: device-side"),
        (["RuntimeError:", "CUDA", "error:", "out", "of", "memory"], "CUDA out of memory"),
        (["loss is zero"], "The loss is zero"),
        (["loss", "zero"], "The loss is zero"),
        (["util goes up and down"], "The GPUs wait for data"),
        (["all reduce x3 slower"], "All-reduce became slow"),
        (["loss-nan"], "The loss is NaN"),
        (["what does xid 79 mean"], "Xid 79: GPU has fallen off the bus"),
        (["NVRM: Xid (PCI:0000:91:00): 94, pid=1, name=x, Contained"], "Xid 94"),
        (["SXid (PCI:0000:c5:00.0): 20034, Fatal, Link 30"], "SXid 20034"),
        (["20034"], "gpu.sxid.20034"),
        (["gpu.ecc.*"], "12 checks"),
        (["loss"], "loss: which of these?"),
        (["my", "training", "is", "slow"], "my training is slow: which of these?"),
        (["process cannot be killed"], "A process hangs in the kernel"),
        (["Bus error"], "Bus error (SIGBUS)"),
        (["NCCL_IB_TIMEOUT"], "NCCL_IB_TIMEOUT: time until a packet is sent again"),
        (["NCCL_SOCKET_TIMEOUT=60"], "NCCL_SOCKET_TIMEOUT"),
        (["NCCL_NVTX_DISABLE"], "NCCL_NVTX_DISABLE"),
        ([], f"{len(load(DOMAINS).checks)} checks"),
    ],
)
def test_what_is_told_first(words: list[str], first: str) -> None:
    ran = preflight("explain", *words)
    assert (ran.rc, ran.err) == (0, "")
    assert ran.out.startswith(first)
    assert len(ran.out.splitlines()) <= 60


def test_the_overview_folds_domains_of_many_names() -> None:
    told = preflight("explain").out
    assert re.search(r"  gpu\.\* \(\d+\)  ", told)
    assert "network.port.* (" in told
    assert "gpu.ecc" not in told
    assert len(told.splitlines()) <= 50


def test_a_traceback_on_standard_input_or_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "err.txt"
    path.write_text(TRACEBACK, encoding="utf-8")
    for ran in (
        preflight("explain", "-", stdin=TRACEBACK.encode()),
        preflight("explain", str(path)),
        preflight("explain", "err.txt", cwd=tmp_path),
        preflight("explain", TRACEBACK),
    ):
        assert ran.rc == 0
        assert ran.out.startswith("CUDA error: device-side assert triggered   (line 3)\n")
        assert ran.out.index("follows: Watchdog") > ran.out.index("what to do:")
        assert "Hardware: nothing in this text points to it." in ran.out
        assert "more: preflight explain application-fault" in ran.out


def test_lines_count_from_the_beginning_of_a_long_file(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    line = "step 1: all is well here\n"
    count = 12_000_000 // len(line)
    path.write_text(line * count + "RuntimeError: CUDA out of memory.\n", encoding="utf-8")
    ran = preflight("explain", str(path))
    assert ran.out.startswith(f"CUDA out of memory   (line {count + 1})")


def test_an_xid_in_a_log_is_the_root() -> None:
    log = sample_bytes("kernel_log/xid79_then_sxid20034_fatal.log")
    ran = preflight("explain", "-", stdin=b"RuntimeError: CUDA error: unknown error\n" + log)
    told = [ran.out.index(text) for text in ("Xid 79", "also: GPU has fallen", "CUDA error: unk")]
    assert told == sorted(told)


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (["qwertz", "zuiop"], b"", "nothing is known about 'qwertz zuiop'\n"),
        (["nosuch.log"], b"", "'nosuch.log', and there is no such file\n"),
        (["-"], b"", "standard input is empty"),
        (["-"], b"all is well\n", "no error text is known in standard input"),
        (["-"], bytes(range(256)) * 40, "standard input is not text"),
        (["9" * 30], b"", "nothing is known"),
        (["x" * 5000], b"", "xxx...'"),
    ],
)
def test_what_is_not_known_is_said(words: list[str], stdin: bytes, said: str) -> None:
    ran = preflight("explain", *words, stdin=stdin)
    assert (ran.rc, ran.out) == (2, "")
    assert said in ran.err
    assert "hint: " in ran.err
    assert len(ran.err) < 400


def test_text_from_a_file_does_not_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "err.txt"
    path.write_bytes(b"\x1b]0;x\x07CUDA \x1b[31mout of memory\x9b\n")
    assert not set(preflight("explain", str(path)).out) & set("\x1b\x07\x9b")


def test_every_check_is_explained_on_one_screen() -> None:
    from preflight.cli import explain

    for check in load(DOMAINS).checks:
        told = "".join(explain._check(check))
        assert len(told.splitlines()) <= 40, check.id
        assert "what to do:" in told


@pytest.mark.parametrize(
    ("line", "todo"),
    [
        ("154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
         "to do: end its processes, then `sudo nvidia-smi --gpu-reset"),
        ("154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
         "to do: drain the host, then `sudo reboot`"),
        ("154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
         "to do: nothing"),
        ("154, GPU recovery action changed from 0x0 (None) to 0x9 (New)",
         "to do: this action is not known here"),
    ],
)  # fmt: skip
def test_what_the_text_of_an_xid_asks_for(line: str, todo: str) -> None:
    ran = preflight("explain", "-", stdin=f"NVRM: Xid (PCI:0000:3b:00): {line}\n".encode())
    assert todo in ran.out


def test_a_check_tells_what_each_text_of_its_line_asks_for() -> None:
    ran = preflight("explain", "154")
    assert "to 0x1 or (GPU Reset Required): FAIL, reset-gpu: end its processes" in ran.out
    assert "to 0x2 or (Node Reboot Required): FAIL, reboot: drain the host" in ran.out
    assert (
        "register 0, bits 4, 5: parity or ECC error; FAIL, reset-gpu"
        in preflight("explain", "74").out
    )
    assert "NETIR_LINK_EVT, status of any value needs a reset" in preflight("explain", "149").out
    rows = [check for check in load(DOMAINS).checks if check.row.get("by_text")]
    assert all(list(branches(check)) for check in rows)


def test_a_check_over_the_fleet_tells_how_hosts_are_compared() -> None:
    driver = preflight("explain", "fleet.driver.same").out
    assert "compared   between the hosts of one command\n" in driver
    assert "majority   what more than half have is usual" in driver
    assert "--set fleet.driver.same=VALUE" in driver
    assert "srun --exclude='<the odd hosts>'" in driver
    packages = preflight("explain", "fleet.packages.same").out
    assert "compared   between the hosts of one command, among those alike in name\n" in packages
    assert "everywhere what half of the hosts or more have" in packages
    assert "least      6 values" in preflight("explain", "fleet.gpu.temperature").out
    assert "least      1 host\n" in preflight("explain", "fleet.clock.here").out
    assert "fails      unless all within 2%" in preflight("explain", "fleet.memory.same").out
    sysctl = preflight("explain", "fleet.sysctl.same").out
    assert "grep -rF <the odd name>" in sysctl
    for check in load(("fleet",)).checks:
        assert not {"HOSTS", "NAME"} & set(preflight_words(check.id))


def preflight_words(check: str) -> list[str]:
    from preflight.cli import explain

    (found,) = (one for one in load(DOMAINS).checks if one.id == check)
    return re.findall(r"\w+", "".join(explain._check(found)))


def test_versions_known_to_be_bad_are_told_with_who_says_so() -> None:
    told = preflight("explain", "versions.known_bad.nccl_2_29_2").out
    assert "warns      nccl ==2.29.2\n" in told
    assert "source     documented: github.com/pytorch/pytorch/pull/174338" in told


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ("system.limits.memlock", "at least the bound memlock\nbound      16 GiB for buffers that"),
        ("system.cgroup.cores", "bound cores_for_gpus\nbound      Two processors for each GPU."),
        ("system.shm.size", "bound shared_memory\nbound      1 GiB for each GPU, and not more"),
        ("system.shm.size", "bound shared_memory_floor\nbound      More than the 64 MiB that a"),
        ("system.disk.free", "bound disk_floor\nbound      500 MB; of a small file system 5 %"),
        ("gpu.temperature.absolute", "bound      89 C, where the card's own limit is not known"),
        ("topo.file.read", "fails      unless it is read"),
        ("topo.process.cpus", "fails      unless it is near"),
        ("gpu.reset_required", "fails      if it is yes"),
        ("system.limits.configured", "unless equal to the fact configured"),
        ("system.sysctl.unsaved", "warns      unless what was set by hand stands in a file too"),
        ("gpu.present", "judged     by the rule gpu-present"),
    ],
)
def test_what_a_check_holds_its_fact_against(check: str, told: str) -> None:
    assert told in preflight("explain", check).out


def test_each_check_says_when_it_does_not_pass() -> None:
    for check in load(DOMAINS).checks:
        lines = "".join(explain._check(check))
        assert re.search(r"^(fails|warns|judged|status|compared) ", lines, re.MULTILINE), check.id
