"""Reports of an environment, lists and limits in a paste: prompts, mail, two of a kind."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from preflight.assemble.answers import read
from preflight.assemble.host import assemble
from preflight.errors import UsageError
from preflight.facts.stack import EnvReport
from preflight.model import Raw
from preflight.probes.stack.env_text import env
from preflight.recognise import recognise
from tests import software_text as texts
from tests.conftest import SAMPLES, sample
from tests.software_text import SOFTWARE

VLLM = sample("torch_collect_env/vllm_h100_x8_vm_torch2.5.1_cu124_ngc23.10.txt")
SGLANG = sample("torch_collect_env/sglang_env_h20_x8_driver535_cu129.txt")
DS = sample("ds_report/deepspeed_0.5.4_no_cuda_runtime.txt")
SYSCTL = sample("sysinfo/sysctl_a_ubuntu18.04.txt")
ULIMIT = sample("sysinfo/ulimit_a_memlock_64k_nofile_10240.txt")
LSCPU = sample("sysinfo/lscpu_broadwell_1node.txt")
NUMACTL = sample("sysinfo/numactl_H_2node_60cpu_gcp.txt")
MEMINFO = "MemTotal:  2113515776 kB\nMemFree:  1903515776 kB\nMemAvailable:  2003515776 kB\n"
XID = sample("kernel_log/xid79_then_sxid20034_fatal.log")
SMI = sample("nvidia_smi_table/h100_sxm_x8_555.42_ecc_asterisk.txt")

#: Probe, how it is asked, its text.
CASES = [
    ("collect-env", "python -m torch.utils.collect_env", VLLM),
    ("collect-env", "python3 collect_env.py", texts.COLLECT_ENV_VLLM),
    ("sglang-env", "python3 -m sglang.check_env", SGLANG),
    ("ds-report", "ds_report", DS),
    ("hf-env", "accelerate env", texts.ACCELERATE_ENV),
    ("hf-env", "transformers-cli env", texts.TRANSFORMERS_ENV),
    ("lightning-env", "python collect_env_details.py", texts.LIGHTNING_ENV),
    ("pip-freeze", "pip freeze", texts.PIP_FREEZE),
    *(("pip-list", "pip list", text) for text in texts.LISTS),
    *(("conda-list", "conda list", text) for text in texts.CONDA_LISTS),
    ("sysctl", "sysctl -a", SYSCTL),
    ("ulimit", "ulimit -a", ULIMIT),
    *(("ulimit", "ulimit -a", text) for text in texts.SHELLS.values()),
    ("proc-limits", "cat /proc/4711/limits", texts.PROC_LIMITS),
    ("prlimit", "prlimit --pid 4711", texts.PRLIMIT),
    ("lscpu", "lscpu", LSCPU),
    ("numactl", "numactl -H", NUMACTL),
    ("meminfo", "cat /proc/meminfo", MEMINFO),
    ("env", "env", texts.ENV),
]
PASTES: dict[str, Callable[[str, str], str]] = {
    "as it is": lambda text, asked: text,
    "prompt": lambda text, asked: f"root@node-07:~# {asked}\n{text}root@node-07:~# exit\n",
    "environment": lambda text, asked: f"(train) u@h:/data$ {asked}\n{text}(train) u@h:/data$ \n",
    "CRLF": lambda text, asked: text.replace("\n", "\r\n"),
    "indented": lambda text, asked: re.sub("^", "    ", text, flags=re.M).removesuffix("    "),
    "mail": lambda text, asked: re.sub("^", "> ", text, flags=re.M).removesuffix("> "),
    "letter": lambda text, asked: f"Hello,\n\none node fails.\n\n```\n{text}```\nThanks\n",
}


def probes(text: str) -> dict[str, Raw]:
    """Without the matrix that some hold, which test_enclosed.py is about."""
    found = {raw.probe: raw for raw in recognise(text.encode(), "x.txt")}
    found.pop("nvidia-smi-topo", None)
    return found


def numbered(facts: object) -> str:
    """What was read, without the numbers of lines."""
    return re.sub(r"\b(?:line|lines)=(?:\d+|\{[^}]*\})", "", repr(facts))


@pytest.mark.parametrize(("probe", "asked", "text"), CASES)
@pytest.mark.parametrize("paste", PASTES)
def test_it_reads_the_same_however_it_was_pasted(
    paste: str, probe: str, asked: str, text: str
) -> None:
    found = probes(PASTES[paste](text, asked))
    assert set(found) == {probe}
    assert numbered(read(found[probe])) == numbered(read(Raw("", probe, stdout=text)))


@pytest.mark.parametrize(
    ("probe", "text"), [(probe, text) for probe, each in SOFTWARE.items() for text in each]
)
def test_layouts_of_other_versions_are_known(probe: str, text: str) -> None:
    hard = probe == "ulimit-hard"
    assert set(probes(f"$ ulimit -Ha\n{text}" if hard else text)) == {probe}


def test_all_in_one_paste() -> None:
    text = "".join(f"$ {asked}\n{text}" for _, asked, text in _one_of_each())
    text += f"$ dmesg\n{XID}$ nvidia-smi\n{SMI}"
    found = probes(text)
    assert set(found) == {probe for probe, _, _ in CASES} | {"kernel-log", "nvidia-smi-table"}
    lines = text.split("\n")
    for probe, _, own in _one_of_each():
        raw = found[probe]
        assert numbered(read(raw)) == numbered(read(Raw("", probe, stdout=own))), probe
        for number, line in enumerate(str(raw.stdout).split("\n"), raw.line_offset):
            assert line.strip() in lines[number]


def _one_of_each() -> list[tuple[str, str, str]]:
    return list({case[0]: case for case in CASES}.values())


def test_a_report_holds_what_other_tools_write() -> None:
    assert probes(VLLM)["collect-env"].stdout == VLLM
    assert probes(SGLANG)["sglang-env"].stdout == SGLANG
    assert set(probes(f"{VLLM}$ nvidia-smi\n{SMI}")) == {"collect-env", "nvidia-smi-table"}


def test_no_comment_of_a_list_hides_a_prompt() -> None:
    text = f"# conda list\n{texts.CONDA_LIST}# nvidia-smi\n{SMI}# pip freeze\n{texts.PIP_FREEZE}"
    assert set(probes(text)) == {"conda-list", "nvidia-smi-table", "pip-freeze"}
    shown = "Id=nvidia-fabricmanager.service\nLoadState=loaded\nActiveState=active\n"
    assert set(probes(texts.ENV + shown)) == {"env", "services"}


def test_colours_and_messages_between_the_lines_of_ds_report() -> None:
    report = read(probes(texts.DS_REPORT)["ds-report"])
    assert isinstance(report, EnvReport)
    assert [(op.name, op.installed, op.compatible is True) for op in report.deepspeed_ops] == [
        ("async_io", False, False), ("fused_adam", False, True), ("cpu_adam", True, True),
        ("gds", False, False),
    ]  # fmt: skip
    assert "[FAIL] cannot find CUDA_HOME" in str(report.toolkit)
    assert "torch 0.0" in str(report.deepspeed_torch)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (VLLM + VLLM, "2 reports of python -m torch.utils.collect_env"),
        (f"$ a\n{SGLANG}$ b\n{SGLANG}", "2 reports of python3 -m sglang.check_env"),
        (DS + DS + DS, "3 reports of ds_report"),
        (texts.PIP_FREEZE + texts.PIP_FREEZE.replace("2.3.0", "2.4.0"), "2 reports of pip freeze"),
        (texts.PIP_LIST + texts.PIP_LIST, "2 reports of pip list"),
        (texts.CONDA_LIST + texts.CONDA_LIST, "2 reports of conda list"),
        (SYSCTL + SYSCTL.replace("swappiness = 60", "swappiness = 1"), "2 reports of sysctl -a"),
        (ULIMIT + ULIMIT.replace("10240", "1024"), "2 reports of ulimit -a"),
        (NUMACTL + NUMACTL, "2 reports of numactl -H"),
        (texts.PROC_LIMITS + texts.PROC_LIMITS, "2 reports of cat /proc/PID/limits"),
    ],
)
def test_two_hosts_in_one_file_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        recognise(text.encode(), "x.txt")
    assert "--from NAME=FILE" in raised.value.hint


@pytest.mark.parametrize("shell", texts.SHELLS)
def test_limits_that_nobody_says_anything_of(shell: str) -> None:
    soft = texts.SHELLS[shell]
    hard = re.sub(r"(?im)^(.*\bstack\b.*\s)8192$", r"\1unlimited", soft)
    assert hard != soft
    assert set(probes(soft)) == {"ulimit"}
    assert set(probes(hard)) == {"ulimit-hard"}
    assert set(probes(f"$ ulimit -a\n{hard}")) == {"ulimit"}
    assert set(probes(f"$ ulimit -Ha\n{soft}")) == {"ulimit-hard"}


def test_a_value_of_several_lines_is_one_report() -> None:
    several = "".join(f"kernel.core_modes = {one}\n" for one in ("file", "pipe", "socket"))
    assert set(probes(several + SYSCTL)) == {"sysctl"}
    with pytest.raises(UsageError, match="2 reports of sysctl -a"):
        probes("vm.swappiness = 60\nvm.swappiness = 1\n")


def test_the_same_asked_twice_is_one_answer() -> None:
    again = "$ sysctl vm.swappiness\nvm.swappiness = 60\n" * 2
    assert set(probes(again)) == {"sysctl"}
    assert set(probes(f"{ULIMIT}$ ulimit -a\n{ULIMIT}")) == {"ulimit"}


@pytest.mark.parametrize(
    "text",
    [
        "We pinned foo==1.2 last week.\n",
        "foo==1.2\n",
        "pip install torch==2.5.1\n",
        "export NCCL_DEBUG=info\npython train.py\n",
        "NCCL_DEBUG=INFO\n",
        "The limit of open files (1024) is low\n",
        "Python: the good parts\n",
        "net.core is a namespace\n",
        "if [ $HOME = /root ]; then\n",
        "Package Version\nnone\n",
        "GPU 0: NVIDIA A100 (UUID: GPU-144eeaaf-284c-bd7f-510d-bbfc975d69e3)\n",
    ],
)
def test_what_only_looks_like_it(text: str) -> None:
    with pytest.raises(UsageError):
        recognise(text.encode(), "x.txt")


def test_one_line_of_a_package_that_matters_is_enough() -> None:
    assert set(probes("$ pip freeze | grep torch\ntorch==2.5.1+cu124\n")) == {"pip-freeze"}


def test_soft_and_hard_limits_of_a_shell_are_told_apart() -> None:
    higher = texts.BASH.replace("(-n) 1024", "(-n) 1048576")
    text = f"$ ulimit -a\n{texts.BASH}$ ulimit -Ha\n{higher}"
    limits = assemble("x", recognise(text.encode(), "x.txt")).host.limits
    assert isinstance(limits, tuple)
    assert {one.resource: (one.soft, one.hard) for one in limits}["nofile"] == (1024, 1048576)


def test_a_host_is_told_by_its_reports() -> None:
    host = assemble("x", recognise(f"{VLLM}$ ds_report\n{DS}".encode(), "x.txt")).host
    assert [report.probe for report in host.env_reports] == ["collect-env", "ds-report"]
    assert (host.os, host.virtualization) == ("Ubuntu 22.04.3 LTS", "vm")
    assert isinstance(host.packages, tuple)
    found = {one.name: one.version for one in host.packages}
    assert found["torch"] == "2.5.1"
    assert found["nvidia-nccl-cu12"] == "2.21.5"
    assert found["python"] == "3.10.12"
    assert "onnx" not in found  # no host is asked for it


def test_a_report_that_cannot_be_read_is_told() -> None:
    raws = [Raw("x", "collect-env", stdout=VLLM), Raw("x", "ds-report", stdout="hello\n")]
    found = assemble("x", raws)
    assert [one.probe for one in found.missing] == ["ds-report"]
    assert len(found.host.env_reports) == 1


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("#!/bin/bash\n#SBATCH -N 2\nexport NCCL_DEBUG=INFO\nexport NCCL_IB_HCA=mlx5\n", 1),
        ("export NCCL_DEBUG=INFO\nexport NCCL_IB_HCA=mlx5\nsrun python train.py\n", 3),
        ("export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\nexport NCCL_DEBUG=INFO\n", 1),
        ("export NCCL_DEBUG=INFO\nexport NCCL_IB_TC=$((1+2))\n", 2),
        ("NCCL_DEBUG=INFO   # talk\nNCCL_ALGO=Ring\n", 1),
        ("NCCL_ALGO=Ring\nNCCL_DEBUG=INFO torchrun x.py\n", 2),
        ("NCCL_DEBUG=INFO NCCL_ALGO=Ring torchrun x.py\nNCCL_DEBUG=INFO\n", 1),
    ],
)
def test_scripts_and_notes_are_no_environment(text: str, line: int) -> None:
    with pytest.raises(UsageError, match=f"x:{line}: this is of a script"):
        recognise(text.encode(), "x")


def test_a_value_with_semicolons_is_one_of_env() -> None:
    (raw,) = recognise(b"NCCL_ALGO=allreduce:ring,tree;broadcast:ring\nNCCL_DEBUG=INFO\n", "x")
    assert raw.probe == "env"


def test_lines_of_a_training_log_are_no_environment() -> None:
    with pytest.raises(UsageError, match="not recognised"):
        recognise(b"NCCL_DEBUG=INFO\nloss=2.3\nlr=1e-4\n", "x")


@pytest.mark.parametrize(
    "text",
    [
        "export NCCL_DEBUG=INFO\nexport NCCL_IB_HCA='mlx5_0'\n",
        'declare -x NCCL_DEBUG="INFO"\ndeclare -x NCCL_ALGO="Ring"\n',
        "NCCL_DEBUG=INFO\nNCCL_ALGO=Ring\nPS1=\\u@\\h$ \nNOTE=a\n# b\nSHLVL=1\n",
        "NCCL_DEBUG=INFO\nNCCL_ALGO=Ring\nBASH_FUNC_ml%%=() {  x\nif y\nfi\n}\n_=/bin/env\n",
        "NVIDIA_REQUIRE_CUDA=cuda>=9.0 brand=tesla,driver>=450\nTORCH_CUDA_ARCH_LIST=8.0 9.0+PTX\n",
        "NCCL_DEBUG=INFO\0PATH=/bin\0NCCL_ALGO=Ring\0",
    ],
)
def test_what_env_prints_is_read(text: str) -> None:
    assert set(probes(text)) == {"env"}


def test_notes_beside_a_report_are_left_out() -> None:
    notes = "$ cat run.sh\nexport NCCL_DEBUG=$X\nexport NCCL_ALGO=Ring\n"
    assert set(probes(f"{notes}$ nvidia-smi\n{SMI}")) == {"nvidia-smi-table"}


def test_what_is_set_twice_is_judged_by_the_last() -> None:
    found = env("NCCL_DEBUG=INFO\nNCCL_ALGO=Ring\nNCCL_DEBUG=WARN\nNCCL_ALGO=Ring\n")
    assert {(one.name, one.value, one.before) for one in found} == {
        ("NCCL_DEBUG", "WARN", "INFO"), ("NCCL_ALGO", "Ring", ""),
    }  # fmt: skip


def test_what_is_kept_of_a_pasted_environment_is_what_a_host_would_tell() -> None:
    text = (
        f"NCCL_JWT=hunter2\nOPENAI_KEY=hunter2\n{texts.ENV}FOO=hunter2\nCUDA_X='hunter2\nhunter2'\n"
    )
    kept = str(probes(text)["env"].stdout)
    assert "hunter2" not in kept
    assert "hf_0000" not in kept
    assert "NCCL_JWT=***" in kept
    lines = text.splitlines()
    for number, line in enumerate(kept.splitlines()):
        assert not line or line.partition("=")[0] == lines[number].partition("=")[0]
    report = (
        texts.COLLECT_ENV_VLLM
        + "\nCUDA_HOME=/usr/local/cuda\nVLLM_API_KEY=hunter2\nNCCL_X=hunter2\n"
    )
    kept = str(probes(report)["collect-env"].stdout)
    assert "hunter2" not in kept
    assert "CUDA_HOME=/usr/local/cuda" in kept


@pytest.mark.parametrize(
    ("argv", "probe"),
    [
        (["list"], "pip-list"),
        (["list", "--format", "json"], "pip-list"),
        (["freeze"], "pip-freeze"),
    ],
)
def test_lists_of_this_environment(argv: list[str], probe: str) -> None:
    """What pip itself says is what the metadata says that Python imports by."""
    asked = [sys.executable, "-m", "pip", *argv]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no pip here")
    report = read(probes(done.stdout)[probe])
    assert isinstance(report, EnvReport)
    found = {one.name: one.version for one in report.packages}
    for name in ("msgspec", "pytest", "hypothesis"):
        assert found[name] == metadata.version(name)


def test_versions_recognises_each_sample(tmp_path: Path) -> None:
    for path in sorted(SAMPLES.glob("torch_collect_env/*")) + sorted(SAMPLES.glob("ds_report/*")):
        argv = [sys.executable, "-m", "preflight", "versions", "--from", str(path)]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode in (0, 1, 3), done.stderr
        assert "not read yet" not in done.stderr
