"""nccl-tests on the hosts that are asked: on one by itself, on several by one launcher of this
machine. The first of them tells what all of them measured."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from preflight.bench.nccl_tests import BINARIES, arguments, collectives_of, probe_of, without_mpi
from preflight.cli.nccl_tests.answers import as_recorded, hung, with_logs
from preflight.cli.nccl_tests.asked import is_of_tests, question
from preflight.cli.nccl_tests.sites import Tested, left_out, tested
from preflight.cli.nccl_tests.ways import Launcher
from preflight.cli.one_job import first_questions, only, read_site, sites_of
from preflight.collect import Transport
from preflight.errors import UsageError
from preflight.facts.collectives import TOLD_BY
from preflight.faults import fault
from preflight.model import Command, Missing, Raw
from preflight.ship import TESTS
from preflight.transports.launcher import launched

Answered = Iterator[tuple[str, list[Raw]]]


class Here(Struct):
    """The transport to this machine, with the questions filled in once it has told its GPUs."""

    inner: Transport
    plan: Mapping[str, Any]
    python: tuple[str, ...]

    @property
    def host(self) -> str:
        """The host's name."""
        return self.inner.host

    def run(self, commands: Sequence[Command]) -> Iterator[Raw]:
        """One answer for each command, in order; then those of NCCL in the answers."""
        site = read_site(self.host, list(self.inner.run(_first([], self.plan, self.python))))
        one = tested(site, self.plan)
        tests = [command for command in commands if is_of_tests(command)]
        others = [command for command in commands if not is_of_tests(command)]
        asked = [] if one.why else list(_alone(one, self.plan, self.python, tests))
        logs: list[Raw] = []
        for raw in self.inner.run([*others, *asked]):
            told, *log = as_recorded(raw)
            logs += log
            yield told
        yield from _not_run(one, self.plan, tests, asked)
        yield from logs


class Together(Struct):
    """A fleet of which nccl-tests is asked of all hosts as of one."""

    fleet: Any  # a Fleet with `hosts`, which can be made fewer
    interrupted: threading.Event
    plan: Mapping[str, Any]
    python: tuple[str, ...]
    launcher: Launcher | None  # None for one host alone

    def run(self, commands: Sequence[Command]) -> Answered:
        """Each host with its answers; of those that take no part why. UsageError where the binaries
        cannot work together."""
        plan = {**self.plan, "job": secrets.token_hex(8)}
        found = sites_of(self.fleet, commands, plan, self.python)
        sites = [tested(one, plan) for one in found]
        able = [one for one in sites if one.why is None]
        if self.interrupted.is_set():
            for one in able:
                one.why = fault("interrupted", "interrupted before it was measured")
            able = []
        told = {one.host: left_out(one, TESTS) for one in sites if one not in able}
        if len(able) > 1:
            _hold_mpi(able)
        told |= self._asked(able, plan, commands) if able else {}
        for host in dict.fromkeys([*(one.host for one in sites), *told]):
            if host in told:
                yield host, with_logs(told[host])

    def _asked(
        self, able: Sequence[Tested], plan: Mapping[str, Any], commands: Sequence[Command]
    ) -> dict[str, list[Raw]]:
        tests = [one for one in commands if is_of_tests(one)]
        others = [one for one in commands if not is_of_tests(one)]
        fewer = only(self.fleet, [one.host for one in able])
        if len(able) == 1:
            asked = list(_alone(able[0], plan, self.python, tests))
            told = dict(fewer.run([*others, *asked]))
            for raws in told.values():
                raws += _not_run(able[0], plan, tests, asked)
            return told
        told = dict(fewer.run(others))
        leads = able[0].host
        for host, raws in told.items():
            raws += self._launched(able, plan, tests) if host == leads else _led_by(leads, host)
        return told

    def _launched(
        self, able: Sequence[Tested], plan: Mapping[str, Any], tests: Sequence[Command]
    ) -> Iterator[Raw]:
        """The binaries one after the other, over all hosts."""
        assert self.launcher is not None
        host, slots = able[0].host, {one.host: one.gpus for one in able}
        before = ""
        for at, name in enumerate(collectives_of(plan)):
            lacking = next((one for one in able if name in one.lacks), None)
            if lacking or before:
                why = _lacked(lacking, name) if lacking else Missing("timeout", before)
                yield Raw(host, probe_of(at), (BINARIES[name],), None, missing=why)
                continue
            words = arguments(able[0].paths[name], plan, 1)
            argv = self.launcher.argv(slots, words, plan)
            command = Command(probe_of(at), argv, timeout_s=tests[at].timeout_s)
            raw = launched(command, host, self.interrupted)
            if raw.missing or raw.reached_limit:
                self.launcher.ended(plan)
            before = hung(raw)
            yield raw


def _first(
    commands: Sequence[Command], plan: Mapping[str, Any], python: tuple[str, ...]
) -> list[Command]:
    return first_questions(commands, dict(plan), python)


def _alone(
    one: Tested, plan: Mapping[str, Any], python: tuple[str, ...], tests: Sequence[Command]
) -> Iterator[Command]:
    """The questions to one host, in a process with all of its GPUs; it takes MPI or none."""
    for at, name in enumerate(collectives_of(plan)):
        if name in one.paths:
            argv = arguments(one.paths[name], plan, one.gpus)
            asked = question(plan, python, at, argv, one.nccl)
            yield replace(asked, timeout_s=tests[at].timeout_s)


def _not_run(
    one: Tested, plan: Mapping[str, Any], tests: Sequence[Command], asked: Sequence[Command]
) -> list[Raw]:
    """For each question that was not asked, why not; where none was, once."""
    if one.why:
        return [Raw(one.host, TESTS, rc=None, missing=one.why)]
    done = {command.probe for command in asked}
    names = collectives_of(plan)
    return [
        Raw(one.host, command.probe, (BINARIES[names[at]],), None, missing=one.lacks[names[at]])
        for at, command in enumerate(tests) if command.probe not in done
    ]  # fmt: skip


def _lacked(one: Tested, name: str) -> Missing:
    missing = one.lacks[name]
    return Missing(missing.kind, f"{one.host}: {missing.text}")


def _led_by(leads: str, host: str) -> list[Raw]:
    missing = Missing("not-applicable", f"{TOLD_BY} {leads}")
    return [Raw(host, TESTS, rc=None, missing=missing)]


def _hold_mpi(able: Sequence[Tested]) -> None:
    """Refuse binaries that would each measure themselves."""
    pairs = [(path, one.host) for one in able for path in one.without_mpi.values()]
    if pairs:
        paths, hosts = zip(*pairs, strict=True)
        raise UsageError(*without_mpi(paths, hosts))
