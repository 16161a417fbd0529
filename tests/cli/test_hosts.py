"""Many hosts interrupted: what is due is told, and a nervous hand is heard once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from preflight.capture import read
from preflight.cli import hosts as module
from preflight.cli.asking import Captures
from preflight.cli.hosts import Spool
from preflight.faults import CONNECTION
from preflight.model import Raw


def _answers() -> Iterator[tuple[str, list[Raw]]]:
    for name in ("n1", "n2", "n3"):
        yield name, [Raw(name, "a", stdout=name)]


def test_a_capture_that_is_broken_off_names_the_hosts_that_are_due(tmp_path: Path) -> None:
    path = tmp_path / "x.capture.gz"
    with pytest.raises(KeyboardInterrupt), Captures([path]).opened() as keeper:
        assert keeper
        for _, raws in module._kept_to_the_end(_answers(), ("n1", "n2", "n3"), keeper):
            keeper.put(raws)
            if raws[0].host == "n2":
                raise KeyboardInterrupt
    # The generator, left off, tells at its own end.
    raws = read(path).raws
    due = [raw.host for raw in raws if raw.probe == CONNECTION and raw.missing]
    assert "n3" in due
    assert {raw.host for raw in raws} == {"n1", "n2", "n3"}


def test_two_signals_in_quick_succession_are_one() -> None:
    interrupted = threading.Event()
    with module._heard(interrupted):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
        assert interrupted.is_set()


def test_a_signal_that_comes_much_later_ends_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ENDS_WITHIN_S", 0.05)
    with module._heard(threading.Event()), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)


def test_the_spool_gives_back_what_it_was_given() -> None:
    spool = Spool()
    for _, raws in _answers():
        spool.put(raws)
    assert [raw.stdout for raw in spool.all()] == ["n1", "n2", "n3"]
    spool.close()
