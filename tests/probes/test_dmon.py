# ruff: noqa: E501 - the tables are as wide as they are printed
"""The tables of nvidia-smi dmon and dcgmi dmon: column sets, versions, several GPUs, no values."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.errors import ParseError, UsageError
from preflight.facts.watch import Span, Watch, WatchedGpu
from preflight.model import Missing
from preflight.probes.dcgm.dmon import dcgm_dmon
from preflight.probes.nvidia_smi.dmon import nvidia_smi_dmon
from preflight.recognise import recognise
from tests.conftest import sample
from tests.written import DCGM_DMON

#: `nvidia-smi dmon -s pucvmet -o DT` as driver 570 prints it, of two GPUs.
NEW = """\
#Date        Time         gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk  pviol  tviol     fb   bar1   ccpm  sbecc  dbecc    pci  rxpci  txpci
#YYYYMMDD    HH:MM:SS     Idx      W      C      C      %      %      %      %      %      %    MHz    MHz      %   bool     MB     MB     MB   errs   errs   errs   MB/s   MB/s
 20260816    23:59:58       0    601     60     71     99     40      0      0      0      0   2619   1755     80      0  70000      5      0      1      0      0   1500    900
 20260816    23:59:58       1    611     61     72     98     40      0      0      0      0   2619   1750     82      1  70001      5      0      0      0      7   1500    900
#Date        Time         gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk  pviol  tviol     fb   bar1   ccpm  sbecc  dbecc    pci  rxpci  txpci
#YYYYMMDD    HH:MM:SS     Idx      W      C      C      %      %      %      %      %      %    MHz    MHz      %   bool     MB     MB     MB   errs   errs   errs   MB/s   MB/s
 20260817    00:00:00       0    605     62     73     97     42      0      0      0      0   2619   1745     84      0  70000      5      0      4      2      0   1700   1100
 20260817    00:00:00       1    615     63     74     96     42      0      0      0      0   2619   1740     86      1  70001      5      0      0      0     27   1700   1100
"""
#: `-s pucvmet` of drivers before 390: one temperature, called temp.
OLD = """\
# gpu   pwr  temp    sm   mem   enc   dec  mclk  pclk pviol tviol    fb  bar1 sbecc dbecc   pci rxpci txpci
# Idx     W     C     %     %     %     %   MHz   MHz     %  bool    MB    MB  errs  errs  errs  MB/s  MB/s
    0     -    50    91    66     0     0  3504  1784     0     0  3945     2     -     -     0  1732   535
    1     -    47     0     0     0     0  3504  1341     0     0  3741     2     -     -     0     0     0
