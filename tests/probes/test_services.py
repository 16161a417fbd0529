"""Services: as preflight asks, and as people paste them."""

from __future__ import annotations

import time

import pytest

from preflight.errors import ParseError
from preflight.facts.services import Service
from preflight.model import Missing
from preflight.probes.services import services
from tests.test_seen_to_fail import SERVICES


def _kind(value: object) -> str:
    assert isinstance(value, Missing), value
    return value.kind


def test_as_preflight_asks() -> None:
    told = services(SERVICES)
    assert isinstance(told.units, tuple)
    assert told.units[0] == Service(
        "nvidia-fabricmanager", "loaded", "active", "running", "enabled", 0, "success",
        line=4, probe="services",
    )  # fmt: skip
    imex = told.units[1]
    assert (imex.name, imex.load, imex.active) == ("nvidia-imex", "not-found", "inactive")
    assert _kind(imex.enabled) == "not-applicable"
    assert told.daemons == ("nv-fabricmanage",)
    assert (told.fabric_manager_version, told.version_line) == ("535.161.08", 2)


def test_without_systemd() -> None:
    told = services("nv-fabricmanager: none\nsystemd: no\nend\n")
    assert _kind(told.units) == "not-applicable"
    assert told.daemons == ()
    assert _kind(told.fabric_manager_version) == "not-applicable"


@pytest.mark.parametrize(
    "text",
    [
        "Fabric Manager version is : 535.129.03\n",
        "\n\n\tFabric Manager version is : 535.129.03\n\n",
        "Fabric Manager version is : 535.129.03\nBuild Info - Branch: rel/r610, Changelist: 0\n",
    ],
)
def test_the_version_alone(text: str) -> None:
    told = services(text)
    assert told.fabric_manager_version == "535.129.03"
    assert (_kind(told.units), _kind(told.daemons)) == ("not-in-input", "not-in-input")


def test_systemctl_show_alone_with_all_its_properties() -> None:
    text = (
        "Type=forking\nRestart=no\nNRestarts=3\nExecStart={ path=/usr/bin/x ; argv[]=x }\n"
        "Id=nvidia-fabricmanager.service\nNames=nvidia-fabricmanager.service\nLoadState=loaded\n"
        "ActiveState=failed\nSubState=failed\nUnitFileState=enabled\nResult=exit-code\n"
    )
    told = services(text)
    assert isinstance(told.units, tuple)
    (unit,) = told.units
    assert (unit.active, unit.restarts, unit.result) == ("failed", 3, "exit-code")


def test_what_is_cut_short_or_something_else() -> None:
    for text in ("", "hello\n", SERVICES.replace("end\n", "")):
        with pytest.raises(ParseError):
            services(text)


def test_a_megabyte_takes_less_than_a_second() -> None:
    for text in ("A=b\n" * 260_000, "Id=a\n\n" * 170_000, "A" * 1_000_000, "=" * 1_000_000):
        began = time.monotonic()
        services(f"{text}\n{SERVICES}")
        assert time.monotonic() - began < 1
