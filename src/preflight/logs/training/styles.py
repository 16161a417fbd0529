"""The styles of step lines: a row each. Order counts: the first that a line tells has it."""

from __future__ import annotations

import re

from msgspec import Struct, field

from preflight.facts.series import Way
from preflight.logs.training.names import Meant

NUMBER = r"[-+]?(?:\d+(?:,\d{3})*\.?\d*(?:[eE][-+]?\d+)?|\.\d+|nan|NaN|inf|Infinity|-inf)"
_UNIT = r"(?P<unit>ms|us|sec|s|GiB|MiB|GB|MB|[KMBT])?(?![A-Za-z\d])"
#: A key begins where a word does, and is not long: looking for it takes no more than one pass.
_WORDS = r"(?<![\w/.@-])[A-Za-z_][\w/.@-]{0,80}"
#: How keys and values are written.
GRAMMARS: dict[str, re.Pattern[str]] = {
    # key: value | key: value
    "bars": re.compile(
        rf"(?:^|[|\]])\s*(?P<key>[A-Za-z][^|:\]]{{0,80}}?)\s*:\s*(?P<value>{NUMBER}){_UNIT}"
    ),
    # 'key': value, with quotes or numpy's names around values
    "dict": re.compile(
        rf"['\"](?P<key>[^'\"]{{1,80}})['\"]\s*:\s*(?:np\.\w+\(|tensor\(|['\"])?(?P<value>{NUMBER})"
        r"(?P<unit>(?!))?(?=[\s,}'\")\]]|$)"
    ),
    # key=value, key: value, key:value
    "pairs": re.compile(
        rf"(?P<key>{_WORDS}(?:\([^)\s]*\))?)\s*[:=]\s*(?:np\.\w+\(|tensor\(|['\"])?"
        rf"(?P<value>{NUMBER}){_UNIT}"
    ),
    # several words: value
    "phrases": re.compile(
        rf"(?P<key>{_WORDS}(?: [\w/()%.@-]{{1,40}}){{0,6}}?)\s*[:=]\s*(?P<value>{NUMBER}){_UNIT}"
    ),
    # key value, key value
    "words": re.compile(rf"(?P<key>{_WORDS}(?: loss)?):?\s+(?P<value>{NUMBER}){_UNIT}"),
    # name .....: (1.0, 2.0)
    "timers": re.compile(rf"(?P<key>\w[\w-]{{0,80}})\s*\.*:\s*(?P<value>{NUMBER})(?P<unit>(?!))?"),
}  # fmt: skip


class Style(Struct, frozen=True):
    """A row.

    `mark`: stands in each of its lines; `tells`: what else does, as a regular expression, in which
    groups `step`, `total` give them, and `at`, where given, where figures begin; `adds`: the line
    belongs to the row of the step before; `own`: keys that mean something else here.
    """

    name: str
    mark: bytes
    tells: re.Pattern[str]
    grammar: str
    adds: bool = False
    own: dict[str, Meant] = field(default_factory=dict)
    ways: dict[str, Way] = field(default_factory=dict)
    loose: bool = False  # the mark stands in other lines too: no sieve goes by it
    form: str = ""  # what needs more than its pairs: range, ranked, bar (has none), tqdm (is one)


def _row(name: str, mark: bytes, tells: str, grammar: str, **others: object) -> Style:
    return Style(name, mark, re.compile(tells), grammar, **others)  # type: ignore[arg-type]


