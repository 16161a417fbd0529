"""Signals of a process that trains: a save at the boundary, stacks, an end, and who caught them."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from tests.guard.trained import LOOP, notes, rows, training

SAVES = LOOP + 'save = lambda ask: say("saved", ask.step, ask.why, ask.suspect)\n'


def test_a_signal_within_a_step_saves_at_its_end(tmp_path: Path) -> None:
    script = (
        SAVES
        + """
signal.signal(signal.SIGUSR1, lambda *_: say("caught before"))
first = signal.getsignal(signal.SIGUSR1)
with guard.install(save=save) as watch:
    loop(watch, 6)
say("given back", signal.getsignal(signal.SIGUSR1) is first, sys.excepthook is sys.__excepthook__)
"""
    )
    with training(script, tmp_path) as run:
        run.until("begin 2")
        run.send(signal.SIGUSR1)
        lines = run.rest()
    within = lines[lines.index("begin 2") : lines.index("begin 3")]
    assert within == ["begin 2", "caught before", "end 2", "saved 2 SIGUSR1 "]
    assert [one for one in lines if one.startswith("saved")] == ["saved 2 SIGUSR1 "]
    assert lines[-1] == "given back True True"
    assert run.process.returncode == 0
    assert "step 2: saved in " in run.errors
    assert run.left("*") == []  # it ended well


def test_a_save_that_fails_is_told_and_training_goes_on(tmp_path: Path) -> None:
    script = (
        LOOP
        + """
def save(ask):
    raise OSError("no space left")
with guard.install(save=save, raise_if_save_fails=len(sys.argv) > 1 or "RAISE" in os.environ) as w:
    loop(w, 5)
say("went on")
"""
    )
    for env, goes_on in (({}, True), ({"RAISE": "1"}, False)):
        with training(script, tmp_path, **env) as run:
            run.until("begin 1")
            run.send(signal.SIGUSR1)
            lines = run.rest()
        assert ("went on" in lines) is goes_on
        assert "end 1" in lines
        assert "step 1: the save failed" in run.errors
        assert "OSError: no space left" in run.errors
        assert (run.process.returncode == 0) is goes_on


def test_stacks_and_memory_come_though_the_main_thread_hangs_in_c(tmp_path: Path) -> None:
    script = """
import threading
threading.Thread(target=lambda: time.sleep(60), name="loader", daemon=True).start()
def hangs_in_c():
    say("hangs")
    sum(range(1 << 24))  # no instruction of Python in between
    say("back")
    time.sleep(60)
signal.signal(signal.SIGUSR2, lambda *_: say("caught before"))
with guard.install() as watch:
    watch.step(7)
    hangs_in_c()
"""
    with training(script, tmp_path) as run:
        run.until("hangs")
        run.send(signal.SIGUSR2)
        run.until("caught before")
        (file,) = run.left("rank0-*.stacks.txt")
        text = file.read_text()
        assert run.process.poll() is None  # it goes on
    stacks, _, memory = text.partition("== ")
    assert "in hangs_in_c" in stacks
    assert stacks.count("most recent call first") == 2
    assert "step 7, SIGUSR2" in memory
    assert int(re.findall(r"VmRSS:\s+(\d+) kB", memory)[0]) > 1000


def test_sigterm_ends_it_as_ever_but_the_last_steps_are_there(tmp_path: Path) -> None:
    with training(SAVES + "loop(guard.install(save=save))", tmp_path) as run:
        run.until("end 3")
        run.send(signal.SIGTERM)
        lines = run.rest()
    assert run.process.returncode == -signal.SIGTERM
    assert not any(one.startswith("saved") for one in lines)
    (file,) = run.left("*.jsonl")
    assert [one["step"] for one in rows(file)][:3] == [0, 1, 2]
    assert notes(file) == {"ended": "SIGTERM"}


def test_who_catches_sigterm_later_and_passes_it_on_says_what_follows(tmp_path: Path) -> None:
    script = (
        LOOP
        + """
watch = guard.install()
before = signal.getsignal(signal.SIGTERM)
signal.signal(signal.SIGTERM, lambda *given: (say("theirs"), before(*given)))
loop(watch, 4)
watch.uninstall()
"""
    )
    with training(script, tmp_path) as run:
        run.until("begin 1")
        run.send(signal.SIGTERM)
        assert run.rest()[-1] == "end 3"
    assert run.process.returncode == 0
    assert notes(run.left("*.jsonl")[0]) == {"ended": "SIGTERM"}


def test_stacks_that_the_script_had_asked_for_itself_come_during_and_after(tmp_path: Path) -> None:
    script = (
        SAVES
        + """
