"""What importing the guard costs a training script, and which Python it takes."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOM = Path(__file__).resolve().parents[2] / "src" / "preflight" / "guard"


def test_it_brings_nothing_but_itself_and_the_standard_library() -> None:
    ask = "from preflight import guard; print(json.dumps(sorted(sys.modules)))"
    whole = f"import json, sys; sys.path.insert(0, {str(ROOM.parents[1])!r}); {ask}"
    argv = [sys.executable, "-S", "-c", whole]  # without what is installed
    ran = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    brought = json.loads(ran.stdout)
    mine = {name for name in brought if name.startswith("preflight.")}
    assert mine == {"preflight.guard"} | {
        f"preflight.guard.{one.stem}" for one in ROOM.glob("[a-z]*.py")
    }
    known = {*sys.stdlib_module_names, "preflight", "__main__"}
    assert {name.split(".")[0] for name in brought} - known == set()


@pytest.mark.parametrize("path", sorted(ROOM.glob("*.py")), ids=lambda path: path.stem)
def test_python_3_9_reads_it(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    first = next(one for one in tree.body if isinstance(one, ast.ImportFrom))
    assert first.module == "__future__"  # annotations are never evaluated
