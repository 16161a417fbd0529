"""nccl-tests in place of the bundled engine, on a host that has the one and not the other."""

from __future__ import annotations

import socket

from msgspec.structs import replace

from preflight.cli.nccl_tests.asked import found_here, is_of_the_other
from preflight.cli.one_job import first_questions, read_site
from preflight.cli.options import Options, are_many
from preflight.cli.streams import Streams
from preflight.transports.local import Local
from preflight.units import parse_duration


def with_engine(options: Options, python: tuple[str, ...], streams: Streams) -> Options:
    """The options, with the folder of nccl-tests where it lies in PATH or in ./build, there are
    GPUs, and the Python that would measure has no torch."""
    open_to_it = not (options.from_ or are_many(options) or options.nccl_tests is not None)
    if not open_to_it or options.dry_run or is_of_the_other(options):
        return options
    folder = found_here()
    if not folder:
        return options
    host, limit_s = socket.gethostname(), parse_duration(options.host_timeout)
    told = read_site(host, list(Local(host, limit_s).run(first_questions([], {}, python)))).told
    if not told or told.get("torch") or not told.get("gpus"):
        return options
    streams.note(f"note: {told.get('cannot')}: measured by nccl-tests, which is in {folder}")
    return replace(options, nccl_tests=folder)
