"""Heat where the card's own limit is not in the input, replays where its link is not, and what two
tools tell of one GPU."""

from __future__ import annotations

import pytest

from preflight.collect import examine
from preflight.judge.load import DOMAINS, load
from preflight.model import Raw, Result
from tests.conftest import sample

#: nvidia-smi -q of eight H100 that tell their limits and their error counts.
TOLD = "nvidia_smi_q/h100_sxm_x8_535.161_power_brake.txt"
TABLE = "nvidia_smi_table/h100_sxm_x8_550.90_idle.txt"


def judged(check: str, **texts: str) -> list[Result]:
    raws = [Raw("node-07", name.replace("_", "-"), (), 0, text) for name, text in texts.items()]
    checks = [one for one in load(DOMAINS).checks if one.id == check]
    return list(examine("node-07", raws, checks).results)


def statuses(results: list[Result]) -> dict[str, str]:
    return {one.subject: one.status.value for one in results}


def dmon(*rows: str, head: str = "gpu pwr gtemp") -> str:
    return f"# {head}\n" + "".join(f"{row}\n" for row in rows)


@pytest.mark.parametrize(
    ("hottest", "status"), [(60, "PASS"), (89, "PASS"), (90, "WARN"), (94, "WARN"), (95, "FAIL")]
)
def test_all_equally_hot_and_no_limit_in_the_input(hottest: int, status: str) -> None:
    watched = dmon(*[f"{gpu} 650 {hottest}" for _ in range(6) for gpu in range(4)])
    found = judged("live.temperature.absolute", nvidia_smi_dmon=watched)
    assert statuses(found) == {f"gpu{gpu}": status for gpu in range(4)}
    table = sample(TABLE).replace("N/A   27C", f"N/A   {hottest}C")
    seen = judged("gpu.temperature.absolute", nvidia_smi_table=table)
    assert {one.status.value for one in seen if one.measured == hottest} == {status}


def test_it_says_that_this_is_not_the_cards_own_limit() -> None:
    (found,) = judged("live.temperature.absolute", nvidia_smi_dmon=dmon(*["0 650 98"] * 6))
    assert "the card's own limit is not known here" in found.expected


def test_where_the_card_tells_its_limit_that_is_judged_alone() -> None:
    hot = dmon(*[f"{gpu} 650 98" for _ in range(6) for gpu in range(8)])
    told = sample(TOLD)
    assert set(statuses(judged("gpu.temperature.absolute", nvidia_smi_q=told)).values()) == {"SKIP"}
    both = judged("live.temperature.absolute", nvidia_smi_dmon=hot, nvidia_smi_q=told)
    assert set(statuses(both).values()) == {"SKIP"}


def test_uncorrected_errors_that_stand_are_told_once() -> None:
    rows = [f"{gpu} 0 {2 if gpu == 4 else 0} 0" for _ in range(6) for gpu in range(8)]
    text = dmon(*rows, head="gpu sbecc dbecc pci")
    alone = judged("live.ecc.uncorrected_before", nvidia_smi_dmon=text)
    assert statuses(alone) == {f"gpu{n}": "WARN" if n == 4 else "PASS" for n in range(8)}
    both = judged("live.ecc.uncorrected_before", nvidia_smi_dmon=text, nvidia_smi_q=sample(TOLD))
    assert set(statuses(both).values()) == {"SKIP"}


def test_replays_on_a_link_that_is_not_known() -> None:
    # None at all, some that only a fast link explains, more than any link does.
    rows = [f"{gpu} 0 0 {at * (0, 1, 900)[gpu]}" for at in range(61) for gpu in range(3)]
    text = dmon(*rows, head="gpu sbecc dbecc pci")
    found = judged("live.pcie.replays", nvidia_smi_dmon=text)
    assert statuses(found) == {"gpu0": "PASS", "gpu1": "SKIP", "gpu2": "WARN"}


def test_how_far_behind_the_busiest_is_said_in_words() -> None:
    text = sample("dmon/k40m_x2_one_idle_one_busy.txt")
    found = {one.subject: one for one in judged("live.load.even", nvidia_smi_dmon=text)}
    assert (found["gpu0"].measured, found["gpu0"].unit) == (97, "% less busy than the busiest")


def test_the_head_does_not_say_that_all_have_as_many_samples() -> None:
    rows = [f"{gpu} 650 60" for at in range(70) for gpu in range(8) if gpu != 3 or at < 11]
    raws = [Raw("node-07", "nvidia-smi-dmon", (), 0, dmon(*rows))]
    assert examine("node-07", raws, load(DOMAINS).checks).reach.endswith("11 to 70 samples each")
