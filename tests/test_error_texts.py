"""Error texts as programs print them -> the cause; the root comes before what follows from it."""

from __future__ import annotations

import re
import time

import pytest

from preflight import error_texts, runbooks
from preflight.error_texts import find
from tests.conftest import sample

#: How a row begins -> what the CUDA runtime (cudaGetErrorString) and NCCL print, and what only
#: looks like it.
CUDA_AND_NCCL = {
    "CUDA-capable device(s) is/are busy": [
        "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
        "CUDA-capable device(s) is/are busy or unavailable",
        "exclusive-thread device already in use by a different thread",
    ],
    "uncorrectable NVLink": [
        "CUDA error: uncorrectable NVLink error detected during the execution",
    ],
    "invalid access of peer GPU memory": [
        "CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error",
    ],
    "hardware stack error": ["CUDA error: hardware stack error"],
    "CUDA error: unspecified launch": [
        "CUDA error: invalid program counter",
        "CUDA error: operation not supported on global/shared address space",
    ],
    "the MPS server": [
        "CUDA error: MPS client failed to connect to the MPS control daemon or the MPS server",
        "the remote procedural call between the MPS server and the MPS client failed",
        "CUDA error: MPS server is not ready to accept new MPS client requests",
        "the hardware resources required to create MPS client have been exhausted",
        "the hardware resources required to support device connections have been exhausted",
        "Error 806: mps",
    ],
    "peer access between": [
        "CUDA error: peer access is not supported between these two devices",
        "CUDA error: peer mapping resources exhausted",
    ],
    "a CUDA call that": [
        "CUDA error: invalid configuration argument",
        "CUDA error: too many resources requested for launch",
        "CUDA error: invalid argument",
        "CUDA error: invalid resource handle",
        "RuntimeError: CUDA error: part or all of the requested memory range is already mapped",
    ],
    "a call that is not allowed": [
        "CUDA error: operation not permitted when stream is capturing",
        "CUDA error: operation failed due to a previous error during capture",
    ],
    "the CUDA context": ["CUDA error: driver shutting down", "context is destroyed"],
    "CUDA error: operation not supp": [
        "CUDA error: operation not supported",
        "CUDA error: OS call failed or operation not supported on this OS",
        "NCCL WARN Cuda failure 801 'operation not supported'",
    ],
    "no kernel image": ["CUDA error: invalid device function", "named symbol not found"],
    "the provided PTX": ["CUDA error: PTX JIT compiler library not found"],
    "driver version is insuff": ["API call is not supported in the installed CUDA driver"],
    "CUDA driver is a stub": ["CUDA error: CUDA driver is a stub library"],
    "the virtual GPU": ["device doesn't have valid Grid license"],
    "CUDA out of memory": ["NCCL WARN Cuda failure 2 'out of memory'"],
    "NCCL cannot reach a peer": [
        "NCCL WARN socketStartConnect: Connect to 10.0.0.2<41233> failed : Connection refused",
        "misc/socket.cc:40 NCCL WARN Call to connect returned Connection timed out",
    ],
    "NCCL finds no network": ["NCCL WARN Bootstrap : no socket interface found"],
    "NCCL has too little": [
        "NCCL WARN Error while creating shared memory segment /dev/shm/nccl-4hKq2m (size 9637888)",
    ],
    "ncclInvalidUsage": ["ncclInvalidArgument: Invalid value for an argument."],
    "Bus error (SIGBUS)": [
        "Bus error",
        "Bus error (core dumped)",
        "run.sh: line 3: 24211 Bus error               python3 train.py",
        "Fatal Python error: Bus error",
    ],
    "ranks cannot reach the store": [
        'torch/distributed/rendezvous.py", line 189, in _create_c10d_store\n    return TCPStore(\n'
        "RuntimeError: Connection refused",
        "[c10d] The client socket has failed to connect to [node1]:29500 (errno: 111 - Connection "
        "refused).",
        "RendezvousConnectionError: The connection to the C10d store has failed.",
        "[c10d] The IPv4 network addresses of (node1, 29500) cannot be retrieved (gai error: -2)",
    ],
    "Connection refused, or a name": [
        "RuntimeError: Connection refused",
        'psycopg2.OperationalError: connection to server at "db" (10.0.0.9), port 5432 failed: '
        "Connection refused",
        "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection "
        "refused.",
        "HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded (Caused by "
        "NewConnectionError: Failed to establish a new connection: [Errno 111] Connection refused)",
        "Temporary failure in name resolution",
    ],
}
#: What is printed -> how the row that must be told first begins.
TEXTS = [
    ("RuntimeError: CUDA error: device-side assert triggered", "CUDA error: device-side assert"),
    (
        "../aten/src/ATen/native/cuda/Indexing.cu:1146: indexSelectLargeIndex: block: "
        "[3,0,0], thread: "
        "[0,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
        "CUDA error: device-side assert",
    ),
    (
        "nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0] Assertion `t >= 0 && t < "
        "n_classes` "
        "failed.\nRuntimeError: CUDA error: device-side assert triggered",
        "CUDA error: device-side assert",
    ),
    (
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        "CUDA error: an illegal memory",
    ),
    ("CUDA error: unspecified launch failure", "CUDA error: unspecified launch"),
    ("what():  CUDA error: unknown error", "CUDA error: unknown error"),
    ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "uncorrectable ECC"),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 79.15 GiB of which 1.2 GiB is free.",
        "CUDA out of memory",
    ),
    ("RuntimeError: CUDA error: out of memory", "CUDA out of memory"),
    ("slurmstepd: error: Detected 1 oom_kill event in StepId=12.0", "host memory ran out"),
    ("OSError: [Errno 12] Cannot allocate memory", "host memory ran out"),
    ("Out of memory: Killed process 4242 (python3) total-vm:1kB", "host memory ran out"),
    (
        "RuntimeError: DataLoader worker (pid 30882) is killed by signal: Bus error. It "
        "is possible "
        "that dataloader's workers are out of shared memory.",
        "DataLoader worker is killed by signal Bus error",
    ),
    (
        "RuntimeError: DataLoader worker (pid(s) 123, 124) exited unexpectedly",
        "DataLoader worker is killed or exited",
    ),
    (
        "RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed. ",
        "DataLoader worker is killed or exited",
    ),
    ("Error 802: system not yet initialized", "system not yet initialized"),
    ("CUDA initialization: Unexpected error: system not yet initialized", "system not yet"),
    ("RuntimeError: No CUDA GPUs are available", "no CUDA-capable device"),
    ("cudaErrorNoDevice: no CUDA-capable device is detected", "no CUDA-capable device"),
    ("CUDA error: invalid device ordinal", "no CUDA-capable device"),
    ("CUDA driver version is insufficient for CUDA runtime version", "driver version is insuff"),
    (
        "The NVIDIA driver on your system is too old (found version 11040)",
        "driver version is insufficient",
    ),
    ("Error 804: forward compatibility was attempted on non supported HW", "forward compat"),
    (
        "CUDA error: no kernel image is available for execution on the device",
        "no kernel image is available",
    ),
    ("the provided PTX was compiled with an unsupported toolchain.", "the provided PTX"),
    ("all CUDA-capable devices are busy or unavailable", "CUDA-capable device(s) is/are busy"),
    (
        "Error 803: system has unsupported display driver / cuda driver combination",
        "unsupported display driver",
    ),
    ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "unsupported display driver"),
    ("cudaErrorSystemDriverMismatch (803)", "unsupported display driver"),
    ("NCCL WARN Mismatched NCCL version detected : rank 8 has version 22102", "Mismatched NCCL"),
    (
        "ImportError: /opt/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommWindowRegister",
        "undefined symbol: nccl",
    ),
    (
        "ImportError: /opt/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: "
        "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "undefined symbol: _ZN3c10",
    ),
    (
        "A module that was compiled using NumPy 1.x cannot be run in NumPy 2.0.1 as it may crash.",
        "compiled using NumPy 1.x",
    ),
    (
        "OSError: libcudnn_ops_infer.so.8: cannot open shared object file: No such file",
        "libcudnn.so.8",
    ),
    ("Failed to initialize NVML: Driver/library version mismatch", "Failed to initialize NVML"),
    (
        "RuntimeError: NCCL error in: ProcessGroupNCCL.cpp:1269, unhandled system error, NCCL "
        "version 2.14.3",
        "NCCL error: unhandled system",
    ),
    (
        "RuntimeError: NCCL error in: ../torch/lib/c10d/ProcessGroupNCCL.cpp:825, "
        "unhandled cuda error",
        "NCCL error: unhandled cuda",
    ),
    (
        "ncclRemoteError: A call failed possibly due to a network error or a remote "
        "process exiting "
        "prematurely.",
        "NCCL error: remote process",
    ),
    ("ncclInternalError: Internal check failed.", "ncclInternalError"),
    (
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library. Duplicate GPU "
        "detected : rank 1 and rank 0 both on CUDA device 1a000",
        "ncclInvalidUsage",
    ),
    (
        "[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1204, OpType="
        "ALLREDUCE, Timeout(ms)=600000) ran for 600021 milliseconds before timing out.",
        "Watchdog caught collective",
    ),
    (
        "[0] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via "
        "c10d key-value "
        "store by key '0', but store->get('0') got error: Connection reset by peer",
        "Connection reset or closed",
    ),
    (
        "torch.distributed.DistNetworkError: The client socket has timed out after 600s "
        "while trying "
        "to connect to (10.0.0.1, 29500).",
        "ranks cannot reach the store",
    ),
    (
        "The server socket has failed to listen on any local network address. port: 29500, "
        "useIpv6: 0, code: -98, name: EADDRINUSE, message: address already in use",
        "Address already in use",
    ),
    (
        "NET/IB : Got completion from peer 10.0.0.2<33092> with error 12, opcode 0, len 0, vendor "
        "err 129 (Recv)",
        "NET/IB completion with error 12",
    ),
    (
        "NET/IB: Got completion from peer 10.0.0.2<43418> with status=12 opcode=0 len=0 "
        "vendor err 129",
        "NET/IB completion with error 12",
    ),
    (
        "NET/IB : Got completion from peer 10.0.0.2<4> with error 5, opcode 1, len 0, "
        "vendor err 244",
        "NET/IB completion with error 4, 5",
    ),
    ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
     "CUBLAS_STATUS_ALLOC_FAILED"),
    ("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
     "CUBLAS_STATUS_ALLOC_FAILED"),
    ("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx(...)`",
     "CUBLAS_STATUS_EXECUTION_FAILED"),
    ("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED", "cuDNN error"),
    ("RuntimeError: cuDNN error: CUDNN_STATUS_INTERNAL_ERROR", "cuDNN error"),
    ("Call to ibv_reg_mr failed with error Cannot allocate memory", "ibv_reg_mr failed"),
    ("OSError: [Errno 24] Too many open files: '/data/x'", "Too many open files"),
    ("OSError: [Errno 28] No space left on device", "No space left"),
    ("OSError: [Errno 116] Stale file handle", "Stale file handle"),
    ("NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.", "GPU has fallen off"),
    (
        "RuntimeError: Expected all tensors to be on the same device, but found at least "
        "two devices",
        "Expected all tensors",
    ),
    ("mat1 and mat2 shapes cannot be multiplied (4x128 and 64x10)", "shapes or sizes"),
    (
        "size mismatch for lm_head.weight: copying a param with shape torch.Size([32000, 4096])",
        "shapes or sizes",
    ),
    ("RuntimeError: Error(s) in loading state_dict for LlamaForCausalLM:", "missing or unexpected"),
    (
        "PytorchStreamReader failed reading zip archive: failed finding central directory",
        "the checkpoint file is damaged",
    ),
    ("{'loss': nan, 'learning_rate': 1e-5}", "loss is nan"),
    ("loss is NaN, stopping training", "loss is nan"),
    (
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0",
        "gradient overflow",
    ),
    ("[deepspeed] OVERFLOW! Skipping step. Attempted loss scale: 65536", "gradient overflow"),
    ("Current loss scale already at minimum - cannot decrease scale anymore", "Current loss scale"),
    ("Fatal Python error: Segmentation fault", "Segmentation fault"),
    ("Cannot re-initialize CUDA in forked subprocess.", "Cannot re-initialize CUDA"),
    *[
        (text, row)
        for row, texts in CUDA_AND_NCCL.items()
        for text in texts
    ],
    (
        "RuntimeError: Expected to have finished reduction in the prior iteration before "
        "starting a "
        "new one.",
        "the model has parameters",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "row"), TEXTS)
