"""However preflight is installed, it finds its rules and works from any directory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from preflight import datafiles
from preflight.errors import PreflightError
from tests.conftest import SAMPLES

REPOSITORY = Path(__file__).resolve().parents[1]
SAMPLE = SAMPLES / "nvidia_smi_xml" / "rtx3060_570.124.xml"
#: The wheel is built from the sdist, as pip would build it.
WAYS = ("wheel", "editable")


def ran(argv: Sequence[str | Path], cwd: Path) -> str:
    """What the command printed; the test fails with its standard error unless it exits with 0."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PIP_"))}
    done = subprocess.run(argv, cwd=cwd, env=kept, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{argv} exited with {done.returncode}:\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an sdist and the wheel built from that sdist."""
    out = tmp_path_factory.mktemp("dist")
    ran([sys.executable, "-m", "build", "--no-isolation", "--outdir", out, REPOSITORY], out)
    return out


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What preflight and its build need, without the preflight that runs this test."""
    folder = tmp_path_factory.mktemp("libraries")
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "preflight" not in entry.name:
            (folder / entry.name).symlink_to(entry)
    return folder


def install(way: str, dist: Path, libraries: Path, into: Path) -> Path:
    """A fresh environment with preflight in it, offline; its bin/."""
    venv.create(into)
    fresh = into / "bin" / "python"
    site = ran([fresh, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], into)
    (Path(site.strip()) / "libraries.pth").write_text(f"{libraries}\n")
    what: dict[str, Sequence[str | Path]] = {
        "wheel": list(dist.glob("*.whl")),
        "editable": ["--editable", REPOSITORY],
    }
    offline = ["--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check"]
    ran([fresh, "-m", "pip", "install", "--quiet", *offline, *what[way]], into)
    return fresh.parent


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_installing_works(
    way: str, dist: Path, libraries: Path, tmp_path: Path
) -> None:
    programs = install(way, dist, libraries, tmp_path / "venv")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    ask = "from preflight.datafiles import root; print(root())"
    root = Path(ran([programs / "python", "-c", ask], elsewhere).strip())
    assert root.is_relative_to(REPOSITORY if way == "editable" else tmp_path)
    assert (root / "checks" / "gpu.yaml").read_text(encoding="utf-8")
    assert list((root / "runbooks").glob("*.md"))

    ask = "from preflight.ship import watch_command; print(len(watch_command(5).stdin))"
    assert int(ran([programs / "python", "-c", ask], elsewhere)) > 10_000

    asked = ["gpu-health", "--from", str(SAMPLE), "--format", "json"]
    report = json.loads(ran([programs / "preflight", *asked], elsewhere))
    assert report["schema"] == "preflight.report/1"
    assert len(report["hosts"][0]["results"]) > 10


def test_what_is_in_the_archives(dist: Path) -> None:
    with zipfile.ZipFile(next(dist.glob("*.whl"))) as wheel:
        inside = set(wheel.namelist())
    assert "preflight/_data/checks/gpu.yaml" in inside
    assert any(name.endswith("/licenses/LICENSE") for name in inside)
    assert {name.split("/")[0].split("-")[0] for name in inside} == {"preflight", "gpu_preflight"}

    with tarfile.open(next(dist.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"README.md", "LICENSE", "Makefile", "constraints.txt", "checks/gpu.yaml"} <= names
    assert {"tests/conftest.py", "bench/startup.py"} <= names


def test_missing_rules_are_told_with_the_places(tmp_path: Path) -> None:
    package = tmp_path / "src" / "preflight"
    (package / "_data" / "checks").mkdir(parents=True)  # no runbooks beside it
    with pytest.raises(PreflightError) as caught:
        datafiles.root(package)
    assert str(package / "_data") in caught.value.what
    assert str(tmp_path) in caught.value.what.replace(str(package / "_data"), "")
    assert "pip install" in caught.value.hint


def test_the_wheels_own_rules_come_first(tmp_path: Path) -> None:
    package = tmp_path / "src" / "preflight"
    for place in (package / "_data", tmp_path):
        (place / "checks").mkdir(parents=True)
        (place / "runbooks").mkdir()
    assert datafiles.root(package) == package / "_data"
