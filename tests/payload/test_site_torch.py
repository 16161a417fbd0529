"""What counts as a torch, before it is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from preflight.payload import pythons
from preflight.payload.site import site, torch_version


@pytest.mark.parametrize("files", [(), ("__init__.py",), ("__init__.py", "version.py")])
def test_what_an_installation_left_behind_that_broke_off_is_no_torch(
    files: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch").mkdir()
    for one in files:
        (tmp_path / "torch" / one).touch()
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    monkeypatch.delitem(__import__("sys").modules, "torch", raising=False)
    assert torch_version() == ""
    assert "has a torch that is not whole" in pythons.no_torch()


def test_of_an_interface_without_an_address_those_that_have_one_are_named() -> None:
    told = site("none0", "", even_if_busy=True)
    assert told["cannot"].startswith("there is no interface none0; ")
