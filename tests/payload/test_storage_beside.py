"""What a save leaves to a reader is held against a reading alone that was a sound one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from preflight.payload.storage import checkpoint
from preflight.payload.storage.saving import Job, Saved


def told(per_s: int) -> dict[str, Any]:
    return {"count": per_s, "elapsed_s": 1.0, "whiles": [per_s // 2] * 2}


@pytest.mark.parametrize(
    ("alone", "beside", "kept_percent"),
    [
        # The first of each time tried the device, and is not counted.
        ([10, 100], 50, 50.0),
        ([10, 10, 10, 100], 80, 80.0),
        # It stays as it is: what is read of it does not determine anything.
        ([10, 10, 10, 10], 100, 1000.0),
    ],
)
def test_the_time_alone_is_measured_again_where_it_was_held_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[int], beside: int,
    kept_percent: float,
) -> None:  # fmt: skip
    left = list(alone)

    def together(_count: int, _work: Callable[[int], Any], _seconds: float) -> list[Any]:
        return [told(left.pop(0))]

    monkeypatch.setattr(checkpoint, "together", together)
    monkeypatch.setattr(
        checkpoint, "saved", lambda *_, **__: Saved({"trouble": ""}, (), [told(beside)])
    )
    row = checkpoint._save_while_reading(Job(str(tmp_path), 1, 1, 4096, 0.1, False, False), ())
    assert (row["reader_kept_percent"], left) == (kept_percent, [])
