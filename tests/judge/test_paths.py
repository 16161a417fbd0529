"""Paths: held against the vocabulary at load, and what they reach."""

from __future__ import annotations

import pytest

from preflight.facts.gpu import Gpu, Mig, MigInstance, Pcie
from preflight.facts.host import Host, SiteAnswer
from preflight.facts.setup import Sysctl
from preflight.judge.paths import check, element_type, parse, reach
from preflight.model import NOT_IN_INPUT, Evidence, Missing

GPUS = (
    Gpu(0, "gpu0", "00000000:1b:00.0", line=5, probe="nvidia-smi", pcie=Pcie(width=16)),
    Gpu(1, "gpu1", "00000000:2c:00.0", line=90, probe="nvidia-smi"),
)


def test_a_path_with_a_star_reaches_each_element_with_its_evidence() -> None:
    first, second = reach(Host("h", gpus=GPUS), parse("gpus[*].pcie.width"))
    assert (first.subject, first.device, first.value) == ("gpu0", "00000000:1b:00.0", 16)
    assert first.evidence == (Evidence("nvidia-smi", line=5, field="pcie.width"),)
    assert second.value is NOT_IN_INPUT


def test_a_missing_list_is_one_missing_value_and_an_empty_list_reaches_nothing() -> None:
    lost = Missing("no-tool", "nvidia-smi is not installed")
    (one,) = reach(Host("h", gpus=lost), parse("gpus[*].pcie.width"))
    assert (one.subject, one.value) == ("h", lost)
    assert reach(Host("h", gpus=()), parse("gpus[*].pcie.width")) == []


def test_one_element_by_its_name_is_a_fact_of_the_host() -> None:
    host = Host("h", sysctls=(Sysctl("vm.swappiness", "60", line=3, probe="sysctls"),))
    (one,) = reach(host, parse("sysctls[vm.swappiness].value"))
    assert (one.subject, one.element, one.value) == ("h", None, "60")
    assert one.evidence == (Evidence("sysctls", line=3, field="value"),)
    (other,) = reach(host, parse("sysctls[vm.none].value"))
    assert other.value == Missing("not-applicable", "it has no vm.none")
    (unknown,) = reach(Host("h"), parse("sysctls[vm.swappiness].value"))
    assert unknown.value is NOT_IN_INPUT
    check(parse("sysctls[vm.swappiness].value"))
    with pytest.raises(ValueError, match="no fact 'valeu'"):
        check(parse("sysctls[vm.swappiness].valeu"))


def test_a_missing_record_travels() -> None:
    (one,) = reach(Host("h"), parse("memory.available_percent"))
    assert one.value is NOT_IN_INPUT


def test_units_come_from_the_names() -> None:
    assert parse("gpus[*].temperature.gpu_c").unit == "C"
    assert parse("gpus[*].temperature.margin_c").unit == "C of margin"
    assert parse("gpus[*].power.draw_w").unit == "W"
    assert parse("gpus[*].pcie.width").unit == ""
    assert parse("watch.gpus[*].power_w.mean").unit == "W"
    assert parse("watch.gpus[*].margin_c.min").unit == "C of margin"


def test_a_site_fact() -> None:
    host = Host("h", site={"site.lustre": SiteAnswer(rc=0, number=3.0, probe="site.lustre")})
    (one,) = reach(host, parse("site.lustre.number"))
    assert one.value == 3.0
    (other,) = reach(host, parse("site.nfs.rc"))
    assert isinstance(other.value, Missing)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("gpus[*].pcie.widht", "no fact 'widht'; there is gen,"),
        ("gpu[*].pcie.width", "no fact 'gpu'"),
        ("driver[*].state", "no list"),
        ("gpus[*]", "comes .name"),
        ("gpus[*].mig.instances[*].gpu_instance", "comes .name"),
        ("gpus.pcie", "nothing lies below"),
        ("gpus[*].pcie.width.more", "nothing lies below"),
        ("site.lustre.colour", "a site fact is"),
        ("site.rc", "a site fact is"),
        ("", "no fact ''"),
    ],
)
def test_unknown_paths_say_what_there_is(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=r".*") as error:
        check(parse(text))
    assert told in str(error.value)


def test_where_paths_begin_at_the_element() -> None:
    assert element_type(parse("gpus[*].pcie.width")) is Gpu
    assert element_type(parse("driver.state")) is None
    check(parse("mig.mode"), Gpu)
    with pytest.raises(ValueError, match="no fact 'mode'"):
        check(parse("mode"), Gpu)


def test_a_list_value_is_reached_whole() -> None:
    instances = (MigInstance(3),)
    gpu = Gpu(0, "gpu0", "", mig=Mig(instances=instances))
    (one,) = reach(Host("h", gpus=(gpu,)), parse("gpus[*].mig.instances"))
    assert one.value == instances
