"""Python packages that the interpreter of the user's choice would import."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from preflight.errors import ParseError
from preflight.facts.setup import Package
from preflight.facts.stack_pieces import Pin, PythonEnv, TorchBuild, Twice
from preflight.model import NOT_IN_INPUT, Known, Missing
from preflight.probes.spec import probe
from preflight.probes.stack.package_names import NAMES

_PROBE = "packages"

# The names of the directories that pip leaves are enough (PEP 376, 427: NAME-VERSION.dist-info):
# no package is imported, whatever the version of Python is. The first on sys.path is what
# would be imported. An entry without a name is the working directory: nothing is taken from there.
# torch's version.py is read as text; of its library the dynamic section (ELF, System V gABI).
_PROGRAM = f"""\
import sys
sys.path[:] = [p for p in sys.path if p]
import ast, os, struct
names = {" ".join(NAMES)!r}.split()
whole = set(n for n in names if n[-1] != "*")
begins = tuple(n[:-1] for n in names if n[-1] == "*")
def head(path, size):
    try:
        with open(path, "rb") as file:
            return file.read(size).decode("utf-8", "replace").splitlines()
    except (OSError, ValueError):
        return []
def metadata(path):
    found, pins = "", []
    lines = head(os.path.join(path, "METADATA"), 16384)
    for line in lines or head(os.path.join(path, "PKG-INFO"), 16384):
        if not line:
            break
        if line.startswith("Version:"):
            found = line[8:].strip()
        wants, _, marker = line.partition(";")
        if line.startswith("Requires-Dist:") and "==" in wants and "extra" not in marker:
            other, _, exact = wants[14:].replace("(", " ").replace(")", " ").partition("==")
            other = other.strip().lower().replace("_", "-").replace(".", "-")
            if wanted(other) and "," not in exact:
                pins.append((other, exact.strip("= ")))
    return found, pins
def wanted(name):
    return name in whole or name.startswith(begins)
def say(*words):
    print(ascii(" ".join(words))[1:-1])
def dynamic(file):
    start = file.read(64)
    order = "<" if start[5:6] == b"\\1" else ">"
    if start[:5] != b"\\x7fELF\\2":
        return []
    size, count = struct.unpack(order + "HH", start[54:58])
    file.seek(struct.unpack(order + "Q", start[32:40])[0])
    parts = [struct.unpack(order + "IIQQQQ", file.read(size)[:40]) for _ in range(min(count, 99))]
    at, length = [(p[2], p[5]) for p in parts if p[0] == 2][0]
    file.seek(at)
    text = file.read(min(length, 1 << 16))
    tags = [struct.unpack(order + "QQ", text[i:i + 16]) for i in range(0, len(text) - 15, 16)]
    strings = [v for t, v in tags if t == 5][0]
    base = [p[2] + strings - p[3] for p in parts if p[0] == 1 and p[3] <= strings < p[3] + p[5]][0]
    found = []
    for tag, value in tags:
        if tag in (1, 15, 29):
            file.seek(base + value)
            found.append((tag, file.read(4096).split(b"\\0")[0].decode("utf-8", "replace")))
    return found
def nccl(folder):
    try:
        with open(os.path.join(folder, "lib", "libtorch_cuda.so"), "rb") as file:
            found = dynamic(file)
    except (OSError, ValueError, IndexError, struct.error):
        return "unknown"
    if not found:
        return "unknown"
    if not any(tag == 1 and text.startswith("libnccl.so") for tag, text in found):
        return "static"
    lib = os.path.join(folder, "lib")
    for tag, text in found:
        for place in text.split(":") if tag in (15, 29) else ():
            place = place.replace("$ORIGIN", lib)
            if os.path.exists(os.path.join(place, "libnccl.so.2")):
                say("torch library", os.path.realpath(os.path.join(place, "libnccl.so.2")))
                return "wheel" if tag == 15 else "runpath"
    return "loader"
def literal(text):
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return "?"
    return "None" if value is None else value if isinstance(value, str) and value else "?"
def versions(folder):
    told = {{}}
    for line in head(os.path.join(folder, "version.py"), 4096):
        left, equals, right = line.partition("=")
        if equals:
            told[left.split(":")[0].strip()] = literal(right)
    return told
