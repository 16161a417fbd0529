"""The hosts in a command line that starts a program on them: their own answers come later."""

from __future__ import annotations

import pytest

from preflight.bench.launchers import HYDRA, OPEN_MPI, mpirun, srun
from preflight.model import Raw
from preflight.redact.redactor import redact_raw
from preflight.redact.stand_ins import Redactor

SLOTS = {"saturn": 8, "titan": 6}


@pytest.mark.parametrize(
    "argv",
    [
        mpirun(OPEN_MPI, "/usr/bin/mpirun", SLOTS, {}, ("perf",)),
        mpirun(HYDRA, "mpiexec", SLOTS, {}, ("perf",)),
        mpirun(HYDRA, "mpiexec", dict.fromkeys(SLOTS, 8), {}, ("perf",)),
        ("env", "A=1", *srun("pmix", (), "", "name", SLOTS, ("perf",))),
    ],
)
def test_all_of_them_are_stand_ins(argv: tuple[str, ...]) -> None:
    shown = redact_raw(Raw("saturn", "nccl-tests", argv), Redactor())
    told = " ".join(shown.argv)
    assert "saturn" not in told and "titan" not in told
    assert "host-1" in told and "host-2" in told and told.endswith("perf")
