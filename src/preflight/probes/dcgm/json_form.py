"""`dcgmi diag -j`: JSON of DCGM 2 and 3 ("DCGM GPU Diagnostic") and of 4 ("DCGM Diagnostic")."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from preflight.errors import ParseError
from preflight.probes.dcgm.errors import Message
from preflight.probes.dcgm.table import Table, TableResult

_NAMES = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
#: dcgm_field_entity_group_t, dcgmlib/dcgm_fields.h: what `entity_group` calls by name.
_GROUPS = {
    1: "GPU", 2: "vGPU", 3: "Switch", 4: "GPU_I", 5: "GPU_CI", 6: "Link", 7: "CPU",
    8: "CPU_Core", 9: "ConnectX",
}  # fmt: skip
_STATUS = re.compile(r'"status"\s*:')


def begins(text: str) -> int:
    """Where the JSON begins, -1 where there is none: a warning may stand before it."""
    named = min((at for name in _NAMES if (at := text.find(f'"{name}"')) >= 0), default=-1)
    if named < 0:
        return -1
    first = text.find("{")
    return first if 0 <= first < named else -1


def read_json(text: str) -> Table:
    """The same as the table tells, from JSON."""
    at = begins(text)
    line = text.count("\n", 0, at) + 1
    try:
        document, _ = json.JSONDecoder().raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        raise ParseError(f"the JSON of dcgmi is cut short or broken: {error}", line) from None
    table = Table(whole=True, first=line)
    lines = _lines_of_results(text)
    for one in _documents(document):
        _read(one, table, lines)
    return table


def _lines_of_results(text: str) -> Iterator[int]:
    """The line of each "status" in the order of the text, counted from one to the next."""
    line, here = 1, 0
    for match in _STATUS.finditer(text):
        line += text.count("\n", here, match.start())
        here = match.start()
        yield line


def _documents(document: Any) -> Iterator[dict[str, Any]]:
    """The run, or each of the iterations of `--iterations`."""
    if not isinstance(document, dict):
        return
    yield document
    for one in _list(document.get("iterations")):
        if isinstance(one, dict):
            yield one


def _read(document: dict[str, Any], table: Table, lines: Iterator[int]) -> None:
    run = next((document[name] for name in _NAMES if isinstance(document.get(name), dict)), None)
    metadata = document.get("metadata")
    told = {**(metadata if isinstance(metadata, dict) else {}), **(run or {})}
    for key, name in (("version", "DCGM Version"), ("Driver Version Detected",) * 2):
        if isinstance(told.get(key), str):
            table.metadata[name] = told[key]
    ids = [
        str(entity.get("device_id"))
        for group in _list(document.get("entity_groups"))
        if isinstance(group, dict) and group.get("entity_group") == "GPU"
        for entity in _list(group.get("entities"))
        if isinstance(entity, dict)
    ] or _list(told.get("GPU Device IDs")) or _list(told.get("gpu_device_ids"))  # fmt: skip
    if ids:
        table.metadata["GPU Device IDs Detected"] = ",".join(map(str, ids))
    if isinstance(told.get("runtime_error"), str):
        table.metadata["runtime_error"] = told["runtime_error"]
    for category in _list((run or {}).get("test_categories")):
        if isinstance(category, dict):
            for test in _list(category.get("tests")):
                if isinstance(test, dict):
                    _test(test, str(category.get("category", "")), table, lines)


def _test(test: dict[str, Any], category: str, table: Table, lines: Iterator[int]) -> None:
    name, before = str(test.get("name", "a test")), len(table.results)
    for key, value in test.items():  # in the order of the text, for the lines
        if key not in ("results", "test_summary"):
            continue
        for one in _list(value) if key == "results" else [value]:
            if isinstance(one, dict) and "status" in one:
                result = _result(name, category, one, next(lines, table.first))
                result.for_all = result.for_all or key == "test_summary"
                table.results.append(result)
    if len(table.results) == before:
        table.results.append(TableResult(name, category, "not run", table.first))


def _result(name: str, category: str, told: dict[str, Any], line: int) -> TableResult:
    devices = _devices(told)
    return TableResult(
        test=name,
        category=category,
        status=str(told["status"]).strip().lower()[:4],
        line=line,
        devices=devices,
        for_all=not devices,
        messages=[("", message) for message in _messages(told.get("warnings"))],
        info=[text for text in map(str, _list(told.get("info"))) if text],
    )


def _devices(told: dict[str, Any]) -> list[str]:
    """gpu0 from `gpu_ids` ("0,1", "0" or 0), `gpu_id`, or the entity of DCGM 4."""
    if "entity_id" in told:
        group = told.get("entity_group") or _GROUPS.get(
            _int(told.get("entity_group_id")) or 1, "GPU"
        )
        return [f"{str(group).lower()}{told['entity_id']}"]
    if "cpu_id" in told:
        return [f"cpu{told['cpu_id']}"]
    ids = told.get("gpu_ids", told.get("gpu_id", ""))
    return [f"gpu{int(number)}" for number in re.findall(r"[0-9]{1,4}", str(ids)[:1000])]


def _messages(told: Any) -> Iterator[Message]:
    """A text, or records; for the first tests DCGM 3 calls the text of a record `warnings`."""
    for one in _list(told):
        if isinstance(one, dict):
            text = one.get("warning", one.get("warnings", ""))
            yield Message(str(text), _int(one.get("error_id")), _int(one.get("error_severity")))
        elif one:
            yield Message(str(one))


def _int(value: Any) -> int | None:
    text = str(value)
    return int(text) if re.fullmatch(r"[0-9]{1,6}", text) else None


def _list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value in (None, "", {}) else [value]
