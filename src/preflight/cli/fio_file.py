"""A user's own job file of fio, held to one directory: it may name no other, nor a device, nor a
program, and it says how much it writes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from preflight.cli.fio_time import in_time
from preflight.errors import UsageError
from preflight.probes.fio.options import Asked
from preflight.units import format_bytes

#: What a job may say: how it reads and writes. Everything else could leave the directory.
_ALLOWED = frozenset(
    re.findall(
        r"\w+",
        "rw readwrite bs blocksize bsrange blocksize_range bssplit bs_unaligned "
        "blocksize_unaligned ba blockalign bs_is_seq_rand size io_size io_limit loops "
        "runtime time_based ramp_time startdelay iodepth iodepth_low iodepth_batch "
        "iodepth_batch_submit iodepth_batch_complete iodepth_batch_complete_min "
        "iodepth_batch_complete_max numjobs thread direct buffered ioengine fsync fdatasync "
        "end_fsync fsync_on_close sync sync_file_range write_barrier rwmixread rwmixwrite "
        "group_reporting stonewall wait_for_previous new_group invalidate randrepeat "
        "allrandrepeat randseed norandommap softrandommap random_generator random_distribution "
        "percentage_random percent_random rw_sequencer thinktime thinktime_blocks "
        "thinktime_spin rate rate_min rate_iops rate_iops_min rate_process nrfiles openfiles "
        "file_service_type fallocate fadvise_hint refill_buffers scramble_buffers "
        "buffer_compress_percentage dedupe_percentage zero_buffers lat_percentiles "
        "clat_percentiles slat_percentiles percentile_list unified_rw_reporting per_job_logs "
        "create_serialize create_fsync create_on_open overwrite pre_read offset "
        "offset_increment unlink name description hipri registerfiles fixedbufs nonvectored "
        "sqthread_poll number_ios filename filename_format do_verify verify verify_fatal "
        "verify_backlog verify_interval gtod_reduce clocksource exitall exitall_on_error "
        "continue_on_error numa_cpu_nodes numa_mem_policy cpus_allowed cpus_allowed_policy nice "
        "prio prioclass latency_target latency_window latency_percentile kb_base ",
    )
)
_ENGINES = ("psync", "sync", "pvsync", "pvsync2", "libaio", "io_uring", "mmap", "posixaio")
#: Of a file in the directory: no way out, no second file, nothing that is expanded.
_NAME = re.compile(r"(?!\.)[\w.-]{1,100}")
_FORMAT = re.compile(r"(?:[\w.-]|\$(?:jobname|jobnum|filenum)){1,100}")
_PLAIN = re.compile(r"[^$`]{0,500}")  # fio expands what has one of these
_JOB = re.compile(r"[\w .%+-]{1,100}")  # fio calls files after it
_SECTION = re.compile(r"\[([^\]\n]{1,200})\]")
_HINT = "its files are made in --dir; a filename= is a name without a path"


def held(text: str, source: str, size_bytes: int, seconds: float) -> str:
    """The text, if nothing in it leaves the directory, and its files are no more than `size_bytes`;
    with runtimes by which its jobs end in about `seconds`. Raises UsageError."""
    shared: dict[str, str] = {}
    sections: dict[str, dict[str, str]] = {}
    for number, section, name, value in _options(text, source):
        _hold(f"{source}:{number}", name, value)
        if section == "global":
            shared[name] = value
        else:
            sections.setdefault(section, dict(shared))
            if name:
                sections[section][name] = value
    if not sections:
        raise UsageError(f"{source}: no job in it", "[name], and below it rw=, bs=, size=")
    _hold_sizes(sections, source, size_bytes)
    return in_time(text, sections, seconds)


def _options(text: str, source: str) -> Iterator[tuple[int, str, str, str]]:
    """Line, section, option and value; an option "" where a section begins."""
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if match := _SECTION.match(line):
            section = match[1]
            if not _JOB.fullmatch(section):
                raise UsageError(f"{source}:{number}: [{section}] is not taken", _HINT)
            yield number, section, "", ""
            continue
        if not section:
            raise UsageError(f"{source}:{number}: {line[:60]!r} stands in no section", "[global]")
        name, _, value = line.partition("=")
        yield number, section, name.strip().lower(), value.strip()


def _hold(where: str, name: str, value: str) -> None:
    if name and name not in _ALLOWED:
        raise UsageError(f"{where}: {name}= is not taken: it may lead out of the directory, run "
                         "something, or is unknown", _HINT)  # fmt: skip
    if not _fits(name, value):
        raise UsageError(f"{where}: {name}={value[:100]} is not taken", (
            f"one of {', '.join(_ENGINES)}" if name == "ioengine" else _HINT
        ))  # fmt: skip


def _fits(name: str, value: str) -> bool:
    if name == "ioengine":
        return value in _ENGINES
    pattern = {"filename": _NAME, "filename_format": _FORMAT, "name": _JOB}.get(name, _PLAIN)
    return pattern.fullmatch(value) is not None


def _hold_sizes(sections: dict[str, dict[str, str]], source: str, size_bytes: int) -> None:
    """Each file once: a name that several jobs have is one file."""
    files: dict[str, int] = {}
    for name, options in sections.items():
        asked = Asked(options, told=True)
        size, jobs = asked.size_bytes(), asked.count("numjobs", 1)
        if not isinstance(size, int) or not isinstance(jobs, int) or not size:
            raise UsageError(f"{source}: [{name}] says no size", "size=1g, of each of its files")
        file = options.get("filename", "")
        # An offset lengthens the file.
        offset = sum(
            found for key in ("offset", "offset_increment")
            if isinstance(found := asked.bytes_of(options.get(key, "0")), int)
        ) * jobs  # fmt: skip
        each = (size + offset) * (1 if file else jobs)
        files[file or f"[{name}]"] = max(files.get(file or f"[{name}]", 0), each)
    whole = sum(files.values())
    if whole > size_bytes:
        raise UsageError(f"{source} has files of {format_bytes(whole)}, and --size allows "
                         f"{format_bytes(size_bytes)}", f"--size {whole}")  # fmt: skip
