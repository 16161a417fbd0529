"""NVLink's answers joined with nvidia-smi's GPUs, judged by what the model is by design."""

from __future__ import annotations

import pytest

from preflight.assemble.host import assemble
from preflight.assemble.sources import commands_for
from preflight.collect import examine
from preflight.facts.nvlink import Nvlink
from preflight.judge.load import DOMAINS, load
from preflight.model import Missing, Raw, Result, Status
from tests.conftest import sample

A5000 = sample("nvidia_smi_xml/rtx_a5000_x2_nvlink_590.44_v13.xml")
CHECKS = load(DOMAINS).checks
UUID = "GPU-0000feed-0000-4000-8000-00000000000"


def status(product: str, *links: int, rate: str = "26.562 GB/s", listed: int = 0) -> str:
    """`nvidia-smi nvlink -s` of GPUs with so many links up; `listed`: the others are inactive."""
    text = ""
    for index, up in enumerate(links):
        text += f"GPU {index}: {product} (UUID: {UUID}{index})\n"
        text += "".join(f"\t Link {link}: {rate}\n" for link in range(up))
        text += "".join(f"\t Link {link}: <inactive>\n" for link in range(up, listed))
        if not up:
            text += "NVML: Unable to retrieve NVLink information as all links are inActive\n"
    return text


def judged(check: str, **raws: str | Raw) -> list[Result]:
    answers = [
        raw if isinstance(raw, Raw) else Raw("node-07", probe.replace("_", "-"), stdout=raw)
        for probe, raw in raws.items()
    ]
    return [one for one in examine("node-07", answers, CHECKS).results if one.check == check]


def statuses(check: str, **raws: str | Raw) -> list[Status]:
    return [one.status for one in judged(check, **raws)]


def nvlink_of(raws: list[Raw]) -> list[Nvlink | Missing]:
    gpus = assemble("node-07", raws).host.gpus
    assert not isinstance(gpus, Missing)
    return [gpu.nvlink for gpu in gpus]


def test_only_checks_of_links_ask_for_them() -> None:
    ids = {check.id: check for check in CHECKS}
    asked = {command.probe for command in commands_for([ids["nvlink.up"]])}
    assert {"nvidia-smi", "nvlink-s", "nvlink-e"} <= asked
    asked = {command.probe for command in commands_for([ids["gpu.temperature"]])}
    assert "nvidia-smi" in asked
    assert not {"nvlink", "nvlink-s", "nvlink-e"} & asked


def test_by_design() -> None:
    up, skip, fail = [Status.PASS], [Status.SKIP], [Status.FAIL]
    for product, links, listed, expected in (
        ("NVIDIA H100 80GB HBM3", 18, 0, up), ("NVIDIA H100 80GB HBM3", 17, 18, fail),
        # Given alone it may be the only GPU of a virtual machine, which has no peer to link to.
        ("NVIDIA H100 80GB HBM3", 0, 0, [Status.ERROR]), ("NVIDIA H100 NVL", 12, 18, up),
        # Without a switch the board decides how many links are wired.
        ("Tesla V100-SXM2-32GB", 2, 6, skip),
        ("NVIDIA H100 NVL", 0, 0, skip), ("NVIDIA H100 NVL", 11, 18, fail),
        ("NVIDIA A100-PCIE-40GB", 0, 0, skip), ("NVIDIA GH200 480GB", 0, 0, skip),
        ("Tesla T4", 0, 0, skip), ("NVIDIA Z9000", 0, 0, skip), ("NVIDIA Z9000", 18, 0, skip),
    ):  # fmt: skip
        assert statuses("nvlink.up", nvlink=status(product, links, listed=listed)) == expected
    (found,) = judged("nvlink.up", nvlink=status("NVIDIA Z9000", 18))
    assert "has no row in checks/data/gpus.yaml" in found.reason


def test_which_link_is_shown() -> None:
    (found,) = judged("nvlink.up", nvlink=status("NVIDIA H100 80GB HBM3", 17, listed=18))
    assert (found.measured, found.expected) == (
        17, "at least 18 (NVIDIA H100 80GB HBM3 by design)",
    )  # fmt: skip
    assert found.evidence[0].text == "Link 17: <inactive>"


def test_a_slow_link() -> None:
    text = status("NVIDIA H100 80GB HBM3", 18)
    slow = text.replace("Link 9: 26.562", "Link 9: 13.281")
    (found,) = judged("nvlink.rate", nvlink=slow)
    assert (found.status, found.measured, found.unit) == (Status.FAIL, 13.281, "GB/s")
    assert found.evidence[0].text == "Link 9: 13.281 GB/s"
    assert statuses("nvlink.rate", nvlink=text) == [Status.PASS]
    b200 = status("NVIDIA B200", 18, rate="53.125 GB/s")
    assert statuses("nvlink.rate", nvlink=b200) == [Status.PASS]


