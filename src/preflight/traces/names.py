"""What names in a trace stand for: the tables of checks/data/trace_names.yaml."""

from __future__ import annotations

import re
from functools import cache

from msgspec import convert

from preflight import datafiles, strict_yaml

#: Of a name: what comes after are arguments of templates.
_LOOKED_AT = 300
#: Names of which kinds are remembered; programs have some thousands.
MOST_NAMES = 50_000
_REMEMBERED = 4000  # characters of one
_FILE = "checks/data/trace_names.yaml"


@cache
def _tables() -> dict[str, dict[str, re.Pattern[str]]]:
    text = (datafiles.root() / _FILE).read_text(encoding="utf-8")
    tables = convert(strict_yaml.load(text, _FILE), dict[str, dict[str, list[str]]])
    return {
        table: {kind: re.compile("|".join(one), re.I) for kind, one in kinds.items()}
        for table, kinds in tables.items()
    }


class Kinds(dict[str, str]):
    """What names stand for in a table, found out once for each; `default` where in none of it."""

    def __init__(self, table: str, default: str) -> None:
        super().__init__()
        self._patterns, self._default = _tables()[table], default

    def __missing__(self, name: str) -> str:
        text = name[:_LOOKED_AT]
        found = (kind for kind, pattern in self._patterns.items() if pattern.search(text))
        kind = next(found, self._default)
        if len(self) < MOST_NAMES and len(name) < _REMEMBERED:
            self[name] = kind
        return kind