def test_the_cause_of_an_error_text(text: str, row: str) -> None:
    hits = find(text)
    assert hits
    assert hits[0].row.text.startswith(row), [hit.row.text for hit in hits]


def test_every_row_was_seen_to_be_found() -> None:
    found = {hit.row.text for text, _ in TEXTS for hit in find(text)}
    seldom = {
        "the launch timed out and was terminated", "Read-only file system",
        "torch.compile fell back or recompiles",
        "a process of the job ended (ChildFailedError, SIGTERM, SIGABRT)",
    }  # fmt: skip
    assert {row.text for row in error_texts.rows()} - found == seldom


def test_the_root_comes_before_its_echoes() -> None:
    text = (
        "[rank1]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)\n"
        "[rank2]: ncclRemoteError: A call failed\n"
        "[rank5]: RuntimeError: CUDA error: device-side assert triggered\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\n"
    )
    told = [(hit.row.stage, hit.line) for hit in find(text)]
    assert told == [("cause", 3), ("echo", 1), ("echo", 2), ("echo", 4)]


def test_hardware_that_the_log_shows_comes_first() -> None:
    text = (
        "CUDA error: unspecified launch failure\nCUDA error: uncorrectable ECC error encountered\n"
    )
    assert [hit.row.stage for hit in find(text)] == ["hardware", "cause"]


