"""What a command's name asks for, where nothing of it was judged: told in the last line."""

from __future__ import annotations

from preflight.model import Report, Status

#: Of a command: what it asks for, and the checks that answer it.
_QUESTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "nccl-bench": ("bandwidth", ("collectives.busbw", "rdma.bandwidth", "wire.bandwidth")),
}
#: What finds only what is grossly slow: it answers where it does not pass.
_ROUGH = "collectives.rough"


def unanswered(report: Report) -> list[str]:
    """`bandwidth was shown, not judged: what processors reach nobody tells`; nothing where any
    of it was judged, or is undetermined, which stands above."""
    what, checks = _QUESTIONS.get(report.command, ("", ()))
    found = [(host.host, one) for host in report.hosts for one in host.results
             if one.check in checks]  # fmt: skip
    if not found or any(one.status is not Status.SKIP for _, one in found):
        return []
    rough = [one for host in report.hosts for one in host.results if one.check == _ROUGH]
    if any(one.status not in (Status.PASS, Status.SKIP) for one in rough):
        return []
    measured = {table.get("host") for table in report.measurements}
    # Of a host that measured, where there is one: the others say that it tells for them.
    host, one = max(found, key=lambda each: (each[0] in measured, each[1].check == checks[0]))
    shown = "shown, not judged" if host in measured else "not judged"
    return [f"{what} was {shown}: {one.reason}"]
