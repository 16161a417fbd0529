"""Of each piece of the stack the best word, whoever said it."""

from __future__ import annotations

import pytest

from preflight.assemble.software.stack import stack_of
from preflight.facts.host import Host
from preflight.facts.services import DriverModule
from preflight.facts.stack import EnvReport, EnvVar
from preflight.model import NOT_IN_INPUT, Missing

DENIED = Missing("denied", "nvidia-smi: Insufficient Permissions")


def test_a_word_that_is_known_comes_before_a_reason_why_another_is_not() -> None:
    module = DriverModule(version="550.90.12", probe="driver-module", line=3)
    found = stack_of(Host("node-07", driver=DENIED, driver_module=module), NOT_IN_INPUT)
    assert found.driver == "550.90.12"
    assert (found.told_by["driver"].probe, found.told_by["driver"].line) == ("driver-module", 3)


def test_a_reason_comes_before_that_nobody_was_asked() -> None:
    host = Host("node-07", env_reports=(EnvReport(driver=DENIED, probe="collect-env"),))
    assert stack_of(host, NOT_IN_INPUT).driver == DENIED


@pytest.mark.parametrize(("variables", "offered"), [
    ({"CUDA_DRIVER_VERSION": "550.54.14", "LD_LIBRARY_PATH": "/usr/local/cuda/compat/lib"}, True),
    ({"CUDA_DRIVER_VERSION": "550.54.14", "LD_LIBRARY_PATH": "/opt/compatible/lib"}, False),
    ({"CUDA_DRIVER_VERSION": "550.54.14"}, False),
    ({"LD_LIBRARY_PATH": "/usr/local/cuda/compat/lib"}, False),
])  # fmt: skip
def test_an_image_offers_a_libcuda_where_a_path_leads_to_it(
    variables: dict[str, str], offered: bool
) -> None:
    told = EnvReport(environment=tuple(EnvVar(*one) for one in variables.items()))
    found = stack_of(Host("node-07", env_reports=(told,)), NOT_IN_INPUT).compat_offered
    assert found == ("550.54.14" if offered else NOT_IN_INPUT)
