"""Each injected fault changes the report as it should, and a clean run raises nothing: real runs of
two ranks, judged as recorded ones. `make accuracy` has every way to spread, more seeds, more runs.
"""

from __future__ import annotations

import importlib.util

import pytest

from bench.fault_table import FAULTS, SHARDINGS, SMALL, Seen
from bench.faults import checks, judged, with_faults, without
from preflight.payload.training import inject_names
from tests.conftest import require

#: One worker makes the runs, of all tests here.
pytestmark = pytest.mark.xdist_group("faults of training")

_SEEN = with_faults([fault for fault in FAULTS if fault.seen], [1], SMALL, ["ddp"])
_CLEAN = without(len(SHARDINGS), SMALL)
