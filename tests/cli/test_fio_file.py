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
        held(text, "my.fio", 4 << 30)
    assert words in raised.value.what


def test_files_that_several_jobs_share_count_once() -> None:
    text = "[global]\nfilename=x\nsize=3g\n[a]\nrw=write\n[b]\nrw=read\nnumjobs=4\n"
    assert held(text, "my.fio", 4 << 30) == text
