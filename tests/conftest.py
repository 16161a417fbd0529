"""What several tests need: real samples, and the rule for components that are absent."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

_NUMBERS = itertools.count()
SAMPLES = Path(__file__).resolve().parent / "samples"


def require(component: str, present: bool) -> None:
    """Go on only where `component` is here: skip on a developer's machine, fail under CI=true.

    Tests that need a GPU call `pytest.skip` themselves: no GPU is promised to CI.
    """
    if present:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(f"{component} is missing, and CI must have it", pytrace=False)
    pytest.skip(f"needs {component}")


def sample(path: str) -> str:
    """The text of tests/samples/`path`, line ends as recorded; UnicodeDecodeError if not UTF-8."""
    return sample_bytes(path).decode()


def sample_bytes(path: str) -> bytes:
    """The bytes of tests/samples/`path`."""
    return (SAMPLES / path).read_bytes()


@pytest.fixture(autouse=True, scope="session")
def _locks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Active work of preflight is alone on its host: that of another worker's tests is not."""
    folder = tmp_path_factory.mktemp("active")
    os.environ["PREFLIGHT_LOCK"] = str(folder / "shared")
    return folder


@pytest.fixture(autouse=True)
def _lock_of_this_test(_locks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test locks in its own process stays locked until the worker ends."""
    monkeypatch.setenv("PREFLIGHT_LOCK", str(_locks / str(next(_NUMBERS))))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with real machines and runs of training wait more than they compute: they come first,
    beside each other, and none of them is the last one that the others' processors wait for."""
    items.sort(key=lambda item: not any(map(item.get_closest_marker, ("lab", "xdist_group"))))
