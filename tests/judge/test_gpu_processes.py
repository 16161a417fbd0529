"""Who computes on the GPUs: leftovers, agents, desktops, containers, memory of nobody."""

from __future__ import annotations

from preflight.collect import examine
from preflight.judge.load import load
from preflight.judge.overrides import apply, parse
from preflight.model import Raw, Result, Status
from tests.conftest import sample

CHECKS = load(["gpu"]).checks
METAL = "hostname node-07\nuid 0\n"
DOCKER = "hostname node-07\ncontainer_file /.dockerenv\nuid 0\n"
H200 = sample("nvidia_smi_table/h200_x8_570.172.txt")
V100 = sample("nvidia_smi_table/v100_pcie_x4_410.48.txt")
TITAN = sample("nvidia_smi_q/titan_v_560.35_workstation.txt")
IDLE = sample("nvidia_smi_table/h100_sxm_x8_550.90_idle.txt")
HIDDEN = sample("nvidia_smi_table/h100_sxm_x8_535.183.txt")


def judged(check: str, smi: str, identity: str = "", *stated: str) -> list[Result]:
    probe = "nvidia-smi-table" if "| NVIDIA-SMI" in smi else "nvidia-smi-q"
    raws = [Raw("node-07", probe, stdout=smi)]
    if identity:
        raws.append(Raw("node-07", "identity", stdout=identity))
    checks = apply(CHECKS, map(parse, stated))
    return [one for one in examine("node-07", raws, checks).results if one.check == check]


def one(smi: str, identity: str = "", *stated: str) -> Result:
    (found,) = judged("gpu.processes", smi, identity, *stated)
    return found


def test_a_host_in_use_is_told_in_one_line() -> None:
    found = one(H200, METAL)
    assert found.status is Status.WARN
    assert found.measured == (
        "in use: python3 (pid 24365, 24366, 24367 and 5 more) holds 12032 MiB on gpu[0-7]"
    )
    assert found.expected == "no compute process"
    assert "24365" in found.evidence[0].text


def test_a_process_list_that_someone_pasted_is_no_complaint() -> None:
    found = one(H200)
    assert found.status is Status.SKIP
    assert "python3" in str(found.measured)
    assert "told on the host" in found.reason


def test_nobody_is_there() -> None:
    assert one(IDLE, METAL).status is Status.PASS
    assert one(IDLE).status is Status.PASS


def test_a_desktop_draws_and_is_no_complaint() -> None:
    assert one(TITAN, METAL).status is Status.PASS


def test_agents_are_allowed_and_a_site_names_its_own() -> None:
    agent = H200.replace("...-andrew-ben/.venv/bin/python3", "/usr/bin/nv-hostengine          ")
    assert one(agent, METAL).status is Status.PASS
    assert one(H200, METAL, "gpu.processes=[python3, nv-hostengine]").status is Status.PASS
    assert one(H200, METAL, "gpu.processes=python3").status is Status.PASS
    assert one(agent, METAL, "gpu.processes=[python3]").status is Status.WARN
    assert one(H200, "", "gpu.processes=[x]").status is Status.WARN


def test_two_programs_are_told_apart() -> None:
    mixed = H200.replace("...-andrew-ben/.venv/bin/python3", "/opt/serve --port 8000          ", 1)
    found = one(mixed, METAL)
    assert str(found.measured).startswith(
        "in use: serve (pid 24365) holds 1504 MiB on gpu0; python3 (pid"
    )


def test_in_a_container_what_is_not_seen_is_not_known() -> None:
    found = one(IDLE, DOCKER)
    assert found.status is Status.SKIP
    assert "in a container" in found.reason
    assert one(H200, DOCKER).status is Status.WARN  # what is seen is there
    for each in judged("gpu.memory.unexplained", V100, DOCKER):
        assert (each.status, "in a container" in each.reason) == (Status.SKIP, True)


def test_a_list_with_nothing_in_it_is_not_an_empty_list() -> None:
    found = one(HIDDEN, METAL)
    assert found.status is Status.SKIP
    assert "was not shown" in found.reason
    assert {each.status for each in judged("gpu.memory.unexplained", HIDDEN)} == {Status.SKIP}


def test_memory_that_nobody_holds() -> None:
    found = judged("gpu.memory.unexplained", V100)
    assert [(each.subject, each.status, each.measured) for each in found[1:]] == [
        (f"gpu{index}", Status.WARN, 30884) for index in (1, 2, 3)
    ]
    assert found[0].status is Status.PASS
    assert {each.status for each in judged("gpu.memory.unexplained", IDLE, METAL)} == {Status.PASS}
    assert {each.status for each in judged("gpu.memory.unexplained", TITAN)} == {Status.SKIP}
