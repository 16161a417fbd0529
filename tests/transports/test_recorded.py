"""--from: names, folders, the standard input, hosts spread over files, and what is refused."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from preflight import pasted
from preflight.capture import Writer
from preflight.errors import UsageError
from preflight.model import Raw
from preflight.probes.nvidia_smi.text import nvidia_smi_text
from preflight.transports.recorded import open_inputs
from tests.conftest import SAMPLES, sample
from tests.peak import PEAK
from tests.transports.whole import Recorded, recorded

Q = SAMPLES / "nvidia_smi_q"
TITAN = str(Q / "titan_v_560.35_workstation.txt")
PAGES = str(Q / "d_page_retirement_535.86_x8_clean.txt")
T4 = str(SAMPLES / "nvidia_smi_xml" / "tesla_t4_515.105.xml")
A10G = str(SAMPLES / "nvidia_smi_xml" / "a10g_515.105.xml")
XID = str(SAMPLES / "kernel_log" / "xid79_then_sxid20034_fatal.log")
TABLE = "nvidia_smi_table/h100_sxm_x8_550.90_idle.txt"
UNREAD = str(sorted((SAMPLES / "kineto").iterdir())[0])


def shape(found: Recorded) -> dict[str, list[str]]:
    return {host: [raw.probe for raw in raws] for host, raws in found.hosts.items()}


def write(path: Path, *raws: Raw) -> Path:
    with Writer(path) as writer:
        for raw in raws:
            writer.write(raw)
    return path


def answer(host: str, probe: str, text: str = "") -> Raw:
    return Raw(host, probe, (probe,), stdout=text or f"{host} {probe}")


def test_raw_outputs_are_one_host() -> None:
    found = recorded(T4, XID)
    assert shape(found) == {"input": ["nvidia-smi", "kernel-log"]}
    assert found.bad == []
    xml, log = found.hosts["input"]
    assert (xml.host, xml.source, xml.argv) == ("input", T4, ())
    assert xml.stdout == sample("nvidia_smi_xml/tesla_t4_515.105.xml")
    assert log.stdout == sample("kernel_log/xid79_then_sxid20034_fatal.log")


def test_a_name_groups_files() -> None:
    found = recorded(f"node-07={T4}", f"node-08={A10G}", f"node-07={XID}", TITAN)
    assert shape(found) == {
        "node-07": ["nvidia-smi", "kernel-log"],
        "node-08": ["nvidia-smi"],
        "input": ["nvidia-smi-q"],
    }
    assert {raw.host for raws in found.hosts.values() for raw in raws} == set(found.hosts)


def test_a_file_whose_name_holds_an_equals_sign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a=b.xml").write_text(sample("nvidia_smi_xml/tesla_t4_515.105.xml"))
    assert shape(recorded("a=b.xml")) == {"input": ["nvidia-smi"]}
    assert shape(recorded("n=a=b.xml")) == {"n": ["nvidia-smi"]}
    assert shape(recorded(tmp_path / "a=b.xml")) == {"input": ["nvidia-smi"]}
    Path("b.xml").write_text(sample("nvidia_smi_xml/tesla_t4_515.105.xml"))
    Path("a=b.xml").unlink()
    assert shape(recorded("a=b.xml")) == {"a": ["nvidia-smi"]}
    with pytest.raises(UsageError, match=r"/a=b\.xml: cannot be read: No such file"):
        recorded(tmp_path / "a=b.xml")


@pytest.mark.parametrize("spec", ["=dmesg.txt", "node-07="])
def test_a_name_or_a_file_is_lacking(spec: str) -> None:
    with pytest.raises(UsageError, match=rf"--from {spec}: expected \[NAME=\]FILE") as raised:
        recorded(spec)
    assert raised.value.hint == "--from node-07=dmesg.txt"


def test_the_standard_input() -> None:
    data = Path(XID).read_bytes()
    found = recorded("-", stdin=data)
    assert shape(found) == {"input": ["kernel-log"]}
    assert found.hosts["input"][0].source == "standard input"
    assert shape(recorded("n=-", T4, stdin=data)) == {"n": ["kernel-log"], "input": ["nvidia-smi"]}
    assert shape(recorded("-", "-", stdin=data)) == {"input": ["kernel-log"]}
    with pytest.raises(UsageError, match="standard input: is empty"):
        recorded("-")


def test_a_capture_on_the_standard_input(tmp_path: Path) -> None:
    path = write(tmp_path / "x.gz", answer("a", "dmesg"), answer("b", "dmesg"))
    for data in (path.read_bytes(), gzip.decompress(path.read_bytes())):
        assert shape(recorded("-", stdin=data)) == {"a": ["dmesg"], "b": ["dmesg"]}
    cut = recorded("-", stdin=path.read_bytes()[:-30])
    assert shape(cut) == {"a": ["dmesg"]}
    assert cut.bad == [("standard input", "cut short after line 2")]


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """As `--from <(ssh node-07 dmesg)` gives it."""
    os.mkfifo(tmp_path / "pipe")
    data = Path(XID).read_bytes()
    feeder = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(data,))
    feeder.start()
    assert shape(recorded(tmp_path / "pipe")) == {"input": ["kernel-log"]}
    feeder.join()


def test_a_folder_is_its_files_by_name(tmp_path: Path) -> None:
    (tmp_path / "b.xml").write_bytes(Path(T4).read_bytes())
    (tmp_path / "a.xml").write_bytes(Path(A10G).read_bytes())
    (tmp_path / "dmesg.txt").write_bytes(Path(XID).read_bytes())
    (tmp_path / ".hidden.txt").write_bytes(Path(TITAN).read_bytes())
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "q.txt").write_bytes(Path(TITAN).read_bytes())
    (tmp_path / "notes.md").write_text("remember the milk\n")
    found = recorded(tmp_path)
    assert shape(found) == {"input": ["nvidia-smi", "kernel-log"]}
    assert found.hosts["input"][0].source == str(tmp_path / "b.xml")  # the later file counts
    what = "not recognised as the output of a known tool"
    refused, displaced = found.bad
    assert refused == (str(tmp_path / "notes.md"), what)
    # A fault in the other file must not go unseen.
    assert displaced[0] == str(tmp_path / "a.xml")
    assert f"{tmp_path}/b.xml answers the same for host input" in displaced[1]
    assert "--from NAME=FILE" in displaced[1]
    assert shape(recorded(f"n={tmp_path}")) == {"n": ["nvidia-smi", "kernel-log"]}
    assert found.notes == [
        f"{tmp_path}: only its files are read, not the folders deeper: --from {tmp_path}/deeper"
    ]
    assert recorded(tmp_path, f"n={tmp_path / 'deeper'}").notes == []
    for number in range(9):
        (tmp_path / f"more{number}").mkdir()
    (note,) = recorded(tmp_path).notes
    assert "the folders deeper, more0, more1, more2, more3 and 5 more: --from" in note


def test_a_folder_without_files(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = recorded(tmp_path, tmp_path / "empty", T4)
    assert found.bad == [
        (str(tmp_path), "holds no files, only folders; name one of them"),
        (str(tmp_path / "empty"), "holds no files"),
    ]
    with pytest.raises(UsageError, match="empty: holds no files"):
        recorded(tmp_path / "empty")


def test_a_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"schema": "preflight.report/1"}')
    found = recorded(UNREAD, T4, tmp_path / "none.txt", tmp_path / "old.json")
    assert shape(found) == {"input": ["nvidia-smi"]}
    kind = "a profiler trace"
    told = f"looks like {kind}: not read yet by this version"
    assert found.bad == [
        (UNREAD, told),
        (str(tmp_path / "none.txt"), "cannot be read: No such file or directory"),
        (str(tmp_path / "old.json"), "is a report, not recorded output"),
    ]


def test_a_mistyped_name_is_answered_by_its_likes_and_no_list_of_tools(tmp_path: Path) -> None:
    (tmp_path / "ibstat.txt").touch()
    for name, hint in {
        "ibstta.txt": f"did you mean {tmp_path / 'ibstat.txt'}?",
        "nccl-job-7.log": f"ls -l {tmp_path}",
        "no-folder/a.txt": f"ls -l {tmp_path / 'no-folder'}",
    }.items():
        with pytest.raises(UsageError, match="cannot be read: No such file") as raised:
            recorded(tmp_path / name)
        assert raised.value.hint == hint


def test_nothing_at_all_could_be_used(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    with pytest.raises(UsageError) as raised:
        recorded(UNREAD, tmp_path / "empty.txt", tmp_path / "none.txt")
    assert raised.value.what.split("\n")[0] == "none of the files could be used:"
    for line in (
        f"{UNREAD}: looks like",
        "empty.txt: is empty",
        "none.txt: cannot be read: No such",
    ):
        assert line in raised.value.what
    assert "nvidia-smi -q -x" in raised.value.hint
    (tmp_path / "old.json").write_text('{"schema": "preflight.report/1"}')
    with pytest.raises(UsageError, match=r"old\.json: is a report") as raised:
        recorded(tmp_path / "old.json")
    assert raised.value.hint == f"preflight report {tmp_path / 'old.json'}"
    with pytest.raises(UsageError) as raised:
        recorded(*(tmp_path / f"{n}.txt" for n in range(80)))
    assert raised.value.what.endswith("and 30 files more")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").touch(0)
    assert recorded(T4, tmp_path / "secret.txt").bad[0][1] == "cannot be read: Permission denied"


def test_a_name_that_is_no_path() -> None:
    found = recorded(T4, "x" * 5000)
    assert found.bad == [("x" * 5000, "cannot be read: File name too long")]


def test_what_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pasted, sys.modules["preflight.transports.one_file"]):
        monkeypatch.setattr(module, "MAX_BYTES", 20_000)
    (tmp_path / "big.log").write_bytes(Path(XID).read_bytes() * 20)
    found = recorded(T4, tmp_path / "big.log")
    ((file, why),) = found.bad
    assert file == str(tmp_path / "big.log")
    assert why.startswith("is over 0 GiB; ")


def test_a_capture_names_its_hosts(tmp_path: Path) -> None:
    path = write(
        tmp_path / "x.gz",
        answer("a", "identity"), answer("a", "dmesg"), answer("b", "dmesg"), answer("a", "late"),
    )  # fmt: skip
    found = recorded(path)
    assert shape(found) == {"a": ["identity", "dmesg", "late"], "b": ["dmesg"]}
    assert found.hosts["a"][0] == answer("a", "identity")
    assert found.bad == []


def test_one_probe_asked_twice_in_one_capture_is_kept_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "x.gz", answer("a", "p", "first"), answer("a", "p", "second"))
    assert [raw.stdout for raw in recorded(path).hosts["a"]] == ["first", "second"]


def test_a_capture_of_one_host_can_be_renamed(tmp_path: Path) -> None:
    one = write(tmp_path / "a.gz", answer("a", "dmesg"), answer("a", "pci"))
    again = write(tmp_path / "again.gz", answer("a", "pci", "later"))
    found = recorded(f"n={one}", f"n={again}", f"n={T4}")
    assert shape(found) == {"n": ["dmesg", "pci", "nvidia-smi"]}
    assert {raw.host for raw in found.hosts["n"]} == {"n"}
    assert found.hosts["n"][1].stdout == "later"


def test_a_name_cannot_be_several_hosts(tmp_path: Path) -> None:
    two = write(tmp_path / "two.gz", answer("a", "dmesg"), answer("b", "dmesg"))
    with pytest.raises(UsageError, match=r"cannot be called n: .* two hosts, a and b") as raised:
        recorded(f"n={two}")
    assert raised.value.hint == f"leave the name out: --from {two}"
    a, b = (write(tmp_path / f"{name}.gz", answer(name, "dmesg")) for name in "ab")
    with pytest.raises(UsageError, match=r"b\.gz cannot be called n: .* two hosts, a and b"):
        recorded(f"n={a}", f"n={b}")
    with pytest.raises(UsageError, match="cannot be called n"):
        next(open_inputs([f"n={a}", f"n={b}"], io.BytesIO()).hosts())
    packed = tmp_path / "twice.gz"
    packed.write_bytes(gzip.compress(two.read_bytes()))
    assert shape(recorded(packed)) == {"a": ["dmesg"], "b": ["dmesg"]}
    with pytest.raises(UsageError, match="cannot be called n"):
        recorded(f"n={packed}")


def test_a_host_in_two_captures_is_one_host(tmp_path: Path) -> None:
    one = write(tmp_path / "1.gz", answer("a", "pci", "old"), answer("a", "os"), answer("b", "os"))
    two = write(tmp_path / "2.gz", answer("c", "os"), answer("a", "pci", "new"))
    found = recorded(one, two)
    assert shape(found) == {"b": ["os"], "c": ["os"], "a": ["pci", "os"]}
    assert [raw.stdout for raw in found.hosts["a"]] == ["new", "a os"]
    assert [raw.stdout for raw in recorded(two, one).hosts["a"]] == ["old", "a os"]


def test_raw_files_add_to_a_host_of_a_capture(tmp_path: Path) -> None:
    path = write(tmp_path / "1.gz", answer("a", "nvidia-smi", "old"), answer("a", "os"))
    found = recorded(path, f"a={T4}", f"a={XID}")
    assert shape(found) == {"a": ["nvidia-smi", "os", "kernel-log"]}
    assert found.hosts["a"][0].source == T4
    assert recorded(f"a={T4}", path).hosts["a"][0].stdout == "old"


def test_sections_add_up_and_the_source_says_where() -> None:
    slow = Q / "d_performance_v100_410.48_no_header.txt"
    [raw] = recorded(PAGES, slow).hosts["input"]
    first, second = sample(f"nvidia_smi_q/{Path(PAGES).name}"), slow.read_text()
    assert raw.stdout == first.lstrip("\n") + second
    begins = first.count("\n") + 1
    assert raw.source == f"{PAGES}, then {slow} from line {begins}"
    assert isinstance(raw.stdout, str)
    at = raw.stdout.split("\n").index("GPU 00000000:18:00.0")
    assert at + 1 + raw.line_offset == begins
    assert len(nvidia_smi_text(raw.stdout).gpus) == 9


def test_the_second_section_keeps_its_lines(tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("see below\n\n" + Path(PAGES).read_text())
    [raw] = recorded(Q / "d_performance_v100_410.48_no_header.txt", tmp_path / "note.txt").hosts[
        "input"
    ]
    begins = int(raw.source.rpartition(" ")[2])
    lines = str(raw.stdout).split("\n")
    for number, line in enumerate(Path(PAGES).read_text().split("\n"), 2):
        assert lines[begins - 1 + number] == line if line else True


def test_a_full_report_replaces_what_came_before() -> None:
    a10 = str(Q / "a10_535.129_row_remap_pending.txt")
    [raw] = recorded(PAGES, TITAN, a10).hosts["input"]
    assert (raw.source, raw.stdout) == (a10, Path(a10).read_text())
    [raw] = recorded(a10, PAGES).hosts["input"]
    assert raw.source.startswith(f"{a10}, then {PAGES} from line ")


def test_the_same_file_counts_once(tmp_path: Path) -> None:
    (tmp_path / "pages.txt").write_bytes(Path(PAGES).read_bytes())
    (tmp_path / "link.txt").symlink_to(tmp_path / "pages.txt")
    [raw] = recorded(tmp_path, tmp_path / "pages.txt", f"{tmp_path}/../{tmp_path.name}").hosts[
        "input"
    ]
    assert str(raw.stdout).count("NVSMI LOG") == 1


def test_damage_is_told_and_the_rest_is_used(tmp_path: Path) -> None:
    whole = write(tmp_path / "a.gz", *(answer(f"n{i}", "dmesg") for i in range(9))).read_bytes()
    (tmp_path / "a.gz").write_bytes(whole[: len(whole) // 2])
    header = b'{"schema":"preflight.capture/1"}\n'
    (tmp_path / "b.jsonl").write_bytes(header)
    (tmp_path / "c.jsonl").write_bytes(header + b"{}\n")
    found = recorded(tmp_path)
    assert 0 < len(found.hosts) < 9
    assert [(Path(file).name, why[:9]) for file, why in found.bad] == [
        ("a.gz", "cut short"), ("b.jsonl", "holds no "), ("c.jsonl", "line 2 is"),
    ]  # fmt: skip


def test_damage_is_told_once_however_often_hosts_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gz", answer("a", "dmesg"))
    path.write_bytes(path.read_bytes()[:-3])
    opened = open_inputs([str(path), UNREAD], io.BytesIO())
    assert [file for file, _ in opened.bad()] == [UNREAD]
    for _ in range(2):
        assert list(opened.hosts()) == [("a", [answer("a", "dmesg")])]
        assert [file for file, _ in opened.bad()] == [UNREAD, str(path)]


def test_hosts_come_one_by_one(tmp_path: Path) -> None:
    for n in range(5):
        write(tmp_path / f"{n}.gz", answer(f"n{n}", "dmesg"))
    opened = open_inputs([str(tmp_path)], io.BytesIO())
    hosts = opened.hosts()
    assert next(hosts)[0] == "n0"
    (tmp_path / "3.gz").write_bytes(b"")  # not yet read a second time
    (tmp_path / "4.gz").unlink()
    assert [host for host, _ in hosts] == ["n1", "n2"]
    assert [why for _, why in opened.bad()] == [
        "cut short after line 1", "cannot be read: No such file or directory",
    ]  # fmt: skip


def test_a_host_whose_second_file_changed_meanwhile_is_not_lost(tmp_path: Path) -> None:
    write(tmp_path / "1.gz", answer("a", "os"), answer("b", "os"))
    write(tmp_path / "2.gz", answer("c", "os"), answer("a", "pci"))
    hosts = open_inputs([str(tmp_path)], io.BytesIO()).hosts()
    assert next(hosts)[0] == "b"
    write(tmp_path / "2.gz", answer("c", "os"))
    assert [(host, len(raws)) for host, raws in hosts] == [("c", 1), ("a", 1)]


def fleet(folder: Path) -> None:
    for n in range(75):
        write(folder / f"{n:03}.gz", answer(f"n{n:03}", "nvidia-smi", "x" * 2_000_000))


def halves(folder: Path) -> None:
    everyone = [answer(f"n{n:03}", "nvidia-smi", "x" * 2_000_000) for n in range(75)]
    write(folder / "1.gz", *everyone)
    write(folder / "2.gz", *everyone)


@pytest.mark.parametrize("make", [fleet, halves])
def test_many_hosts_are_not_all_in_memory(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path)
    ask = (
        f"{PEAK}import io, sys; from preflight.transports.recorded import open_inputs\n"
        "before = peak_kib()\n"
        "print(sum(1 for _ in open_inputs([sys.argv[1]], io.BytesIO()).hosts()))\n"
        "print(peak_kib() - before)\n"
    )
    argv = [sys.executable, "-c", ask, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    hosts, grown_kib = map(int, done.stdout.split())
    assert hosts == 75
    assert grown_kib < 60_000  # of 150 MB


def test_logs_of_one_host_add_up_and_each_is_read_by_itself(tmp_path: Path) -> None:
    from preflight.collect import examine
    from preflight.judge.load import load

    lost, quiet = tmp_path / "kern.log.1", tmp_path / "kern.log"
    lost.write_bytes(Path(XID).read_bytes())
    quiet.write_text("[    0.000000] Linux version 6.8.0\n[    5.000000] usb 1-2: new device\n")
    for order in ((lost, quiet), (quiet, lost)):
        found = recorded(*(f"n={path}" for path in order))
        assert found.bad == []
        assert [raw.probe for raw in found.hosts["n"]] == ["kernel-log", "kernel-log#2"]
        results = examine("n", found.hosts["n"], load(("gpu",)).checks).results
        (fault,) = [one for one in results if one.check == "gpu.xid.79"]
        assert fault.status.value in ("FAIL", "WARN"), order
        assert fault.evidence[0].source == str(lost)
        assert "fallen off the bus" in fault.evidence[0].text


def test_a_table_beside_a_report_in_one_paste_displaces_nothing(tmp_path: Path) -> None:
    report, table = sample("nvidia_smi_q/titan_v_560.35_workstation.txt"), sample(TABLE)
    paste, alone = tmp_path / "paste.txt", tmp_path / "alone.txt"
    paste.write_text(f"$ nvidia-smi\n{table}$ nvidia-smi -q\n{report}")
    alone.write_text(table)
    found = recorded(paste)
    assert shape(found) == {"input": ["nvidia-smi-q", "nvidia-smi-table"]}
    assert found.bad == []
    found = recorded(TITAN, alone)
    assert shape(found) == {"input": ["nvidia-smi-q"]}
    assert [file for file, _ in found.bad] == [str(alone)]


def test_states_and_counters_of_links_add_up(tmp_path: Path) -> None:
    states = SAMPLES / "nvlink/h100_gpu0_status_then_capabilities.txt"
    counters = tmp_path / "e.txt"
    counters.write_text(
        "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1bd2d034-58c6-fca5-99f2-c10d81d49256)\n"
        "\t Link 0: Replay Errors: 0\n"
    )
    found = recorded(states, counters)
    assert shape(found) == {"input": ["nvlink"]}
    assert found.bad == []
    assert "Replay Errors" in str(found.hosts["input"][0].stdout)