def test_the_longer_text_counts_where_two_overlap() -> None:
    (hit,) = find("Call to ibv_reg_mr failed with error Cannot allocate memory")
    assert hit.row.text.startswith("ibv_reg_mr")


def test_advice_in_a_message_is_no_error() -> None:
    advice = (
        "CUDA kernel errors might be asynchronously reported at some other API call.\n"
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
        "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
    )
    assert find(advice) == []


@pytest.mark.parametrize(
    "name",
    [
        "training_log/megatron_ds_2node_short_ok.log",
        "training_log/fsdp_llama3_8b_p5_first_batches.log",
        "training_log/torchtitan_h100_1gpu_short_excerpt.log",
        "nccl_debug/v100_x4_1node_omnipath.log",
    ],
)  # fmt: skip
def test_a_healthy_log_has_no_error_text(name: str) -> None:
    assert [hit.row.text for hit in find(sample(name))] == []


def test_no_row_blames_hardware_for_what_software_does() -> None:
    hardware = [row.text for row in error_texts.rows() if row.stage == "hardware"]
    assert hardware == [
        "uncorrectable ECC error encountered", "GPU has fallen off the bus",
        "uncorrectable NVLink error",
    ]  # fmt: skip


def test_the_table_is_in_order() -> None:
    rows = error_texts.rows()
    assert len({row.text for row in rows}) == len(rows)
    for row in rows:
        assert row.next
        assert not row.runbook or row.runbook in runbooks.load(), row.text
        assert row.stage in ("hardware", "cause", "echo")
        for pattern in row.patterns:
            assert re.sub(r"\\.", "", pattern) == re.sub(r"\\.", "", pattern).lower(), pattern
            # Unbounded repeats are what makes a search slow.
            assert not re.search(r"(?<!\\)[*+](?!\?)", re.sub(r"\[[^\]]*\]", "", pattern)), pattern
        assert "MEMORY,COMPUTE" not in " ".join(row.next)


@pytest.mark.parametrize("unit", ["NCCL error ", "Assertion `index ", "Got completion ", " ", "x"])
def test_a_megabyte_is_searched_in_a_second(unit: str) -> None:
    text = unit * (1_000_000 // len(unit))
    assert any(_seconds(text) < 1 for _ in range(3))  # others work beside


def _seconds(text: str) -> float:
    begun = time.process_time()
    find(text)
    return time.process_time() - begun
