"""How a host is set up: its board and BIOS, the kernel's parameters, the software. Told so that the
hosts of a fleet can be compared; a list has one record for each name."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class Board(Struct, frozen=True):
    """What the firmware tells of the board (SMBIOS), in the vendor's words. No serial numbers."""

    sys_vendor: Known[str] = NOT_IN_INPUT
    product_name: Known[str] = NOT_IN_INPUT
    board_name: Known[str] = NOT_IN_INPUT
    bios_vendor: Known[str] = NOT_IN_INPUT
    bios_version: Known[str] = NOT_IN_INPUT
    bios_date: Known[str] = NOT_IN_INPUT
    bios_release: Known[str] = NOT_IN_INPUT
    line: int = 1
    probe: str = ""


class Sysctl(Struct, frozen=True):
    """One parameter of the kernel: of /proc/sys by its name (vm.swappiness), of sysfs or of the
    command line by a name of ours (cpu.governor, cmdline)."""

    name: str
    value: Known[str]
    of_host: bool = True  # False: a network namespace, and so most containers, has its own
    number: Known[float] = NOT_IN_INPUT  # the same; not-applicable where it is a text
    #: Of cpu.governor: what it comes to. A driver that leaves the clock to the processor follows
    #: the preference, whatever the governor is called.
    works_as: Known[str] = NOT_IN_INPUT
    scaled: bool = False  # the kernel computes it from memory or processor where nobody sets it
    line: int = 0
    probe: str = ""


class Software(Struct, frozen=True):
    """What is installed beside the driver: a library that the loader would take, a toolkit."""

    name: str  # nccl
    version: Known[str]
    path: str = ""  # the file that told it
    line: int = 0
    probe: str = ""


class Package(Struct, frozen=True):
    """A Python package that the interpreter would import; `python` is the interpreter itself."""

    name: str  # as pip writes it: lower case, with hyphens
    version: Known[str]
    line: int = 0
    probe: str = ""
    place: str = ""  # of the module path; "" where a list without places told it


class Told(Struct, frozen=True):
    """Whether a part of the vocabulary was told by the host, or why it is not known."""

    name: str  # nics
    answer: Known[bool]  # true, or why not


class AtBoot(Struct, frozen=True):
    """A parameter that a file sets when the host boots: of several files the one that counts."""

    name: str  # vm.swappiness, thp.enabled
    value: Known[str]
    file: str = ""  # /etc/sysctl.d/90-site.conf
    at: int = 0  # its line there
    line: int = 0
    probe: str = ""


class Persisted(Struct, frozen=True):
    """What survives a reboot, of the parameters that we know."""

    settings: tuple[AtBoot, ...] = ()
    denied: tuple[str, ...] = ()  # files that could not be read
    tuned: Known[str] = NOT_IN_INPUT  # the profile of tuned, which sets values of its own; "none"
    line: int = 1
    probe: str = ""
