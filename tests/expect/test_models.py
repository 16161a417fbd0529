"""The table of models: each product name finds its own row, and none another's."""

from __future__ import annotations

import re

import pytest

from preflight.expect.models import Model, model_of, models
from preflight.model import Missing
from tests.conftest import SAMPLES

#: Product name -> generation, form, links by design (None: none), power limit (None: not promised).
KNOWN: dict[str, tuple[str, str, int | None, int | None]] = {
    "Tesla K80": ("kepler", "pcie", None, 149),
    "Tesla K40m": ("kepler", "pcie", None, None),
    "Tesla M40 24GB": ("maxwell", "pcie", None, None),
    "Tesla M60": ("maxwell", "pcie", None, None),
    "GeForce GTX 1080 Ti": ("pascal", "geforce", None, None),
    "NVIDIA GeForce GTX 1650": ("turing", "geforce", None, None),
    "NVIDIA GeForce GTX 1660 SUPER": ("turing", "geforce", None, None),
    "NVIDIA GB10": ("blackwell", "superchip", None, None),
    "Tesla P100-SXM2-16GB": ("pascal", "sxm", 4, 300),
    "Tesla P100-PCIE-16GB": ("pascal", "pcie", None, 250),
    "Tesla P4": ("pascal", "pcie", None, None),
    "Quadro P400": ("pascal", "workstation", None, None),
    "Tesla V100-SXM2-32GB": ("volta", "sxm", 6, 300),
    "Tesla V100-SXM2...": ("volta", "sxm", 6, 300),
    "Tesla V100-PCIE...": ("volta", "pcie", None, 250),
    "Tesla V100S-PCIE-32GB": ("volta", "pcie", None, 250),
    "NVIDIA TITAN V": ("volta", "workstation", None, 250),
    "Tesla T4": ("turing", "pcie", None, 70),
    "NVIDIA TITAN RTX": ("turing", "workstation", 2, 280),
    "A100-SXM4-40GB": ("ampere", "sxm", 12, 400),
    "NVIDIA A100-SXM4-80GB": ("ampere", "sxm", 12, 400),
    "NVIDIA A100-SXM...": ("ampere", "sxm", 12, 400),
    "NVIDIA A100-PCIE-40GB": ("ampere", "pcie", 12, 250),
    "NVIDIA A100-PCI...": ("ampere", "pcie", 12, 250),
    "NVIDIA A100 80GB PCIe": ("ampere", "pcie", 12, 300),
    "NVIDIA A100 80G...": ("ampere", "pcie", 12, 300),
    "NVIDIA A800-SXM4-80GB": ("ampere", "sxm", 8, 400),
    "NVIDIA A30": ("ampere", "pcie", 4, 165),
    "NVIDIA A40": ("ampere", "pcie", 4, 300),
    "NVIDIA A10": ("ampere", "pcie", None, 150),
    "NVIDIA A10G": ("ampere", "pcie", None, 300),
    "NVIDIA A16": ("ampere", "pcie", None, None),
    "NVIDIA A2": ("ampere", "pcie", None, None),
    "NVIDIA RTX A6000": ("ampere", "workstation", 4, 300),
    "NVIDIA RTX A5000": ("ampere", "workstation", 4, 230),
    "NVIDIA L4": ("ada", "pcie", None, 72),
    "NVIDIA L40": ("ada", "pcie", None, 300),
    "NVIDIA L40S": ("ada", "pcie", None, 350),
    "NVIDIA RTX 4000 SFF Ada Generation": ("ada", "workstation", None, 70),
    "NVIDIA H100 80GB HBM3": ("hopper", "sxm", 18, 700),
    "NVIDIA H100 80G...": ("hopper", "sxm", 18, 700),
    "NVIDIA H100 PCIe": ("hopper", "pcie", 12, 310),
    "NVIDIA H100 NVL": ("hopper", "pcie", 12, 400),
    "NVIDIA H800": ("hopper", "sxm", 8, 700),
    "NVIDIA H20": ("hopper", "sxm", 18, 500),
    "NVIDIA H200": ("hopper", "sxm", 18, 700),
    "NVIDIA H200 NVL": ("hopper", "pcie", 18, 600),
    "NVIDIA GH200 480GB": ("hopper", "superchip", 18, None),
    "NVIDIA B200": ("blackwell", "sxm", 18, 1000),
    "NVIDIA B300 SXM6 AC": ("blackwell", "sxm", 18, 1100),
    "NVIDIA GB200": ("blackwell", "superchip", 18, 1200),
    "NVIDIA GB300": ("blackwell", "superchip", 18, 1400),
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition": (
        "blackwell", "workstation", None, 300,
    ),
    "NVIDIA RTX PRO 6000 Blackwell Server Edition": ("blackwell", "pcie", None, None),
    "NVIDIA GeForce RTX 2080 Ti": ("turing", "geforce", 2, None),
    "NVIDIA GeForce RTX 3060": ("ampere", "geforce", None, None),
    "NVIDIA GeForce RTX 3090": ("ampere", "geforce", 4, None),
    "NVIDIA GeForce RTX 4090": ("ada", "geforce", None, None),
    "NVIDIA GeForce RTX 5090": ("blackwell", "geforce", None, None),
}  # fmt: skip
#: Virtual GPUs, names that are cut too short, and models that nobody entered.
UNKNOWN = (
    "GRID P4-1Q", "NVIDIA A40-48Q", "NVIDIA A100-1-5C", "NVIDIA A100-40C", "GRID A100D-80C",
    "NVIDIA L40S-48Q", "NVIDIA L4-24Q", "NVIDIA H100-80C", "NVIDIA A10-24Q", "NVIDIA GeForce ...",
    "NVIDIA A100X", "NVIDIA H1000", "NVIDIA B2000",
)  # fmt: skip


