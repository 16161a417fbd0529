"""A user's own job file of fio is held to one directory, and to so many bytes."""

from __future__ import annotations

import pytest

from preflight.cli.fio_file import held
from preflight.errors import UsageError


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a]\nsize=1m\nfilename=/etc/passwd\n", ":3: filename=/etc/passwd is not taken"),
        ("[a]\nsize=1m\nfilename=x:/dev/sda\n", ":3: filename="),
        ("[a]\nsize=1m\nfilename=..\n", ":3: filename="),
        ("[global]\ndirectory=/data\n[a]\nsize=1m\n", ":2: directory= is not taken"),
        ("[a]\nsize=1m\nexec_prerun=touch /x\n", ":3: exec_prerun= is not taken"),
        ("[a]\nsize=1m\nioengine=external:/x.so\n", ":3: ioengine="),
        ("[a]\nsize=1m\nwrite_bw_log=/x\n", ":3: write_bw_log= is not taken"),
        ("[a]\nsize=1m\nbs=${X}\n", ":3: bs="),
        ("[../../a]\nsize=1m\n", ":1: [../../a] is not taken"),
        ("[a]\nrw=read\n", "[a] says no size"),
        ("[a]\nsize=100%\n", "[a] says no size"),
        ("[a]\nsize=3g\n[b]\nsize=2g\n", "has files of 5 GiB, and --size allows 4 GiB"),
        ("[a]\nsize=1g\nnumjobs=8\n", "has files of 8 GiB"),
        ("[global]\nfilename=x\n[a]\nsize=1g\noffset=5g\n", "has files of 6 GiB"),
        ("include /etc/x\n", ":1: 'include /etc/x' stands in no section"),
        ("[global]\nrw=read\n", "no job in it"),
    ],
)
def test_a_job_that_leads_elsewhere_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        held(text, "my.fio", 4 << 30, 60.0)
    assert words in raised.value.what


def test_files_that_several_jobs_share_count_once() -> None:
    text = "[global]\nfilename=x\nsize=3g\nruntime=1m\n[a]\nrw=write\n[b]\nrw=read\nnumjobs=4\n"
    assert held(text, "my.fio", 4 << 30, 60.0) == text


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        # It ends in time by itself.
        ("[a]\nsize=1m\nruntime=6\n", ""),
        ("[a]\nsize=1m\nruntime=1\n[b]\nstonewall\nsize=1m\nruntime=5s\n", ""),
        ("[a]\nsize=1m\nruntime=10h\ntime_based\n", "[a]\nruntime=6000ms\nsize=1m\ntime_based\n"),
        ("[global]\nruntime=10h\n[a]\nsize=1m\n",
         "[global]\nruntime=10h\n[a]\nruntime=6000ms\nsize=1m\n"),
        # One after the other they share the time.
        ("[a]\nsize=1m\nruntime=1\n[b]\nstonewall\nsize=1m\nRunTime = 1h\n",
         "[a]\nsize=1m\nruntime=1\n[b]\nruntime=3000ms\nstonewall\nsize=1m\n"),
        # On a slow device its bytes may take for ever.
        ("[a]\nsize=1m\n", "[a]\nruntime=6000ms\nsize=1m\n"),
    ],
)  # fmt: skip
def test_jobs_are_held_to_the_time(text: str, runs: str) -> None:
    assert held(text, "my.fio", 4 << 30, 6.0) == (runs or text)
