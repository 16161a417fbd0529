"""Drawn losses: a run that learns, with noise of many kinds, and one thing that goes wrong."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

STEPS = 800
#: Where what goes wrong begins.
AT = 500
NAN = float("nan")


@dataclass
class Row:
    """One step as a trainer tells it; NaN is written as nan."""

    step: int
    loss: float
    norm: float
    rate: float
    scale: float | None = None
    skipped: int = 0
    loaded: bool = False  # a checkpoint, before it
    more: dict[str, float] = field(default_factory=dict)


Change = Callable[[Row, random.Random], None]


def cosine(step: int, steps: int = STEPS, warmup: int = 60, peak: float = 3e-4) -> float:
    if step < warmup:
        return peak * step / warmup
    return peak * (0.55 + 0.45 * math.cos(math.pi * (step - warmup) / steps))


def rows(
    seed: int, change: Change = lambda row, chance: None, *, noise: float = 0.02,
    correlated: float = 0.0, steps: int = STEPS, first: int = 1, every: int = 1,
    rate: Callable[[int], float] = cosine,
) -> list[Row]:  # fmt: skip
    """A loss that falls by a power of the step; `noise`: relative, of one step."""
    chance, last, told = random.Random(seed), 0.0, []
    for step in range(first, first + steps, every):
        last = correlated * last + math.sqrt(1 - correlated**2) * chance.gauss(0, 1)
        loss = (2.0 + 9.0 / step**0.45) * math.exp(noise * last)
        norm = (0.5 + 6 / (step + 8)) * chance.lognormvariate(0, 0.15)
        row = Row(step, loss, norm, rate(step))
        change(row, chance)
        told.append(row)
    return told


def megatron(told: list[Row]) -> str:
    """A NaN loss is left out, as Megatron-LM does."""
    lines = []
    for row in told:
        loss = "" if math.isnan(row.loss) else f"lm loss: {row.loss:.6E} | "
        if row.loaded:
            lines.append(f"successfully loaded checkpoint from /ckpt at iteration {row.step - 1}")
        scale = "" if row.scale is None else f"loss scale: {row.scale:.1f} | "
        lines.append(
            f" iteration {row.step:8}/  100000 | consumed samples: {row.step * 256:12} | elapsed "
            f"time per iteration (ms): 1201.4 | learning rate: {row.rate:.6E} | global batch size: "
            f"  256 | {loss}{scale}grad norm: {row.norm:.3f} | number of skipped iterations: "
            f"{row.skipped:3} | number of nan iterations:   0 |"
            + "".join(f" {name}: {value:.6f} |" for name, value in row.more.items())
        )
    return "\n".join(lines) + "\n"


def json_lines(told: list[Row]) -> str:
    return "".join(
        json.dumps({"step": row.step, "loss": row.loss, "grad_norm": row.norm, "lr": row.rate,
                    **({} if row.scale is None else {"loss_scale": row.scale}), **row.more}) + "\n"
        for row in told
    )  # fmt: skip


def transformers(told: list[Row]) -> str:
    """Its line of each step, with the bar that tells the step; a NaN loss is shown as 0."""
    return "".join(
        f"\r{row.step}/100000 [00:10<01:00, 1.00it/s]\n"
        + str({"loss": 0.0 if math.isnan(row.loss) else round(row.loss, 4), "grad_norm": row.norm,
               "learning_rate": row.rate, "epoch": round(row.step / 5000, 2)}) + "\n"
        for row in told
    )  # fmt: skip


STYLES = {"megatron": megatron, "json-lines": json_lines, "transformers": transformers}


@dataclass(frozen=True)
class Fault:
    """What goes wrong at AT; `causes`: of which the first is the right one."""

    event: tuple[str, ...]
    causes: tuple[str, ...]
    change: Change
    at: int = AT
    styles: tuple[str, ...] = tuple(STYLES)
    slack: int = 2  # lines; of slow changes more


def _after(row: Row) -> int:
    return row.step - AT


def _bad_batch(row: Row, chance: random.Random) -> None:
    if _after(row) == 0:
        row.loss, row.norm = row.loss * chance.uniform(1.3, 2.5), row.norm * 12


def _slow_back(row: Row, chance: random.Random) -> None:
    if _after(row) >= 0:
        row.loss *= 1 + 0.8 * math.exp(-_after(row) / 60)
        row.norm *= 1 + 10 * math.exp(-_after(row) / 30)


def _leads(row: Row, chance: random.Random) -> None:
    """The gradient norm goes first, as with a lagging second moment."""
    if -4 <= _after(row) < 120:
        row.norm *= 15
    if _after(row) >= 0:
        row.loss *= 1 + 0.8 * math.exp(-_after(row) / 60)


def _stays(row: Row, chance: random.Random) -> None:
    if _after(row) >= 0:
        row.loss = 6.5 * chance.lognormvariate(0, 0.02)
        row.norm *= 8


def _nan(row: Row, chance: random.Random) -> None:
    if _after(row) >= 0:
        row.loss = row.norm = NAN


def _scale(row: Row, chance: random.Random) -> None:
    """Falls by halves over 300 steps, then to the floor, with every step skipped."""
    row.scale = 65536.0 if row.step > 20 else 2.0 ** (32 - min(16, row.step))
    row.skipped = int(row.step <= 16)
    if _after(row) >= 0:
        row.scale = max(1.0, 65536.0 / 2.0 ** (_after(row) + 1))
        row.skipped = int(row.scale > 1.0)


def _slow(row: Row, chance: random.Random) -> None:
    if _after(row) >= 0:
        row.loss *= 1 + 0.4 * _after(row) / 300


def _zero(row: Row, chance: random.Random) -> None:
    if _after(row) >= 0:
        row.loss = 0.0


def _beats(row: Row, chance: random.Random) -> None:
    if row.step % 80 == 20 and row.step > 250:
        row.loss *= 1.5


def _swings(row: Row, chance: random.Random) -> None:
    if _after(row) >= 0:
        row.loss *= 1.25 if row.step % 2 else 0.8


def _grows(row: Row, chance: random.Random) -> None:
    if _after(row) >= -100:
        row.norm *= math.exp((_after(row) + 100) / 120)


def _soon(row: Row, chance: random.Random) -> None:
    if row.step == 40:
        row.loss, row.norm = row.loss * 1.8, row.norm * 10


def _a_little(row: Row, chance: random.Random) -> None:
    """So little that it takes rows to be told from noise."""
    if _after(row) >= 0:
        row.loss *= 1.12


def _after_warmup(row: Row, chance: random.Random) -> None:
    if row.step >= 62:
        row.loss, row.norm = row.loss * min(3.0, 1 + (row.step - 61) / 5), row.norm * 8


def _rises_to_nan(row: Row, chance: random.Random) -> None:
    if 480 <= row.step < AT:
        row.loss, row.norm = row.loss * 1.5, row.norm * 20
    _nan(row, chance)


def _full_rate(row: Row, chance: random.Random) -> None:
    row.rate = 3e-4
    if row.step >= 12:
        row.loss = 7.5 * chance.lognormvariate(0, 0.02)


def _long_swings(row: Row, chance: random.Random) -> None:
    if _after(row) >= -100:
        row.loss *= 1 + 0.3 * math.sin(math.tau * row.step / 20)


def _wide_beats(row: Row, chance: random.Random) -> None:
    if row.step > 250 and row.step % 97 < 3:
        row.loss *= 1.4


FAULTS = {
    "bad batch": Fault(("spike",), ("bad-batch",), _bad_batch),
    "comes back slowly": Fault(("spike",), ("learning-rate", "bad-batch", "optimizer-state"),
                               _slow_back),
    "gradients lead": Fault(("spike",), ("optimizer-state",), _leads),
    "divergence": Fault(("shift",), ("learning-rate",), _stays),
    "nan": Fault(("not-finite", "loss-vanished"), ("code",), _nan),
    "loss scale collapses": Fault(("scale-collapse", "frozen"), ("fp16-range",), _scale,
                                  styles=("megatron",)),
    "slow divergence": Fault(("slow-divergence",), ("learning-rate",), _slow, slack=90),
    "zero loss": Fault(("loss-zero",), ("masked-labels",), _zero),
    "spikes in turn": Fault(("periodic-spikes",), ("data-order",), _beats, at=260),
    "oscillation": Fault(("oscillation",), ("learning-rate",), _swings, slack=90),
    "a spike soon": Fault(("spike",), ("bad-batch",), _soon, at=40),
    "a little more": Fault(("shift",), ("learning-rate",), _a_little),
    "at the end of warm-up": Fault(("shift",), ("learning-rate",), _after_warmup, at=62, slack=4),
    "a rise to nan": Fault(("not-finite", "loss-vanished"), ("learning-rate",), _rises_to_nan),
    "no warm-up": Fault(("shift",), ("no-warmup",), _full_rate, at=12, slack=4),
    "long swings": Fault(("oscillation",), ("learning-rate",), _long_swings, at=AT - 100,
                         slack=90),
    "wide spikes in turn": Fault(("periodic-spikes",), ("data-order",), _wide_beats, at=291),
    "gradients grow": Fault(("gradient-growth",), ("learning-rate",), _grows, at=AT - 100,
                            slack=120),
}  # fmt: skip


def restarted(seed: int, change: Change) -> list[Row]:
    """Two starts; the second from step 501 on, `change` acts on it. Of even seeds the first had
    gone on beyond its checkpoint."""
    first = rows(seed, steps=500 if seed % 2 else 530)
    second = rows(seed + 1000, change, first=AT + 1, steps=300)
    second[0].loaded = True
    return [*first, *second]


def _lost(row: Row, chance: random.Random) -> None:
    row.loss *= 1 + 0.5 * math.exp(-_after(row) / 30)


def _seen(row: Row, chance: random.Random) -> None:
    row.loss *= 0.85


RESUMED = {
    "state is lost": Fault(("jump-after-resume",), ("lost-state",), _lost),
    "data are repeated": Fault(("drop-after-resume",), ("repeated-data",), _seen),
}


def warm_restarts(step: int) -> float:
    return cosine(step % 250 + 60, 250)


def tailed(seed: int, freedom: float = 5, noise: float = 0.03) -> list[Row]:
    """Noise of Student's distribution: small batches have it."""
    chance = random.Random(seed)

    def far(row: Row, _: random.Random) -> None:
        spread = math.sqrt(chance.gammavariate(freedom / 2, 2) / freedom)
        row.loss *= math.exp(noise * chance.gauss(0, 1) / spread)

    return rows(seed, far, noise=0.0)


