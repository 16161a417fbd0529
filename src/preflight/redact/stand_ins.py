"""Stand-ins for what names a machine, a file or a person, the same wherever it occurs."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from preflight.errors import UsageError
from preflight.nodesets import expand, fold
from preflight.redact.domains import ENDING, SUFFIX, full_names
from preflight.redact.files import NO_FILE, Part, in_a_sentence, parts, sources
from preflight.redact.hosts import HOST_TOLD
from preflight.redact.names import (
    ADDRESSES,
    COMMON,
    NO_VALUE,
    NUMBERS,
    STAND_IN,
    SUBJECT,
    Match,
    Rule,
)
from preflight.redact.people import EMAIL, SCRIPT, SYSTEM_USER, USERS
from preflight.redact.secrets import secrets

_AFTER_HOSTS = (EMAIL, *NUMBERS, *USERS)
_FOLDED = re.compile(r"[\w.-]{0,200}\[[\d,-]{1,200}\][\w.-]{0,200}")
# An address of either kind, told as the name of a host.
_ADDRESS = re.compile(r"[\d.]+|[0-9a-f:.]*:[0-9a-f:.]*")
_TAG = re.compile(r"(?:[0-9a-f]{4})?")
_SHORT = re.compile(r"(?=.*[a-z])(?=.*\d).{3,}")
# A folder that is not everybody's, as /tmp is.
_FAR_DOWN = re.compile(r"/[^/]+/.+")
# A file of this name is found in a sentence too; one that is called dmesg is not.
_UNMISTAKABLE = re.compile(r"(?=.*[A-Za-z])(?=.*[./]).{5,}")
_TOKEN = re.compile(r"[A-Za-z0-9]{8,64}")
_FOLDER = re.compile(r"(?<=/)[A-Za-z_][\w.-]{1,63}(?![\w.-])")


class Redactor:
    """Stand-ins for what names a machine or a person; one for all that is shown together.

    `tag`: four hex digits that go into every stand-in (host-7c3f-1), so that those of two captures
    are told apart when they are judged together. Raises ValueError for another tag.
    """

    def __init__(self, hosts: Iterable[str] = (), users: Iterable[str] = (), tag: str = "") -> None:
        if not _TAG.fullmatch(tag):
            raise ValueError(f"{tag!r} is no tag: expected four hex digits, os.urandom(2).hex()")
        self._tag = f"{tag}-" if tag else ""
        self._given: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._taken: set[str] = set()
        self._hosts: dict[str, str] = {}
        self._domains: set[str] = set()  # short names of which the full name is known
        self._patterns: tuple[re.Pattern[str], frozenset[str]] | None = None
        self._files: dict[str, str] = {}
        self._file_pattern: re.Pattern[str] | None = None
        self._serials: dict[str, str] = {}
        self._parted: list[str] = []  # those that are not one word
        self._owners: dict[str, str] = {}
        self._users = {name for name in users if len(name) > 1 and not COMMON.fullmatch(name)}
        self.know(hosts)

    def know(self, hosts: Iterable[str]) -> None:
        """Take these for names of hosts from now on, in their short and their full form."""
        for name in hosts:
            self.host(name)

    def keep_clear_of(self, text: str) -> None:
        """Give out no stand-in that occurs in `text`: it stands for something else there."""
        self._taken.update(match[0] for match in STAND_IN.finditer(text))

    def host(self, name: str, *, short: bool = True) -> str:
        """The stand-in of a host; a name that many hosts have, such as localhost, stays. `short`:
        whether the name alone, without its domain, is surely this host's too."""
        lower = name.lower()
        if not name or COMMON.fullmatch(name) or STAND_IN.fullmatch(name):
            return name
        if lower not in self._hosts:
            labels = [lower] if _ADDRESS.fullmatch(lower) else lower.split(".")
            self._hosts[lower] = self._same(labels) or self.stand_in("host", lower)
            if (short or _SHORT.fullmatch(labels[0])) and not COMMON.fullmatch(labels[0]):
                self._hosts.setdefault(labels[0], self._hosts[lower])
            if len(labels) > 1:
                self._domains.add(labels[0])
            self._patterns = None
        return self._hosts[lower]

    def _same(self, labels: Sequence[str]) -> str | None:
        """node-07 and node-07.site are one; node-07.site and node-07.other are two."""
        for count in range(len(labels) - 1, 1, -1):
            if found := self._hosts.get(".".join(labels[:count])):
                return found
        return None if labels[0] in self._domains else self._hosts.get(labels[0])

    def file(self, name: str) -> str:
        """The stand-in of a file or folder, whose name is known in other texts from now on."""
        if name in NO_FILE or STAND_IN.fullmatch(name):
            return name
        path = str(PurePath(name))
        if path not in self._files:
            self._files[path] = self.stand_in("file", path)
            self._files.setdefault(PurePath(path).name, self._files[path])
            self._file_pattern = None
        return self._files[path]

    def source(self, source: str) -> str:
        """Where recorded text came from: one file, or several as they were joined."""
        return self._joined(sources(source))

    def arguments(self, argv: Sequence[str]) -> list[str]:
        """A command line of preflight, without secrets already, word by word."""
        return [self._joined(word) for word in parts(argv)]

    def refusal(self, text: str) -> str:
        """Why a file was not used, which may name others."""
        for name in in_a_sentence(text):
            self.file(name)
        return self.full(text)

    def _joined(self, pieces: Iterable[Part]) -> str:
        told: list[str] = []
        for piece in pieces:
            if piece.role == "file":
                told.append(self.file(piece.text))
            elif piece.role == "host":
                told.append(self.host(piece.text))
            else:
                if piece.role == "hosts":
                    self.know(filter(_is_name, _names(piece.text)))
                told.append(self.full(piece.text))
        return "".join(told)

    def know_scripts(self, text: str) -> None:
        """Take what the driver calls the program of an Xid for a file, where it is a script."""
        if "name=" in text:
            for match in SCRIPT.finditer(text):
                self.file(match["v"])

    def stand_in(self, kind: str, original: str) -> str:
        """`ipv4-1`: the same for the same original, in capitals or not (but files)."""
        short = original if kind == "file" else original.lower()
        # 0x506b4b0300c0ffee is 506b:4b03:00c0:ffee in other places.
        key = kind, re.sub("[:-]", "", short) if kind in ("guid", "mac") else short
        if kind == "ipv4" and ":" in short:  # 0a00:000b, as the end of an address of IPv6
            key = kind, str(ipaddress.IPv4Address(int(short.replace(":", ""), 16)))
        if key not in self._given:
            self._given[key] = self._next(kind)
            if kind == "serial" and len(short) >= 8:
                self._serials[short] = self._given[key]
                if not _TOKEN.fullmatch(short):
                    self._parted.append(short)
        return self._given[key]

    def _next(self, kind: str) -> str:
        while True:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            told = f"{kind}-{self._tag}{self._counts[kind]}"
            if told not in self._taken:
                return told

    def secrets(self, text: str) -> str:
        """`text` without secrets."""
        return secrets(text)

    def full(self, text: str) -> str:
        """`text` without secrets, and with stand-ins for what names a machine or a person."""
        self.know_scripts(text)
        text = self._replace_files(secrets(text))
        lower = text.lower()
        self._learn(text, lower)
        for rule in ADDRESSES:
            text = self._apply(rule, text, lower)
        text = self._replace_hosts(text)
        for rule in _AFTER_HOSTS:
            text = self._apply(rule, text, lower)
        return self._replace_known(text)

    def _learn(self, text: str, lower: str) -> None:
        for told in HOST_TOLD:
            if _hinted(told.hints, lower):
                for match in told.pattern.finditer(text):
                    self.know(filter(_is_name, _names(match["v"])))
        for name in full_names(text):
            self.host(name, short=False)

    def _apply(self, rule: Rule, text: str, lower: str) -> str:
        def swap(match: Match) -> str:
            told = match["v"]
            if NO_VALUE.fullmatch(told) or STAND_IN.fullmatch(told) or rule.but(match):
                return match[0]
            if rule.kind in ("user", "host") and COMMON.fullmatch(told):
                return match[0]
            if rule.kind == "user" and SYSTEM_USER.fullmatch(told):
                return match[0]
            shown = self.host(told) if rule.kind == "host" else self.stand_in(rule.kind, told)
            if rule.kind == "user" and len(told) > 2:
                self._owners[told] = shown
            start, end = (at - match.start() for at in match.span("v"))
            return f"{match[0][:start]}{shown}{match[0][end:]}"

        return rule.pattern.sub(swap, text) if _hinted(rule.hints, lower) else text

    def _replace_files(self, text: str) -> str:
        if self._file_pattern is None and self._files:
            known = sorted(filter(_UNMISTAKABLE.fullmatch, self._files), key=len, reverse=True)
            told = "|".join(map(re.escape, known)) or "(?!)"
            # Of a folder what lies in it is named below its stand-in.
            folders = "|".join(map(re.escape, filter(_FAR_DOWN.fullmatch, known))) or "(?!)"
            self._file_pattern = re.compile(
                rf"(?<![\w./-])(?:(?:{told})(?![\w/-]|\.\w)|(?:{folders})(?=/))"
            )
        if self._file_pattern is None:
            return text
        return self._file_pattern.sub(lambda match: self._files[match[0]], text)

    def _replace_known(self, text: str) -> str:
        """What was named before as what it is may stand alone here."""
        if self._serials:
            text = _TOKEN.sub(lambda match: self._serials.get(match[0].lower(), match[0]), text)
            for serial in self._parted:
                if serial in text.lower():
                    text = re.sub(re.escape(serial), self._serials[serial], text, flags=re.I)
        if self._owners and "/" in text:
            text = _FOLDER.sub(lambda match: self._owners.get(match[0], match[0]), text)
        for name in self._users:
            alone = rf"(?<![A-Za-z0-9-]){re.escape(name)}(?![A-Za-z0-9-])"
            text = re.sub(alone, self.stand_in("user", name), text)
        return text

    def _replace_hosts(self, text: str) -> str:
        if self._patterns is None:
            names = [name for name in self._hosts if len(name) > 1 and not SUBJECT.fullmatch(name)]
            starts = frozenset(re.split(r"\d", name)[0] for name in names)
            self._patterns = _pattern(names), starts
        pattern, starts = self._patterns
        if not starts:
            return text
        if "[" in text:
            text = _FOLDED.sub(lambda match: self._unfold(match[0], starts), text)
        return pattern.sub(self._swap_host, text)

    def _unfold(self, folded: str, starts: frozenset[str]) -> str:
        # systemd[1] is no list of hosts: expanding is dear, and only done for their prefixes.
        if not any(start and folded.lower().startswith(start) for start in starts):
            return folded
        names = _names(folded)
        if not any(name.lower() in self._hosts for name in names):
            return folded
        return fold(self._hosts.get(name.lower(), name) for name in names)

    def _swap_host(self, match: Match) -> str:
        labels = match["domain"].split(".")[1:]
        for kept in range(len(labels), -1, -1):
            name = ".".join([match["v"], *labels[:kept]]).lower()
            if name in self._hosts:
                return f"{self._hosts[name]}{_suffix(labels[kept:], kept)}"
        return match[0]


