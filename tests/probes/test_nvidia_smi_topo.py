"""nvidia-smi topo -m and -p2p: layouts of drivers and pastes, what is cut off, what is none."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.errors import ParseError
from preflight.facts.topology import Link, Matrix, MatrixDevice, P2p
from preflight.model import Missing
from preflight.probes.nvidia_smi.topo import matrix, p2p
from tests import topology_text
from tests.conftest import sample

H20 = sample("topo/h20_x8_8nic_pix_pairs_tabs.txt")
DGX1 = sample("topo/dgx1_v100_x8_4hca_tabs.txt")
SPACES = sample("topo/h100_x8_no_nic_spaces.txt")
P2P_OK = sample("topo/h100_x8_p2p_r_all_ok.txt")


def read(text: str) -> Matrix:
    found = matrix(text)
    assert isinstance(found, Matrix)
    return found


def tables(text: str) -> tuple[P2p, ...]:
    found = p2p(text)
    assert not isinstance(found, Missing)
    return found


def link(found: Matrix, a: str, b: str) -> Link:
    (one,) = [each for each in found.links if {each.a, each.b} == {a, b}]
    return one


def device(found: Matrix, name: str) -> MatrixDevice:
    return next(each for each in found.devices if each.name == name)


def test_tabs_and_the_legend_of_adapters() -> None:
    found = read(H20)
    assert found.whole
    assert len(found.devices) == 16
    assert len(found.links) == 16 * 15 // 2
    nic = device(found, "mlx5_1")
    assert (nic.kind, nic.label, nic.line) == ("nic", "NIC0", 10)
    assert (link(found, "gpu0", "mlx5_1").path, link(found, "gpu0", "mlx5_5").path) == (
        "PIX",
        "SYS",
    )
    assert (link(found, "gpu0", "gpu7").path, link(found, "gpu0", "gpu7").nvlinks) == ("NV", 18)
    gpu = device(found, "gpu4")
    assert (gpu.cpus, gpu.numa_node, gpu.line) == ("48-95,144-191", 1, 6)
    assert isinstance(nic.cpus, Missing)


def test_adapters_by_their_own_name_in_any_order() -> None:
    found = read(DGX1)
    names = [each.name for each in found.devices if each.kind == "nic"]
    assert names == ["mlx5_0", "mlx5_2", "mlx5_1", "mlx5_3"]
    assert link(found, "gpu2", "mlx5_1").path == "PIX"
    assert link(found, "gpu0", "gpu3").nvlinks == 2
    assert isinstance(device(found, "gpu0").numa_node, Missing)


def test_the_old_word_is_the_new_one() -> None:
    text = sample("topo/k80_x4_mlx4_old_soc_legend_spaces.txt").replace("PHB", "SOC")
    assert link(read(text), "gpu0", "gpu2").path == "SYS"


def test_blanks_for_tabs_below_a_prompt() -> None:
    found = read(SPACES)
    assert found.line == 2
    assert device(found, "gpu7").cpus == "52-103,156-207"


@pytest.mark.parametrize(
    "name", ["mlx4_0", "bnxt_re0", "rdmap16s27", "hfi1_0", "mlx5_bond_0", "rocep1s0f0"]
)
def test_names_of_adapters(name: str) -> None:
    for text in (topology_text.matrix(2, lambda *_: "SYS", nics=[name]),
                 DGX1.replace("mlx5_0", name)):  # fmt: skip
        assert device(read(text), name).kind == "nic"


@pytest.mark.parametrize(("begin", "end"), [("\x1b[4m", "\x1b[0m"), ("[4m", "[0m")])
def test_the_header_is_underlined(begin: str, end: str) -> None:
    head, _, rest = H20.partition("\n")
    assert read(f"\t{begin}{head[1:]}{end}\n{rest}") == read(H20)


def test_without_its_header_the_columns_are_told_by_the_x_of_each_row() -> None:
    rows = H20.partition("\n")[2]
    found = read(rows)
    assert found.whole
    assert [each.name for each in found.devices] == [each.name for each in read(H20).devices]
    assert [(one.a, one.b, one.path) for one in found.links] == [
        (one.a, one.b, one.path) for one in read(H20).links
    ]


def test_without_header_and_first_rows_the_others_are_told() -> None:
    found = read("\n".join(H20.split("\n")[3:]))
    assert not found.whole
    assert [each.name for each in found.devices][:3] == ["gpu2", "gpu3", "gpu4"]


def test_a_row_that_is_cut_is_told_by_the_rows_of_its_peers() -> None:
    cut = H20[: H20.index("GPU7\tNV18") + 14]
    found = read(cut)
    assert not found.whole
    assert link(found, "gpu0", "gpu7").nvlinks == 18
    gpu = device(found, "gpu7")
    assert isinstance(gpu.cpus, Missing)
    assert gpu.cpus.kind == "unreadable"
    # What neither of the two rows tells is not known.
    nics = link(found, "NIC0", "NIC1").path
    assert isinstance(nics, Missing)
    assert nics.kind == "unreadable"


def test_rows_that_are_missing() -> None:
    found = read("\n".join(line for line in H20.split("\n") if not line.startswith("GPU7")))
    assert not found.whole
    assert link(found, "gpu0", "gpu7").path == "NV"


@pytest.mark.parametrize("width", [60, 79, 100])
def test_a_narrow_terminal_has_wrapped_the_rows(width: int) -> None:
    """Within words too; the header as a whole, in lines of its own."""
    wide = re.sub(r"\t+", lambda tabs: " " * 6 * len(tabs[0]), topology_text.hgx())
    head, *rows = wide.split("\n")
    words = head.split()
    wrapped = [" ".join(words[:10]), " ".join(words[10:])]
    for row in rows:
        wrapped += [row[at : at + width] for at in range(0, max(len(row), 1), width)]
    found = read("\n".join(wrapped))
    assert [(one.a, one.b, one.path, one.nvlinks) for one in found.links] == [
        (one.a, one.b, one.path, one.nvlinks) for one in read(topology_text.hgx()).links
    ]


@pytest.mark.parametrize(("told", "node"), [("0", 0), ("0-1", None), ("N/A", None), ("", None)])
def test_the_node_of_a_gpu(told: str, node: int | None) -> None:
    found = device(read(topology_text.matrix(2, lambda *_: "SYS", node=lambda _: told)), "gpu1")
    if node is not None:
        assert found.numa_node == node
    else:
        assert isinstance(found.numa_node, Missing)
        assert found.numa_node.kind == "not-applicable"
    assert found.cpus == "0-47"


def test_no_processors_are_told() -> None:
    found = device(read(topology_text.matrix(1, lambda *_: "", cpus=lambda _: "")), "gpu0")
    assert isinstance(found.cpus, Missing)
    assert found.numa_node == 0


def test_gaps_in_the_numbering() -> None:
    text = topology_text.matrix(3, lambda *_: "PIX").replace("GPU1", "GPU5")
    assert [each.name for each in read(text).devices] == ["gpu0", "gpu5", "gpu2"]


def test_a_word_that_is_not_known_is_no_path() -> None:
    found = read(topology_text.matrix(2, lambda *_: "QPI"))
    assert isinstance(link(found, "gpu0", "gpu1").path, Missing)
    assert not found.whole


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected the table"),
        ("GPU 0: NVIDIA H100\n", "expected the table"),
        (H20 + "\n" + SPACES, "second matrix|second row"),
        (H20.replace("GPU3\tNV18", "GPU2\tNV18"), "expected X|second row"),
        (H20.replace("NIC1\tNIC2", "NIC1\tNIC1"), "two columns"),
        ("NIC0\t X \tPIX\nNIC1\tPIX\t X \n", "no GPU"),
    ],
)
def test_what_is_no_matrix(text: str, told: str) -> None:
    with pytest.raises(ParseError, match=told):
        matrix(text)


def test_a_driver_that_does_not_support_it_says_so() -> None:
    found = matrix("Topology information is not supported on this system.\n")
    assert isinstance(found, Missing)
    assert found.kind == "not-applicable"


def test_peer_access() -> None:
    (found,) = tables(P2P_OK)
    assert len(found.pairs) == 28
    assert {pair.status for pair in found.pairs} == {"OK"}
    assert isinstance(found.capability, Missing)
    (old,) = tables(sample("topo/k80_x4_p2p_matrix.txt"))
    assert [pair.status for pair in old.pairs] == ["OK", "NS", "NS", "NS", "NS", "OK"]
    (two,) = tables(sample("topo/l4_x2_p2p_chipset_not_supported.txt"))
    assert [(pair.a, pair.b, pair.status, pair.line) for pair in two.pairs] == [
        ("gpu0", "gpu1", "CNS", 2)
    ]


@pytest.mark.parametrize(
    ("letter", "capability"),
    [("r", "read"), ("w", "write"), ("n", "nvlink"), ("a", "atomics"), ("p", "prop")],
)
def test_what_was_asked_is_told_by_a_prompt(letter: str, capability: str) -> None:
    (found,) = tables(f"$ nvidia-smi topo -p2p {letter}\n{P2P_OK}")
    assert found.capability == capability


def test_several_tables_and_the_worse_of_two_directions() -> None:
    one = " \tGPU0\tGPU1\n GPU0\tX\tOK\n GPU1\tDR\tX\n"
    found = tables(one + P2P_OK)
    assert [len(each.pairs) for each in found] == [1, 28]
    assert found[0].pairs[0].status == "DR"


def test_one_gpu_has_no_pair() -> None:
    (found,) = tables(" \tGPU0\t\n GPU0\tX\t\n\nLegend:\n")
    assert found.pairs == ()


@given(st.text(alphabet="GPU0123NIC \tXVSYNODEPB\n-,[4m", max_size=400))
def test_any_text_is_read_or_refused(text: str) -> None:
    for reads in (matrix, p2p):
        try:
            reads(text)
        except ParseError:
            continue


@pytest.mark.parametrize("cut", range(20, len(H20), 97))
def test_cut_anywhere_it_is_read_or_refused_and_never_whole_too_early(cut: int) -> None:
    try:
        found = read(H20[:cut])
    except ParseError:
        return
    known = {(one.a, one.b): one.path for one in read(H20).links}
    names = {f"NIC{at}": f"mlx5_{at + 1}" for at in range(8)}
    for one in found.links:
        pair = names.get(one.a, one.a), names.get(one.b, one.b)
        if isinstance(one.path, str) and pair in known and one.path != known[pair]:
            # Only the word at the cut itself may be another.
            assert H20[:cut].rstrip("\t ").endswith(("NV1", "NV", "N", "P", "S"))
    if cut < H20.index("NIC7\tSYS"):
        assert not found.whole


def test_access_that_is_cut_off_or_no_word_is_not_known() -> None:
    """What the upper rows tell is known of both directions; nothing is made up for the rest."""
    text = sample("topo/h100_x8_p2p_r_all_ok.txt")
    cut = text[: text.index("GPU3", text.index("GPU2", text.index("\n")))]
    (found,) = tables(cut)
    status = {(pair.a, pair.b): pair.status for pair in found.pairs}
    assert status["gpu0", "gpu7"] == status["gpu2", "gpu3"] == "OK"
    assert status["gpu3", "gpu4"] == Missing("unreadable", "nvidia-smi topo -p2p is cut off")
    (found,) = tables(text.replace("OK", "ERR!", 1))
    status = {(pair.a, pair.b): pair.status for pair in found.pairs}
    assert status["gpu0", "gpu1"] == Missing("unreadable", "nvidia-smi topo -p2p says ERR!")
    assert status["gpu0", "gpu2"] == "OK"
