"""Whom a rank waits for while it waits for data: where its loader's workers are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from preflight.diagnosis.step_time.live_stacks import own_frame
from preflight.facts.hangs import Stack
from preflight.facts.process import HostLook, ProcessLook
from preflight.model import Missing


class Work(Struct, frozen=True):
    """A kind of work of a loader: what stands in a frame or in the line that is run, and what helps
    against it."""

    name: str
    marks: tuple[str, ...]
    fix: str


#: The first row that fits.
_WORK = (
    Work("reads over the network", ("/socket.py", "/ssl.py", "/urllib3/", "/botocore/",
         "/requests/", "/aiohttp/", "/fsspec/"),
         "larger objects and more of them under way at once; a copy on local disks"),
    Work("asks a Manager's process", ("/multiprocessing/managers.py",),
         "no Manager().dict() in a dataset: each access is a message; arrays or shared memory"),
    Work("unpacks", ("/gzip.py", "/zipfile.py", "/tarfile.py", "/lzma.py", "/bz2.py", "/zstandard/",
         "zlib.", "gzip.", "bz2.", "lzma."),
         "unpack once, before the run, or use zstd or lz4 at a low level"),
    Work("tokenizes", ("/tokenization_", "/tokenizers/", "/tiktoken/", "/sentencepiece/",
         "tokenizer(", ".tokenize(", ".encode("),
         "tokenize once, before the run; the workers then only read"),
    Work("decodes pictures", ("/PIL/", "/cv2/", "/torchvision/", "/albumentations/", "Image.open(",
         "cv2."),
         "smaller pictures, made once before the run; a faster decoder (libjpeg-turbo, nvJPEG)"),
    Work("unpickles", ("/pickle.py", "/multiprocessing/reduction.py", "pickle.load", "pickle.dump"),
         "samples in arrays or files, not in lists of Python objects: those are pickled again and "
         "again"),
    Work("waits for a lock", ("/threading.py", "/filelock/", ".acquire(", "/h5py/"),
         "no lock that workers share: a file handle of its own for each, opened in the worker"),
    Work("reads files", ("open(", ".read(", ".readline(", "np.load(", "torch.load(", "memmap("),
         "preflight io-bench --dir DIR tells what the storage gives; fewer and larger files, a "
         "local copy"),
)  # fmt: skip
_QUEUE = "/torch/utils/data/_utils/worker.py"
_FETCH = "/torch/utils/data/_utils/fetch.py"
#: Share of samples from which workers are called idle, and fewest samples.
_IDLE, _LEAST = 0.7, 8


class Culprit(Struct, frozen=True):
    """What is told of the loader, what helps, and the line of a stack."""

    text: str
    fix: tuple[str, ...] = ()
    line: int = 0
    frame: str = ""


def culprit(rank: ProcessLook, host: HostLook, *, inline: bool) -> Culprit | None:
    """None where too little was seen. `inline`: the rank loads data itself."""
    workers = [rank] if inline else [
        one for one in host.processes if one.role == "worker" and one.parent == rank.pid
    ]  # fmt: skip
    stacks = [
        stack for one in workers if not isinstance(one.stacks, Missing) for stack in one.stacks
        if stack.main and stack.frames and (not inline or _fetches(stack))
    ]  # fmt: skip
    if len(stacks) < _LEAST:
        return None
    busy = [one for one in stacks if not _waits_for_work(one)]
    who = "it" if inline else f"its {len(workers)} workers" if len(workers) > 1 else "its worker"
    idle = 1 - len(busy) / len(stacks)
    if idle >= _IDLE:
        return Culprit(
            f"{who} had nothing to do in {100 * idle:.0f} % of {len(stacks)} samples: what "
            "they made is held up on its way (pin_memory, the queue)"
        )
    return _at(busy, len(stacks), who)


def _at(busy: Sequence[Stack], samples: int, who: str) -> Culprit:
    frame, times = Counter(own_frame(one) for one in busy).most_common(1)[0]
    there = [one for one in busy if own_frame(one) == frame]
    code = Counter(one.code for one in there if one.code and one.frames[0] == frame).most_common(1)
    kinds = Counter(kind.name for one in busy if (kind := _work(one)) is not None)
    name, often = kinds.most_common(1)[0] if kinds else ("", 0)
    kind = next((one for one in _WORK if one.name == name and 2 * often >= len(busy)), None)
    said = f" ({kind.name})" if kind else ""
    run = f": {code[0][0]}" if code else ""
    share = f"in {100 * times / samples:.0f} % of {samples} samples"
    text = f"{who} {'are' if who.endswith('s') else 'is'} at {frame}{run}{said} {share}"
    return Culprit(text, (kind.fix,) if kind else (), there[0].line, frame)


def _fetches(stack: Stack) -> bool:
    return any(_FETCH in frame for frame in stack.frames)


def _waits_for_work(stack: Stack) -> bool:
    """In the worker's own loop, and fetching nothing."""
    return any(_QUEUE in frame for frame in stack.frames) and not _fetches(stack)


def _work(stack: Stack) -> Work | None:
    """By the frames below the loader's own, and the line that is run."""
    inner = []
    for frame in stack.frames:
        if _FETCH in frame:
            break
        inner.append(frame)
    return next((one for one in _WORK
                 if any(mark in text for mark in one.marks for text in (stack.code, *inner))),
                None)  # fmt: skip
