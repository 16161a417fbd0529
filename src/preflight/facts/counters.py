"""What shows that a limit of the kernel was reached: counters since boot, and what is in use."""

from __future__ import annotations

from msgspec import Struct

from preflight.model import NOT_IN_INPUT, Known


class Counters(Struct, frozen=True):
    """Counters of a network namespace and of the host, since it was booted or made; shares are of
    the same time. What this kernel does not count is not-applicable."""

    #: Packets that the kernel took from adapters and from itself, of all processors.
    packets: Known[int] = NOT_IN_INPUT
    backlog_drops: Known[int] = NOT_IN_INPUT  # a processor's queue was full (netdev_max_backlog)
    backlog_drops_per_million: Known[float] = NOT_IN_INPUT
    time_squeezes: Known[int] = NOT_IN_INPUT  # rounds that ended with packets left (netdev_budget)
    time_squeezes_per_million: Known[float] = NOT_IN_INPUT  # of packets
    passive_opens: Known[int] = NOT_IN_INPUT  # connections that others made to this host
    listen_overflows: Known[int] = NOT_IN_INPUT  # a listener's queue was full (somaxconn)
    listen_overflows_percent: Known[float] = NOT_IN_INPUT  # of attempts to connect
    listen_drops: Known[int] = NOT_IN_INPUT  # for whatever reason
    #: Too many were half open (tcp_max_syn_backlog): dropped, or came to be by a cookie. Cookies
    #: that were only sent are left out: of a flood nobody answers them.
    syn_queue_full: Known[int] = NOT_IN_INPUT
    syn_queue_full_percent: Known[float] = NOT_IN_INPUT  # of attempts to connect
    neighbours_full: Known[int] = NOT_IN_INPUT  # no room for another address (gc_thresh3)
    files: Known[int] = NOT_IN_INPUT  # open in all processes
    files_percent: Known[float] = NOT_IN_INPUT  # of fs.file-max
    aio: Known[int] = NOT_IN_INPUT  # asynchronous reads and writes that were reserved
    aio_percent: Known[float] = NOT_IN_INPUT  # of fs.aio-max-nr
    threads: Known[int] = NOT_IN_INPUT
    threads_percent: Known[float] = NOT_IN_INPUT  # of kernel.pid_max or threads-max, the lower
    line: int = 1
    probe: str = ""