def _suffix(rest: Sequence[str], kept: int) -> str:
    """What stays of the labels after a known name: of node-07.capture.gz a part, of a domain none.

    Two labels more are a domain, unless they are what files end in.
    """
    file = next((at for at, label in enumerate(rest) if SUFFIX.fullmatch(label.lower())), len(rest))
    domain = (file > 1 and not kept) or (file == 1 and ENDING.fullmatch(rest[0].lower()))
    return "".join(f".{label}" for label in (rest[file:] if domain else rest))


def _hinted(hints: tuple[str, ...], lower: str) -> bool:
    return not hints or any(hint in lower for hint in hints)


def _pattern(names: Iterable[str]) -> re.Pattern[str]:
    """One pattern for all: names that differ in their numbers are one alternative."""
    shapes = {re.sub(r"\d+", r"\\d{1,20}", re.escape(name)) for name in names}
    told = "|".join(sorted(shapes, key=lambda shape: (-len(shape), shape)))
    domain = r"(?:\.[a-z][a-z0-9-]{0,62}){0,6}"
    # A host called node1 is not the NUMA node1, nor one called vm the total-vm of a killed process.
    before = r"(?<![a-z0-9])(?<!numa )(?<!/node/)(?<!total-)"
    return re.compile(rf"(?i){before}(?P<v>{told})(?P<domain>{domain})(?![a-z0-9])")


def _names(text: str) -> list[str]:
    if not re.search(r"[\[,]", text):
        return [text]
    try:
        return expand(text)
    except UsageError:
        return []


def _is_name(text: str) -> bool:
    ends = text[:1].isalnum() and text[-1:].isalnum()
    return len(text) > 1 and ends and not _ADDRESS.fullmatch(text.lower())
