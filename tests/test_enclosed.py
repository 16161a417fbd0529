"""The matrix of nvidia-smi within the reports of vllm and sglang."""

from __future__ import annotations

import pytest

from preflight.assemble.host import assemble
from preflight.model import Missing, Raw
from preflight.recognise import recognise
from tests.conftest import sample

SGLANG = "torch_collect_env/sglang_env_h20_x8_driver535_cu129.txt"
VLLM = "torch_collect_env/vllm_h100_x8_vm_torch2.5.1_cu124_ngc23.10.txt"


def matrices(text: str) -> list[Raw]:
    return [raw for raw in recognise(text.encode(), "env.txt") if raw.probe == "nvidia-smi-topo"]


@pytest.mark.parametrize(
    ("name", "nics"),
    [(SGLANG, [(f"mlx5_{at + 1}",) for at in range(8)]), (VLLM, [("mlx5_0",)] * 8)],
)
def test_it_is_read_as_if_given_by_itself(name: str, nics: list[tuple[str]]) -> None:
    topology = assemble("input", list(recognise(sample(name).encode(), "env.txt"))).host.topology
    assert not isinstance(topology.gpus, Missing) and not isinstance(topology.domains, Missing)
    assert [one.name for one in topology.domains] == ["gpu[0-7]"]
    assert [gpu.nics for gpu in topology.gpus] == nics
    assert [gpu.numa_node for gpu in topology.gpus] == [0] * 4 + [1] * 4


@pytest.mark.parametrize("name", [SGLANG, VLLM])
def test_its_lines_are_those_of_the_report_and_nothing_of_the_rest_is_in_it(name: str) -> None:
    text = sample(name)
    (raw,) = matrices(text)
    lines, told = text.splitlines(), str(raw.stdout).splitlines()
    assert lines[raw.line_offset : raw.line_offset + len(told)] == told
    assert told[0].split()[:2] == ["GPU0", "GPU1"]
    assert not [line for line in told if "LD_LIBRARY_PATH" in line or "ulimit" in line.lower()]


def test_one_that_is_given_by_itself_counts() -> None:
    given = sample("topo/h20_x8_8nic_pix_pairs_tabs.txt")
    assert len(matrices(given)) == 1
    (raw,) = matrices(f"{given}\n\n{sample(SGLANG)}")
    assert raw.line_offset < 3


@pytest.mark.parametrize("name", [SGLANG, VLLM])
def test_a_heading_without_a_matrix_is_none_and_a_cut_one_is_undetermined(name: str) -> None:
    text = sample(name)
    at = text.index("\n", text.index("Topology:")) + 1
    assert matrices(f"{text[:at]}Could not collect\n") == []
    cut = text[: text.index("GPU5\tNV18") + 9]
    topology = assemble("input", list(recognise(cut.encode(), "env.txt"))).host.topology
    assert isinstance(topology.matrix_gpus, Missing)
    assert topology.matrix_gpus.kind == "unreadable"