def torch(folder):
    told = versions(folder)
    say("torch path", folder)
    for name in ("__version__", "cuda", "hip"):
        if name in told:
            say("torch", name.strip("_"), told[name])
    if told.get("cuda", "None") not in ("None", "?"):
        say("torch nccl", nccl(folder))
say("python", ".".join(map(str, sys.version_info[:3])), sys.executable or "")
seen, places, built, hollow = {{}}, set(), False, ""
for place in sys.path:
    real = os.path.realpath(place)
    if real in places:
        continue
    places.add(real)
    try:
        entries = sorted(os.listdir(place))
    except OSError as error:
        if os.path.isdir(place):
            say("unreadable", place)
        continue
    here, said = set(), set()
    folder = os.path.join(place, "torch")
    if "torch" in entries and os.path.isdir(folder):
        files = [os.path.join(folder, n) for n in ("__init__.py", "version.py")]
        inside = [os.path.basename(f) for f in files if os.path.exists(f)]
        if built and "version.py" in inside:
            say("twice torch", versions(folder).get("__version__", "?"), place)
            said.add("torch")
        elif not built and inside:
            built = True
            torch(folder)
        elif not inside:
            hollow = hollow or folder
    say("place", place)
    for entry in entries:
        stem, kind = os.path.splitext(entry)
        if kind not in (".dist-info", ".egg-info"):
            continue
        parts = stem.split("-")
        name = parts[0].lower().replace("_", "-").replace(".", "-")
        if not wanted(name):
            continue
        told, pins = metadata(os.path.join(place, entry))
        told = parts[1] if len(parts) > 1 else told
        if name not in seen:
            say("package", name, told)
            for other, exact in pins:
                say("pin", name, other, exact)
            seen[name] = told
            here.add(name)
        elif name not in said and (name not in here or told != seen[name]):
            say("twice", name, told or "?", place)
if hollow and not built and "torch" in seen:
    say("torch path", hollow)
elif not built:
    say("torch none")
