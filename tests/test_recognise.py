"""Which tool wrote it: real outputs, pastes, what is refused, and how much time it takes."""

from __future__ import annotations

import gzip
import io
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight import capture, pasted, recognise, signatures
from preflight.errors import UsageError
from preflight.model import Raw
from preflight.pasted import cleaned
from preflight.probes.kernel_log.log import kernel_log
from preflight.probes.nvidia_smi.text import nvidia_smi_text
from preflight.probes.nvidia_smi.xml import nvidia_smi_xml
from tests.conftest import SAMPLES, sample, sample_bytes
from tests.peak import PEAK

PROBES = {
    "nvidia_smi_xml": "nvidia-smi",
    "nvidia_smi_q": "nvidia-smi-q",
    "kernel_log": "kernel-log",
    "lspci": "lspci",
    "lspci_tree": "lspci-tree",
    "hwloc": "hwloc",
    "nvidia_smi_table": "nvidia-smi-table",
    "nvlink": "nvlink",
    "ipmi_sdr": "ipmi-sdr",
    "dcgmi_diag": "dcgmi-diag",
    "dmon": "nvidia-smi-dmon",
    "torch_collect_env": "collect-env",
    "ds_report": "ds-report",
    "infiniband": "ibstat",
    "sysinfo": "sysctl",
    "topo": "nvidia-smi-topo",
}
#: The same where a folder holds the outputs of several tools: how a file's name begins.
PROBES_BY_NAME = {
    "sglang_env": "sglang-env", "ibstatus": "ibstatus", "ibv_devinfo": "ibv_devinfo",
    "lscpu": "lscpu", "numactl": "numactl", "ulimit": "ulimit",
    "h100_x8_p2p": "nvidia-smi-p2p", "k80_x4_p2p": "nvidia-smi-p2p", "l4_x2_p2p": "nvidia-smi-p2p",
}  # fmt: skip
#: What a report holds of other tools: its middle, without the rest, is theirs.
WITHIN = {
    "collect-env": {"lscpu", "env", "nvidia-smi-topo"},
    "sglang-env": {"nvidia-smi-topo"},
}
#: What stands above the first line that a tool is known by: a date, a rule, a prompt.
ABOVE = re.compile(r"(?:\n|-+\n|\w{3} \w{3} [ \d]\d [\d:]{8} \d{4} *\n|\+-+\+\n|\$ .*\n)*")
#: Folder of samples -> what each of its files is called, or may be called, when it is refused.
OTHERS = {
    "kineto": "profiler trace",
    "nccl_flight_recorder": "pickle",
    "nccl_watchdog": "NCCL watchdog report",
    "op_timeline": "profiler trace",
    "training_log": "training log",
}
READ = sorted(path for folder in PROBES for path in (SAMPLES / folder).iterdir())
#: Logs of other programs with lines of NCCL in them, which are read.
WITH_NCCL = {"fsdp_llama3_8b_p5_first_batches.log"}
UNREAD = sorted(
    path for folder in OTHERS for path in (SAMPLES / folder).rglob("*")
    if path.is_file() and path.name not in WITH_NCCL
)  # fmt: skip

ECC = sample("nvidia_smi_q/sram_uncorrectable_volatile1_aggregate5_excerpt.txt")
PAGES = sample("nvidia_smi_q/d_page_retirement_535.86_x8_clean.txt")
SLOWDOWN = sample("nvidia_smi_q/d_performance_v100_410.48_no_header.txt")
TITAN = sample("nvidia_smi_q/titan_v_560.35_workstation.txt")
T4 = sample("nvidia_smi_xml/tesla_t4_515.105.xml") + "\n"
XID = sample("kernel_log/xid79_then_sxid20034_fatal.log")
GSP = sample("kernel_log/xid119_gsp_rpc_timeout_h100.log")
LINKS = sample("nvlink/h100_gpu0_status_then_capabilities.txt")
TABLE = sample("nvidia_smi_table/h100_sxm_x8_555.42_ecc_asterisk.txt")


def probe_of(path: Path) -> str:
    named = (probe for name, probe in PROBES_BY_NAME.items() if path.name.startswith(name))
    return next(named, PROBES[path.parent.name])


def one(data: str | bytes) -> Raw:
    given = data.encode() if isinstance(data, str) else data
    [raw, *within] = recognise.recognise(given, "x.txt")
    if raw.probe in ("collect-env", "sglang-env"):  # see test_enclosed.py
        within = [each for each in within if each.probe != "nvidia-smi-topo"]
    assert not within
    assert raw.source == "x.txt"
    assert raw.argv == ()
    return raw


def probes(text: str) -> list[str]:
    return [raw.probe for raw in recognise.recognise(text.encode(), "x.txt")]


def refused(data: str | bytes, name: str = "x.txt") -> UsageError:
    with pytest.raises(UsageError) as raised:
        recognise.recognise(data.encode() if isinstance(data, str) else data, name)
    assert raised.value.hint
    return raised.value


