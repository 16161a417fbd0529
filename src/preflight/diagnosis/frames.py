"""What a stack says of where a thread is: marks in its frames, "name (file.py:12)".

A mark is a part of a frame; with a `*` in it both parts, in this order.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from preflight.facts.hangs import Stack

SAVES = ("/torch/serialization.py", "/distributed/checkpoint/", "save_checkpoint (", "save_file (",
         "save_pretrained (")  # fmt: skip
LOADERS = ("/torch/utils/data/dataloader.py", "/torch/utils/data/_utils/", "/webdataset/",
           "/nvidia/dali/", "/streaming/base/", "/grain/")  # fmt: skip
COLLECTIVES = ("/distributed_c10d.py", "/distributed/_functional_collectives.py",
               "/deepspeed/comm/", "/horovod/")  # fmt: skip


class Kind(Struct, frozen=True):
    """Where a thread can be. `says`: of a rank."""

    name: str
    says: str
    marks: tuple[str, ...]


_WAITS = "collective"
#: The innermost frame that fits one of these has it. Frames in C are there with --native alone.
_KINDS = (
    Kind("gil", "waits for the interpreter's lock", ("take_gil", "PyEval_RestoreThread",
                                                     "PyGILState_Ensure")),
    Kind("collective", "waits in", (
        *COLLECTIVES, "/torch/distributed/c10d_logger.py", "/torch/distributed/nn/functional.py",
        "/torch/distributed/rendezvous.py", "/pipeline_parallel/p2p_communication.py", "/mpi4py/",
        "/multihost_utils.py", "c10d::", "gloo::", "ncclGroupEnd", "MPI_",
    )),
    Kind("debugger", "stands in a debugger",
         ("/pdb.py", "/bdb.py", "/ipdb/", "/debugpy/", "/pudb/", "/IPython/terminal/")),
    Kind("load", "reads a checkpoint",
         ("load (*/torch/serialization.py", "load_checkpoint (", "from_pretrained (",
          "load_file (")),
    Kind("save", "writes a checkpoint", SAVES),
    Kind("data", "waits in the loader", (*LOADERS, "/datasets/iterable_dataset.py",
                                         "/torchdata/")),
    Kind("compile", "compiles",
         ("/torch/_inductor/compile_fx.py", "/torch/_inductor/codecache.py",
          "/torch/_inductor/async_compile.py", "/torch/_inductor/scheduler.py",
          "/torch/_dynamo/convert_frame.py", "/triton/compiler/")),
    Kind("device", "waits for its device",
         ("synchronize (*/torch/cuda/", "synchronize (*/torch/xpu/", "cudaStreamSynchronize",
          "cudaDeviceSynchronize", "cudaEventSynchronize", "cuStreamSynchronize",
          "cuCtxSynchronize", "_local_scalar_dense", "hipStreamSynchronize",
          "hipDeviceSynchronize")),
    Kind("backward", "is in the backward pass", ("_engine_run_backward (",)),
    Kind("exit", "ends, and waits for what it started",
         ("_exit_function (*/multiprocessing/util.py", "_shutdown (*/threading.py",
          "_python_exit (*/concurrent/futures/")),
)  # fmt: skip
#: Where none of those fits: what many things wait in.
_COMMON = (
    Kind("log", "writes a log", ("/logging/__init__.py", "/wandb/", "/tqdm/", "/tensorboard/",
                                 "/mlflow/", "builtin_print")),
    Kind("process", "waits for another program", ("/subprocess.py",)),
    Kind("network", "waits for the network",
         ("/socket.py", "/ssl.py", "/http/client.py", "/urllib3/", "/requests/", "/botocore/",
          "/s3fs/", "/fsspec/", "/aiohttp/", "/grpc/")),
    Kind("file", "reads or writes a file",
         ("_io_FileIO", "_io__Buffered", "_io_Buffered", "/shutil.py", "/pathlib.py", "/zipfile",
          "/gzip.py", "/tarfile.py", "/h5py/", "/pyarrow/", "/pickle.py", "/json/")),
    Kind("lock", "waits for a lock, a queue or another thread",
         ("/filelock/", "/threading.py", "/queue.py", "/multiprocessing/", "/concurrent/futures/",
          "/asyncio/")),
)  # fmt: skip
_OTHER = Kind("other", "is at", ())
#: A process that is no rank: what it is.
_ROLES = (
    ("worker", ("_worker_loop (",)),
    ("launcher", ("/torch/distributed/elastic/agent/", "/torch/distributed/launcher/",
                  "/torch/distributed/run.py", "/accelerate/commands/launch.py",
                  "/deepspeed/launcher/", "spawn (*/torch/multiprocessing/spawn.py",
                  "join (*/torch/multiprocessing/spawn.py")),
    ("helper", ("/torch/_inductor/compile_worker/", "main (*/multiprocessing/resource_tracker.py",
                "main (*/multiprocessing/forkserver.py", "/wandb/sdk/service",
                "main_loop (*/ray/")),
)  # fmt: skip
_EVALUATES = re.compile(r"(?:\w+\.)*_?(?:run_|do_)?(?:eval\w*|validat\w*|predict|test) \(")
_INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python", "<frozen", "<string>")
_TORCH = ("/torch/", "/numpy/", "/deepspeed/comm/", "/horovod/")
#: Many ranks have the same stack.
_KEPT = 1024
_WRAPPERS = ("wrapper (", "_exception_logger", "_time_logger", "_fn (", "decorate_context (")


class Place(Struct, frozen=True):
    """Where a thread is. `call`: the collective. `site`: the program's own frame that led there;
    `frames`: all of Python, innermost first, as two looks are compared, whichever tool wrote them:
    neither classes nor folders."""

    kind: str
    says: str
    call: str
    site: str
    frames: tuple[str, ...]
    within: str = ""  # the evaluation that led there, where that is another frame

    @property
    def text(self) -> str:
        """In words, for a rank as the subject."""
        says = f"waits in {self.call}" if self.kind == _WAITS else self.says
        at = "" if self.kind == _OTHER.name else " at"
        return f"{says}{at} {self.site}" + (f", within {self.within}" if self.within else "")


def fits(frame: str, marks: Iterable[str]) -> bool:
    """Whether the frame, with a path that begins with a slash, has one of the marks."""
    return any(_fits(frame, mark) for mark in marks)


def _fits(frame: str, mark: str) -> bool:
    first, star, rest = mark.partition("*")
    at = frame.find(first)
    return at >= 0 and (not star or frame.find(rest, at + len(first)) >= 0)


def slashed(frame: str) -> str:
    """py-spy leaves out where packages lie: "get (torch/x.py:1)" as "get (/torch/x.py:1)"."""
    name, bracket, place = frame.rpartition(" (")
    return f"{name} (/{place}" if bracket and place[:1] not in "/<" else frame


def is_python(frame: str) -> bool:
    """Not one of a library in C."""
    place = frame.rpartition(" (")[2]
    return ".py:" in place or place.startswith("<") or place.endswith(".py)")


def _since_fork(frames: Sequence[str]) -> tuple[str, ...]:
    """Without what a process was in when another was forked from it."""
    for at, frame in enumerate(frames):
        if "_bootstrap (" in frame and "multiprocessing/process.py" in frame:
            return tuple(frames[:at])
    return tuple(frames)


def role_of(stack: Stack) -> str:
    """rank, worker, launcher or helper."""
    return _role(stack.frames)


@lru_cache(_KEPT)
def _role(told: tuple[str, ...]) -> str:
    frames = [slashed(one) for one in _since_fork(told)]
    return next((role for role, marks in _ROLES if any(fits(one, marks) for one in frames)), "rank")


def place_of(stack: Stack) -> Place:
    """By the innermost frame that says something; a stack without frames is at "?"."""
    return _place(stack.frames)


@lru_cache(_KEPT)
def _place(whole: tuple[str, ...]) -> Place:
    told = _since_fork(whole) or whole
    frames = [slashed(one) for one in told]
    kind, at = _kind(frames, _KINDS)
    if kind is None:
        kind, at = _kind(frames, _COMMON)
    python = tuple(one for one in told if is_python(one))
    own = [one for one in told if is_own(one)]
    site = own[0] if own else (python or told or ("?",))[0]
    call = _call(frames[at:]) if kind is not None and kind.name == _WAITS else ""
    kind = kind or _OTHER
    within = next((one for one in own if _EVALUATES.match(one)), "")
    return Place(kind.name, kind.says, call, site, tuple(map(_bare, python or told)),
                 "" if within == site else within)  # fmt: skip


def _bare(frame: str) -> str:
    name, _, place = frame.rpartition(" (")
    return f"{name.rpartition('.')[2]} ({place.rpartition('/')[2]}"


def _kind(frames: Sequence[str], kinds: Sequence[Kind]) -> tuple[Kind | None, int]:
    for at, frame in enumerate(frames):
        for kind in kinds:
            if fits(frame, kind.marks):
                return kind, at
    return None, 0


def _call(frames: Sequence[str]) -> str:
    """The collective as the program called it: the outermost frame of those that lie together."""
    marks = next(one.marks for one in _KINDS if one.name == _WAITS)
    name = ""
    for frame in frames:
        if not fits(frame, marks):
            if name or is_python(frame):
                break
        elif is_python(frame) and not frame.startswith(_WRAPPERS):
            name = frame.partition(" (")[0]
    return name or "a collective"


def is_own(frame: str) -> bool:
    """Of the user's program, as far as its path tells: neither of Python's own modules, nor of
    torch, nor installed."""
    if not is_python(frame) or any(mark in frame for mark in _INSTALLED):
        return False
    if fits(slashed(frame), _TORCH):
        return False
    place = frame.rpartition(" (")[2]
    first = place.split("/")[0].partition(".py")[0]
    return place.startswith("/") or first not in sys.stdlib_module_names
