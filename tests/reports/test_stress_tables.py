"""The tables of a stress run: a row for each device, eight GPUs within 100 columns."""

from __future__ import annotations

from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.model import Raw
from preflight.reports.blocks import View
from preflight.reports.layout import Line
from preflight.reports.stress import stress_tables
from preflight.reports.tables import measurement
from tests import topology_text as topology
from tests.conftest import sample
from tests.stress_lines import GPUS, on_processors, text
from tests.written import BMC

_SMI = "nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt"


def tables(told: str, **answers: str) -> dict[str, list[dict[str, Any]]]:
    raws = [Raw("n1", name.replace("_", "-"), stdout=each) for name, each in answers.items()]
    host = assemble("n1", [Raw("n1", "stress", stdout=told), *raws]).host
    return {one["table"]: one["rows"] for one in stress_tables(host)}


@pytest.fixture(scope="module")
def of_eight() -> dict[str, list[dict[str, Any]]]:
    return tables(text(), nvidia_smi_q=sample(_SMI), nvidia_smi_topo=topology.hgx(), ipmi_sdr=BMC)


def test_each_gpu_has_a_row_with_spread_and_number(
    of_eight: dict[str, list[dict[str, Any]]],
) -> None:
    (rows,) = (rows for name, rows in of_eight.items() if "TFLOP/s" in name)
    assert [row["device"] for row in rows] == [f"gpu{number}" for number in range(GPUS)]
    assert rows[0]["bf16"] == "720 [713-727]" and rows[0]["n"] == 50
    (shares,) = (rows for name, rows in of_eight.items() if "of the best" in name)
    assert shares[0] == {"device": "gpu0", "bf16": "91%", "fp16": "88%", "fp8": "98%"}


def test_copies_between_gpus_are_a_square(of_eight: dict[str, list[dict[str, Any]]]) -> None:
    (rows,) = (rows for name, rows in of_eight.items() if "GPU (row) to GPU" in name)
    assert len(rows) == GPUS and rows[3] == {
        "from": "gpu3", **{f"gpu{other}": "383" for other in range(GPUS)}, "gpu3": "-",
    }  # fmt: skip


def test_heat_is_told_above_the_air_that_comes_in(
    of_eight: dict[str, list[dict[str, Any]]],
) -> None:
    (rows,) = (rows for name, rows in of_eight.items() if "heat" in name)
    assert (rows[0]["C"], rows[0]["C above inlet"]) == ("61", "39")  # 22 C at the inlet
    assert rows[0]["attention"] == "flash" and rows[0]["memory tested"] == "75.2 GB"


@pytest.mark.parametrize("gpus", [True, False])
def test_tables_fit_into_a_hundred_columns(
    of_eight: dict[str, list[dict[str, Any]]], *, gpus: bool
) -> None:
    shown = of_eight if gpus else tables(text(on_processors()))
    assert len(shown) >= 4
    for name, rows in shown.items():
        table = {"table": name, "host": "node-07", "rows": rows}
        lines = list(measurement(table, View(width=100, verbose=0, hosts=False)))
        # A line for each row: it did not have to be told piece by piece.
        assert len(lines) == len(rows) + 2, name
        assert all(len(plain(line)) <= 100 for line in lines)


def plain(line: Line) -> str:
    return "".join(span.text for span in line)


def test_processors_have_no_share_of_a_best_and_say_that_rates_are_shown() -> None:
    shown = tables(text(on_processors()))
    assert not any("of the best" in name or "GPU to GPU" in name for name in shown)
    (about,) = (rows for name, rows in shown.items() if name == "stress")
    assert "not judged" in about[1]["value"]


def test_what_was_not_run_has_no_tables() -> None:
    assert tables('{"preflight":"stress/1","kind":"busy","text":"GPU 0 holds process 1"}\n') == {}
    assert stress_tables(assemble("n1", []).host) == ()


def test_a_device_that_is_lost_has_no_numbers_and_the_others_have() -> None:
    died = '{"kind":"died","doing":"gemm","status":-9,"device":3}\n'

    def without(line: str) -> str:
        if '"device":3' not in line or '"kind":"device"' in line:
            return line
        return died if '"kind":"done"' in line else ""

    told = "".join(map(without, text().splitlines(keepends=True)))
    shown = tables(told)
    (rows,) = (rows for name, rows in shown.items() if "TFLOP/s" in name)
    assert [row["device"] for row in rows] == [f"gpu{one}" for one in range(GPUS) if one != 3]