def same_lines(raw: Raw, source: str) -> None:
    """Every line that was kept stands where it stands in the source."""
    lines = source.split("\n")
    assert isinstance(raw.stdout, str)
    for number, line in enumerate(raw.stdout.split("\n"), raw.line_offset):
        assert line.strip() in lines[number] if line.strip() else True, number


@pytest.mark.parametrize("path", READ, ids=lambda path: path.name)
def test_real_output_is_recognised(path: Path) -> None:
    text = path.read_bytes().decode()
    raw = one(path.read_bytes())
    assert raw.probe == probe_of(path)
    above = ABOVE.match(text)
    assert above
    assert raw.stdout == text[above.end() :]
    assert raw.line_offset == above[0].count("\n")


@pytest.mark.parametrize("path", UNREAD, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_other_output_is_called_by_its_name(path: Path) -> None:
    folder = path.relative_to(SAMPLES).parts[0]
    error = refused(path.read_bytes(), path.name)
    assert re.search(OTHERS[folder], error.what), error.what
    assert "nvidia-smi -q -x" in error.hint


def test_every_sample_has_a_say() -> None:
    # fleet: a capture; nccl_debug, micro_train, stress: see test_nccl_samples, probes; nccl_tests,
    # perftest: see test_benchmark_samples; fio: see test_fio_samples; own: see diagnosis
    elsewhere = {"fleet", "nccl_debug", "nccl_bench", "micro_train", "stress", "nccl_tests",
                 "perftest", "fio", "own"}  # fmt: skip
    known = {*PROBES, *OTHERS, *elsewhere}
    assert {path.name for path in SAMPLES.iterdir()} <= known
    assert len(READ) == 109
    assert len(UNREAD) > 10


@pytest.mark.parametrize("path", READ, ids=lambda path: path.name)
def test_the_middle_of_a_real_output_is_no_other_tool(path: Path) -> None:
    """A file whose beginning is lost is the same tool's, or unknown; never taken for another's."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    for part in (lines[len(lines) // 3 :], lines[: len(lines) // 2], lines[-12:]):
        try:
            found = probes("".join(part))
        except UsageError as error:
            told = "not recognised|is empty|nvidia-smi -L"
            assert re.search(told, error.what), error.what
        else:
            own = probe_of(path)
            assert set(found) <= {own, *WITHIN.get(own, ())}


@pytest.mark.parametrize(
    "line",
    [
        "[   10.735323] pci 0000:04:00.0: 252.048 Gb/s available PCIe bandwidth",
        "[   10.735323][  T812] NVRM: loading",
        "<6>[    2.608284] mlx5_core 0000:41:00.1: firmware version",
        "[Sun Feb 23 16:24:18 2025] NVRM: GPU Board Serial Number: 1443225130333",
        "[Feb23 16:24] NVRM: GPU at PCI:0000:9b:00",
        "[  +0.000004] NVRM: GPU at PCI:0000:9b:00",
        "[  123.456789 <    0.000012>] NVRM: GPU at PCI:0000:9b:00",
        "kern  :err   : [  123.456789] NVRM: GPU at PCI:0000:9b:00",
        "kern  :err   : 2025-02-10T16:28:06,502716+00:00 nvidia-peermem nv_get_p2p_free_callback",
        "2025-02-10T16:28:06,502716+00:00 NVRM: GPU at PCI:0000:9b:00",
        "Aug 17 06:18:01 node-01 systemd-networkd[5398]: ib6: lost carrier",
        "Aug  7 06:18:01 node-01 kernel: NVRM: GPU at PCI:0000:9b:00",
        "Aug 17 06:18:01.123456 node-01 kernel: NVRM: GPU at PCI:0000:9b:00",
        "2025-01-17T17:10:43+0000 node-01 kernel: NVRM: GPU at PCI:0000:9b:00",
        "2025-01-17T17:10:43.123456+00:00 node-01 kernel: [  12.3] NVRM: GPU at PCI:0000:9b:00",
        "Fri 2025-01-17 17:10:43 UTC node-01 kernel: NVRM: GPU at PCI:0000:9b:00",
        "1737135043.123456 node-01 kernel: NVRM: GPU at PCI:0000:9b:00",
        "Jan 17 17:10:43 node-01 nv-fabricmanager[1803]: detected NVSwitch non-fatal error",
        "6,3973,227996636,-;nvidia-peermem nv_get_p2p_free_callback:127 ERROR",
        "[Feb 27 2025 15:10:02] [ERROR] [tid 12727] detected NVSwitch non-fatal error 12028",
        "NVRM: Xid (PCI:0000:10:1c): 63, pid=1896, Row Remapper: New row marked for remapping",
        "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up",
        '{"__CURSOR":"s=1","__REALTIME_TIMESTAMP":"1737135043123456","MESSAGE":"NVRM: x"}',
        '{"MESSAGE":"NVRM: Xid","_TRANSPORT":"kernel","__REALTIME_TIMESTAMP":"1737135043123456"}',
        "-- Journal begins at Fri 2025-01-17 17:10:43 UTC, ends at Fri 2025-01-17 17:10:44 UTC. --",
        "dmesg-erst-7530486857247752194:",
        "2025-02-23 16:24:18 NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
        "[2025-02-23T16:24:18.500000+00:00] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off",
        "Feb 23 16:24:18 node-01 kern.warn kernel: NVRM: loading",
        "kernel: NVRM: loading",
        "pcieport 0000:80:01.0: AER: Corrected error received",
        "[    0.000000] Linux version 6.8.0 (buildd@lcy02-amd64-044) # dmesg",
    ],
)
def test_every_form_of_a_kernel_log(line: str) -> None:
    assert one(f"{line}\nthat, and a line that is nobody's\n").probe == "kernel-log"


@pytest.mark.parametrize(
    "line",
    [
        "[1598362423.123456] [node-01:1234 :0] parser.c:1600 UCX  WARN unused env variable",
        "[    14.502] (--) NVIDIA(0): Valid display device(s)",  # Xorg
        "[2023-08-02 00:41:17,526] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW!",
        "Aug 17 06:18:01 node-01 python[5398]: NVRM is not loaded",
        "2025-06-17 16:23:09 I [train.py:156] Creating Model",
        "NVRM version: none",
        "CUDA Version        : 12.2",  # nvidia-smi --version
        "Product Name          : PowerEdge R740",  # ipmitool fru
        "    Temperature  : 40",
        "the GPU 00000000:18:00.0 has fallen off",
        "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-144eeaaf-284c-bd7f-510d-bbfc975d69e3)",
        '<?xml version="1.0"?>\n<domain type="kvm">\n',
        "error: no devices were found in the list",
        "I ran nvidia-smi -q and NVIDIA-SMI has failed because of me",
        "step 5: Failed to initialize NVML: Unknown Error",
        "https://example.org/NVSMI LOG",
    ],
)
def test_what_only_looks_like_it(line: str) -> None:
    refused(f"{line}\n")


@pytest.mark.parametrize(
    "text",
    [
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
        "that the latest NVIDIA driver is installed and running.\n",
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.1\n",
        "Failed to initialize NVML: Unknown Error\r\n",
        "No devices were found\n",
        "Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error\n",
        "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\n",
        "Unable to determine the device handle for GPU2: 0000:3E:00.0: GPU is lost.\n",
    ],
)
def test_what_the_driver_says_in_place_of_a_report(text: str) -> None:
    raw = one(text)
    assert raw.probe == "nvidia-smi-q"
    assert raw.stdout == text.replace("\r", "")
    assert nvidia_smi_text(str(raw.stdout))


def test_a_sentence_is_a_line_not_all_that_follows() -> None:
    raw = one("step 1\nFailed to initialize NVML: Unknown Error\nstep 2\nstep 3\n")
    assert raw.stdout == "Failed to initialize NVML: Unknown Error\n"
    assert raw.line_offset == 1
    within = (
        SLOWDOWN + "Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error\n"
    )
    other = SLOWDOWN.replace("GPU 00000000:18", "GPU 00000000:3C")
    assert one(within + other).stdout == within + other


def test_a_sentence_beside_xml_goes_with_it() -> None:
    lost = "Unable to determine the device handle for GPU 0000:3B:00.0: Unknown Error\n"
    within = T4.replace("</nvidia_smi_log>", lost + "</nvidia_smi_log>")
    for text in (within, lost + T4, T4 + lost, lost + "\n" + T4, T4[:4000] + "\n" + lost):
        raw = one(text)
        assert (raw.probe, raw.stdout) == ("nvidia-smi", text)
        assert "00000000:3b:00.0" in [gpu.bus_id for gpu in nvidia_smi_xml(str(raw.stdout)).gpus]
    apart = f"$ nvidia-smi\n{lost}$ nvidia-smi -q -x\n{T4}$ dmesg\n{XID}"
    log, xml = recognise.recognise(apart.encode(), "x.txt")
    assert (log.stdout, xml.stdout, xml.line_offset) == (XID, f"{lost}\n{T4}", 1)
    assert len(nvidia_smi_xml(str(xml.stdout)).gpus) == 2
    beside_text = one(f"{lost}{SLOWDOWN}")
    assert (beside_text.probe, beside_text.stdout) == ("nvidia-smi-q", lost + SLOWDOWN)


@pytest.mark.parametrize(
    "prompt",
    [
        "root@node-07:~# ", "[user@node ~]$ ", "[root@node-07 data set]# ", "$ ", "# ", "$ sudo ",
        "(base) user@node-07:/data/my runs$ ", "PS C:\\Users\\me> ", "C:\\Users\\me>", "sh-4.4# ",
        "node-07:~ # ", "user@node% ", "➜ ", "$ LC_ALL=C ", "$ /usr/bin/", "$ sudo -n /usr/bin/",
    ],
)  # fmt: skip
def test_prompts_cut_and_belong_to_nothing(prompt: str) -> None:
    text = (
        f"{prompt}nvidia-smi -q -d PERFORMANCE\n{SLOWDOWN}{prompt}dmesg | tail\n{XID}"
        f"{prompt}nvidia-smi -q -x\n{T4}{prompt}exit\nlogout\n"
    )
    found = {raw.probe: raw for raw in recognise.recognise(text.encode(), "x.txt")}
    assert {probe: raw.stdout for probe, raw in found.items()} == {
        "kernel-log": XID,
        "nvidia-smi": T4,
        "nvidia-smi-q": SLOWDOWN,
    }
    for raw in found.values():
        same_lines(raw, text)
    assert found["nvidia-smi-q"].line_offset == 1
    assert found["kernel-log"].line_offset == SLOWDOWN.count("\n") + 2


def test_a_bare_prompt_ends_an_output() -> None:
    assert one(f"{XID}[root@node-07 ~]# \nsome words\n").stdout == XID
    assert one(f"{SLOWDOWN}user@node-07:~$\n").stdout == SLOWDOWN


@pytest.mark.parametrize(
    "value",
    [
        "root@node-07:~# nvidia-smi -q", "$ nvidia-smi", "[user@node ~]$ dmesg | tail",
        "==============NVSMI LOG==============", "[  123.456789] NVRM: Xid (PCI:0000:9b:00): 79",
        "GPU 00000000:18:00.0", "No devices were found", "<nvidia_smi_log>", "PyTorch version: 2",
        "torch==2.5.1", "NCCL_DEBUG=INFO", "vm.swappiness = 1",
        "```", "bash -c echo $ cat", "iteration 1/ 2",
    ],
)  # fmt: skip
def test_a_value_is_never_a_cut(value: str) -> None:
    text, count = re.subn(r"( {8,}(?:Name|Type) +: ).*", lambda found: found[1] + value, TITAN)
    assert count >= 3
    assert one(text).stdout == text
    log = GSP.replace("name=nvidia-smi", f"name={value}")
    assert log.count(value) >= 1
    assert one(log).stdout == log
    xml = T4.replace("<product_name>Tesla T4", f"<product_name>\n{value}\n")
    assert value in xml
    assert one(xml).stdout == xml


def test_lines_of_other_programs_in_a_system_log_are_part_of_it() -> None:
    log = (
        "Aug 17 06:18:01 node-01 kernel: NVRM: GPU at PCI:0000:9b:00\n"
        "Aug 17 06:18:01 node-01 python[7]: PyTorch version: 2.1\n"
        "Aug 17 06:18:01 node-01 sudo: me : TTY=pts/0 ; COMMAND=/usr/bin/nvidia-smi -q\n"
    )
    assert one(log).stdout == log
    assert "no line of the kernel" in refused("Aug 17 06:18:01 node-01 python[7]: step 5\n").what


def test_sections_in_one_paste_are_one_answer_with_their_own_lines() -> None:
    slowdown = SLOWDOWN.replace("GPU 00000000:18", "GPU 00000001:00")
    text = (
        f"what I see:\n\n$ nvidia-smi -q -d PAGE_RETIREMENT\n{PAGES}$ dmesg\n{XID}"
        f"$ nvidia-smi -q -d PERFORMANCE\n{slowdown}$ dmesg -T\n{GSP}and so on\n"
    )
    log, smi = recognise.recognise(text.encode(), "x.txt")
    assert (log.probe, smi.probe) == ("kernel-log", "nvidia-smi-q")
    same_lines(log, text)
    same_lines(smi, text)
    assert isinstance(smi.stdout, str)
    assert smi.stdout.replace("\n\n", "").count("$") == 0
    assert smi.stdout.startswith(PAGES.lstrip("\n"))
    assert smi.stdout.endswith(slowdown)
    assert "Xid" not in smi.stdout
    assert isinstance(log.stdout, str)
    assert "Retired Pages" not in log.stdout
    assert len(kernel_log(log.stdout).xids) == len(kernel_log(XID + GSP).xids)


def test_no_prompt_is_needed_between_two_tools() -> None:
    log, xml, text = recognise.recognise(f"{XID}\n{T4}\n{SLOWDOWN}".encode(), "x.txt")
    assert (log.stdout, xml.stdout, text.stdout) == (f"{XID}\n", T4, SLOWDOWN)
    table, below = TABLE, TABLE[TABLE.index("| NVIDIA-SMI") :]
    for paste in (f"{table}{XID}{LINKS}", f"{XID}{table}{LINKS}", f"{LINKS}{XID}{table}"):
        log, smi, links = recognise.recognise(paste.encode(), "x.txt")
        assert (log.probe, smi.probe, links.probe) == ("kernel-log", "nvidia-smi-table", "nvlink")
        assert str(log.stdout).startswith(XID)
        assert (smi.stdout, str(links.stdout)[: len(LINKS)]) == (below, LINKS)
        for raw in (log, smi, links):
            same_lines(raw, paste)
    report, smi = recognise.recognise(f"{SLOWDOWN}{table}".encode(), "x.txt")
    assert str(report.stdout).startswith(SLOWDOWN)
    assert "| NVIDIA" not in str(report.stdout)
    assert smi.stdout == below
    with pytest.raises(UsageError, match=r"holds 2 reports of nvidia-smi$"):
        recognise.recognise(f"{table}{XID}{table}".encode(), "x.txt")


@pytest.mark.parametrize("text", [TABLE, LINKS])
def test_tables_and_links_are_known_however_they_were_pasted(text: str) -> None:
    whole = one(text)
    for paste in (
        text.replace("\n", "\r\n"),
        "".join(f"    {line}\n" for line in text.splitlines()),
        "".join(f"> {line}\n" for line in text.splitlines()),
        f"root@node-07:~# nvidia-smi\n{text}root@node-07:~# echo done\ndone\n",
        f"It says:\n\n```\n{text}```\nand that is all.\n",
    ):
        found = one(paste)
        assert found.probe == whole.probe
        lines = [line.strip() for line in str(found.stdout).splitlines() if line.strip()]
        assert lines == [line.strip() for line in str(whole.stdout).splitlines() if line.strip()]


@pytest.mark.parametrize(
    "line",
    [
        "GPU 0: a (UUID: x" + " " * 80, "GPU 0: a (UUID: > > > > > > > > > >",
        "GPU 0: (UUID: (UUID: x",
        "| NVIDIA-SMI", "|          NVIDIA-SMI 5",
    ],
)  # fmt: skip
def test_no_list_of_gpus_takes_long(line: str) -> None:
    text = f"{line}\n" * (200_000 // len(line))
    start = time.perf_counter()
    with pytest.raises(UsageError):
        recognise.recognise(text.encode(), "x.txt")
    assert time.perf_counter() - start < 2


def test_a_gpu_without_links_is_among_those_with_links() -> None:
    header = "GPU {}: NVIDIA RTX A6000 (UUID: GPU-0000feed-0000-4000-8000-00000000000{})\n"
    links = "\t Link 0: 14.062 GB/s\n\t Link 1: 14.062 GB/s\n"
    text = header.format(0, 0) + header.format(1, 1) + links + header.format(2, 2)
    assert one(text).stdout == text
    listed = header.format(0, 0) + header.format(1, 1)
    assert "nvidia-smi -L" in refused(listed).what


def test_a_kernel_message_on_the_console_does_not_end_a_report() -> None:
    lines = TITAN.splitlines(keepends=True)
    message = "[  123.456789] NVRM: Xid (PCI:0000:9b:00): 79, GPU has fallen off the bus.\n"
    lines.insert(40, message)
    log, smi = recognise.recognise("".join(lines).encode(), "x.txt")
    assert log.stdout == message
    assert log.line_offset == 40
    lines[40] = "\n"
    assert smi.stdout == "".join(lines)


def test_two_xml_reports_in_one_file_are_refused_and_none_is_passed_over() -> None:
    cut = T4[: len(T4) // 2] + "\n"
    assert one(cut).stdout == cut
    flat, unended = T4.replace("\n", ""), T4.removesuffix("\n")
    bare = T4[T4.index("<nvidia_smi_log>") :]
    texts = [T4 + T4, T4 + cut, cut + T4, cut + cut, flat + "\n" + flat, flat + flat, bare + bare]
    for text in (*texts, unended + T4, unended + cut, T4 + XID + T4, f"$ nvidia-smi\n{T4}{T4}"):
        error = refused(text)
        assert error.what == "x.txt holds 2 reports of nvidia-smi -q -x"
        assert "give each its own file, --from NAME=FILE" in error.hint
    assert refused(T4 * 3).what.startswith("x.txt holds 3 reports")


H100 = sample("nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt")
THROTTLED = sample("nvidia_smi_q/h100_sxm_x8_535.183_one_gpu_throttled.txt")
A10 = sample("nvidia_smi_q/a10_535.129_row_remap_pending.txt")


@pytest.mark.parametrize(
    "text",
    [
        A10 + H100,
        H100 + THROTTLED,
        A10 + A10.replace("GPU 00000000:07", "GPU 00000000:08"),
        f"$ nvidia-smi -q\n{A10}$ dmesg\n{XID}$ nvidia-smi -q\n{TITAN}",
        PAGES + PAGES.replace("Attached GPUs                             : 8", "Attached GPUs : 4"),
        PAGES + PAGES.replace("GPU 00000001", "GPU 0000000A"),
    ],
    ids=["models", "drivers", "buses", "prompts", "numbers", "more GPUs than announced"],
)
def test_the_text_reports_of_two_hosts_are_not_one_host(text: str) -> None:
    error = refused(text)
    assert error.what == "x.txt holds 2 reports of nvidia-smi -q"
    assert "give each its own file, --from NAME=FILE" in error.hint


def test_polls_of_one_host_are_refused_for_the_last_would_hide_the_others() -> None:
    later = H100.replace(": 56 C", ": 57 C")
    assert refused(H100 + later).what == "x.txt holds 2 reports of nvidia-smi -q"
    assert "(-l)" in refused(H100 + later).hint
    for section in (PAGES, SLOWDOWN):
        assert refused(section * 3).what == "x.txt holds 3 reports of nvidia-smi -q"


def test_a_full_report_and_a_section_of_the_same_host_are_one_answer() -> None:
    head, gpu = A10[: A10.index("    Product Name")], "    ECC Mode\n        Current : Enabled\n"
    assert one(A10 + head + gpu).stdout == A10.lstrip("\n") + head + gpu


def test_the_warning_of_a_corrupted_inforom_goes_with_its_report() -> None:
    said = "WARNING: infoROM is corrupted at gpu 0000:00:1E.0\n"
    for text in (said + T4, T4 + said, T4 + "\n" + said, T4.replace("</nvidia", f"{said}</nvidia")):
        raw = one(text)
        assert (raw.probe, raw.stdout) == ("nvidia-smi", text)
    assert one(f"step 1\n{said}step 2\n").stdout == said
    assert one(TITAN + said).stdout == TITAN + said


def test_the_blanks_of_web_pages_and_mails_are_blanks() -> None:
    for blank in "\xa0\u2007\u202f":
        assert one(PAGES.replace(" ", blank)).stdout == PAGES.lstrip("\n")


def test_after_a_cut_document_others_are_still_seen() -> None:
    cut = T4[:3000] + "\n"
    log, xml = recognise.recognise(f"{cut}$ dmesg\n{XID}".encode(), "x.txt")
    assert (log.stdout, xml.stdout) == (XID, cut)


@pytest.mark.parametrize("added", ["    ", "\t", "> ", ">> ", "  > ", "        "])
def test_what_was_put_before_every_line_is_taken_off(added: str) -> None:
    for text in (PAGES, ECC, XID, T4):
        quoted = re.sub("^", added, text, flags=re.MULTILINE).removesuffix(added)
        stripped = quoted.replace(f"\n{added}\n", f"\n{added.rstrip()}\n")
        for paste in (quoted, stripped):
            raw = one(f"Hello,\n\n{paste}\nThanks\n")
            assert str(raw.stdout).strip("\n") == text.strip("\n")
            same_lines(raw, f"Hello,\n\n{paste}\nThanks\n")


def test_indentation_of_one_line_only_stays() -> None:
    text = f" {PAGES.lstrip()}"
    assert one(text).stdout == PAGES.lstrip()
    assert one(ECC).stdout == ECC
    below = ECC + "        ECC Errors\n            Volatile\n"  # of a MIG instance, deeper
    assert one(below).stdout == below


def test_markdown_fences_bound_an_output() -> None:
    text = f"Look:\n```\n{SLOWDOWN}```\nand\n```text\n{XID}```\nHelp!\n"
    log, smi = recognise.recognise(text.encode(), "x.txt")
    assert (log.stdout, smi.stdout) == (XID, SLOWDOWN)


def test_script_and_its_typing_errors() -> None:
    text = (
        'Script started on 2025-01-02 03:04:05+00:00 [TERM="xterm"]\r\n'
        "\x1b]0;root@node-07: ~\x07\x1b[01;32mroot@node-07\x1b[00m:\x1b[01;34m~\x1b[00m# "
        "lss\b \b\b\x1b[Knvidia-smi -q\r\n"
        + PAGES.replace("\n", "\r\n")
        + "\x1b[?2004hroot@node-07:~# exit\r\nexit\r\n\r\nScript done on 2025-01-02 03:05:05\r\n"
    )
    raw = one(text)
    assert raw.stdout == PAGES.lstrip("\n")
    assert raw.line_offset == 3


def test_colours_and_bold_of_a_terminal() -> None:
    coloured = re.sub(r"^(\[.*?\])", "\x1b[32m\\1\x1b[0m", XID, flags=re.MULTILINE)
    assert coloured.count("\x1b") > 10
    assert one(coloured).stdout == XID
    assert one(XID.replace("Xid", "X\bXi\bid\bd")).stdout == XID  # nroff's bold
    link = "\x1b]8;;https://example.org\x1b\\NVRM\x1b]8;;\x1b\\"
    assert one(XID.replace("NVRM", link)).stdout == XID


@pytest.mark.parametrize("text", [PAGES, XID, T4, TITAN])
def test_encodings_and_line_ends_of_other_systems(text: str) -> None:
    for data in (
        text.encode("utf-8-sig"),
        text.encode("utf-16"),
        b"\xff\xfe" + text.replace("\n", "\r\n").encode("utf-16-le"),
        b"\xfe\xff" + text.encode("utf-16-be"),
        text.encode("utf-16-le"),
        text.encode("utf-16-be"),
        text.replace("\n", "\r\n").encode(),
        text.replace("\n", "\r\r\n").encode(),
        text.replace("\n", "\r").encode(),
        gzip.compress(text.encode()),
        gzip.compress(gzip.compress(text.encode())),
    ):
        assert str(one(data).stdout).rstrip("\n") == text.lstrip("\n").rstrip("\n")


def test_a_line_stays_a_line() -> None:
    """What splits a line for Python but not for an editor, or for neither, adds no line."""
    odd = "a\x0bb\x0cc\x1cd\x85e\u2028f\rg\x00h\xff"
    raw = one(XID.replace("Fatal,", odd + ","))
    assert str(raw.stdout).count("\n") == XID.count("\n")
    assert len(str(raw.stdout).splitlines()) == len(XID.splitlines())
    assert "a b c d e f gh\xff," in str(raw.stdout)
    assert one(XID.encode().replace(b"Fatal", b"F\xfft\xe9")).stdout == XID.replace(
        "Fatal", "F\ufffdt\ufffd"
    )


def test_a_crash_leaves_zeros_in_a_log() -> None:
    assert one(XID.encode() + b"\0" * 8192 + GSP.encode()).stdout == XID + GSP


def test_what_is_cut_says_so() -> None:
    packed = gzip.compress(XID.encode() * 100)
    raw = one(packed[:-20])
    assert raw.truncated
    assert XID in str(raw.stdout)
    assert not one(packed).truncated


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "x.txt is empty"),
        (b" \r\n\n\t", "x.txt is empty"),
        (b"\xef\xbb\xbf\r\n", "x.txt is empty"),
        (gzip.compress(b"", mtime=0), "x.txt is empty"),
        (b"hello\n", "x.txt: not recognised as the output of a known tool"),
        (bytes(range(256)) * 100, "x.txt is not text"),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0" * 9, "x.txt is not text"),
        (b"PK\x03\x04\x14\0", "x.txt is a zip archive"),
        (b"\x89PNG\r\n\x1a\n", "x.txt is a picture; the text is needed"),
        (b"\x80\x02}q\0", "never loaded"),
        (b"\xfd7zXZ\0\0", "unpack it with `xz -dk`"),
        (b'{"schema": "preflight.report/1", "hosts": []}', "x.txt is a report"),
        (b'\n{"hosts": [],\n "schema":"preflight.report/1"}', "x.txt is a report"),
        (b'{"schema":"preflight.capture/9"}\n', "has the form preflight.capture/9"),
    ],
)
def test_what_is_refused(data: bytes, said: str) -> None:
    assert said in refused(data).what


def test_a_report_is_shown_by_another_command() -> None:
    error = refused(b'{"schema": "preflight.report/1"}', "old.json")
    assert error.hint == "preflight report old.json"


def test_an_archive_is_to_be_unpacked() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        info = tarfile.TarInfo("dmesg.txt")
        info.size = len(XID)
        archive.addfile(info, io.BytesIO(XID.encode()))
    assert "a tar archive; unpack it" in refused(buffer.getvalue()).what


def test_the_limit_of_size(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (pasted, recognise):
        monkeypatch.setattr(module, "MAX_BYTES", len(XID))
    assert one(XID).stdout == XID
    for data in (XID.encode() + b"\n", gzip.compress(XID.encode() * 1000)):
        error = refused(data, "big.log")
        assert error.what.startswith("big.log is over ")
        assert error.hint.startswith("grep ")


def test_captures_are_recognised(tmp_path: Path) -> None:
    raws = [Raw("node-01", "dmesg", ("dmesg",), 0, XID), Raw("node-02", "nvidia-smi", stdout=T4)]
    with capture.Writer(tmp_path / "x.capture.gz") as writer:
        writer.write(raws)
    data = (tmp_path / "x.capture.gz").read_bytes()
    assert recognise.recognise(data, "x") == raws
    assert recognise.recognise(gzip.decompress(data), "x") == raws
    assert recognise.recognise(gzip.compress(data), "x") == raws


def test_links_without_their_devices_are_refused_with_what_to_give() -> None:
    whole = (SAMPLES / "lspci/xe9680_h100_x8_cx7_vvv_devices.txt").read_text()
    links = [line for line in whole.split("\n") if re.search("LnkCap:|LnkSta:", line)]
    for blanks in ("\t\t", "        ", ""):
        text = "\n".join(f"{blanks}{line.strip()}" for line in links)
        with pytest.raises(UsageError, match=r"without the devices.*not read in this form") as told:
            recognise.recognise(text.encode(), "x.txt")
        assert "grep -E '^[0-9a-f]|LnkCap:|LnkSta:'" in told.value.hint
    kept = [line for line in whole.split("\n") if re.search("^[0-9a-f]|LnkCap:|LnkSta:", line)]
    for text in ("\n".join(kept), "\n".join(kept).replace("\t", "    ")):
        (raw,) = recognise.recognise(text.encode(), "x.txt")
        assert raw.probe == "lspci" and str(raw.stdout).count("LnkSta:") == len(links) // 2


def test_readers_read_what_was_cut_out() -> None:
    text = f"$ nvidia-smi -q\n{TITAN}$ nvidia-smi -q -x\n{T4}$ dmesg\n{XID}"
    log, xml, smi = recognise.recognise(text.encode(), "x.txt")
    assert nvidia_smi_text(str(smi.stdout)) == nvidia_smi_text(TITAN)
    assert nvidia_smi_xml(str(xml.stdout)) == nvidia_smi_xml(T4)
    assert kernel_log(str(log.stdout)) == kernel_log(XID)


def test_no_pattern_has_a_group_of_its_own() -> None:
    for name, patterns in (signatures.TOOLS | signatures.KNOWN_BUT_UNREAD).items():
        for pattern in (*patterns, *signatures.INDENTED.get(name, ())):
            assert re.compile(pattern).groups == 0, pattern
    others = (*signatures.BOUNDARIES, *signatures.PROMPTS, *signatures.SENTENCES)
    assert all(re.compile(pattern).groups == 0 for pattern in others)
    assert signatures.INDENTED.keys() <= signatures.TOOLS.keys() >= signatures.GOES_ON.keys()


@given(st.binary(max_size=4000))
def test_any_bytes_are_refused_in_order(data: bytes) -> None:
    try:
        recognise.recognise(data, "x")
    except UsageError as error:
        assert error.what


FRAGMENTS = [
    "[  1.000000] NVRM: x\n", "<nvidia_smi_log>\n", "</nvidia_smi_log>\n", "    ECC Errors\n",
    "$ dmesg\n", "```\n", "> ", "    ", "\t", "\n", "text\n", "GPU 00000000:18:00.0\n", "\r", "\b",
    "\x1b[31m", "\x1b]0;", "        Used : 1\n", "No devices were found\n", "| NVIDIA-SMI 535 |\n",
    '<?xml version="1.0"?>\n', "\0", "é\n", "Aug 17 06:18:01 n kernel: x\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=40))
def test_any_mixture_keeps_each_line_in_its_place(fragments: list[str]) -> None:
    text = "".join(fragments)
    try:
        raws = recognise.recognise(text.encode(), "x")
    except UsageError:
        return
    told = cleaned(text)
    for raw in raws:
        assert raw.probe in signatures.TOOLS
        assert str(raw.stdout).strip()
        same_lines(raw, told)


def test_a_log_of_80_mb_in_seconds_and_about_three_times_its_size(tmp_path: Path) -> None:
    log = sample_bytes("kernel_log/boot_xe9680_h100_mlx5_insufficient_power.log")
    path = tmp_path / "big.log"
    with path.open("wb") as file:
        for _ in range(80_000_000 // len(log)):
            file.write(log)
    ask = (
        f"{PEAK}import sys; from pathlib import Path\n"
        "from preflight.recognise import recognise\n"
        "[raw] = recognise(Path(sys.argv[1]).read_bytes(), 'x')\n"
        "print(raw.probe, len(raw.stdout), peak_kib())\n"
    )
    began = time.perf_counter()
    argv = [sys.executable, "-c", ask, str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=100)
    probe, length, peak_kib = done.stdout.split()
    assert (probe, int(length)) == ("kernel-log", path.stat().st_size)
    assert time.perf_counter() - began < 60  # measured: 2 s
    assert int(peak_kib) * 1024 < 3 * path.stat().st_size


@pytest.mark.parametrize(
    "line", ["> " * 500_000, " " * 1_000_000 + "x", "\n" * 1_000_000 + "x", "x" * 1_000_000,
             "a" * 60 + "@" + "b " * 400_000, "\b" * 500_000, "\x1b" * 500_000, "# " * 400_000,
             "<?xml ?>\n<nvidia_smi_log>\n" * 20_000, "[" * 500_000, "{" * 500_000],
    ids=range(11),
)  # fmt: skip
def test_no_line_takes_long(line: str) -> None:
    began = time.perf_counter()
    try:
        recognise.recognise(line.encode(), "x")
    except UsageError as error:
        assert "x" in error.what
    assert time.perf_counter() - began < 5


def test_a_log_glued_to_the_end_of_a_report_is_not_passed_over() -> None:
    assert "joined in the middle of a line" in refused(T4.rstrip("\n") + XID).what
    assert len(recognise.recognise((T4 + XID).encode(), "x.txt")) == 2
