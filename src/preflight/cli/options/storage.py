"""Options of benches of storage."""

from __future__ import annotations

from preflight.cli.options.option import Option

STORE = (
    "dir", "url", "size", "runtime", "patterns", "loaders", "window", "demand_mbps", "writers",
    "job", "even_if_busy",
)  # fmt: skip
SHARD = ("shard",)
PROJECT = ("model_params", "optimizer", "model_ranks", "interval")

OPTIONS: dict[str, Option] = {
    "dir": Option(
        str, ("--dir",),
        "Where to write and read: a directory of the file system in question. Else one of a local "
        "disk: $TMPDIR, /tmp, /var/tmp, $HOME. What is written is removed.", "DIR",
    ),
    "url": Option(
        str, ("--url",),
        "In place of files: put and get objects in a folder of its own below this URL, of any "
        "store that the host's fsspec knows (s3://, gs://, abfs://, file://); all is removed.",
        "URL",
    ),
    "size": Option(
        str, ("--size",),
        "Bytes of all files at once, else 4G; hosts share them where they share the file system. "
        "Of objects 256M, on each host.",
        "SIZE",
    ),
    "runtime": Option(
        str, ("--runtime",), "Of all jobs together, else 60s, of objects 30s.", "TIME"
    ),
    "patterns": Option(
        str, ("--patterns",),
        "What is measured, else all: fio (jobs of its own), dataloader (workers that read "
        "windows of shards, through read and through maps), small-files (create, list, stat, read, "
        "rename, delete), checkpoint (saves until durable and read back, a restart, a save beside "
        "reading).", "LIST",
    ),
    "loaders": Option(
        int, ("--workers",), "Of dataloader: processes that read, else one for each processor, 8 "
        "at most.", "N",
    ),
    "window": Option(str, ("--window",), "Of dataloader: what is read at once, else 128K.", "SIZE"),
    "demand_mbps": Option(
        float, ("--demand-mbps",),
        "What the loaders of a host need, in 1e6 bytes a second: tokens a second x bytes of a "
        "token x 5, or samples x their size. Below it is a failure, near it a warning; with "
        "--shard it is of decoded bytes, and tells the number of workers.", "N",
    ),
    "writers": Option(
        int, ("--writers",),
        "Of checkpoint: ranks of a host, each with a shard, else one for each GPU, or 4.", "N",
    ),
    "job": Option(
        str, ("--job",),
        "Your own job file of fio in place of the built-in jobs. Its files are made in the "
        "directory: it may name no other, nor a device.", "FILE",
    ),
    "shard": Option(
        str, ("--shard",),
        "Write nothing, and decode this file of your data (gzip, zstd, lz4, xz, bzip2): MB/s of a "
        "core, and whether it is whole.", "FILE",
    ),
    "model_params": Option(
        str, ("--model-params",),
        "Also reckon the checkpoint of a model with so many parameters: its bytes, and the time to "
        "save and to load it at the speeds that are measured.", "N",
    ),
    "model_ranks": Option(
        int, ("--ranks",), "For --model-params: ranks that the checkpoint is divided among.", "N"
    ),
}  # fmt: skip