"""


def gpus(told: Watch) -> tuple[WatchedGpu, ...]:
    assert not isinstance(told.gpus, Missing)
    return told.gpus


def median(value: Any) -> float:
    assert isinstance(value, Span), value
    return value.median


def test_all_columns_with_date_and_time_across_midnight() -> None:
    told = nvidia_smi_dmon(NEW)
    assert (told.interval_s, told.interval_basis) == (2, "measured")
    first, second = gpus(told)
    assert (first.samples, first.watched_s, first.line) == (2, 2, 3)
    assert median(first.power_w) == 603
    assert (median(first.gpu_c), median(first.memory_c)) == (61, 72)
    assert (median(first.sm_mhz), median(first.memory_mhz)) == (1750, 2619)
    assert median(first.memory_used_bytes) == 70000 * 2**20
    assert median(first.pcie_rx_gbps) == pytest.approx(1.6)
    assert first.busy_percent == 98
    assert (first.growth.ecc_corrected, first.growth.ecc_uncorrected) == (3, 2)
    assert (second.growth.pcie_replays, second.growth.pcie_replays_per_min) == (20, 20)
    assert first.throttle.thermal_violation_percent == 0
    assert second.throttle.thermal_violation_percent == 100
    assert first.throttle.power_violation_percent == 82


def test_the_line_that_shows_it() -> None:
    locate = nvidia_smi_dmon.probe.locate  # type: ignore[attr-defined]
    assert locate(NEW, 3, "growth.ecc_uncorrected") == 7
    assert locate(NEW, 4, "growth.pcie_replays") == 8
    assert locate(NEW, 4, "throttle.thermal_violation_percent") == 4
    assert locate(NEW, 4, "behind_busiest_percent") == 4


def test_old_names_and_dashes() -> None:
    first, second = gpus(nvidia_smi_dmon(OLD))
    assert isinstance(first.power_w, Missing)
    assert first.power_w.kind == "not-applicable"
    assert isinstance(first.growth.ecc_corrected, Missing)
    assert median(first.gpu_c) == 50
    assert (first.busy_percent, second.behind_busiest_percent) == (91, 91)
    assert isinstance(first.growth.pcie_replays, Missing)
    assert "growth needs two" in first.growth.pcie_replays.text


@pytest.mark.parametrize(
    "columns", ["pwr gtemp mtemp", "sm mem enc dec jpg ofa", "mclk pclk", "pviol tviol", "fb bar1",
                "sbecc dbecc pci", "rxpci txpci", "pwr gtemp mtemp gract smutil"],
)  # fmt: skip
@pytest.mark.parametrize("times", ["", "Time", "Date Time"])
@pytest.mark.parametrize("comma", ["", ","])
def test_every_set_of_columns_is_read_and_recognised(columns: str, times: str, comma: str) -> None:
    names = [*times.split(), "gpu", *columns.split()]
    units = [
        {"Date": "YYYYMMDD", "Time": "HH:MM:SS", "gpu": "Idx"}.get(name, "W") for name in names
    ]
    row = {"Date": "20260102", "Time": "03:04:05", "gpu": "0"}
    lines = [
        "#" + f"{comma} ".join(names),
        "#" + f"{comma} ".join(units),
        *([f"{comma} ".join(row.get(name, "1") for name in names)] * 3),
    ]
    text = "\n".join(lines) + "\n"
    (gpu,) = gpus(nvidia_smi_dmon(text))
    assert gpu.samples == 3
    assert [raw.probe for raw in recognise(text.encode(), "x")] == ["nvidia-smi-dmon"]


@pytest.mark.parametrize(
    ("name", "samples", "busy"),
    [
        ("one_gpu_7000mhz_ramp_up", 9, 75),
        ("one_gpu_video_transcode_15s", 6, 44),
        ("gtx1650ti_wsl_sm_mem_dashes", 2, None),
    ],
)
def test_samples(name: str, samples: int, busy: float | None) -> None:
    (gpu,) = gpus(nvidia_smi_dmon(sample(f"dmon/{name}.txt")))
    assert gpu.samples == samples
    if busy is None:
        assert isinstance(gpu.busy_percent, Missing)
    else:
        assert gpu.busy_percent == busy
    assert isinstance(gpu.memory_c, Missing)


def test_a_video_engine_at_its_limit_and_the_clock_at_rest() -> None:
    (gpu,) = gpus(nvidia_smi_dmon(sample("dmon/one_gpu_video_transcode_15s.txt")))
    assert isinstance(gpu.encoder_percent, Span)
    assert isinstance(gpu.sm_mhz, Span)
    assert (gpu.encoder_percent.max, gpu.sm_mhz.min) == (100, 405)


@pytest.mark.parametrize("keep", [1, 12, 40])
def test_a_table_cut_in_a_row_is_read_to_the_row_before(keep: int) -> None:
    lines = OLD.splitlines(keepends=True)
    (gpu,) = gpus(nvidia_smi_dmon("".join(lines[:3]) + lines[3][:keep]))
    assert gpu.name == "gpu0"


@pytest.mark.parametrize(
    "text",
    ["", "# gpu pwr\n", "0 12\n", "# gpu pwr\n0 1 2\n0 1\n", "# gpu pwr\nx 12\n", "# gpu pid type\n0 1 C\n",
     "# gpu pwr\nGPU is lost\n0 1\n"],
)  # fmt: skip
def test_what_is_no_table(text: str) -> None:
    with pytest.raises(ParseError):
        nvidia_smi_dmon(text)


def test_dcgm_by_its_short_names() -> None:
    told = dcgm_dmon(DCGM_DMON)
    assert (told.ended, told.interval_s) == ("interrupted", 1)
    assert "default" in told.interval_basis
    first, second = gpus(told)
    assert (median(first.sm_mhz), median(first.memory_mhz)) == (1755, 2619)
    assert (median(first.gpu_c), median(first.memory_c)) == (60.5, 70.5)
    assert median(first.power_w) == pytest.approx(690.623)
    assert median(first.sm_active_percent) == pytest.approx(90.2)
    assert median(first.tensor_active_percent) == pytest.approx(61.1)
    assert median(first.dram_active_percent) == pytest.approx(45.5)
    assert median(first.nvlink_tx_gbps) == pytest.approx(21)
    assert first.busy_percent == pytest.approx(99.1)
    assert second.throttle.hw_power_brake_percent == 100
    assert second.throttle.hw_unnamed_percent == 0
    assert isinstance(first.pcie_rx_gbps, Missing)


def test_the_fields_1001_to_1003_are_no_clocks() -> None:
    text = "#Entity   GRACT        SMACT        SMOCC\nID\n" + (
        "GPU 0     0.991        0.950        0.512\n" * 3
    )
    (gpu,) = gpus(dcgm_dmon(text))
    assert isinstance(gpu.sm_mhz, Missing)
    assert isinstance(gpu.memory_mhz, Missing)
    assert (median(gpu.sm_active_percent), median(gpu.sm_occupancy_percent)) == (95, 51.2)


@pytest.mark.parametrize(
    "text",
    [
        "# Entity  SMCLK  POWER\n      Id\n    GPU 0  1755  690.1\n    GPU 0  N/A  691\n",
        "#Entity   SMCLK  POWER\nID               W\nGPU 0     1755   690.1\nGPU-I 3   N/A    N/A\n"
        "Switch 0  N/A    N/A\n#Entity   SMCLK  POWER\nID               W\nGPU 0     1755   691\n",
    ],
)
def test_dcgms_older_layout_and_other_entities(text: str) -> None:
    (gpu,) = gpus(dcgm_dmon(text))
    assert gpu.samples == 2
    assert median(gpu.power_w) == pytest.approx(690.55, abs=0.01)
    assert [raw.probe for raw in recognise(text.encode(), "x")] == ["dcgmi-dmon"]


@pytest.mark.parametrize(
    "text",
    ["", "#Entity SMCLK\nID\n", "#Entity SMCLK\nGPU 0 1 2\n", "#Entity SMCLK\nGPU x 1\n",
     "Error: unable to establish a connection to the specified host: localhost\n"],
)  # fmt: skip
def test_what_is_no_table_of_dcgm(text: str) -> None:
    with pytest.raises(ParseError):
        dcgm_dmon(text)


@pytest.mark.parametrize(("name", "text"), [("nvidia-smi-dmon", NEW), ("dcgmi-dmon", DCGM_DMON)])
def test_it_is_recognised_however_it_was_pasted(name: str, text: str) -> None:
    xml = sample("nvidia_smi_xml/tesla_t4_515.105.xml")
    log = "[    0.000000] Linux version 6.8.0\n[   12.000000] usb 1-2: new device\n"
    command = "nvidia-smi dmon" if "smi" in name else "dcgmi dmon -e 100"
    prompted = f"root@node-07:~# {command}\n{text}root@node-07:~# \n"
    for pasted in (text.replace("\n", "\r\n"), prompted, f"see below\n\n{text}",
                   "".join(f"    {line}\n" for line in text.splitlines()),
                   f"{xml}\n{text}{log}", f"{log}$ {command}\n{text}"):  # fmt: skip
        found = {raw.probe: raw for raw in recognise(pasted.encode(), "x")}
        assert name in found, pasted[:200]
        parse = nvidia_smi_dmon if "smi" in name else dcgm_dmon
        assert len(gpus(parse(str(found[name].stdout)))) == 2


def test_pmon_is_another_table() -> None:
    with pytest.raises(UsageError, match="pmon"):
        recognise(b"# gpu        pid  type    sm   mem\n# Idx          #   C/G     %     %\n", "x")


_WORDS = st.sampled_from(["#", "gpu", "Idx", "pwr", "0", "1", "-", "N/A", "GPU", "Entity", "POWER",
                          "ID", "9" * 30, "\n", "\n", "Date", "Time", "99999999", "25:61:00"])  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(_WORDS, max_size=40))
def test_nothing_but_a_parse_error_is_raised(words: list[str]) -> None:
    for head, parse in (("# gpu pwr\n", nvidia_smi_dmon), ("#Entity POWER\n", dcgm_dmon)):
        try:
            parse(head + " ".join(words))
        except ParseError:
            continue


@pytest.mark.parametrize(
    ("text", "parse"),
    [("\n".join(OLD.splitlines()[:3]) + "\n", nvidia_smi_dmon), (DCGM_DMON.split("\n\n")[0] + "\n", dcgm_dmon)],
)  # fmt: skip
def test_a_megabyte_takes_less_than_a_second(text: str, parse: Any) -> None:
    row = text.splitlines(keepends=True)[-1]
    began = time.process_time()
    parse(text + row * (1_000_000 // len(row)))
    parse(text + "9" * 1_000_000) if parse is nvidia_smi_dmon else None
    assert time.process_time() - began < 2


#: Of eight GPUs, `nvidia-smi dmon -s p`: sample by sample.
def _rows(
    samples: int, row: Any, *, head: str = "# gpu    pwr  gtemp\n# Idx      W      C\n"
) -> str:
    rows = [told for at in range(samples) for gpu in range(8) if (told := row(gpu, at))]
    return head + "".join(f"    {told}\n" for told in rows)


def _lost(told: Watch) -> dict[int, str]:
    return {gpu.index: gpu.trouble for gpu in gpus(told) if gpu.answers is False}


def test_a_gpu_whose_rows_end_was_lost() -> None:
    text = _rows(70, lambda gpu, at: f"{gpu} 650 60" if gpu != 3 or at < 11 else "")
    assert _lost(nvidia_smi_dmon(text)) == {3: "only 11 of 70 samples tell of it"}


def test_a_gpu_whose_values_end_was_lost_and_the_first_row_without_them_shows_it() -> None:
    text = _rows(70, lambda gpu, at: f"{gpu} 650 60" if gpu != 3 or at < 11 else f"{gpu} - -")
    told = nvidia_smi_dmon(text)
    assert _lost(told) == {3: "none of its values can be read from sample 12 of 70 on"}
    line = nvidia_smi_dmon.probe.locate(text, gpus(told)[3].line, "answers")  # type: ignore[attr-defined]
    assert line == 2 + 11 * 8 + 4
    assert text.split("\n")[line - 1].split() == ["3", "-", "-"]


def test_a_table_that_ends_within_a_round_lost_no_gpu() -> None:
    whole = _rows(30, lambda gpu, at: f"{gpu} 650 60")
    for rows in range(1, 12):
        cut = "\n".join(whole.split("\n")[: -1 - rows]) + "\n"
        assert _lost(nvidia_smi_dmon(cut)) == {}
    # A header may stand in the middle of a round.
    lines = whole.split("\n")
    lines[100:100] = lines[:2]
    assert _lost(nvidia_smi_dmon("\n".join(lines))) == {}


def test_gpus_watched_one_after_the_other_are_not_compared() -> None:
    head = "# gpu    pwr  gtemp\n# Idx      W      C\n"
    text = head + "    0 650 60\n" * 10 + head + "    1 650 60\n" * 50
    assert _lost(nvidia_smi_dmon(text)) == {}
    once = head + "    0 650 60\n" + head + "    1 650 60\n" * 50
    assert _lost(nvidia_smi_dmon(once)) == {}


def test_a_gpu_that_never_told_a_value_did_not_answer_yes() -> None:
    text = _rows(5, lambda gpu, at: f"{gpu} - -" if gpu == 2 else f"{gpu} 650 60")
    answers = [gpu.answers for gpu in gpus(nvidia_smi_dmon(text))]
    assert isinstance(answers[2], Missing)
    assert answers[:2] == [True, True]


def test_dcgmi_dmon_loses_a_gpu_the_same_way() -> None:
    head = "#Entity   POWER  TMPTR\nID        W      C\n"
    ended = _rows(20, lambda gpu, at: f"GPU {gpu} 650 60" if gpu != 3 or at < 9 else "", head=head)
    assert _lost(dcgm_dmon(ended)) == {3: "only 9 of 20 samples tell of it"}
    empty = _rows(
        20,
        lambda gpu, at: f"GPU {gpu} 650 60" if gpu != 3 or at < 9 else f"GPU {gpu} N/A N/A",
        head=head,
    )
    assert _lost(dcgm_dmon(empty)) == {3: "none of its values can be read from sample 10 of 20 on"}
    assert _lost(dcgm_dmon(_rows(20, lambda gpu, at: f"GPU {gpu} 650 60", head=head))) == {}


def test_what_the_counter_of_uncorrected_errors_said_at_first() -> None:
    head = "# gpu  sbecc  dbecc    pci\n# Idx   errs   errs   errs\n"
    told = gpus(
        nvidia_smi_dmon(_rows(4, lambda gpu, at: f"{gpu} 0 {2 if gpu == 4 else 0} 0", head=head))
    )
    assert (told[4].ecc_uncorrected_before, told[4].growth.ecc_uncorrected) == (2, 0)
    assert told[5].ecc_uncorrected_before == 0