@pytest.mark.parametrize("product", KNOWN)
def test_a_product_finds_its_row(product: str) -> None:
    model = model_of(product)
    assert isinstance(model, Model)
    links, power = (
        None if isinstance(value, Missing) else value for value in (model.nvlinks, model.power_w)
    )
    assert (model.generation, model.form, links, power) == KNOWN[product]


@pytest.mark.parametrize("product", UNKNOWN)
def test_what_has_no_row(product: str) -> None:
    found = model_of(product)
    assert isinstance(found, Missing)
    assert found.kind == "not-applicable"


def test_every_product_of_the_samples_is_among_these() -> None:
    found: set[str] = set()
    for folder, pattern in (
        ("nvidia_smi_q", r"Product Name +: (.*\S)"),
        ("nvidia_smi_xml", r"<product_name>(.*)</product_name>"),
        ("nvidia_smi_table", r"\|   \d  (\S.*?) +O(?:n|ff) +\|"),
        ("nvlink", r"GPU \d: (.*) \(UUID"),
        ("torch_collect_env", r"GPU [\d,]+: (NVIDIA .*\S)"),
    ):
        for path in (SAMPLES / folder).iterdir():
            found.update(re.findall(pattern, path.read_text(encoding="utf-8")))
    assert len(found) > 15
    assert found - {"NVIDIA GeForce RTX 4080"} <= KNOWN.keys() | set(UNKNOWN)


def test_rows_make_sense() -> None:
    for model in models():
        assert model.generation in (
            "kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper",
            "blackwell",
        )  # fmt: skip
        assert model.form in ("sxm", "pcie", "superchip", "workstation", "geforce")
        old = model.generation in ("kepler", "maxwell", "pascal", "volta", "turing")
        assert model.repairs in ("pages" if old else "rows", model.repairs)
        assert isinstance(model.repairs, Missing) or (model.repairs == "pages") == old
        assert model.source
        assert not model.bridged or not isinstance(model.nvlinks, Missing)
        assert not (model.bridged and model.nvswitch)
        if not isinstance(model.nvlinks, Missing) and not isinstance(model.nvlinks_max, Missing):
            assert model.nvlinks <= model.nvlinks_max


def test_no_row_is_hidden_by_one_above() -> None:
    for number, model in enumerate(models()):
        named = [name for name in KNOWN if model_of(name) is model]
        above = models()[:number]
        assert all(not re.search(row.match, name) for name in named for row in above)
