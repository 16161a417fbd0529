"""Names fold to what people and schedulers write, and unfold to the same names."""

from __future__ import annotations

import subprocess
import sys

import pytest
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet
from hypothesis import given
from hypothesis import strategies as st

from preflight.errors import UsageError
from preflight.nodesets import expand, fold


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        ([""], ""),
        (["gpu3"], "gpu3"),
        ([f"gpu{i}" for i in range(8)], "gpu[0-7]"),
        (["gpu5", "gpu0", "gpu7", "gpu1"], "gpu[0-1,5,7]"),
        ([f"node{i:03}" for i in [*range(1, 65), 70]], "node[001-064,070]"),
        (["node9", "node10", "node100"], "node[9-10,100]"),
        (["node-99", "node-100"], "node-[99-100]"),
        (["node8", "node08", "node09"], "node[8,08-09]"),
        (["mlx5_0", "mlx5_1", "mlx5_3"], "mlx5_[0-1,3]"),
        (["login", "node1", "node2"], "login,node[1-2]"),
        (["node1.site", "node2.site"], "node[1-2].site"),
        (["gpu1", "gpu1"], "gpu1"),
        (["00000000:91:00.0", "00000000:18:00.0"], "00000000:91:00.0, 00000000:18:00.0"),
        (["rank 5", "gpu1", "gpu2"], "gpu[1-2], rank 5"),
        (["node[1-2]", "@all", "a,b", "x!y"], "node[1-2], @all, a,b, x!y"),
        (["n" + "9" * 5000], "n" + "9" * 5000),
        (["\x1b[31m1", "\x1b[31m2"], "\x1b[31m1, \x1b[31m2"),
    ],
)
def test_fold(names: list[str], folded: str) -> None:
    assert fold(names) == folded


def test_many_names_of_racks_fold_in_both_numbers() -> None:
    names = [f"rack{rack}-node{node:02}" for rack in range(1, 9) for node in range(1, 17)]
    assert fold(names) == "rack[1-8]-node[01-16]"


_SIMPLE = st.builds(
    "{}{}".format, st.sampled_from(["gpu", "node-", "n", "mlx5_"]), st.integers(0, 120)
)
_PADDED = st.builds("{}{:03}".format, st.sampled_from(["node", "gpu-"]), st.integers(0, 120))


@given(st.lists(st.one_of(_SIMPLE, _PADDED), min_size=1, max_size=40))
def test_the_quick_way_folds_as_clustershell_does(names: list[str]) -> None:
    assert fold(names) == str(NodeSet.fromlist(names, resolver=RESOLVER_NOGROUP))


@given(st.lists(st.from_regex(r"[a-z]{1,3}-?[0-9]{0,3}(\.x)?", fullmatch=True), min_size=1))
def test_what_was_folded_unfolds_to_the_same_names(names: list[str]) -> None:
    assert set(expand(fold(names))) == set(names)


@given(st.lists(st.text(max_size=12), max_size=8))
def test_fold_takes_any_text(names: list[str]) -> None:
    assert bool(fold(names)) == any(names)
    spaced = list(dict.fromkeys(f" {name}" for name in names))
    assert fold(spaced) == ", ".join(spaced)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("node1", ["node1"]),
        (" node1 ", ["node1"]),
        ("node[08-10]", ["node08", "node09", "node10"]),
        ("b2,a[1-2],b2", ["a1", "a2", "b2"]),
        ("n[1-2]-ib[0-1]", ["n1-ib0", "n1-ib1", "n2-ib0", "n2-ib1"]),
        ("node[0-4/2]", ["node0", "node2", "node4"]),
        ("root@node[1-2]", ["root@node1", "root@node2"]),
    ],
)
def test_expand(text: str, names: list[str]) -> None:
    assert expand(text) == names


@pytest.mark.parametrize(
    "text",
    [
        "",
        "node[1-3",
        "node[3-1]",
        "a b",
        "a,,b",
        "@all",
        "a,@b",
        "a!b",
        "n[0-9/0]",
        "n[a-b]",
        "$(x)",
    ],
)
def test_a_bad_list_says_what_to_write(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        expand(text)
    assert repr(text) in caught.value.what
    assert "node[01-16,20]" in caught.value.hint


@pytest.mark.parametrize("text", ["n[1-1000000000]", "n[1-999]x[1-999]", "n[1-60000],m[1-60000]"])
def test_a_list_that_would_fill_the_memory_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="more than 100,000 names"):
        expand(text)


def test_folding_the_gpus_of_a_host_does_not_import_clustershell() -> None:
    code = (
        "import sys; from preflight.nodesets import fold; "
        "assert fold(f'gpu{i}' for i in range(8)) == 'gpu[0-7]'; "
        "sys.exit('ClusterShell' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
