"""Inside of a slow host: what its ranks are told to do, and what is made of it. The hosts are made
up: a collective is as fast as the slowest GPU, fabric and rail that take part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from preflight.collect import examine
from preflight.judge.load import load
from preflight.model import Raw
from preflight.payload.collectives.bench import Bench, Here
from preflight.payload.collectives.inside import FABRICS, inside
from preflight.payload.collectives.orders import _among, done
from preflight.payload.collectives.plan import Plan
from preflight.payload.collectives.rails import adapters
from tests.bench_lines import H100, on_gpus

Line = dict[str, Any]
HOSTS = ["h1", "h2", "h3", "h4"]
RAILS = ["mlx5_0", "mlx5_1", "mlx5_2"]
#: Host and GPU, fabric or rail -> share of what is healthy.
Faults = dict[tuple[int, object], float]


class MadeUp(Here):
    """Hosts with faults; notes what they are asked."""

    def __init__(self, plan: Plan, faults: Faults) -> None:
        super().__init__(plan)
        self.faults, self.asked = faults, list[Line]()
        self.agents = list(range(max(1, len(plan.hosts))))
        self.about = {at: {"rails": RAILS} for at in self.agents}

    def run(self, orders: Sequence[Line], _limit_s: float) -> Iterator[tuple[int, int, Line]]:
        taken = [at for one in orders for at in one["hosts"]]
        assert len(taken) == len(set(taken)), "a host has two parts at the same time"
        for one in orders:
            self.asked.append(one)
            gbps = 100.0 * min(self._share(at, one) for at in one["hosts"])
            ranks = len(one["hosts"]) * len(one.get("devices", range(self.plan.ranks)))
            second = 2 * (ranks - 1) / ranks * one["bytes"] / gbps / 1e9
            yield one["test"], one["hosts"][0], {"kind": "measured", "seconds": [second] * 7}

    def _share(self, at: int, order: Line) -> float:
        environment = order.get("environment", {})
        fabric = next((name for name, given in FABRICS.items() if given == environment), None)
        rail = environment.get("NCCL_IB_HCA", "").lstrip("=")
        parts = [*order.get("devices", range(self.plan.ranks)), fabric, rail or None]
        return min(self.faults.get((at, one), 1.0) for one in parts)


def looked(
    faults: Faults, slow: Sequence[int] = (2,), **asked: Any
) -> tuple[dict[str, Line], MadeUp]:
    """The line of each host."""
    plan = Plan(device="cuda", ranks=8, **{"hosts": HOSTS, **asked})
    lines: list[Line] = []
    many = MadeUp(plan, faults)
    bench = Bench(plan, lines.append, many)
    bench.slow = list(slow)
    bench.sound = [at for at in many.agents if at not in slow]
    inside(bench)
    return {one.get("of", ""): one for one in lines if one["kind"] == "inside"}, many


def culprits(line: Line) -> list[tuple[str, str]]:
    return [(one["kind"], one["name"]) for one in line["culprits"]]


@pytest.mark.parametrize(
    ("fault", "culprit"),
    [
        ((2, 5), ("gpu", "GPU 5")),
        ((2, "the host's memory"), ("fabric", "the host's memory")),
        ((2, "its adapters"), ("fabric", "its adapters")),
        ((2, "mlx5_1"), ("nic", "mlx5_1")),
    ],
)
def test_what_is_slow_is_named_alone(fault: tuple[int, object], culprit: tuple[str, str]) -> None:
    told, _ = looked({fault: 0.5})
    assert culprits(told["h3"]) == [culprit]
    assert told["h3"]["culprits"][0]["share"] == pytest.approx(0.5, abs=0.01)
    tests = {one["test"] for one in told["h3"]["tried"]}
    assert set(told["h3"]["culprits"][0]["tests"]) == tests
    assert set(told) == {"h1", "h3"} and culprits(told["h1"]) == []


def test_a_rail_that_is_slow_between_all_is_told_by_the_first_host() -> None:
    told, _ = looked({(at, "mlx5_2"): 0.4 for at in range(4)}, slow=())
    assert culprits(told["h1"]) == [("nic", "mlx5_2 of all hosts")]


def test_hosts_that_are_sound_have_nothing_to_tell() -> None:
    told, many = looked({}, slow=())
    assert [culprits(one) for one in told.values()] == [[]]
    assert len(many.asked) == len(RAILS)
    assert looked({}, inside=False)[1].asked == looked({}, locate=False)[1].asked == []


def test_a_host_that_is_alone_looks_at_its_gpus() -> None:
    told, many = looked({(0, 3): 0.5}, slow=(), hosts=[])
    assert culprits(told[""]) == [("gpu", "GPU 3")]
    assert {len(one["devices"]) for one in many.asked} == {2}
    assert looked({}, slow=(), hosts=[], pairwise=True)[0][""]["counts"] == {"gpu": 28}


def test_ranks_are_told_the_rail_and_the_devices() -> None:
    plan = Plan(device="cuda", ranks=8, hosts=HOSTS, addresses=["10.0.0.1"] * 4, interface="eth0",
                nics="mlx5")  # fmt: skip
    order = {"hosts": [2, 0], "devices": [1, 3], "environment": {"NCCL_IB_HCA": "=mlx5_1"}}
    among = _among(plan, 0, order, {})
    assert (among.first, among.world, among.devices) == (2, 4, [1, 3])
    assert among.environment["NCCL_IB_HCA"] == "=mlx5_1"
    assert _among(plan, 0, {"hosts": [0]}, {}).environment["NCCL_IB_HCA"] == "mlx5"


def test_of_several_interfaces_each_carries_its_share_of_a_repeat() -> None:
    order = {"test": 0, "do": "compare", "hosts": [0], "limit_s": 30.0, "collective": "all_reduce",
             "repeats": 3, "bytes": 64, "environment": {"GLOO_SOCKET_IFNAME": "lo,lo"}}  # fmt: skip
    lines = list(done(Plan(device="cpu", ranks=2), 0, order))
    (measured,) = [one for one in lines if one["kind"] == "measured"]
    assert len(measured["seconds"]) == 3


@pytest.mark.parametrize(("product", "status"), [(H100, "FAIL"), ("NVIDIA L40S", "SKIP")])
def test_of_a_host_alone_pairs_are_judged_where_they_are_alike(product: str, status: str) -> None:
    told, _ = looked({(0, 3): 0.5}, slow=(), hosts=[])
    text = on_gpus(100.0, [told[""]], hosts=["h1"]).replace('"hosts":["h1"]', '"hosts":[]')
    report = examine("h1", [Raw("h1", "nccl-bench", stdout=text.replace(H100, product))],
                     load(("collectives",)).checks)  # fmt: skip
    (one,) = [each for each in report.results if each.check == "collectives.gpu"]
    assert one.status.value == status
    assert one.subject == ("GPU 3" if status == "FAIL" else "h1")


def port(root: Path, name: str, state: str = "4: ACTIVE", rate: str = "400 Gb/sec (4X NDR)",
         layer: str = "InfiniBand", number: int = 1) -> None:  # fmt: skip
    folder = root / name / "ports" / str(number)
    folder.mkdir(parents=True)
    for file, text in (("state", state), ("rate", rate), ("link_layer", layer)):
        (folder / file).write_text(f"{text}\n")


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("", ["mlx5_0", "mlx5_1", "mlx5_0:2", "mlx5_10"]),
        ("mlx5_1", ["mlx5_1", "mlx5_10"]),
        ("=mlx5_1", ["mlx5_1"]),
        ("=mlx5_0:1,mlx5_10:1", ["mlx5_0", "mlx5_10"]),
        ("^mlx5_1", ["mlx5_0", "mlx5_0:2"]),
        ("^=mlx5_1", ["mlx5_0", "mlx5_0:2", "mlx5_10"]),
    ],
)
def test_rails_are_the_fastest_ports_that_are_up_and_named(
    tmp_path: Path, spec: str, names: list[str]
) -> None:
    for name in ("mlx5_0", "mlx5_1", "mlx5_10"):
        port(tmp_path, name)
    port(tmp_path, "mlx5_0", number=2)
    port(tmp_path, "mlx5_2", rate="100 Gb/sec (2X HDR)")
    port(tmp_path, "mlx5_3", state="1: DOWN")
    port(tmp_path, "mlx5_bond_0", rate="200 Gb/sec (4X HDR)", layer="Ethernet")
    assert sorted(adapters(spec, str(tmp_path))) == sorted(names)
    assert adapters("", str(tmp_path / "none")) == []


def test_what_is_told_is_json() -> None:
    told, _ = looked({(2, 5): 0.5})
    assert json.loads(json.dumps(told)) == told
