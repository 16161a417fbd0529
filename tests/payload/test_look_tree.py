"""Who is a rank and who works for one, by what launchers of many kinds leave in a tree."""

from __future__ import annotations

import pytest

from preflight.payload.look import tree
from preflight.payload.look.tree import Member

#: PID: parent, name, command, environment.
Trees = dict[int, tuple[int, str, str, dict[str, str]]]
TRAIN = "python train.py"
SPAWNED = "python -c from multiprocessing.spawn import spawn_main; spawn_main(...)"


def roles(
    monkeypatch: pytest.MonkeyPatch, told: Trees, holders: frozenset[int] = frozenset()
) -> dict[int, tuple[str, int | None]]:
    monkeypatch.setattr(tree, "words_of", lambda pid: told[pid][2].split())
    monkeypatch.setattr(tree, "environment_of", lambda pid: told[pid][3])
    monkeypatch.setattr(tree, "trains", lambda pid: "resource_tracker" not in told[pid][2])
    family = [Member(pid, one[0], one[1], "") for pid, one in told.items()]
    tree.assign(family, set(holders))
    return {one.pid: (one.role, one.rank) for one in family}


def test_one_process_and_its_loaders(monkeypatch: pytest.MonkeyPatch) -> None:
    told: Trees = {
        10: (1, "python", TRAIN, {}),
        11: (10, "pt_data_worker", TRAIN, {}),
        12: (10, "python", TRAIN, {}),  # older ones of torch have no name
    }
    assert roles(monkeypatch, told) == {
        10: ("rank", None), 11: ("worker", None), 12: ("worker", None),
    }  # fmt: skip


def test_ranks_that_torchrun_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    told: Trees = {
        10: (1, "pt_elastic", "python torchrun train.py", {}),
        11: (10, "python", TRAIN, {"RANK": "4", "LOCAL_RANK": "0"}),
        12: (11, "pt_data_worker", TRAIN, {"RANK": "4"}),
    }
    assert roles(monkeypatch, told) == {10: ("other", None), 11: ("rank", 4), 12: ("worker", None)}


@pytest.mark.parametrize("command", [TRAIN, SPAWNED])
def test_ranks_that_the_program_itself_forks_or_spawns(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """torch.multiprocessing.spawn, Lightning: only their own loaders tell that they train."""
    told: Trees = {
        10: (1, "python", TRAIN, {}),
        11: (10, "python", "python -c from multiprocessing.resource_tracker import main", {}),
        12: (10, "python", command, {}),
        13: (10, "python", command, {}),
        14: (12, "pt_data_worker", command, {}),
        15: (13, "pt_data_worker", command, {}),
    }
    assert roles(monkeypatch, told) == {
        10: ("other", None), 11: ("other", None), 12: ("rank", None), 13: ("rank", None),
        14: ("worker", None), 15: ("worker", None),
    }  # fmt: skip


def test_ranks_by_name_and_by_their_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    told: Trees = {
        10: (1, "python", TRAIN, {}), 11: (10, "rank 0", TRAIN, {}), 12: (10, "rank 1", TRAIN, {}),
    }  # fmt: skip
    assert roles(monkeypatch, told) == {10: ("other", None), 11: ("rank", 0), 12: ("rank", 1)}
    told = {10: (1, "python", TRAIN, {}), 11: (10, "python", SPAWNED, {})}
    assert roles(monkeypatch, told, frozenset({11}))[11][0] == "rank"
    assert roles(monkeypatch, told, frozenset({10}))[11][0] == "worker"
