"""The host's memory modules (DIMMs): what is fitted, and the errors that ECC counted."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class DimmErrors(Struct, frozen=True):
    """Errors of one module since the counters began; name: its label, else controller and slot."""

    name: str
    corrected: Known[int] = NOT_IN_INPUT
    corrected_per_day: Known[float] = NOT_IN_INPUT  # over the time counted, at least one day
    uncorrected: Known[int] = NOT_IN_INPUT
    size_bytes: Known[int] = NOT_IN_INPUT
    kind: Known[str] = NOT_IN_INPUT  # Registered-DDR5
    line: int = 0
    probe: str = ""


class MemoryController(Struct, frozen=True):
    """One controller; `unplaced`: errors that it counted and for which it named no module."""

    name: str  # mc0
    driver: Known[str] = NOT_IN_INPUT
    counted_s: Known[int] = NOT_IN_INPUT  # seconds since the counters began
    corrected: Known[int] = NOT_IN_INPUT
    corrected_unplaced_per_day: Known[float] = NOT_IN_INPUT  # as corrected_per_day of a module
    uncorrected: Known[int] = NOT_IN_INPUT
    uncorrected_unplaced: Known[int] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Edac(Struct, frozen=True):
    """What the kernel's EDAC drivers count."""

    controllers: tuple[MemoryController, ...] = ()
    dimms: Known[tuple[DimmErrors, ...]] = NOT_IN_INPUT
    line: int = 1
    probe: str = ""


class Dimm(Struct, frozen=True):
    """One module as the firmware tells of it; speeds in millions of transfers a second."""

    name: str  # the slot
    size_bytes: Known[int] = NOT_IN_INPUT
    size_gib: Known[float] = NOT_IN_INPUT
    kind: Known[str] = NOT_IN_INPUT  # DDR5
    rated_mts: Known[int] = NOT_IN_INPUT
    speed_mts: Known[int] = NOT_IN_INPUT  # at which it runs
    part: Known[str] = NOT_IN_INPUT
    line: int = 0
    probe: str = ""


class Dimms(Struct, frozen=True):
    """All slots; `fitted` those that hold a module."""

    fitted: Known[tuple[Dimm, ...]] = NOT_IN_INPUT
    count: Known[int] = NOT_IN_INPUT
    slots: int = 0
    line: int = 1
    probe: str = ""