say("end")
"""

_PYTHON = re.compile(r"python ([0-9]+\.[0-9]+\.[0-9]+)(?: .*)?")
_PACKAGE = re.compile(r"package ([a-z0-9][\w-]{0,80})(?: (\S{1,80}))?", re.ASCII)
_TWICE = re.compile(r"twice ([a-z0-9][\w-]{0,80}) (\S{1,80}) (.{1,300})", re.ASCII)
_TORCH = re.compile(r"torch (path|version|cuda|hip|nccl|library) (.{1,300})", re.ASCII)
#: What torch's version.py may tell: a version, or that there is none.
_LITERAL = re.compile(r"(?:v?\d[\w.+!-]{0,79}|None)", re.ASCII)
_NCCL_FILE = re.compile(r"libnccl\.so\.(\d+(?:\.\d+){1,3})$", re.ASCII)
_PIN = re.compile(r"pin ([a-z0-9][\w-]{0,80}) ([a-z0-9][\w-]{0,80}) ([\w.+!*-]{1,80})", re.ASCII)
_NO_TORCH = "torch is not installed for {}; name the one that trains: --python /PATH/TO/bin/python"


@probe(_PROBE, ["python3", "-c", _PROGRAM], timeout_s=10)
def packages(text: str) -> PythonEnv:
    """Lines `python VERSION PATH`, `place PATH`, `package NAME VERSION`, `pin NAME OTHER VERSION`,
    `twice NAME VERSION PLACE`, `torch WHAT VALUE`, `unreadable PLACE`."""
    lines = [line.strip() for line in text.strip().split("\n")]
    # A site's own start-up files may print before and after us.
    if "end" not in lines:
        raise ParseError("the list of packages is cut short: no closing `end`", len(lines))
    found = _packages(lines)
    if "python" not in found:
        raise ParseError("expected a line `python VERSION PATH`", 1)
    unreadable = tuple(line[11:] for line in lines if line.startswith("unreadable "))
    build, twice = _torch(lines, unreadable), tuple(_twice(lines))
    if (listed := found.get("torch")) and (imported := _unlike(listed, build)):
        found["torch"] = replace(listed, version=imported)
        twice = _by_metadata(listed, imported, twice)
    return PythonEnv(
        tuple(found.values()), build, twice, tuple(_pins(lines)), unreadable, probe=_PROBE
    )


def _packages(lines: list[str]) -> dict[str, Package]:
    """One of each name, the first on the module path."""
    found: dict[str, Package] = {}
    place = ""
    for number, line in enumerate(lines, 1):
        if match := _PYTHON.fullmatch(line):
            found.setdefault("python", Package("python", match[1], number, _PROBE))
        elif line.startswith("place "):
            place = line[6:300]
        elif match := _PACKAGE.fullmatch(line):
            one = Package(match[1], _version(match[2]), number, _PROBE, place)
            found.setdefault(match[1], one)
    return found


def _by_metadata(listed: Package, imported: str, twice: tuple[Twice, ...]) -> tuple[Twice, ...]:
    """What is there twice, with the version that the metadata alone tells, without the one that is
    imported."""
    own = imported.partition("+")[0]
    others = tuple(
        one for one in twice
        if one.place != listed.place or str(one.version).partition("+")[0] != own
    )  # fmt: skip
    if any((one.name, one.version) == ("torch", listed.version) for one in others):
        return others
    place = f"the metadata in {listed.place}" if listed.place else "its metadata"
    return (*others, Twice("torch", listed.version, place, listed.line, _PROBE))


def _unlike(listed: Package, build: Known[TorchBuild]) -> str:
    """The version of the torch that would be imported, where its metadata tells another one: an
    upgrade that was interrupted, or a torch that is elsewhere on the path."""
    told = Missing("unreadable", "") if isinstance(build, Missing) else build.version
    if isinstance(told, Missing) or isinstance(listed.version, Missing):
        return ""
    own, other = (text.partition("+")[0].lower() for text in (told, listed.version))
    return told if own != other else ""


def _twice(lines: list[str]) -> Iterator[Twice]:
    for number, line in enumerate(lines, 1):
        if match := _TWICE.fullmatch(line):
            yield Twice(match[1], _version(match[2]), match[3], number, _PROBE)


def _pins(lines: list[str]) -> Iterator[Pin]:
    for number, line in enumerate(lines, 1):
        if match := _PIN.fullmatch(line):
            yield Pin(match[1], match[2], match[3], number, _PROBE)


def _version(told: str | None) -> Known[str]:
    return told if told and told != "?" else Missing("unreadable", "its metadata tells no version")


def _torch(lines: list[str], unreadable: tuple[str, ...]) -> Known[TorchBuild]:
    """The build, why there is none, or NOT_IN_INPUT where an older answer does not tell."""
    told = {
        match[1]: (match[2].strip(), number)
        for number, line in enumerate(lines, 1)
        if (match := _TORCH.fullmatch(line))
    }
    if "torch none" in lines and unreadable:
        return Missing("denied", f"{unreadable[0]} may not be listed: torch may be there")
    if "torch none" in lines:
        python = next((line for line in lines if _PYTHON.fullmatch(line)), "").split(" ")[-1]
        return Missing("not-applicable", _NO_TORCH.format(python))
    if not told:
        return NOT_IN_INPUT
    path, line = told.get("path", ("", 1))

    def value(name: str) -> Known[str]:
        word = told.get(name, ("", 0))[0]
        if not _LITERAL.fullmatch(word):
            text = f"{path}/version.py tells no {name} that can be read: broken, or not a release"
            return Missing("unreadable", text)
        return "none" if word == "None" else word

    found = _NCCL_FILE.search(told.get("library", ("", 0))[0])
    own = found[1] if found else NOT_IN_INPUT  # pip's file has no version in its name
    whole = any(name in told for name in ("version", "cuda", "nccl"))
    hip = value("hip") if "hip" in told else "none"  # an old torch does not speak of it
    how = _way_to_nccl(told.get("nccl", ("", 0))[0], path)
    return TorchBuild(value("version"), value("cuda"), hip, how, path, line, _PROBE, whole, own)


def _way_to_nccl(told: str, path: str) -> Known[str]:
    if told in ("wheel", "runpath", "loader", "static"):
        return told
    unknown = Missing("unreadable", f"{path}/lib/libtorch_cuda.so does not tell its libraries")
    return unknown if told else NOT_IN_INPUT
