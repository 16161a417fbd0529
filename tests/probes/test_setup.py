"""Board, parameters, software, packages: the questions put to trees of our own, and the answers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from preflight.assemble.host import assemble
from preflight.errors import ParseError
from preflight.model import Missing, Raw
from preflight.probes.board import board
from preflight.probes.parameters.sysctls import sysctls
from preflight.probes.stack.packages import packages
from preflight.probes.stack.software import software
from tests.conftest import require
from tests.probes.test_pci_robust import damaged
from tests.setup_text import BOARD, PACKAGES, SETUP, SOFTWARE, SYSCTLS

PARSERS: dict[str, Callable[[str], Any]] = {
    "board": board, "sysctls": sysctls, "software": software, "packages": packages,
}  # fmt: skip


def asked(parse: Callable[[str], Any], root: Path, *places: str) -> str:
    """What the question prints where `places` (/sys/, /proc/) are below `root`."""
    *argv, script = parse.probe.command.argv  # type: ignore[attr-defined]
    for place in places:
        assert place in script
        script = script.replace(place, f"{root}{place}")
    env = {**os.environ, "LC_ALL": "C", "PATH": f"{root}/bin:{os.environ['PATH']}"}
    done = subprocess.run([*argv, script], capture_output=True, text=True, env=env, cwd=root)
    assert done.returncode == 0, done.stderr
    return done.stdout


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_board_is_asked_and_read(tmp_path: Path) -> None:
    told = dict(line.split(" ", 1) for line in BOARD.splitlines()[:-1])
    files = {f"/sys/class/dmi/id/{name}": f"{value}  \n" for name, value in told.items()}
    text = asked(board, write(tmp_path, files), "/sys/")
    found = board(text)
    assert found == board(BOARD)
    assert not isinstance(found, Missing)
    assert (found.bios_version, found.bios_date) == ("2.1", "01/12/2024")


def test_a_board_that_tells_little_or_nothing(tmp_path: Path) -> None:
    root = write(tmp_path, {"/sys/class/dmi/id/sys_vendor": "QEMU\n"})
    found = board(asked(board, root, "/sys/"))
    assert not isinstance(found, Missing)
    assert found.sys_vendor == "QEMU"
    assert isinstance(found.bios_version, Missing)
    assert found.bios_version.kind == "not-applicable"


def test_a_machine_without_smbios(tmp_path: Path) -> None:
    found = board(asked(board, tmp_path, "/sys/"))
    assert isinstance(found, Missing)
    assert found.kind == "not-applicable"


def values(text: str) -> dict[str, object]:
    return {one.name: one.value for one in sysctls(text)}


def test_parameters_are_asked_and_read(tmp_path: Path) -> None:
    cpus = "/sys/devices/system/cpu"
    root = write(tmp_path, {
        "/proc/sys/vm/swappiness": "10\n",
        "/proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        "/proc/sys/net/ipv4/ip_local_reserved_ports": "\n",
        "/proc/driver/nvidia/params": "EnableMSI: 1\nDeviceFileUID: 0\nRegistryDwords: \"\"\n",
        "/proc/cmdline": "BOOT_IMAGE=/vmlinuz root=UUID=0f3c ro token=s3cret iommu=pt pci=noaer "
        "hugepagesz=1G hugepages=16 intel_iommu=on hugepagesz=2M hugepages=8 -- iommu=off\n",
        "/sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n",
        f"{cpus}/cpu0/cpuidle/state0/name": "POLL\n",
        f"{cpus}/cpu0/cpuidle/state0/disable": "0\n",
        f"{cpus}/cpu0/cpuidle/state3/name": "C6\n",
        f"{cpus}/cpu0/cpuidle/state3/disable": "1\n",
        f"{cpus}/cpu0/cpufreq/scaling_governor": "performance\n",
        f"{cpus}/cpu1/cpufreq/scaling_governor": "powersave\n",
        f"{cpus}/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
        f"{cpus}/cpu1/cpufreq/scaling_driver": "intel_pstate\n",
    })  # fmt: skip
    text = asked(sysctls, root, "/sys/devices/", "/sys/kernel/", "/sys/module/", "/proc/")
    assert values(text) == {
        "vm.swappiness": "10",
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
        "net.ipv4.ip_local_reserved_ports": "none",
        "nvidia.EnableMSI": "1",
        "nvidia.RegistryDwords": '""',
        "thp.enabled": "never",
        "cpu.governor": "mixed",
        "cpu.driver": "intel_pstate",
        "cpuidle.states": "POLL C6=off",
        "cmdline": "hugepages=16 hugepages=8 hugepagesz=1G hugepagesz=2M intel_iommu=on iommu=pt "
        "pci=noaer",
    }
    assert "s3cret" not in text
    assert "UUID" not in text


def test_parameters_of_this_machine() -> None:
    require("/proc/sys", Path("/proc/sys/vm/swappiness").exists())
    *argv, script = sysctls.probe.command.argv  # type: ignore[attr-defined]
    done = subprocess.run([*argv, script], capture_output=True, text=True, timeout=10)
    found = values(done.stdout)
    assert found["vm.swappiness"] == Path("/proc/sys/vm/swappiness").read_text().strip()
    assert "kernel.pid_max" in found


def test_what_of_a_container_is_its_own() -> None:
    own = {one.name for one in sysctls(SYSCTLS) if not one.of_host}
    assert own == {"net.ipv4.tcp_rmem", "net.ipv4.ip_local_reserved_ports"}


def test_a_command_line_without_options_of_interest_is_none() -> None:
    assert values("cmdline\nend\n") == {"cmdline": "none"}


_LDCONFIG = """\
#!/bin/sh
cat <<END
3 libs found in cache \\`/etc/ld.so.cache'
	libnccl.so.2 (libc6) => {0}/lib32/libnccl.so.2
	libnccl.so.2 (libc6,x86-64) => {0}/lib/libnccl.so.2
	libnccl.so.2 (libc6,x86-64) => {0}/old/libnccl.so.2
	libibverbs.so.1 (libc6,x86-64) => {0}/lib/libibverbs.so.1
	libm.so.6 (libc6,x86-64) => {0}/lib/libm.so.6
END
"""


def test_software_is_asked_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {
        "bin/ldconfig": _LDCONFIG.format(tmp_path),
        "bin/ofed_info": "#!/bin/sh\necho OFED-internal-24.10-0.7.0:\n",
        "bin/getconf": "#!/bin/sh\nexit 1\n",
        "lib/libnccl.so.2.21.5": "", "old/libnccl.so.2.18.1": "", "lib/libibverbs.so.1.14.50.0": "",
        "usr/local/cuda-12.4/version.json": '{"cuda" : {"name" : "CUDA", "version" : "12.4.1"}}',
    })  # fmt: skip
    before = tmp_path / "usr" / "local" / "before"
    write(before, {"libnccl.so.2.18.3": "", "libcudnn.so.9.1.0": "", "libcuda.so.550.54.15": ""})
    write(tmp_path, {"usr/local/wheel/libnccl.so.2": "\0\1NCCL version 2.26.2+cuda12.2\0"})
    write(tmp_path, {
        "bin/nvcc": "#!/bin/sh\necho 'Cuda compilation tools, release 12.3, V12.3.107'\n",
        "usr/local/cuda-11.8/bin/nvcc": "", "usr/local/cuda-12.4/bin/nvcc": "",
        "usr/local/gib/lib64/libnccl-net.so": "", "usr/local/own/libnccl.so.2.19.3": "",
    })  # fmt: skip
    for name in ("libnccl.so.2.18.3", "libcudnn.so.9.1.0", "libcuda.so.550.54.15"):
        stem = name.partition(".so")[0]
        number = {"libnccl": 2, "libcudnn": 9, "libcuda": 1}[stem]
        (before / f"{stem}.so.{number}").symlink_to(name)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{before}")
    monkeypatch.delenv("CUDA_HOME", raising=False)
    for name in ("ldconfig", "ofed_info", "getconf", "nvcc"):
        (tmp_path / "bin" / name).chmod(0o755)
    for link, target in (
        ("lib/libnccl.so.2", "libnccl.so.2.21.5"), ("old/libnccl.so.2", "libnccl.so.2.18.1"),
        ("lib/libibverbs.so.1", "libibverbs.so.1.14.50.0"), ("usr/local/cuda", "cuda-12.4"),
    ):  # fmt: skip
        (tmp_path / link).symlink_to(target)
    found = {one.name: one.version for one in software(asked(software, tmp_path, "/usr/local/"))}
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{tmp_path}/usr/local/wheel")
    monkeypatch.setenv("LD_PRELOAD", "")
    wheel = {one.name: one.version for one in software(asked(software, tmp_path, "/usr/local/"))}
    assert wheel["nccl-path"] == "2.26.2"
    assert isinstance(found.pop("nccl-net-gib"), Missing)  # its name tells no version
    assert found == {
        "nvcc": "12.3.107", "cuda-toolkits": "11.8, 12.4", "nccl-path": "2.18.3",
        "cudnn-9-path": "9.1.0", "compat-driver": "550.54.15",
        "nccl": "2.21.5", "rdma-core": "50.0", "cuda-toolkit": "12.4.1",
        "ofed": "OFED-internal-24.10-0.7.0",
    }  # fmt: skip


def test_the_name_by_which_the_loader_asks_is_no_version() -> None:
    (one,) = software("path libcuda.so.1 /opt/compat/libcuda.so.1\nend\n")
    assert isinstance(one.version, Missing)


def test_what_is_loaded_before_everything_else() -> None:
    (one,) = software("preload libnccl.so.2 /opt/nccl/libnccl.so.2.19.3\nend\n")
    assert (one.name, one.version) == ("nccl-preload", "2.19.3")


def test_a_preloaded_file_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libnccl.so.2.19.3").touch()
    for place, known in ((tmp_path, True), (tmp_path / "gone", False)):
        monkeypatch.setenv("LD_PRELOAD", f"{place}/libnccl.so.2.19.3")
        found = {
            one.name: one.version for one in software(asked(software, tmp_path, "/usr/local/"))
        }
        assert (found["nccl-preload"] == "2.19.3") is known
    told = found["nccl-preload"]
    assert isinstance(told, Missing)
    assert "gone/libnccl.so.2.19.3: no such file" in told.text


def test_a_compiler_that_does_not_start_is_not_known() -> None:
    (one,) = software("nvcc /usr/local/cuda/bin/nvcc\nend\n")
    assert isinstance(one.version, Missing)
    assert "/usr/local/cuda/bin/nvcc" in one.version.text


def test_a_toolkit_without_its_file_has_the_version_of_its_directory() -> None:
    (one,) = software("cuda /usr/local/cuda-11.8\nlibc \nend\n")
    assert (one.name, one.version) == ("cuda-toolkit", "11.8")
    (old,) = software("cuda /usr/local/cuda\nbegin version.txt\nCUDA Version 10.2.89\nend\n")
    assert old.version == "10.2.89"
    (unread,) = software("cuda /opt/cuda\nend\n")
    assert isinstance(unread.version, Missing)


def test_a_library_whose_file_has_no_version_is_not_known() -> None:
    (one,) = software("library libnccl.so.2 /opt/nccl/libnccl.so\nend\n")
    assert isinstance(one.version, Missing)


def test_packages_are_asked_and_read(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    write(first, {
        "torch-2.3.0+cu121.dist-info/METADATA": "", "flash_attn-2.5.8.dist-info/METADATA": "",
        "apex.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: apex\nVersion: 0.1\n",
        "left_pad-1.0.dist-info/METADATA": "", "numpy.egg-info/other": "",
    })  # fmt: skip
    write(second, {"torch-1.0.dist-info/METADATA": "", "nvidia_nccl_cu12-2.20.5.dist-info/M": ""})
    # Nothing of the working directory is run or found.
    write(tmp_path, {"os.py": "raise SystemExit(5)", "vllm-1.0.dist-info/METADATA": ""})
    _, *argv = packages.probe.command.argv  # type: ignore[attr-defined]
    env = {"PYTHONPATH": f"{first}:{second}", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-S", *argv], capture_output=True, text=True, env=env, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    found = {one.name: one.version for one in packages(done.stdout).packages}
    assert found.pop("python") == "{}.{}.{}".format(*sys.version_info[:3])
    assert isinstance(found.pop("numpy"), Missing)
    assert found == {
        "torch": "2.3.0+cu121", "flash-attn": "2.5.8", "apex": "0.1", "nvidia-nccl-cu12": "2.20.5",
    }  # fmt: skip


def test_noise_around_the_packages_is_no_package() -> None:
    told = packages(f"site says hello\n{PACKAGES}goodbye\n").packages
    assert told[1].name == "torch"
    assert told[1].line == 3


@pytest.mark.parametrize("name", list(PARSERS))
def test_what_is_cut_short_or_something_else(name: str) -> None:
    whole = SETUP[name]
    for text in ("", "\n", "hello\n", whole.removesuffix("end\n"), whole[: len(whole) // 2]):
        with pytest.raises(ParseError):
            PARSERS[name](text)


@pytest.mark.parametrize("name", list(SETUP))
def test_damaged_text_is_read_or_refused(name: str) -> None:
    for seed in range(60):
        raw = Raw("h", name, ("sh",), 0, damaged(SETUP[name], seed))
        assemble("h", [raw])


@pytest.mark.parametrize("name", list(PARSERS))
def test_line_ends_of_windows_change_nothing(name: str) -> None:
    assert PARSERS[name](SETUP[name].replace("\n", "\r\n")) == PARSERS[name](SETUP[name])


def test_no_json_is_deep_enough_to_break() -> None:
    body = "[" * 200_000
    text = f"cuda /usr/local/cuda-12.4\nbegin version.json\n{body}\nend version.json\nend\n"
    assert software(text)[0].version == "12.4"
    assert {one.name: one.version for one in software(SOFTWARE)} == {
        "container-toolkit": "1.14.6", "nccl": "2.21.5", "rdma-core": "39.0", "cudnn-9": "9.1.0",
        "cuda-toolkit": "12.4.1", "ofed": "MLNX_OFED_LINUX-23.10-1.1.9.0", "libc": "glibc 2.35",
    }  # fmt: skip
