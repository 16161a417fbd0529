"""What of `--slurm-args` cannot be: pure, from their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from preflight.errors import UsageError

#: Short options of srun(1) that take a value, in the same word or in the next.
_WITH_VALUE = frozenset("ABcCdDeFGiJLmMnNopPqrRSttTwWxZ")

#: Options by which srun would start other tasks than one on each node, or bring back what they say
#: in another way than it must come.
_OUTPUT = {
    "o": "output", "e": "error", "i": "input", "l": "label", "u": "unbuffered", "n": "ntasks",
    "Q": "quiet",
}  # fmt: skip
_OUTPUT_LONG = (
    "multi-prog", "pty", "ntasks-per-node", "ntasks-per-core", "ntasks-per-socket",
    "ntasks-per-gpu", "ntasks-per-tres",
)  # fmt: skip
#: Options that say which nodes.
_NODES = {"w": "nodelist", "N": "nodes", "x": "exclude", "F": "nodefile"}
#: Options that say what an allocation has settled.
_ALLOCATION = {
    **_NODES, "p": "partition", "A": "account", "q": "qos", "C": "constraint", "M": "clusters",
}  # fmt: skip
_ALLOCATION_LONG = ("reservation",)


class _Kind(Struct, frozen=True):
    short: str
    long: tuple[str, ...]

    def has(self, option: str) -> bool:
        """`option` is `-o` or `--output`, which srun takes shortened too."""
        if not option.startswith("--"):
            return option[1] in self.short
        name = option[2:]
        return name in self.long or (
            len(name) > 2 and any(one.startswith(name) for one in self.long)
        )


def _kind(short: dict[str, str], more: tuple[str, ...] = ()) -> _Kind:
    return _Kind("".join(short), (*short.values(), *more))


_HOW = _kind(_OUTPUT, _OUTPUT_LONG)
_WHICH = _kind(_NODES)
_SETTLED = _kind(_ALLOCATION, _ALLOCATION_LONG)


def options_of(words: Sequence[str]) -> Iterator[str]:
    """Each option of the words, as `-N` or `--nodes`, without its value."""
    rest = iter(words)
    for word in rest:
        if word.startswith("--"):
            yield word.partition("=")[0]
        elif word.startswith("-"):
            for at, letter in enumerate(word[1:], 1):
                yield f"-{letter}"
                if letter in _WITH_VALUE:
                    if at == len(word) - 1:
                        next(rest, None)
                    break


def without_nodes(words: Sequence[str]) -> tuple[str, ...]:
    """The words without the options that say which nodes, for where the nodes are named."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        option = next(options_of([word]), "")
        if not option or not _WHICH.has(option):
            kept.append(word)
        elif "=" not in word if option.startswith("--") else len(word) == len(option):
            next(rest, None)  # its value
    return tuple(kept)


def hold(words: Sequence[str], job: str, named: bool) -> None:
    """Raises UsageError for an option that srun must not get, or that would do nothing: `job` is
    the allocation that we are in, `named` says whether the nodes are named."""
    for option in options_of(words):
        if _HOW.has(option):
            raise UsageError(
                f"--slurm-args: {option} would change which tasks there are or how their output "
                "comes back, and preflight reads that",
                "leave it out; --save FILE keeps the report",
            )
        if job and _SETTLED.has(option):
            raise UsageError(
                f"--slurm-args: {option} chooses nodes, and this is inside job {job}: "
                "its nodes are asked",
                "leave it out; --hosts 'node[01-02]' narrows; unset SLURM_JOB_ID asks for others",
            )
        if named and _WHICH.has(option):
            raise UsageError(
                f"--slurm-args: {option} chooses nodes, and --hosts names them", "leave one out"
            )
