"""What --sweep of nccl-bench asks for: a variable, and the values that are held side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence

from preflight.errors import UsageError

#: The word for a variable that is not set; an empty value says the same.
UNSET = "default"
#: Those that processes read when they begin to talk.
_OPEN = re.compile(
    r"(NCCL|GLOO|TORCH_NCCL|TORCH_GLOO|UCX)_[A-Z0-9_]{1,64}|OMP_NUM_THREADS|"
    r"CUDA_DEVICE_MAX_CONNECTIONS"
)
#: What would break the run itself, or what it tells.
_REFUSED = {
    r"NCCL_DEBUG.*": "what NCCL prints would stand among the answers of the ranks",
    r"NCCL_COMM_ID": "it says where ranks meet, which the run itself does",
    r"NCCL_\w*DUMP\w*|TORCH_NCCL_\w*(?:DUMP|DEBUG_INFO)\w*": "it would write files on the hosts",
    r"MASTER_(?:ADDR|PORT)|RANK|WORLD_SIZE|LOCAL_\w+": "the run itself sets it for each rank",
    r"LD_\w+|PYTHON\w*|PATH|HOME": "Python would load other code, or none",
    r"CUDA_VISIBLE_DEVICES": "each rank has its GPU by number: --ranks says how many",
}  # fmt: skip
_EARLY = re.compile(r"(OMP|MKL|KMP|TORCH|CUDA)_\w+")
_OF_GPUS = re.compile(r"(TORCH_)?NCCL_|CUDA_")
_VALUE = re.compile(r"[\x21-\x7e]{1,200}")
_MOST_VALUES, _MOST_VARIABLES = 8, 8
_EXAMPLE = "--sweep NCCL_ALGO=Ring,Tree"


def settings_of(asked: Sequence[str]) -> list[list[str]]:
    """Each variable with its values, "" for one that is not set first: it is always among them.
    Raises UsageError.

    Values stand between commas; where there is a semicolon, between semicolons, so that a value may
    hold commas: `NCCL_IB_HCA=mlx5_0,mlx5_1;mlx5_2`.
    """
    found: dict[str, list[str]] = {}
    for one in asked:
        name, equals, text = one.partition("=")
        _hold_name(name)
        if name in found:
            raise UsageError(f"--sweep {name} is there twice", "all values of it behind one `=`")
        found[name] = _values(name, text if equals else "")
    if len(found) > _MOST_VARIABLES:
        raise UsageError(f"--sweep of {len(found)} variables", f"{_MOST_VARIABLES} at most")
    return [[name, *values] for name, values in found.items()]


def hold_sweep(sweep: Sequence[Sequence[str]], *, on_gpus: bool) -> None:
    """Refuse what nobody reads there: on processors gloo talks, and not NCCL."""
    unread = [name for name, *_ in sweep if _OF_GPUS.match(name)]
    if unread and not on_gpus:
        raise UsageError(
            f"--sweep {unread[0]}: on processors ranks talk by gloo, which does not read it",
            "on hosts with GPUs; on processors --sweep OMP_NUM_THREADS=1,2",
        )


def _hold_name(name: str) -> None:
    why = next((why for one, why in _REFUSED.items() if re.fullmatch(one, name)), "")
    if not why and _EARLY.fullmatch(name) and not _OPEN.fullmatch(name):
        why = "it is read when torch is loaded, and ranks are forked after that"
    if why:
        raise UsageError(f"--sweep {name}: {why}", _EXAMPLE)
    if not _OPEN.fullmatch(name):
        raise UsageError(
            f"--sweep {name!r} is no variable that ranks read when they begin to talk",
            f"NCCL_*, GLOO_*, TORCH_NCCL_*, UCX_* and the like: {_EXAMPLE}",
        )


def _values(name: str, text: str) -> list[str]:
    told = [one.strip() for one in text.split(";" if ";" in text else ",")]
    values = [one for one in dict.fromkeys(told) if one not in ("", UNSET)]
    if not values:
        raise UsageError(f"--sweep {name} names no value", f"--sweep {name}=VALUE,VALUE")
    wrong = next((one for one in values if not _VALUE.fullmatch(one)), None)
    if wrong is not None:
        raise UsageError(f"--sweep {name}: {wrong[:60]!r} is no value: printable, no spaces, 200 "
                         "characters at most", _EXAMPLE)  # fmt: skip
    if name == "OMP_NUM_THREADS" and not all(re.fullmatch(r"[1-9]\d{0,3}", one) for one in values):
        raise UsageError(f"--sweep {name} takes whole numbers", f"--sweep {name}=1,2")
    if len(values) > _MOST_VALUES:
        raise UsageError(f"--sweep {name} has {len(values)} values", f"{_MOST_VALUES} at most")
    return ["", *values]
