"""Services: as preflight asks, and as people paste them."""

from __future__ import annotations

import time

import pytest

from preflight.errors import ParseError
from preflight.facts.services import Service
from preflight.model import Missing
from preflight.probes.services import services
from tests.written import SERVICES


def _kind(value: object) -> str:
    assert isinstance(value, Missing), value
    return value.kind


def test_as_preflight_asks() -> None:
    told = services(SERVICES)
    assert isinstance(told.units, tuple)
    assert told.units[0] == Service(
        "nvidia-fabricmanager", "loaded", "active", "running", "enabled", 0, "success", "running",
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


STATUS = """\
● nvidia-fabricmanager.service - NVIDIA fabric manager service
     Loaded: loaded (/lib/systemd/system/nvidia-fabricmanager.service; enabled; vendor preset: x)
     Active: {active} since Tue 2026-01-06 09:11:02 UTC; 20 days ago
   Main PID: 2571 (code=exited, status=1/FAILURE)

"""


@pytest.mark.parametrize(
    ("said", "active", "sub", "result"),
    [
        ("active (running)", "active", "running", None),
        ("failed (Result: exit-code)", "failed", None, "exit-code"),
        ("inactive (dead)", "inactive", "dead", None),
        (
            "activating (auto-restart) (Result: exit-code)",
            "activating",
            "auto-restart",
            "exit-code",
        ),
    ],
)
def test_systemctl_status(said: str, active: str, sub: str | None, result: str | None) -> None:
    told = services(STATUS.format(active=said) + STATUS.replace("fabricmanager", "imex"))
    assert isinstance(told.units, tuple)
    unit, imex = told.units
    assert (unit.name, unit.load, unit.enabled, unit.active) == (
        "nvidia-fabricmanager", "loaded", "enabled", active,
    )  # fmt: skip
    assert unit.sub == sub or _kind(unit.sub) == "not-in-input"
    assert unit.result == result or _kind(unit.result) == "not-in-input"
    assert (unit.line, imex.name) == (3, "nvidia-imex")


def test_systemctl_status_of_a_unit_that_is_not_there() -> None:
    told = services("Unit nvidia-fabricmanager.service could not be found.\n")
    assert isinstance(told.units, tuple)
    assert (told.units[0].load, told.units[0].active) == ("not-found", "inactive")


def test_what_is_cut_short_or_something_else() -> None:
    for text in ("", "hello\n", SERVICES.replace("end\n", "")):
        with pytest.raises(ParseError):
            services(text)


def test_a_megabyte_takes_less_than_a_second() -> None:
    for text in ("A=b\n" * 260_000, "Id=a\n\n" * 170_000, "A" * 1_000_000, "=" * 1_000_000,
                 "● nvidia-x.service\n" * 50_000, STATUS * 4000, "Active: " * 120_000):  # fmt: skip
        began = time.process_time()
        services(f"{text}\n{SERVICES}")
        assert time.process_time() - began < 1


def test_a_start_that_failed_is_told_by_status_too() -> None:
    head = "\u25cf nvidia-fabricmanager.service - NVIDIA fabric manager service\n"
    for active, outcome in (
        ("failed (Result: exit-code)", "failed"),
        ("activating (auto-restart) (Result: exit-code)", "failed"),
        ("active (running)", "running"),
        ("inactive (dead)", "ended"),
    ):
        told = services(f"{head}     Loaded: loaded (/x; enabled)\n     Active: {active}\n")
        assert isinstance(told.units, tuple)
        assert [unit.outcome for unit in told.units] == [outcome]
