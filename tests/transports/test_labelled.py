"""What srun makes of the tasks' lines, undone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from preflight.transports.slurm.labelled import PIECE_BYTES, Labelled


def _labelled(task: int, said: bytes) -> bytes:
    """As srun 22.05 prints it: pieces of a line of which each gets a label and a newline."""
    out = b""
    for line in _lines(said):
        while len(line) > PIECE_BYTES:
            out += b"%2d: %s\n" % (task, line[:PIECE_BYTES])
            line = line[PIECE_BYTES:]
        out += b"%2d: %s" % (task, line)
    return out


def _lines(said: bytes) -> list[bytes]:
    return [line + b"\n" for line in said.split(b"\n")[:-1]]


def _parted(data: bytes, chunk: int) -> dict[int | None, bytes]:
    labelled, found = Labelled(), dict[int | None, bytes]()
    for at in range(0, len(data), chunk):
        for task, said in labelled.feed(data[at : at + chunk]):
            found[task] = found.get(task, b"") + said
    return found


_LINE = st.one_of(
    st.binary(max_size=40),
    st.integers(1020, 1030).map(lambda size: b"x" * size),
    st.integers(2040, 2052).map(lambda size: b"y" * size),
    st.sampled_from([b"", b"0: ", b" 3: x", b"srun: error: n2: task 1: Killed", b"\r"]),
).map(lambda line: line.replace(b"\n", b""))


@settings(max_examples=200, deadline=None)
@given(st.lists(_LINE, max_size=8), st.lists(_LINE, max_size=8), st.integers(1, 3000))
def test_each_task_has_its_own_bytes_whatever_the_chunks(
    first: list[bytes], second: list[bytes], chunk: int
) -> None:
    said = {task: b"".join(line + b"\n" for line in lines)
            for task, lines in ((1, first), (12, second)) if lines}  # fmt: skip
    pieces = [_labelled(task, text) for task, text in said.items()]
    assert _parted(b"".join(pieces), chunk) == said


def test_lines_of_srun_are_nobodys() -> None:
    text = b"0: a\nsrun: error: n2: task 1: Killed\n0: b\n"
    assert _parted(text, 100) == {0: b"a\nb\n", None: b"srun: error: n2: task 1: Killed\n"}


def test_a_line_that_has_not_ended_waits() -> None:
    labelled = Labelled()
    assert list(labelled.feed(b"0: a\n0: b")) == [(0, b"a\n")]
    assert list(labelled.feed(b"c\n")) == [(0, b"bc\n")]
