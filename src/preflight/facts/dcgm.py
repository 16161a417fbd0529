"""What `dcgmi diag` found, in DCGM's own words."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class DiagResult(Struct, frozen=True):
    """One test on one GPU, or on all of them where the output does not tell them apart.

    `severity`: none | monitor | isolate | unknown | triage | config | reset, that of DCGM's error
    table for the worst of the result's messages; `topic`: thermal, remap, allocation or "".
    """

    name: str  # the subject: "memory gpu3", "PCIe"
    test: str
    outcome: Known[str] = NOT_IN_INPUT  # Pass | Warn | Fail; missing for a test that was skipped
    category: str = ""  # Deployment, Hardware ...
    device: Known[str] = NOT_IN_INPUT  # gpu3, cpu0
    severity: Known[str] = NOT_IN_INPUT
    topic: str = ""
    text: str = ""  # all its errors and warnings
    error_ids: tuple[int, ...] = ()
    line: int = 0
    probe: str = ""


class DcgmDiag(Struct, frozen=True):
    """One run. `verified`: how many tests of hardware gave a verdict; missing, with the reason,
    where all of them were skipped, none ran, or the end of the output is not there."""

    results: Known[tuple[DiagResult, ...]] = NOT_IN_INPUT
    verified: Known[int] = NOT_IN_INPUT
    version: Known[str] = NOT_IN_INPUT
    driver: Known[str] = NOT_IN_INPUT
    gpus: Known[int] = NOT_IN_INPUT  # device ids that it names
    line: int = 1
    probe: str = ""
