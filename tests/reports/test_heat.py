"""Every pair of hosts as a map: in text, Markdown, JSON and as a drawing."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.parsers import expat

from preflight.assemble.host import assemble
from preflight.model import Raw
from preflight.probes.collectives.job import told_to_each
from preflight.reports.heat import Heat, chosen, heat_of, heat_tables
from preflight.reports.heat_text import heat_lines
from preflight.reports.layout import cells, plain
from preflight.reports.machine.svg_heat import heat_map
from preflight.units import parse_bytes
from tests.cli.command import preflight
from tests.conftest import sample

LEVEL = 46.0


def names(count: int) -> tuple[str, ...]:
    return tuple(f"node-{at:03}" for at in range(1, count + 1))


def heat(
    count: int, slow: dict[tuple[int, int], float] | None = None, culprits: tuple[str, ...] = ()
) -> Heat:
    """So many hosts; `slow`: pairs and their share."""
    pairs = {pair: LEVEL * (slow or {}).get(pair, 1.0) for pair in combinations(range(count), 2)}
    return Heat(names(count), pairs, LEVEL, frozenset(culprits))


def drawn(one: Heat, width: int = 100) -> list[str]:
    found = [plain(line) for line in heat_lines(one, width)]
    assert all(cells(line) <= width for line in found)
    return found


def bench(count: int, links: tuple[tuple[int, int], ...] = ()) -> str:
    """What a bench over all pairs tells on the host that led: the lines of a recorded one, with a
    matrix of pairs, of which some are slow."""
    lines = [json.loads(line) for line in sample("nccl_bench/sound_h1.jsonl").splitlines()]
    hosts = list(names(count))
    matrix = [
        [hosts[a], hosts[b], LEVEL * (0.4 if (a, b) in links else 1.0)]
        for a, b in combinations(range(count), 2)
    ]
    found = {
        "nodes": [], "links": [[hosts[a], hosts[b]] for a, b in links], "boundary": [],
        "runs": [], "matrix": matrix, "level_gbps": {"pairs": LEVEL},
    }  # fmt: skip
    for line in lines:
        if line["kind"] == "found":
            line.update(found)
        if isinstance(line.get("found"), dict):
            line["found"].update(found)
        if isinstance(line.get("plan"), dict):
            line["plan"]["hosts"] = hosts
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def table(count: int, links: tuple[tuple[int, int], ...] = ()) -> dict[str, Any]:
    raw = Raw("node-001", "nccl-bench", ("python3",), 0, bench(count, links))
    (found,) = heat_tables(assemble("node-001", [raw]).host)
    return found


def test_few_hosts_have_their_numbers_and_a_slow_link_is_marked() -> None:
    one = heat(4, {(0, 2): 0.5}, ("node-001 to node-003",))
    told = drawn(one)
    assert told[0].split() == ["1", "2", "3", "4"]
    assert told[1].split() == ["1", "node-001", "-", "46", "*23", "46"]
    assert told[3].split() == ["3", "node-003", "*23", "46", "-", "46"]
    assert any("slow: node-001 to node-003 (50%)" in line for line in told)


def test_more_have_a_character_for_each_pair_and_a_slow_host_a_star() -> None:
    slow = {(min(4, b), max(4, b)): 0.62 for b in range(24) if b != 4}
    told = drawn(heat(24, slow, ("node-005",)))
    assert told[0].split() == [*["1"] * 10, *["2"] * 5]  # the tens above the ones
    assert told[1].split() == [str(at % 10) for at in range(1, 25)]
    assert told[6].split() == ["5", "node-005", "*", *["6"] * 4, "-", *["6"] * 19]
    assert told[2].split() == ["1", "node-001", "-", ".", ".", ".", "6", *["."] * 19]
    assert "share of 46 GB/s" in told[26]
    assert "slow: node-005 (62%)" in " ".join(told)


def test_what_was_not_measured_is_no_zero() -> None:
    pairs = {(0, 1): LEVEL, (0, 2): 0.0}
    told = drawn(Heat(names(3), pairs, LEVEL))
    assert told[1].split()[2:] == ["-", "46", "0"]
    assert told[2].split()[2:] == ["46", "-", "?"]


def test_of_more_than_fit_the_slow_ones_are_shown_and_the_others_counted() -> None:
    one = heat(300, {(17, 250): 0.3, (100, 101): 0.9}, ("node-018 to node-251",))
    told = drawn(one)
    rows = [line.split()[1] for line in told if line.split()[0].isdecimal() and "node-" in line]
    assert {"node-018", "node-251", "node-101", "node-102"} <= set(rows)
    assert len(rows) == 40
    assert "260 more are left out" in " ".join(told)
    assert drawn(one, 60)
    assert chosen(one, 2) == [17, 250]


def test_names_that_are_long_or_wide_do_not_break_the_columns() -> None:
    odd = ("n" * 80, "節点", *names(1))
    pairs = {(0, 1): LEVEL, (0, 2): LEVEL, (1, 2): LEVEL / 2}
    told = drawn(Heat(odd, pairs, LEVEL), 60)
    assert len({cells(line.rstrip()) for line in told[1:4]}) == 1


def test_the_entry_holds_every_pair_and_comes_back_as_the_map() -> None:
    entry = json.loads(json.dumps(table(4, ((0, 2),))))
    assert entry["table"] == f"every pair of hosts, GB/s at {entry['table'].rpartition(' at ')[2]}"
    assert parse_bytes(entry["table"].rpartition(" at ")[2].replace(" ", "")) > 0
    assert len(entry["rows"]) == 6
    assert entry["rows"][1] == {"host": "node-001", "and": "node-003", "GB/s": 18.4, "share": 0.4}
    again = heat_of(entry)
    assert again is not None and again.is_culprit(0, 2) and not again.is_culprit(0)
    assert round(again.share(2, 0) or 0.0, 6) == 0.4
    assert heat_of({"table": "another", "rows": []}) is None
    assert heat_of({**entry, "heat": {"hosts": 3}}) is None


def test_only_the_host_that_led_tells_it() -> None:
    lead = bench(4)
    begin = next(line for line in lead.splitlines() if '"kind": "begin"' in line)
    each = told_to_each({"node-001": lead, "node-002": f"{begin}\n"})
    for host, text in (("node-001", lead), ("node-002", f"{begin}\n")):
        told = text + json.dumps(each[host]) + "\n"
        raw = Raw(host, "nccl-bench", ("python3",), 0, told)
        assert bool(heat_tables(assemble(host, [raw]).host)) == (host == "node-001")


def test_a_slow_link_between_others_than_the_host_that_led_is_marked(tmp_path: Path) -> None:
    lead = bench(4, ((1, 3),))
    begin = json.loads(next(line for line in lead.splitlines() if '"kind": "begin"' in line))
    texts = {"node-001": lead} | {
        one: json.dumps({**begin, "host": one}) + "\n" for one in names(4)[1:]
    }
    each = told_to_each(texts)
    given = []
    for host, text in texts.items():
        path = tmp_path / f"{host}.jsonl"
        kept = [line for line in text.splitlines() if '"located"' not in line]
        path.write_text("\n".join([*kept, json.dumps(each[host])]) + "\n", encoding="utf-8")
        given += ["--from", f"{host}={path}"]
    files = [tmp_path / "all.json", tmp_path / "heat.svg"]
    ran = preflight("nccl-bench", *given, *(word for one in files for word in ("--save", str(one))))
    assert "slow: node-002 to node-004 (40%)" in ran.out and "*18.4" in ran.out
    (entry,) = [one for one in json.loads(files[0].read_text("utf-8"))["measurements"]
                if "heat" in one]  # fmt: skip
    assert entry["heat"]["culprits"] == [{"name": "node-002 to node-004", "kind": "link"}]
    assert "slow: node-002 to node-004" in files[1].read_text("utf-8")


def test_every_form_of_the_report_shows_it(tmp_path: Path) -> None:
    given = tmp_path / "bench.jsonl"
    given.write_text(bench(5, ((1, 3),)), encoding="utf-8")
    files = [tmp_path / name for name in ("heat.svg", "all.json", "all.md", "again.svg")]
    saves = [word for path in files[:3] for word in ("--save", str(path))]
    ran = preflight("nccl-bench", "--from", f"node-001={given}", *saves)
    assert "every pair of hosts, GB/s" in ran.out and "*18.4" in ran.out
    assert "slow: node-002 to node-004 (40%)" in ran.out
    picture = files[0].read_text(encoding="utf-8")
    expat.ParserCreate().Parse(picture, True)
    assert picture.count(">40</text>") == 2 and "node-004" in picture
    (row,) = [line for line in files[2].read_text("utf-8").splitlines() if "| node-002 |" in line
              and "46 (100%)" in line]  # fmt: skip
    assert [cell.strip() for cell in row.split("|")][5].startswith("18.4 (40%)")
    stored = json.loads(files[1].read_text(encoding="utf-8"))
    (entry,) = [one for one in stored["measurements"] if "heat" in one]
    assert len(entry["rows"]) == 10
    again = preflight("report", str(files[1]), "--save", str(files[3]))
    assert "*18.4" in again.out
    assert files[3].read_text(encoding="utf-8") == picture


def test_a_bench_without_pairs_has_no_picture_and_says_how_to_get_one(tmp_path: Path) -> None:
    given, path = tmp_path / "bench.jsonl", tmp_path / "heat.svg"
    given.write_text(sample("nccl_bench/sound_h1.jsonl"), encoding="utf-8")
    ran = preflight("nccl-bench", "--from", str(given), "--save", str(path))
    assert f"error: {path} was not written: there is nothing to draw" in ran.err
    assert "preflight nccl-bench --pairwise --hosts HOSTS" in ran.err
    assert not path.exists()


def test_stand_ins_are_in_the_map_too(tmp_path: Path) -> None:
    given = tmp_path / "bench.jsonl"
    given.write_text(bench(3, ((0, 2),)).replace("node-00", "saturn-"), encoding="utf-8")
    ran = preflight("nccl-bench", "--from", f"saturn-1={given}", "--redact", "--format", "json")
    assert "saturn" not in ran.out
    (entry,) = [one for one in json.loads(ran.out)["measurements"] if "heat" in one]
    again = heat_of(entry)
    assert again is not None and again.is_culprit(0, 2)


def test_a_drawing_of_many_hosts_is_bounded() -> None:
    shapes = list(heat_map("all", heat(300, {(3, 4): 0.2}), 24, 24))
    assert len(shapes) < 64 * 64 * 2 + 300
    assert max(shape.right for shape in shapes) < 1400
    assert any("236 more are left out" in shape.markup for shape in shapes)
