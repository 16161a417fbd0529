"""The most memory that a Python process of its own has had."""

from __future__ import annotations

#: Source of peak_kib(). What getrusage(2) tells begins with the peak of whoever started the
#: process, for exec(2) hands it on; VmHWM is of the program alone (proc(5)).
PEAK = """
def peak_kib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
"""