import faulthandler
faulthandler.register(signal.SIGUSR1)
faulthandler.register(signal.SIGUSR2)
def during(): os.kill(os.getpid(), signal.SIGUSR1); time.sleep(0.01)
def after(): os.kill(os.getpid(), signal.SIGUSR1); os.kill(os.getpid(), signal.SIGUSR2)
with guard.install(save=save) as watch:
    during()
    watch.step(3)
after()
say("lives")
"""
    )
    with training(script, tmp_path) as run:
        assert run.rest() == ["saved 3 SIGUSR1 ", "lives"]
    assert run.errors.count("in during") == 1
    assert run.errors.count("in after") == 2


def test_what_is_asked_for_after_the_last_step_is_told(tmp_path: Path) -> None:
    script = """
with guard.install(save=print) as watch:
    watch.step(3)
    os.kill(os.getpid(), signal.SIGUSR1)
"""
    with training(script, tmp_path) as run:
        assert run.rest() == []
    assert "asked for too late for step 3, the last, and not done: SIGUSR1" in run.errors


def test_a_preempted_loop_saves_and_leaves(tmp_path: Path) -> None:
    script = (
        SAVES
        + """
with guard.install(save=save, stop_on=signal.SIGTERM) as watch:
    loop(watch)
say("after the loop")
"""
    )
    with training(script, tmp_path) as run:
        run.until("begin 2")
        run.send(signal.SIGTERM)
        lines = run.rest()
    assert lines[-4:] == ["end 2", "saved 2 SIGTERM ", "left 2", "after the loop"]
    assert run.process.returncode == 0
    assert notes(run.left("*.jsonl")[0]) == {"ended": "asked to: kill -TERM"}


def test_workers_that_were_forked_off_outlive_a_save_signal_and_end_by_sigterm(
    tmp_path: Path,
) -> None:
    script = (
        SAVES
        + """
watch = guard.install(save=save)
child = os.fork()
if child == 0:
    say("child", os.getpid())
    while True:
        time.sleep(0.01)
time.sleep(0.3)
for number in (signal.SIGUSR1, signal.SIGUSR2):
    os.kill(child, number)
    time.sleep(0.1)
    say("ended by", number.name, os.waitpid(child, os.WNOHANG) != (0, 0))
os.kill(child, signal.SIGTERM)
say("ended by", os.WTERMSIG(os.waitpid(child, 0)[1]))
watch.step(1)
watch.uninstall()
"""
    )
    with training(script, tmp_path) as run:
        lines = run.rest()
    assert lines[1:] == ["ended by SIGUSR1 False", "ended by SIGUSR2 False", "ended by 15"]


def test_a_handler_that_comes_later_and_passes_nothing_on_is_told(tmp_path: Path) -> None:
    script = (
        SAVES
        + """
def theirs(*_): pass
with guard.install(save=save, flush_s=0.01) as watch:
    signal.signal(signal.SIGUSR1, theirs)
    loop(watch, 3, 0.02)
say("stays", signal.getsignal(signal.SIGUSR1) is theirs)
"""
    )
    with training(script, tmp_path) as run:
        assert run.rest()[-1] == "stays True"
    assert run.errors.count("SIGUSR1 is caught by __main__.theirs by now") == 1


@pytest.mark.parametrize(
    ("before", "saves_on"), [("", "35"), ("signal.signal(signal.SIGUSR1, say)", "USR1")]
)
def test_under_slurm_sigusr1_is_left_to_who_requeues(
    before: str, saves_on: str, tmp_path: Path
) -> None:
    script = f"{before}\nguard.install(save=print).uninstall()"
    with training(script, tmp_path, SLURM_JOB_ID="7") as run:
        run.rest()
    assert f"`kill -{saves_on} PID` of any rank saves" in run.errors


REFUSED = [
    ("t = __import__('threading').Thread(target=ask, name='ray'); t.start(); t.join()",
     "in the thread 'ray'.*main thread before.*signals=False"),
    ("guard.install(); ask()", "called twice.*uninstall"),
    ("ask(save_on=signal.SIGUSR1)", "no save=FUNCTION"),
    ("ask(save=print, save_on=signal.SIGKILL)", "cannot catch SIGKILL.*name another"),
    ("ask(save=print, save_on=signal.SIGUSR2)", "stacks and for a save"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "said"), REFUSED)
def test_what_cannot_be_is_refused_with_what_to_do(call: str, said: str, tmp_path: Path) -> None:
    script = """
def ask(**options):
    try:
        guard.install(**options)
    except guard.GuardError as error:
        say(error)
"""
    with training(script + call, tmp_path) as run:
        assert re.search(said, "\n".join(run.rest()))
