"""Inside a network namespace with an /etc/sysctl.d of its own: --apply killed before each call that
changes something, and --undo after it. Prints how often, or stops at the first difference."""

from __future__ import annotations

from pathlib import Path

from preflight.settings import undo_file
from preflight.settings.apply import carry_out, plan
from preflight.settings.restore import restore
from preflight.settings.wanted import Change
from tests.settings.machine import killed_before_call

CHANGES = (
    Change("sysctl", "net.core.somaxconn", "65535"),
    Change("sysctl", "net.ipv4.tcp_max_syn_backlog", "65535"),
    Change("sysctl", "net.ipv4.tcp_rmem", "4096 131072 67108864"),
    Change("sysctl", "net.ipv4.tcp_sack", "0"),
)
FOLDER = Path("/etc/sysctl.d")


def _values() -> dict[str, bytes]:
    values = {
        one.name: Path(f"/proc/sys/{one.name.replace('.', '/')}").read_bytes() for one in CHANGES
    }
    return values | {path.name: path.read_bytes() for path in FOLDER.iterdir()}


def _apply(undo: Path) -> None:
    planned = plan(CHANGES, "2026-01-02T03:04:05Z")
    assert not planned.left_out, planned.left_out
    undo_file.write(planned.undo, undo)
    assert not [one for one in carry_out(planned) if one.problem]


def main() -> None:
    """All calls, one after another."""
    before, calls, changed = _values(), 0, 0
    while True:
        undo = Path(f"/var/lib/preflight/{calls}.json")
        killed = killed_before_call(calls, lambda: _apply(undo))  # noqa: B023
        changed += _values() != before
        if undo.exists():
            problems = [one for one in restore(undo_file.read(undo)) if one.problem]
            assert not problems, problems
        assert _values() == before, f"killed before call {calls}"
        if not killed:
            print(calls, changed)
            return
        calls += 1


if __name__ == "__main__":
    main()