_LN2 = 0.6931471805599453
_DS = {
    "fwd": Meant("forward_s", 1e-3), "bwd": Meant("backward_s", 1e-3),
    "step": Meant("optimizer_s", 1e-3), "bwd_inner": Meant("timer/bwd_inner", 1e-3),
    "bwd_allreduce": Meant("timer/bwd_allreduce", 1e-3),
    **{f"{one}_microstep": Meant(f"timer/{one}_microstep", 1e-3)
       for one in ("fwd", "bwd", "bwd_inner", "bwd_allreduce", "step")},
    **{one: Meant(f"timer/{one}", 1e-3)
       for one in ("optimizer_allreduce", "optimizer_gradients", "optimizer_step")},
}  # fmt: skip
_FRACTION = Meant("mfu_percent", 100.0)
_BAR = (
    r"(?<!\d)(?P<step>\d{1,15})/(?P<total>\d{1,15}) \[(?:\d+ days?, )?(?:\d+:)?\d+:\d\d<"
    r"[^,\]]{0,40}, *(?:[\d.]{1,15}|\?)(?:s/it|it/s)"
)
STYLES: tuple[Style, ...] = (
    _row("megatron", b"validation loss at", r"validation loss at iteration (?P<step>\d+)", "bars"),
    _row("nemo", b"global_step",
         r"Training epoch \d+, iteration \d+/\d+.*\bglobal_step: (?P<step>\d+)", "bars"),
    _row("megatron", b"iteration", r"\biteration\s+(?P<step>\d+)/\s*(?P<total>\d+) \|", "bars"),
    _row("nanotron", b"iteration: ", r"\biteration: (?P<step>\d+) / (?P<total>\d+) \|", "bars"),
    _row("deepspeed", b"time (ms)", r"time \(ms\) (?P<at>\|) ", "bars", adds=True, own=_DS),
    _row("deepspeed", b"skipped=", r"step=(?P<step>\d+), skipped=\d+", "pairs",
         ways={"skipped": "sum"}, own={"mom": Meant("")}, form="lr-list"),
    _row("deepspeed", b"RunningAvgSamplesPerSec", r"global_step=(?P<step>\d+), Running", "pairs",
         ways={"RunningAvgSamplesPerSec": "mean-so-far"}, own={"micro_step": Meant("")}),
    _row("deepspeed-pipe", b"iter time (s)", r"steps: (?P<step>\d+) loss: ", "phrases"),
    _row("hf-trainer", b"loss'", r"\{'(?:loss|eval_loss)'", "dict", form="bar"),
    _row("hf-trainer", b"{'", r"\{'(?!train_runtime)[\w/]+': .*'(?:epoch|loss)'", "dict",
         form="bar"),
    _row("llama-factory", b'"current_steps"', r'"current_steps": ?(?P<step>\d+)', "dict",
         ways={"tokens_per_s": "mean-so-far"}, own={"throughput": Meant("tokens_per_s")}),
    _row("ms-swift", b"global_step/max_steps",
         r"['\"]global_step/max_steps['\"]: ?['\"](?P<step>\d+)/(?P<total>\d+)", "dict",
         ways={"step_s": "mean-so-far"}),
    _row("torchtitan", b"step:", r"\bstep: +(?P<step>\d+) .*\bloss: ", "pairs"),
    _row("nanogpt-speedrun", b"step_avg:", r"\bstep:(?P<step>\d+)/(?P<total>\d+) ", "pairs",
         own={"step_avg": Meant("step_s"), "train_time": Meant("elapsed_s")},
         ways={"step_s": "mean-so-far"}),
    _row("verl", b"step:", r"\bstep:(?P<step>\d+) - ", "pairs"),
    _row("nanogpt", b"iter ", r"\biter (?P<step>\d+): (?=loss)", "words",
         own={"time": Meant("step_s")}),
    _row("nanogpt", b"val loss", r"\bstep (?P<step>\d+): (?=train loss)", "words",
         own={"train loss": Meant("train_loss")}),
    _row("fairseq", b"num_updates=", r"\bnum_updates=(?P<step>\d+)", "pairs",
         # Its meters of train_inner begin anew with each line: means over what lies between.
         own={"loss": Meant("loss", _LN2), "epoch": Meant(""), "num_updates": Meant("")}),
    _row("fairseq", b'"num_updates"', r'"num_updates": ?"?(?P<step>\d+)', "dict",
         own={"loss": Meant("loss", _LN2), "train_loss": Meant("loss", _LN2)}),
    _row("aws-fsdp", b"Batch ", r"\bBatch (?P<step>\d+) (?P<at>)Loss: ", "phrases",
         own={"Speed": Meant("samples_per_s")}),
    _row("composer", b"batch=", r"\[(?:epoch=\d+\]\[)?batch=(?P<step>\d+)/(?P<total>\d+)\]",
         "none"),
    _row("olmo-core", b"[step=", r"\[step=(?P<step>\d+)/(?P<total>\d+),epoch=\d+", "none"),
    _row("composer", b": ", r"^\s*(?:Train|Eval) (?=[\w/ -]+: )", "phrases", adds=True,
         loose=True, own={"throughput/device/mfu": _FRACTION}),
    _row("olmo-core", b"=", r"^\s{2,}(?=(?:train|optim|throughput|system|data)/[^=]+=)", "phrases",
         adds=True, loose=True),
    _row("megatron", b": (",
         rf"^.{{0,200}}?\s{{2,}}(?P<at>)[\w-]+ ?\.*: \({NUMBER}, {NUMBER}\)", "timers",
         adds=True, loose=True, form="range"),
    _row("megatron", b"rank", r"^.{0,200}?\s+(?P<at>)rank +\d+: [\d.]+$", "timers", adds=True,
         loose=True, form="ranked"),
    _row("megatron", b"..:",
         r"^.{0,200}?\s{2,}(?P<at>)[\w-]+ ?\.{3,}: [\d.]+$", "timers", adds=True,
         loose=True, form="range"),
    _row("tqdm", b"it/s", _BAR, "pairs", form="tqdm"),
    _row("tqdm", b"s/it", _BAR, "pairs", form="tqdm"),
)  # fmt: skip
#: Where one of these stands, lines follow that belong to it and have no mark of their own.
HEADS = (b"time across ranks (ms)", b"][batch=", b"[batch=", b"[step=")