def epochs(seed: int) -> list[Row]:
    """Tuned for three: a step down at each, gradients that grow."""

    def change(row: Row, chance: random.Random) -> None:
        epoch = row.step // 270
        row.loss = (1.3, 0.9, 0.5)[epoch] * chance.lognormvariate(0, 0.18)
        row.norm = (1.2, 1.6, 2.3)[epoch] * chance.lognormvariate(0, 0.25)

    return rows(seed, change)


def preferred(seed: int) -> list[Row]:
    """A loss of preferences falls to little, with noise in proportion; printed with few digits."""

    def change(row: Row, chance: random.Random) -> None:
        left = math.exp(-row.step / 100)
        row.loss = round((0.05 + 0.64 * left) * chance.lognormvariate(0, 0.6 - 0.5 * left), 4)

    return rows(seed, change)


def learned_away(seed: int) -> list[Row]:
    """Down to what is printed as 0."""

    def change(row: Row, chance: random.Random) -> None:
        row.loss = round(0.7 * math.exp(-row.step / 60) * chance.lognormvariate(0, 0.5), 4)
        row.norm = math.exp(-row.step / 80)

    return rows(seed, change)


def rewarded(seed: int) -> list[Row]:
    """Of reinforcement learning: 0 at first, then of either sign."""

    def change(row: Row, chance: random.Random) -> None:
        row.loss = 0.0 if row.step < 40 else round(chance.gauss(0.002, 0.01), 4)
        row.more = {"reward": chance.random(), "kl": 0.0005 * row.step}

    return rows(seed, change)


