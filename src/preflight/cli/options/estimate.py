"""Options of an estimate."""

from __future__ import annotations

from preflight.cli.options.option import Option

ESTIMATE = (
    "params", "active_params", "tokens", "gpus", "gpu", "layers", "width", "heads", "vocab",
    "length", "sharding",
    "optimizer", "tokens_per_gpu", "accumulation", "mfu", "peak", "busbw", "write_speed",
    "read_speed", "power", "mtbf", "restart", "interval", "stall", "wait", "price", "price_kwh",
    "price_storage", "price_transfer", "price_requests", "keep", "transfers",
)  # fmt: skip
#: What a run is told to be, where nothing that was recorded tells it.
DIAGNOSE = ("gpu", "gpus", "params")

OPTIONS: dict[str, Option] = {
    "params": Option(str, ("--params",), "Parameters of the model: 7e9, 7B.", "N"),
    "active_params": Option(
        str, ("--active-params",), "Those that a token passes through, in a mixture of experts.",
        "N",
    ),
    "tokens": Option(str, ("--tokens",), "Tokens to train on: 2e12, 2T.", "N"),
    "gpus": Option(int, ("--gpus",), "GPUs of the run.", "N"),
    "gpu": Option(
        str, ("--gpu",), "Their model, as nvidia-smi calls it, where no report tells it.", "NAME"
    ),
    "layers": Option(int, ("--layers",), "Layers of the model, for attention.", "N"),
    "width": Option(int, ("--width",), "Width of the model.", "N"),
    "heads": Option(
        str, ("--heads",), "Heads of attention and the size of one, where both together are not "
        "the width: 64x128.", "HEADSxSIZE",
    ),
    "vocab": Option(
        int, ("--vocab",), "Entries of the vocabulary, where input and output have a table each: "
        "in the input's they are looked up, which takes no FLOP.", "N",
    ),
    "optimizer": Option(
        str, ("--optimizer",), "What the state holds; adamw.",
        "adamw|adamw-8bit|adafactor|sgd|momentum|lion|muon|none",
    ),
    "tokens_per_gpu": Option(
        str, ("--tokens-per-gpu",), "Tokens of one GPU in one pass, for communication.", "N"
    ),
    "mfu": Option(float, ("--mfu",), "MFU, in place of a report of micro-train.", "PERCENT"),
    "peak": Option(
        float, ("--peak",), "Peak of one GPU for --mfu, dense bfloat16; else its datasheet's.",
        "TFLOP/s",
    ),
    "busbw": Option(
        float, ("--busbw",), "Bus bandwidth in GB/s, in place of a report of nccl-bench.", "GB/s"
    ),
    "write_speed": Option(
        str, ("--write-speed",), "Of checkpoints, in place of a report of io-bench: 5GB/s.", "RATE"
    ),
    "read_speed": Option(str, ("--read-speed",), "The same for reading.", "RATE"),
    "power": Option(float, ("--power",), "Of one GPU at work, where no report has it.", "WATTS"),
    "mtbf": Option(
        str, ("--mtbf",), "Time of the whole job from one failure to the next: 2.3d.", "TIME"
    ),
    "restart": Option(str, ("--restart",), "From a failure to the next step, loading too.", "TIME"),
    "interval": Option(
        str, ("--interval",), "Training between two saves; of an estimate else the best.", "TIME"
    ),
    "stall": Option(
        str, ("--stall",), "What a save takes from the steps; else the whole write.", "TIME"
    ),
    "wait": Option(
        float, ("--wait",), "Waiting for machines, retries by hand, as a part of the steps.",
        "PERCENT",
    ),
    "price": Option(float, ("--price",), "Of a GPU-hour, in your money.", "PRICE"),
    "price_kwh": Option(float, ("--price-kwh",), "Of a kWh.", "PRICE"),
    "price_storage": Option(float, ("--price-storage",), "Of a GB (1e9) and month.", "PRICE"),
    "price_transfer": Option(float, ("--price-transfer",), "Of a GB that is read out.", "PRICE"),
    "price_requests": Option(
        float, ("--price-requests",), "Of 1000 requests: one for each 8 MiB saved.", "PRICE"
    ),
    "keep": Option(int, ("--keep",), "Checkpoints that are kept; 2.", "N"),
    "transfers": Option(int, ("--transfers",), "Checkpoints that are read out; 0.", "N"),
}  # fmt: skip
