"""Fully qualified names are found by their endings, and nothing else with dots is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from preflight.redact.domains import full_names
from preflight.redact.redactor import Redactor
from tests.conftest import SAMPLES

CHECKS = Path(__file__).resolve().parents[2] / "checks"

HOSTS = [
    "storage01.corp.acme.com",
    "CORP.ACME.COM",
    "gitlab.acme.io",
    "atlas.local",
    "node-07.lan",
    "gpu_01.cluster.acme.org",
    "ip-10-0-3-17.ec2.internal",
    "train-0.c.acme-llm.internal",
    "train-0.headless.default.svc.cluster.local",
    "17.3.0.10.in-addr.arpa",
    "storage.acme.de",
    "login.iitd.ac.in",
    "login02.leonardo.cineca.it",
    "dgx-17.corp.nvidia.com",
    "lcy02-amd64-034.ubuntu.com",
]


@pytest.mark.parametrize("name", HOSTS)
def test_the_full_name_of_any_machine_becomes_a_stand_in(name: str) -> None:
    for text in ("nfs: {} not there", "https://{}/x", "({})", "{}.", "{}:29500", "to {},", "*.{}"):
        assert Redactor().full(text.replace("{}", name)) == text.replace("{}", "host-1")


def test_a_name_that_only_an_address_makes_sure_of_goes_there() -> None:
    assert list(full_names("acme.cloud is https://acme.cloud/x or acme.ai:443")) == [
        "acme.cloud",
        "acme.ai",
    ]


def test_the_same_machine_in_short_is_known_where_its_name_has_a_number() -> None:
    told = "storage01.corp.acme.com gone; storage01 back; mail.acme.com sent mail"
    assert Redactor().full(told) == "host-1 gone; host-1 back; host-2 sent mail"


def test_files_that_are_called_after_a_machine_keep_their_endings() -> None:
    told = "/var/log/storage01.acme.com.log storage01.acme.com.tar.gz"
    assert Redactor().full(told) == "/var/log/host-1.log host-1.tar.gz"


@pytest.mark.parametrize(
    "text",
    [
        "libnccl.so.2 libcudnn.so.9 ld.so.conf nvidia.ko mlx5_core.ko.zst i915/dg2_guc_70.bin",
        "nvidia-smi.service nvidia-fabricmanager.service user.slice init.scope -.mount",
        "x.capture.gz 535.161.08 5.15.0-105-generic 4.18.0-553.el8_10.x86_64 python3.11 v2.18.5",
        "Documentation/foo.rst Documentation/admin-guide/README.org /etc/rc.local rc.local",
        "net.ipv4.conf.all.rp_filter=1 kernel.hostname net.core.rmem_max fs.aio-max-nr",
        "threading.local() self.net torch.io torch.distributed.internal google.cloud user.home",
        "preflight.transports.local model.module.net.0.weight nn.functional.pad train.py a.b.so",
        "io.containerd.runtime.v1.local org.freedesktop.home com.example.tool",
        "nvcr.io/nvidia/pytorch:24.01-py3 nvidia.com/gpu k8s.io docs.nvidia.com lore.kernel.org",
        "gpu.ecc.volatile pcie.gen fleet.driver.same e.g. i.e. mlx5_0.1 0000:91:00.0 1.2.3.4.5",
        "main.c net.cc proxy.cc:679 foo.pl setup.sh notes.md a.in Makefile.am libtool.la",
        "localhost.localdomain",
    ],
)
def test_files_modules_versions_and_public_sites_stay(text: str) -> None:
    assert list(full_names(text)) in ([], ["localhost.localdomain"])
    assert Redactor().full(text) == text


def _samples() -> list[Path]:
    return sorted(path for path in SAMPLES.rglob("*") if path.is_file() and path.suffix != ".gz")


def test_real_outputs_hold_no_names_but_these() -> None:
    found = {
        (path.name, name)
        for path in _samples()
        for name in full_names(path.read_bytes().decode("utf-8", "replace"))
    }
    assert found == {
        ("boot_xe9680_h100_mlx5_insufficient_power.log", "git.example.com"),
        ("sysctl_a_centos7.7.txt", "localhost.localdomain"),
    }


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for part in value.values() for text in _strings(part)]
    if isinstance(value, list):
        return [text for part in value for text in _strings(part)]
    return [value] if isinstance(value, str) else []


def test_no_advice_of_the_catalogue_is_changed() -> None:
    texts = [
        text
        for path in sorted(CHECKS.rglob("*.yaml"))
        if path.name != "trace_names.yaml"  # patterns of names, which nobody is shown
        for text in _strings(yaml.safe_load(path.read_text(encoding="utf-8")))
    ]
    assert any(re.search(r"nvidia\.com", text) for text in texts)
    assert [text for text in texts if Redactor().full(text) != text] == []