def test_one_gpu_unlike_the_others() -> None:
    assert statuses("nvlink.same", nvlink=status("NVIDIA Z9000", 6, 6, 5)) == [Status.WARN]
    # Two of three cards have a bridge between them.
    assert statuses("nvlink.same", nvlink=status("NVIDIA RTX A6000", 4, 4, 0)) == [Status.SKIP]


def test_the_only_gpu_of_a_virtual_machine() -> None:
    lscpu = "Architecture: x86_64\nCPU(s): 8\nHypervisor vendor: KVM\n"
    one = status("NVIDIA H100 80GB HBM3", 0)
    assert statuses("nvlink.up", nvlink=one, lscpu=lscpu) == [Status.SKIP]
    two = status("NVIDIA H100 80GB HBM3", 0, 0)
    assert statuses("nvlink.up", nvlink=two, lscpu=lscpu) == [Status.FAIL, Status.FAIL]


def test_no_links_to_look_at_under_mig() -> None:
    xml = sample("nvidia_smi_xml/a100_sxm4_80gb_mig_535.54.xml")
    text = status("NVIDIA A100-SXM4-80GB", 0)
    raws = [Raw("n", "nvidia-smi", stdout=xml), Raw("n", "nvlink", stdout=text)]
    # Another GPU's UUID: the sample's own is put in its place.
    uuid = xml.partition("<uuid>")[2].partition("</uuid>")[0]
    assert isinstance(nvlink_of(raws)[0], Missing)
    text = text.replace(f"{UUID}0", uuid)
    assert statuses("nvlink.up", nvidia_smi=xml, nvlink=text) == [Status.SKIP]


def test_joined_by_uuid_not_by_place() -> None:
    first, second = (part.partition("</uuid>")[0] for part in A5000.split("<uuid>")[1:])
    text = (
        f"GPU 0: NVIDIA RTX A5000 (UUID: {second})\n\t Link 0: 14.062 GB/s\n"
        f"GPU 1: NVIDIA RTX A5000 (UUID: {first})\n\t Link 0: <inactive>\n"
    )
    raws = [Raw("n", "nvidia-smi", stdout=A5000), Raw("n", "nvlink", stdout=text)]
    found = [link.up for link in nvlink_of(raws) if isinstance(link, Nvlink)]
    assert found == [0, 1]
    raws[1] = Raw("n", "nvlink", stdout=text.replace(first, "GPU-another"))
    unknown = nvlink_of(raws)[0]
    assert isinstance(unknown, Missing)
    assert "tells of another GPU" in unknown.text


def test_states_and_counters_are_two_questions() -> None:
    states = status("NVIDIA H100 80GB HBM3", 18)
    counters = f"GPU 0: NVIDIA H100 80GB HBM3 (UUID: {UUID}0)\n\t Link 3: Replay Errors: 7\n"
    (found,) = judged("nvlink.errors.replay", nvlink_s=states, nvlink_e=counters)
    assert (found.status, found.measured) == (Status.WARN, 7)
    assert (found.evidence[0].probe, found.evidence[0].text) == (
        "nvlink-e", "Link 3: Replay Errors: 7",
    )  # fmt: skip
    broken = Raw("node-07", "nvlink-s", ("nvidia-smi",), 3, "", "Unknown Error")
    assert statuses("nvlink.up", nvlink_s=broken, nvlink_e=counters) == [Status.ERROR]
    assert statuses("nvlink.errors.replay", nvlink_s=broken, nvlink_e=counters) == [Status.WARN]


@pytest.mark.parametrize(
    ("product", "expected"), [("NVIDIA RTX A5000", Status.ERROR), ("Tesla T4", Status.SKIP)]
)
def test_a_tool_that_fails_leaves_nothing_unknown_without_nvlink(
    product: str, expected: Status
) -> None:
    broken = Raw("node-07", "nvlink-s", ("nvidia-smi", "nvlink", "-s"), 2, "", "Invalid argument")
    xml = A5000.replace("NVIDIA RTX A5000", product)
    assert set(statuses("nvlink.up", nvidia_smi=xml, nvlink_s=broken)) == {expected}


def test_a_failing_exit_with_its_reason_is_an_answer() -> None:
    raw = Raw("node-07", "nvlink-s", ("nvidia-smi",), 255, status("NVIDIA H100 80GB HBM3", 0))
    assert statuses("nvlink.up", nvlink=raw) == [Status.ERROR]
    cpu = "CPU(s): 8\nFlags: fpu\n"
    assert statuses("nvlink.up", nvlink=raw, lscpu=cpu) == [Status.FAIL]
