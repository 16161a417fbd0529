"""The way of the data is one way: who may import whom, as a table, held over every import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

SRC = Path(__file__).resolve().parents[1] / "src"

#: Lowest first. A module imports from lower layers only; names on one line are siblings, which do
#: not import each other.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "units", "printable", "unpack"),
    ("model",),
    # software_signatures: rows of the tables in signatures
    # network_signatures the same, which reports of software count with theirs; and
    # storage_signatures
    # benchmark_signatures: rows of the same table
    ("benchmark_signatures", "network_signatures", "storage_signatures"),
    # nccl_text: which lines are NCCL's, for who cuts a text and for who reads it
    # hca_list: which ports a list of NCCL takes, for who says what each is for and who judges lists
    (
        "nodesets",
        "cpulists",
        "datafiles",
        "strict_yaml",
        "kept",
        "faults",
        "software_signatures",
        "nccl_text",
        "hca_list",
    ),
    (
        "hostlists",
        "env_table",
        "verdict",
    ),  # what a result over the fleet says of the hosts that it names
    ("facts", "env_names", "runbooks", "error_texts", "lockfile"),
    ("probes", "expect", "logs", "traces", "checkpoints", "signatures"),
    ("enclosed", "pasted", "relayed", "writable"),
    ("capture", "recognise", "redact"),
    ("transports",),
    ("ship",),
    ("assemble",),
    ("judge", "diagnosis", "placement", "estimate"),
    ("reports",),
    ("collect", "bench", "settings"),
    ("examiner",),
    ("cli",),
    ("__main__",),
)
#: Outside the order: they run elsewhere and import nothing of the rest.
APART = ("payload", "guard")

#: Packages whose files may import each other freely; in the others only the shared files below.
FREE_WITHIN = ("assemble", "diagnosis", "estimate", "guard", "judge", "logs", "placement", "redact",
               "reports", "settings", "traces", "transports", "cli", "payload")  # fmt: skip
#: Files that their neighbours in the package may import, and why.
SHARED_WITHIN = {
    "probes.spec": "the form of a probe",
    "probes.stack.package_names": "the program that lists packages is sent their names",
    "probes.values": "reads what several tools write alike",
    "probes.told": "the lines that the payload tells of its work",
    "probes.stack.env_text": "variables within a report of an environment",
    "probes.infiniband.ports": "what several tools tell of a port",
    "probes.infiniband.tables": "addresses and counters of a port in sysfs",
    "probes.system": "the output of lscpu within a report of an environment",
    "probes.parameters.sysctls": "parameters in recorded text are read as a host's answer",
    "facts.hangs": "a look at a process holds its stacks",
    "facts.numa": "a host holds its NUMA nodes",
    "probes.kernel_log.gaps": "the marks of lines left out of a large log",
    "probes.kernel_log.union": "several logs of one host as one",
    "redact.names": "the shapes of names; redact/__init__.py applies them",
    "redact.secrets": "the shapes of secrets; redact/__init__.py applies them",
    "facts.accelerators": "a host holds accelerators of other makers",
    "facts.chassis": "a host holds its chassis",
    "facts.dcgm": "a host holds a DCGM run",
    "facts.host_memory": "a host holds its memory modules",
    "facts.gpu": "a host holds GPUs",
    "facts.hwloc": "lstopo tells PCI and NUMA nodes at once",
    "facts.design": "a GPU is of a model",
    "facts.nvlink": "a GPU has links",
    "facts.kernel": "a host holds a kernel log",
    "facts.pci_tree": "a host holds what lspci shows",
    "facts.shard": "a host holds files of data that were decoded",
    "facts.services": "a host holds its services and modules",
    "facts.nccl": "a host holds what NCCL tells of itself",
    "facts.topology": "a host holds how its devices are joined",
    "facts.nccl_topo": "a host holds the file that NCCL reads of it",
    "probes.xml_text": "reads the XML of several tools safely",
    "facts.nics": "a host holds its network adapters",
    "facts.storage": "a host holds what it stores on",
    "facts.system": "a host holds its limits, processors, disks",
    "facts.stack": "a host holds what reports of its environment tell",
    "facts.counters": "a host holds what its kernel counts",
    "facts.stack_pieces": "a host holds its software as one record",
    "facts.setup": "a host holds its board, parameters and software",
    "probes.state.cgroup_tree": "the groups and their files, from which cgroup reads limits",
    "probes.limits.limits": "reads the kernel's table of limits, whosever it is",
    "probes.pci.names": "the ids behind lspci's names",
    "probes.pci.forms": "lspci for machines as lspci for people",
    "facts.sweeps": "a training run may be a sweep",
    "facts.training": "a host trained",
    "facts.stress": "a host was put under load",
    "facts.watch": "a host's GPUs were watched",
    "facts.bench": "a host holds what a bench told besides its tables",
    "facts.collectives": "a host holds what benchmarks of its network measured",
    "probes.collectives.levels": "the level of a series, whatever is measured",
    "facts.patterns": "a host holds what the patterns of a bench of storage measured",
    "facts.fio": "a host holds what fio measured",
    "facts.objects": "a host holds what a store of objects did",
    "probes.fio.documents": "the reports in a text, as a large file is read too",
    "probes.fio.report": "what fio says of errors, whoever ran it",
    "probes.fio.jobs": "rows of a report, whoever ran it",
    "probes.fio.options": "what a job was asked to do",
    "probes.fio.sides": "the figures of a row",
    "probes.fio.words": "what a job's name says",
    "probes.collectives.derived": "what a table of sizes tells, whichever tool printed it",
    "probes.collectives.labels": "what launchers put before a line",
    "probes.collectives.tables": "the lines of nccl-tests, from which its runs are made",
    "probes.collectives.troubles": "why a benchmark ended",
    "expect.advised": "when clipping is too much, of a run and of a sweep",
    "expect.rates": "how settings are compared, for the rules that choose one",
    "expect.bound": "what every bound is",
    "expect.collectives": "bounds of a topic of their own, listed with the others",
    "expect.between": "what goes between hosts, for bounds of collectives",
    "expect.rdma": "bounds of a topic of their own, listed with the others",
    "expect.system": "bounds of a topic of their own, listed with the others",
    "expect.topology": "bounds of a topic of their own, listed with the others",
    "expect.storage": "what devices can do, for bounds on what was measured",
    "expect.objects": "bounds of a topic of their own, listed with the others",
    "expect.io": "bounds of a topic of their own, listed with the others",
    "expect.models": "the rows of a table that bounds are made of",
    "expect.steady": "bounds of a topic of their own, listed with the others",
    "expect.training": "bounds of a topic of their own, listed with the others",
    "expect.stress": "bounds of a topic of their own, listed with the others",
    "expect.latency": "bounds of a topic of their own, listed with the others",
    "expect.nics": "which adapters count, for bounds of what goes over them",
    "expect.pcie": "what a link carries, for bounds on what goes over it",
    "probes.collectives.wire_ends": "what the tests of a host's links tell of their ends",
    "facts.wire": "a host holds what its links carry, told by the same bench",
    "expect.wire": "bounds of a topic of their own, listed with the others",
    "expect.heat": "bounds of a topic of their own, listed with the others",
    "probes.nvidia_smi.topo_table": "the table that both questions of nvidia-smi topo print",
    "probes.training.lines": "numbers and words in the lines of active work",
    "probes.stress.peers": "pairs of GPUs are held together as products are",
    "probes.watch": "a stress run is watched meanwhile",
    "probes.watch_lost": "GPUs that end before the others, whichever tool took the samples",
    "probes.watch_series": "samples of GPUs as facts, whichever tool took them",
}
#: Siblings that may import each other after all: (importer, imported), and why.
SIBLINGS = {
    ("units", "errors"): "an amount that cannot be read is told to the user",
    ("recognise", "capture"): "a capture is one of the things to recognise",
    ("logs", "probes"): "a reader of a log has the form of a probe",
}

#: Who alone may import a library. These are large, or absent where a target runs.
LIBRARIES = {
    "typer": ("cli",),
    "rich": ("cli",),
    "torch": ("payload", "guard"),
    "pynvml": ("payload",),
    "fabric": ("transports.ssh",),
    "paramiko": ("transports.ssh",),
}
VAGUE = ("utils", "util", "common", "misc", "helpers", "helper", "base", "manager")


class Import(NamedTuple):
    """One import: by whom (below `preflight`), of what (in full), where, and whether at import."""

    module: str
    target: str
    line: int
    late: bool


def name_of(path: Path, src: Path) -> str:
    """probes/pci.py -> "probes.pci"; a package's __init__.py -> "probes"; the root's -> ""."""
    parts = path.relative_to(src / "preflight").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(src: Path) -> dict[str, Path]:
    return {name_of(path, src): path for path in sorted((src / "preflight").rglob("*.py"))}


def imports(src: Path) -> Iterator[Import]:
    """Every import of every module: at the top, in functions, under TYPE_CHECKING, relative, and
    import_module() of a literal name."""
    known = modules(src)
    for name, path in known.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        late = {
            id(inner)
            for outer in ast.walk(tree)
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            for inner in ast.walk(outer)
        }
        for node in ast.walk(tree):
            for target in sorted(set(targets(node, package, known))):
                yield Import(name, target, getattr(node, "lineno", 0), id(node) in late)


def targets(node: ast.AST, package: str, known: dict[str, Path]) -> list[str]:
    """What one node of the tree imports, in full: preflight.probes.pci, typer, xml.parsers."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        where = from_where(node, package)
        below = where.removeprefix("preflight").removeprefix(".")
        # `from preflight.probes import pci` imports a module; `... import Gpu` a name.
        return [
            f"{where}.{alias.name}"
            if where.split(".")[0] == "preflight" and f"{below}.{alias.name}".lstrip(".") in known
            else where
            for alias in node.names
        ]
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        called = node.func.id if isinstance(node.func, ast.Name) else called
        if called in ("import_module", "__import__"):
            return [str(node.args[0].value)]
    return []


