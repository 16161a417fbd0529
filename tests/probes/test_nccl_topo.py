"""NCCL's topology file: where it is looked for, and what is read of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from preflight.errors import ParseError, UsageError
from preflight.facts.nccl_topo import NcclTopo
from preflight.model import Missing
from preflight.probes.nccl_topo import nccl_topo
from preflight.recognise import recognise
from tests.nccl_topo_text import CLOUD, DUMP, answer


def _read(text: str) -> NcclTopo:
    found = nccl_topo(text)
    assert isinstance(found, NcclTopo)
    return found


def _asked(*pids: int, **environment: str) -> Any:
    """The answer of this machine, with these variables and no file of the user's."""
    argv = [*nccl_topo.probe.command.argv, *map(str, pids)]  # type: ignore[attr-defined]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NCCL_")}
    told = subprocess.run(
        argv, capture_output=True, text=True, env=kept | {"HOME": "/nowhere"} | environment
    )
    assert told.stderr == ""
    return nccl_topo(told.stdout)


def test_what_nccl_wrote() -> None:
    found = _read(DUMP)
    nic, gpu = found.devices
    assert (gpu.kind, gpu.name, gpu.numa_node, gpu.nvlinks) == ("gpu", "0000:19:00.0", 0, 18)
    assert (gpu.speed_gtps, gpu.width, gpu.bridges) == (32.0, 16, ("0000:16:00.0",))
    assert (nic.kind, nic.name, nic.line) == ("nic", "0000:18:00.0", 4)
    assert isinstance(nic.nvlinks, Missing)
    assert [(net.name, net.address, net.rate_gbits) for net in found.nets] == [
        ("mlx5_0", "0000:18:00.0", 400.0)
    ]


def test_the_file_of_a_cloud_holds_bridges_and_classes_alone() -> None:
    found = _read(CLOUD)
    assert [(one.kind, one.name, one.numa_node) for one in found.devices] == [
        ("gpu", "0003:00:00.0", 0), ("nic", "0103:00:00.0", 0),
        ("gpu", "0001:00:00.0", 1), ("nic", "0101:00:00.0", 1),
    ]  # fmt: skip
    assert found.devices[2].bridges == ("ffff:ff:02.0",)
    assert found.nets == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [('link_width="16"', 'link_width="0"'), ('link_width="16"', 'link_width="255"'),
     ("32.0 GT/s PCIe", "Unknown speed"), ("32.0 GT/s PCIe", ""), ('count="5"', 'count="many"')],
)  # fmt: skip
def test_what_the_kernel_did_not_know_is_not_known(old: str, new: str) -> None:
    nic, _ = _read(DUMP.replace(old, new)).devices
    assert isinstance(nic.width, Missing) or isinstance(nic.speed_gtps, Missing) or "count" in old


@pytest.mark.parametrize(
    "text",
    [
        "",
        "end\n",
        "<system/>",
        DUMP[:900],
        "<cpu/>",
        "state read\n",
        answer(DUMP)[:-5],
        DUMP.replace('version="1"', 'version="2"'),
        f"<!DOCTYPE x [<!ENTITY a 'b'>]>{DUMP}".replace("mlx5", "&a;"),
    ],
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ParseError):
        nccl_topo(text)


@pytest.mark.parametrize(
    ("file", "fault"),
    [
        (DUMP.replace("  <cpu", "\t<cpu"), "line 2: a tab"),
        ('<?xml version="1.0"?>\n' + DUMP, "line 1: it begins with an XML declaration"),
        (DUMP.replace("</cpu>", ""), "line 19: not well-formed XML: mismatched tag"),
        (DUMP[:900], "not well-formed XML"),
        (DUMP.replace('version="1"', 'version="2"'), "line 1: expected <system"),
        ("<topology/>", "line 1: expected <system"),
        ("", "no element found"),
    ],
)
def test_what_stops_nccl_is_told_by_the_lines_of_the_file(file: str, fault: str) -> None:
    found = _read(answer(file))
    assert found.state == "broken"
    assert fault in found.fault
    assert found.path == "/opt/topo.xml"


def test_a_file_of_the_shell(tmp_path: Path) -> None:
    file = tmp_path / "with a blank.xml"
    file.write_text(CLOUD)
    found = _asked(NCCL_TOPO_FILE=str(file))
    assert (found.state, found.path, found.named) == ("read", str(file), "shell")
    assert len(found.devices) == 4
    assert found.devices[0].line == 7  # three lines of the answer stand before the file
    file.unlink()
    assert _asked(NCCL_TOPO_FILE=str(file)).state == "absent"
    assert _asked(NCCL_TOPO_FILE=str(tmp_path)).state == "denied"


def test_a_file_of_nccl_conf_counts_where_the_shell_names_none(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(DUMP)
    conf = tmp_path / "nccl.conf"
    conf.write_text(f"NCCL_DEBUG=WARN\nNCCL_TOPO_FILE={tmp_path}/a.xml")  # no last line end
    found = _asked(NCCL_CONF_FILE=str(conf))
    assert (found.state, found.named) == ("read", str(conf))
    assert _asked(NCCL_CONF_FILE=str(conf), NCCL_TOPO_FILE="/no").path == "/no"


def test_a_file_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(DUMP)
    environment = os.environ | {"NCCL_TOPO_FILE": f"{tmp_path}/a.xml"}
    with subprocess.Popen(["sleep", "60"], env=environment) as child:
        found = _asked(child.pid, NCCL_TOPO_FILE="/of/the/shell")
        child.kill()
    assert (found.state, found.named) == ("read", f"pid {child.pid}")
    gone = _asked(child.pid)
    assert isinstance(gone, Missing)
    assert gone.text.endswith("there is no such process")
    hidden = nccl_topo("named pid 4711\nstate hidden\nend\n")
    assert isinstance(hidden, Missing)
    assert hidden.kind == "denied"


def test_a_host_without_a_file() -> None:
    if any(Path(at).exists() for at in ("/var/run/nvidia-topologyd", "/etc/nccl.conf")):
        pytest.skip("this machine has a file of its own")
    assert _asked().state == "none"


@pytest.mark.parametrize("text", [DUMP, CLOUD], ids=["dump", "cloud"])
def test_single_quotes_are_as_good(text: str) -> None:
    (raw,) = recognise(text.replace('"', "'").encode(), "topo.xml")
    (plain,) = recognise(text.encode(), "topo.xml")
    assert raw.probe == "nccl-topo"
    assert nccl_topo(str(raw.stdout)) == nccl_topo(str(plain.stdout))


def test_it_is_recognised_beside_other_tools() -> None:
    (raw,) = recognise(DUMP.encode(), "topo.xml")
    assert raw.probe == "nccl-topo"
    text = f"$ nvidia-smi -L\n\n$ cat topo.xml\n{CLOUD}$ uptime\n 10:00 up\n"
    (raw,) = [one for one in recognise(text.encode(), "x") if one.probe == "nccl-topo"]
    assert len(_read(str(raw.stdout)).devices) == 4
    with pytest.raises(UsageError, match="2 reports"):
        recognise((DUMP + CLOUD).encode(), "x")