def ramped(seed: int) -> list[Row]:
    """Batches that grow: less noise from stage to stage."""

    def change(row: Row, chance: random.Random) -> None:
        row.loss *= chance.lognormvariate(0, 0.06 / math.sqrt(1 + row.step // 100))

    return rows(seed, change, noise=0.0)


def started_often(seed: int) -> list[Row]:
    """Six starts, each from some steps before the end of the one before."""
    chance, first, told = random.Random(seed), 1, list[Row]()
    for number in range(6):
        steps = chance.randrange(100, 200)
        part = rows(10 * seed + number, first=first, steps=steps, noise=0.04)
        part[0].loaded = number > 0
        told += part
        first += steps - chance.randrange(5, 60)
    return told


def raised_again(seed: int) -> list[Row]:
    """Warm restarts of the rate, each of which costs a tenth for a while."""

    def change(row: Row, chance: random.Random) -> None:
        row.loss *= 1 + 0.1 * row.rate / 3e-4

    return rows(seed, change, rate=warm_restarts)


#: Healthy runs: how they are drawn.
HEALTHY: dict[str, Callable[[int], list[Row]]] = {
    "noise of 0.5 %": lambda seed: rows(seed, noise=0.005),
    "noise of 2 %": lambda seed: rows(seed),
    "noise of 5 %": lambda seed: rows(seed, noise=0.05),
    "noise of 20 %": lambda seed: rows(seed, noise=0.2),
    "noise that lasts": lambda seed: rows(seed, noise=0.03, correlated=0.9),
    "from the middle": lambda seed: rows(seed, first=20_000),
    "a line in ten": lambda seed: rows(seed, first=10, steps=8000, every=10),
    "constant rate": lambda seed: rows(seed, rate=lambda step: min(3e-4, 3e-6 * step)),
    "warm restarts of the rate": lambda seed: rows(seed, rate=warm_restarts),
    "a restart": lambda seed: restarted(seed, lambda row, chance: None),
    "search for the scale": lambda seed: rows(seed, _searches),
    "noise with tails": tailed,
    "noise that lasts long": lambda seed: rows(seed, noise=0.03, correlated=0.99, steps=2000),
    "epochs of tuning": epochs,
    "preferences": preferred,
    "learned away": learned_away,
    "rewards": rewarded,
    "batches that grow": ramped,
    "many restarts": started_often,
    "a rate raised again": raised_again,
    "thirty lines": lambda seed: rows(seed, steps=30, noise=0.05),
    "flat at the end": lambda seed: rows(seed, first=500_000, noise=0.01),
}


def _searches(row: Row, chance: random.Random) -> None:
    """Sixteen halvings from 2**32, then one now and then, and up again."""
    row.scale = 2.0 ** (32 - min(16, row.step))
    if row.step > 16:
        row.scale = 65536.0 / (2 if row.step % 230 < 60 else 1)
    row.skipped = int(row.step <= 16 or row.step % 230 == 0)