def from_where(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = ["preflight", *filter(None, package.split("."))]
    kept = parts[: len(parts) - node.level + 1]
    return ".".join([*kept, *filter(None, [node.module])])


def layer(name: str) -> int | None:
    top = name.split(".")[0]
    return next((i for i, names in enumerate(LAYERS) if top in names), None)


def within(name: str, places: tuple[str, ...]) -> bool:
    """Whether the module is one of `places` or lies in one."""
    return any(name == place or name.startswith(place + ".") for place in places)


def allowed(name: str, target: str) -> bool:
    """Whether the module may import the other; both are named below `preflight`."""
    top, other = name.split(".")[0], target.split(".")[0]
    if target == "":
        return name != ""  # the version
    if top == other:
        room = name.rpartition(".")[0]  # a folder within a package is a room: free inside
        inside = "." in room and target.startswith(f"{room}.")
        return top in FREE_WITHIN or inside or target in (top, name) or target in SHARED_WITHIN
    if top in APART or other in APART or name == "":
        return False
    mine, theirs = layer(name), layer(target)
    if mine is None or theirs is None:
        return False
    return theirs < mine or (top, other) in SIBLINGS


def problems(src: Path) -> list[str]:
    """Everything in the tree that breaks the order, one line each; empty where it holds."""
    found = []
    for name, path in modules(src).items():
        if name and layer(name) is None and name.split(".")[0] not in APART:
            found.append(f"{name}: in no layer; give it one in LAYERS")
        if path.stem.strip("_") in VAGUE or path.parent.name in VAGUE:
            found.append(f"{name}: a vague name; name it after what it holds")
    for one in imports(src):
        top, _, below = one.target.partition(".")
        where = f"{one.module or '__init__'}:{one.line}"
        if top == "preflight" and not allowed(one.module, below):
            found.append(f"{where}: imports {one.target}")
        if top in LIBRARIES and not within(one.module, LIBRARIES[top]):
            found.append(f"{where}: imports {one.target}; only {', '.join(LIBRARIES[top])} may")
        if within(one.module, ("guard",)) and top == "torch" and not one.late:
            found.append(f"{where}: imports {one.target} at once; import it where it is used")
    return found


def test_the_tree_keeps_the_order() -> None:
    assert "model" in modules(SRC)
    assert next(imports(SRC))
    assert problems(SRC) == []


def write(src: Path, files: dict[str, str]) -> Path:
    """A synthetic tree; every package gets its __init__.py."""
    for name, text in files.items():
        path = src / "preflight" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in (path.parent, *path.parent.parents):
            if not folder.is_relative_to(src / "preflight"):
                break
            (folder / "__init__.py").touch()
        path.write_text(text, encoding="utf-8")
    return src


#: Source that breaks a rule -> what must be said about it.
BREAKS = [
    ("model.py", "import preflight.judge", r"^model:1: imports preflight\.judge$"),
    ("model.py", "from preflight import facts", r"^model:1: imports preflight\.facts$"),
    ("model.py", "from . import facts", r"^model:1: imports preflight\.facts$"),
    ("model.py", "from .facts import gpu", r"^model:1: imports preflight\.facts\.gpu$"),
    ("errors.py", "import preflight.units", r"^errors:1: imports preflight\.units$"),
    ("model.py", "def f():\n    from preflight.cli import app", r"^model:2: imports .*cli\.app$"),
    (
        "facts/gpu.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from preflight.judge import x",
        r"^facts\.gpu:3: imports preflight\.judge$",
    ),
    ("model.py", "import importlib\nimportlib.import_module('preflight.cli')", r"^model:2: "),
    ("probes/one.py", "from preflight.probes import pci", r"^probes\.one:1: .*probes\.pci$"),
    ("probes/one.py", "from .pci import devices", r"^probes\.one:1: .*probes\.pci$"),
    ("probes/one.py", "import preflight.expect", r"^probes\.one:1: imports preflight\.expect$"),
    ("judge/one.py", "import preflight.diagnosis", r"^judge\.one:1: imports preflight\.diag"),
    ("payload/one.py", "import preflight.errors", r"^payload\.one:1: imports preflight\.errors$"),
    ("collect.py", "import preflight.payload.burn", r"^collect:1: imports preflight\.payload"),
    ("guard.py", "import preflight.model", r"^guard:1: imports preflight\.model$"),
    ("guard.py", "import torch", r"^guard:1: imports torch at once"),
    ("judge/one.py", "import typer", r"^judge\.one:1: imports typer; only cli may$"),
    ("reports/text.py", "from rich.text import Text", r"^reports\.text:1: imports rich\.text; "),
    ("collect.py", "def f():\n    import torch", r"^collect:2: imports torch; only payload"),
    ("probes/nvml.py", "import pynvml", r"^probes\.nvml:1: imports pynvml; only payload may$"),
    ("transports/slurm.py", "import fabric", r"^transports\.slurm:1: imports fabric; only tran"),
    ("__init__.py", "from preflight.model import Raw", r"^__init__:1: imports preflight\.model$"),
    ("probes/utils.py", "", r"^probes\.utils: a vague name"),
    ("probes/common/gpu.py", "", r"^probes\.common: a vague name"),
    ("newcomer.py", "", r"^newcomer: in no layer"),
]


@pytest.mark.parametrize(("file", "source", "said"), BREAKS)
def test_a_breach_is_seen(tmp_path: Path, file: str, source: str, said: str) -> None:
    neighbours = {"facts/gpu.py": "", "probes/pci.py": "", "cli/app.py": "", "judge/load.py": ""}
    src = write(tmp_path, {**neighbours, file: source})
    assert any(re.search(said, problem) for problem in problems(src)), problems(src)


def test_what_is_allowed_is_let_through(tmp_path: Path) -> None:
    files = {
        "errors.py": "import re",
        "probes/spec.py": "from preflight import __version__\nfrom preflight.model import Command",
        "probes/pci.py": "from preflight.probes.spec import probe\nfrom preflight import errors",
        "judge/load.py": "from preflight.judge import paths\nfrom .paths import walk",
        "judge/paths.py": "import preflight.probes.pci",
        "transports/ssh.py": "def f():\n    from fabric import Connection",
        "cli/app.py": "import typer\nimport rich.table\nfrom preflight.judge.load import load",
        "payload/burn.py": "import torch\nfrom preflight.payload import clock",
        "guard.py": "def save():\n    import torch",
        "__main__.py": "from preflight.cli.app import main",
    }
    assert problems(write(tmp_path, files)) == []
