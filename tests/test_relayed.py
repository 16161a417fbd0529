"""What pipes, collectors and output modes make of a log is read as the log, or told to be split."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest

from preflight.errors import UsageError
from preflight.facts.kernel import KernelLog
from preflight.probes.kernel_log.log import kernel_log
from preflight.recognise import recognise

X79 = "NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=python, GPU has fallen off the bus."
DMESG = [
    "[  100.000001] usb 1-2: new device",
    f"[  101.000002] {X79}",
    "[  102.000003] usb 1-2: gone",
]
SYSLOG = [f"Nov 29 10:00:0{n} node01 kernel: {line[15:]}" for n, line in enumerate(DMESG)]
STAMP = "2026-11-29T10:00:00.123456789Z"
JOURNAL = {"__REALTIME_TIMESTAMP": "1795946400123456", "_TRANSPORT": "kernel", "MESSAGE": X79}


def log_of(text: str) -> KernelLog:
    (raw,) = recognise(text.encode(), "x.log")
    assert raw.probe == "kernel-log"
    found = kernel_log(str(raw.stdout))
    # Lines count as in the source, also where the log begins below its first.
    (one,) = found.xids
    assert "Xid" in text.split("\n")[one.line + raw.line_offset - 1]
    return found


PREFIXES = {
    "grep -n": "{n}:",
    "grep -n -C 1": "{n}-",
    "grep in files": "/var/log/messages:",
    "grep -n in files": "/var/log/messages.1:{n}:",
    "cri": STAMP + " stdout F ",
    "cri stderr": "2026-11-29T10:00:00.1234567+01:00 stderr F ",
    "kubectl logs --timestamps": STAMP + " ",
    "pdsh": "node01: ",
    "srun -l": "0: ",
}


@pytest.mark.parametrize("lines", [DMESG, SYSLOG], ids=["dmesg", "syslog"])
@pytest.mark.parametrize("prefix", PREFIXES.values(), ids=PREFIXES)
def test_what_stands_before_each_line_is_taken_off(prefix: str, lines: list[str]) -> None:
    text = "\n".join(prefix.format(n=n) + line for n, line in enumerate(lines, 7))
    found = log_of(text)
    assert (found.lines, found.unread) == (3, ())
    assert found.clock == ("boot" if lines is DMESG else "wall")


def test_lines_that_a_container_runtime_cut_are_joined() -> None:
    head, tail = DMESG[1][:40], DMESG[1][40:]
    lines = [f"{STAMP} stdout F {DMESG[0]}", f"{STAMP} stdout P {head}",
             f"{STAMP} stderr F [  101.5] other", f"{STAMP} stdout F {tail}"]  # fmt: skip
    assert log_of("\n".join(lines)).xids[0].text == "GPU has fallen off the bus."
    (raw,) = recognise("\n".join(lines[:2]).encode(), "x.log")  # the rest is not there
    assert [one.line for one in kernel_log(str(raw.stdout)).unread] == [2]


def test_a_wrapped_line_without_a_time_has_that_of_its_wrapping() -> None:
    found = log_of(f"{STAMP} stdout F usb 1-2: new device\n{STAMP} stdout F {X79}\n")
    assert (found.clock, found.utc) == ("wall", True)
    found = log_of("\n".join(f"{STAMP} stdout F {json.dumps(JOURNAL)}" for _ in range(1)))
    assert found.xids[0].at_s == pytest.approx(1795946400.123456)


def test_several_hosts_in_one_text_are_refused_with_what_to_do() -> None:
    text = "\n".join(f"node0{n}: {line}" for n in (1, 2) for line in DMESG)
    with pytest.raises(UsageError) as raised:
        recognise(text.encode(), "x.log")
    assert "several hosts: node01, node02" in raised.value.what
    assert "dshbak" in raised.value.hint


MODES = {
    "dmesg -J": json.dumps(
        {"dmesg": [{"pri": 6, "time": 100.000001, "msg": "usb 1-2: new"},
                   {"pri": 3, "time": 101.000002, "msg": X79}]}, indent=3),
    "export": f"__CURSOR=s=a\n__REALTIME_TIMESTAMP=1795946400123456\nMESSAGE={X79}\n"
              "SYSLOG_IDENTIFIER=kernel\n_TRANSPORT=kernel\n\n__CURSOR=s=b\nMESSAGE=usb\n",
    "verbose": "Sun 2026-11-29 10:00:00.123456 UTC [s=a;i=1]\n    _TRANSPORT=kernel\n"
               f"    MESSAGE={X79}\nSun 2026-11-29 10:00:01.123456 UTC [s=a;i=2]\n"
               "    MESSAGE=usb\n",
    "json-pretty": json.dumps({"__CURSOR": "s=a", **JOURNAL}, indent=8),
}  # fmt: skip


@pytest.mark.parametrize("text", MODES.values(), ids=MODES)
def test_output_modes_with_a_record_in_many_lines(text: str) -> None:
    found = log_of(text)
    expected = 101.000002 if '"dmesg"' in text else 1795946400.123456
    assert found.xids[0].at_s == pytest.approx(expected)


@pytest.mark.parametrize(
    ("line", "date"),
    [
        ("11月 29 10:00:00 h kernel: {}", "Nov 29"), (" 3月  3 10:00:00 h kernel: {}", "Mar  3"),
        ("nov. 29 10:00:00 h kernel: {}", "Nov 29"), ("Mär  3 10:00:00 h kernel: {}", "Mar  3"),
        ("déc. 24 10:00:00 h kernel: {}", "Dec 24"), ("апр 24 10:00:00 h kernel: {}", "Apr 24"),
        ("[Sa Nov 28 10:00:00 2026] {}", "[Sat Nov 28"),
        ("[六 11月 28 10:00:00 2026] {}", "[Sat Nov"),
        ("[sam. nov. 28 10:00:00 2026] {}", "[Sat Nov 28"),
    ],
)  # fmt: skip
def test_dates_in_other_languages(line: str, date: str) -> None:
    (raw,) = recognise((line.format(X79) + "\n").encode(), "x.log")
    assert str(raw.stdout).startswith(date)
    assert kernel_log(str(raw.stdout)).xids[0].at_s is not None


def test_dmesg_with_dates_and_differences() -> None:
    found = log_of(f"[Sun Nov 29 10:00:00 2026 <    0.000003>] {X79}\n")
    assert found.clock == "wall"


def test_what_is_not_read_says_which_form_is() -> None:
    with pytest.raises(UsageError) as raised:
        recognise(f"<td>x</td> {X79}\n".encode(), "x.log")
    assert "journalctl -k -o short-iso" in raised.value.hint


@pytest.mark.parametrize(
    "piece",
    [
        "a.b-" * 40,
        f"{STAMP} stdout P x\n",
        "node: " * 9 + "\n",
        '"x": "\\',
        "__CURSOR=\n",
        "nov. 29 ",
    ],
)
def test_hostile_text_takes_linear_time(piece: str) -> None:
    begin = f"{STAMP} stdout F a\n__CURSOR=\n1:{DMESG[0]}\nnov. 29 10:00:00 h kernel: x\n"
    text = begin + piece * (500_000 // len(piece))
    started = time.process_time()
    with suppress(UsageError):
        recognise(text.encode(), "x.log")
    assert time.process_time() - started < 3
