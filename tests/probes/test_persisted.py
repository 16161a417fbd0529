"""Which file's value counts at boot: the order of sysctl.d(5), asked of trees of our own."""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
from pathlib import Path

import pytest

from preflight.collect import examine
from preflight.errors import ParseError
from preflight.judge.load import load
from preflight.model import Raw, Result
from preflight.probes.parameters.persisted import persisted
from tests.conftest import require
from tests.parameters_text import FILES, PARAMETERS
from tests.probes.test_pci_robust import damaged
from tests.probes.test_setup import write

CHECKS = [
    check for check in load(("parameters",)).checks
    if check.id in ("system.sysctl.persisted", "system.sysctl.unsaved")
]  # fmt: skip


READABLE = '[ -r "$f" ]'


def _asked(
    root: Path, shell: tuple[str, ...] = ("sh",), uid: int = 0, readable: str = READABLE
) -> str:
    """The answer of a machine below the folder, with its paths as they are there."""
    script = persisted.probe.command.argv[-1]  # type: ignore[attr-defined]
    script = script.replace("$(id -u)", str(uid)).replace(READABLE, readable)
    script = re.sub(r"(?<![\w*/])/(etc|run|usr|lib)/", rf"{root}/\1/", script)
    done = subprocess.run([*shell, "-c", script], capture_output=True, text=True, timeout=10)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.replace(str(root), "")


def _values(root: Path) -> dict[str, tuple[object, str]]:
    found = persisted(_asked(root)).settings
    return {one.name: (one.value, f"{one.file}:{one.at}") for one in found}


@pytest.mark.parametrize("shell", [("dash",), ("bash", "--posix"), ("busybox", "sh")])
def test_names_are_read_in_order_whatever_the_folder(
    tmp_path: Path, shell: tuple[str, ...]
) -> None:
    require(shell[0], shutil.which(shell[0]) is not None)
    root = write(tmp_path, {
        "/usr/lib/sysctl.d/50-default.conf": "vm.swappiness=50\nkernel.panic = 5\n",
        "/etc/sysctl.d/10-first.conf": "vm.swappiness=10\nfs.aio-max-nr=1\n",
        "/run/sysctl.d/40-run.conf": "fs.aio-max-nr=2\n",
    })  # fmt: skip
    found = {one.name: one for one in persisted(_asked(root, shell)).settings}
    assert found["vm.swappiness"].value == "50"
    assert found["fs.aio-max-nr"].file == "/run/sysctl.d/40-run.conf"
    assert found["kernel.panic"].at == 2


def test_of_files_of_one_name_only_the_first_folder_counts(tmp_path: Path) -> None:
    root = write(tmp_path, {
        "/usr/lib/sysctl.d/50-x.conf": "vm.swappiness=50\nkernel.panic=5\n",
        "/etc/sysctl.d/50-x.conf": "vm.swappiness=1\n",
        "/usr/lib/sysctl.d/60-y.conf": "fs.nr_open=7\n",
    })  # fmt: skip
    (root / "etc/sysctl.d/60-y.conf").symlink_to("/dev/null")
    assert _values(root) == {"vm.swappiness": ("1", "/etc/sysctl.d/50-x.conf:1")}


def test_sysctl_conf_is_read_last_by_procps_and_by_systemd_through_a_link(tmp_path: Path) -> None:
    files = {"/etc/sysctl.conf": "vm.swappiness=9\n", "/etc/sysctl.d/zz.conf": "vm.swappiness=1\n"}
    root = write(tmp_path, files)
    assert _values(root)["vm.swappiness"] == ("9", "/etc/sysctl.conf:1")
    (root / "run/systemd/system").mkdir(parents=True)
    assert _values(root)["vm.swappiness"] == ("1", "/etc/sysctl.d/zz.conf:1")
    (root / "etc/sysctl.d/zzz.conf").symlink_to("../sysctl.conf")
    assert _values(root)["vm.swappiness"] == ("9", "/etc/sysctl.d/zzz.conf:1")


def test_patterns_comments_slashes_and_signs(tmp_path: Path) -> None:
    root = write(tmp_path, {
        "/etc/sysctl.d/50-x.conf": "# vm.swappiness=1\n;vm.swappiness = 2\n"
        "  -net/core/somaxconn   =  4096\nnet.ipv4.tcp_rmem = 4096\t131072   6291456\n"
        "net.ipv4.conf.*.rp_filter = 2\nnet.ipv4.conf.*.arp_ignore = 1\n"
        "-net.ipv4.conf.all.arp_ignore\nnet.ipv4.neigh.default.gc_thresh1 = 128\n"
        "net.ipv4.neigh.*.gc_thresh? = 1\nkernel.core_pattern = |/usr/bin/secret %p\n",
    })  # fmt: skip
    assert {name: value for name, (value, _) in _values(root).items()} == {
        "net.core.somaxconn": "4096",
        "net.ipv4.tcp_rmem": "4096 131072 6291456",
        "net.ipv4.conf.all.rp_filter": "2",
        "net.ipv4.neigh.default.gc_thresh1": "128",  # in full, though the pattern comes later
        "net.ipv4.neigh.default.gc_thresh2": "1",
        "net.ipv4.neigh.default.gc_thresh3": "1",
    }
    assert "secret" not in _asked(root)


def test_a_later_line_for_the_same_pattern_or_name_counts_even_if_it_only_excludes(
    tmp_path: Path,
) -> None:
    """Debian 13 sets all.rp_filter in 10-network-security.conf and excludes it in 50-default.conf,
    so that nothing sets it."""
    root = write(tmp_path, {
        "/etc/sysctl.d/10-network-security.conf": "net.ipv4.conf.all.rp_filter = 2\n"
        "-net.ipv4.conf.all.arp_filter\n",
        "/usr/lib/sysctl.d/50-default.conf": "net.ipv4.conf.*.rp_filter = 2\n"
        "-net.ipv4.conf.all.rp_filter\nnet.ipv4.conf.*.arp_ignore = 1\n"
        "net.ipv4.conf.*.arp_announce = 1\nnet.ipv4.conf.all.arp_filter = 1\n",
        "/etc/sysctl.d/90-site.conf": "net.ipv4.conf.*.arp_ignore = 2\n"
        "net.ipv4.*.all.arp_announce = 2\n",
    })  # fmt: skip
    assert _values(root) == {
        "net.ipv4.conf.all.arp_announce": ("2", "/etc/sysctl.d/90-site.conf:2"),
        "net.ipv4.conf.all.arp_filter": ("1", "/usr/lib/sysctl.d/50-default.conf:5"),
        "net.ipv4.conf.all.arp_ignore": ("2", "/etc/sysctl.d/90-site.conf:1"),
    }


def test_parameters_of_sysfs_in_tmpfiles_d(tmp_path: Path) -> None:
    enabled = "/sys/kernel/mm/transparent_hugepage/enabled"
    root = write(tmp_path, {
        "/etc/tmpfiles.d/a.conf": f"w {enabled} - - - - madvise\nf /tmp/x - - - - secret\n",
        "/usr/lib/tmpfiles.d/b.conf": f"w! {enabled} - - - - never\n"
        "w /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor - - - - performance\n",
    })  # fmt: skip
    assert {name: value for name, (value, _) in _values(root).items()} == {
        "thp.enabled": "madvise", "cpu.governor": "performance",
    }  # fmt: skip
    assert "secret" not in _asked(root)


def test_nothing_is_set_and_tuned_is_told(tmp_path: Path) -> None:
    found = persisted(_asked(tmp_path))
    assert (found.settings, found.denied, found.tuned) == ((), (), "none")
    write(tmp_path, {"/run/tuned/tuned.pid": "1\n", "/etc/tuned/active_profile": "hpc-compute\n"})
    assert persisted(_asked(tmp_path)).tuned == "hpc-compute"


@pytest.mark.parametrize("shell", [("dash",), ("bash", "--posix"), ("busybox", "sh")])
def test_a_link_that_leads_nowhere_sets_nothing_which_only_root_can_tell(
    tmp_path: Path, shell: tuple[str, ...]
) -> None:
    require(shell[0], shutil.which(shell[0]) is not None)
    root = write(tmp_path, {"/usr/lib/sysctl.d/99-sysctl.conf": "vm.swappiness=1\n"})
    (root / "etc/sysctl.d").mkdir(parents=True)
    (root / "etc/sysctl.d/99-sysctl.conf").symlink_to("../sysctl.conf")
    found = persisted(_asked(root, shell, uid=0))
    assert (found.denied, found.settings) == ((), ())
    assert persisted(_asked(root, shell, uid=1000)).denied == ("/etc/sysctl.d/99-sysctl.conf",)


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    root = write(tmp_path, {"/etc/sysctl.d/90-x.conf": "# nothing of ours\n"})
    assert persisted(_asked(root)).denied == ()
    assert persisted(_asked(root, readable="false")).denied == ("/etc/sysctl.d/90-x.conf",)


def _judged(files: str, parameters: str = PARAMETERS, **more: str) -> dict[str, Result]:
    answers = {"persisted": files, "sysctls": parameters, **more}
    raws = [Raw("n", probe, ("sh",), 0, text) for probe, text in answers.items()]
    return {one.check.rpartition(".")[2]: one for one in examine("n", raws, CHECKS).results}


def test_a_running_value_that_is_another_after_a_boot_is_named_with_its_file() -> None:
    found = _judged(FILES, PARAMETERS.replace("swappiness:1", "swappiness:60"))["persisted"]
    assert found.status.value == "WARN"
    assert found.measured == "1: vm.swappiness is 60, /etc/sysctl.d/90-site.conf:2 sets 1"


def test_a_pair_of_which_one_makes_the_other_zero_is_no_difference() -> None:
    parameters = f"vm/dirty_ratio:0\nvm/dirty_bytes:9\n{PARAMETERS}"
    ratio = "/etc/sysctl.d/90-site.conf:6:vm.dirty_ratio=10\n"
    both = f"{ratio}/etc/sysctl.d/90-site.conf:7:vm.dirty_bytes=9\n"
    at = "/usr/lib/sysctl.d/50-default.conf:9"
    assert _judged(FILES.replace(at, both + at), parameters)["persisted"].status.value == "PASS"
    assert _judged(FILES.replace(at, ratio + at), parameters)["persisted"].status.value == "WARN"


def test_what_is_set_by_hand_is_told_unless_tuned_sets_it() -> None:
    bare = "file /etc/sysctl.conf\nend\n"
    found = _judged(bare)["unsaved"]
    assert found.status.value == "WARN"
    assert str(found.measured).startswith(
        "8 of 14: vm.swappiness is 1, and no file sets it: 60 after a boot; vm.max_map_count is"
    )
    assert _judged("tuned hpc\nend\n")["unsaved"].status.value == "SKIP"
    stock = re.sub(r"\n[^\n]*(map_count|aio-max-nr|[rw]mem_max):[^\n]*", "", PARAMETERS)
    stock = re.sub(r"(swappiness:)\d+", r"\g<1>60", stock)
    stock = re.sub(r"(somaxconn:|syn_backlog:)\d+", r"\g<1>4096", stock)
    stock = re.sub(r"(netdev_max_backlog:)\d+", r"\g<1>1000", stock)
    sound = _judged(bare, stock)["unsaved"]
    assert (sound.status.value, sound.measured) == ("PASS", "none of 10 that were looked at")


def _by_hand(parameters: str, nodes: int = 2, files: str = "end\n") -> str:
    cpu = f"CPU(s): 8\nNUMA node(s): {nodes}\n"
    found = _judged(files, f"{parameters}cmdline\nend\n", lscpu=cpu)["unsaved"]
    return str(found.measured)


@pytest.mark.parametrize(
    ("name", "stock", "value"),
    [
        ("vm/max_map_count", 65530, 262144), ("vm/overcommit_memory", 0, 1),
        ("vm/overcommit_memory", 0, 2), ("fs/aio-max-nr", 65536, 1048576),
        ("vm/dirty_ratio", 20, 80), ("kernel/numa_balancing", 1, 0),
        ("net/ipv4/tcp_sack", 1, 0), ("vm/nr_hugepages", 0, 4096),
    ],
)  # fmt: skip
def test_each_parameter_with_a_fixed_default(name: str, stock: int, value: int) -> None:
    assert _by_hand(f"{name}:{stock}\n") == "none of 1 that were looked at"
    dotted = name.replace("/", ".")
    assert _by_hand(f"{name}:{value}\n").startswith(f"1 of 1: {dotted} is {value}, and no file")


def test_what_sets_a_parameter_at_each_boot_without_a_file() -> None:
    assert _by_hand("kernel/numa_balancing:0\n", nodes=1) == "none of 0 that were looked at"
    assert _by_hand("kernel/numa_balancing:0\noption numa_balancing=disable\n").startswith("none")
    assert _by_hand("vm/nr_hugepages:8\noption hugepages=8\n").startswith("none")
    kubelet = "vm/overcommit_memory:1\nkernel/panic:10\nkernel/panic_on_oops:1\n"
    assert _by_hand(kubelet).startswith("none")
    assert _by_hand(kubelet.replace("memory:1", "memory:2")).startswith("1 of 1")
    assert _by_hand("vm/dirty_ratio:0\nvm/dirty_bytes:9\n").startswith("1 of 1: vm.dirty_bytes")
    saved = "file /etc/sysctl.d/a.conf\n/etc/sysctl.d/a.conf:1:vm.dirty_bytes=9\nend\n"
    assert _by_hand("vm/dirty_ratio:0\nvm/dirty_bytes:9\n", files=saved).startswith("none")


def test_in_a_container_it_is_the_hosts_business_and_unread_files_are_no_pass() -> None:
    inside = _judged(FILES, identity="hostname n\ncontainer_file /.dockerenv\nuid 0\n")
    assert {one.status.value for one in inside.values()} == {"SKIP"}
    denied = _judged(FILES.replace("systemd\n", "denied /etc/sysctl.d/95-x.conf\nsystemd\n"))
    assert {one.status.value for one in denied.values()} == {"ERROR"}
    assert "95-x.conf cannot be read" in denied["persisted"].reason


@pytest.mark.parametrize("seed", range(200))
def test_a_damaged_answer_is_read_or_refused(seed: int) -> None:
    try:
        persisted(damaged(FILES, seed))
    except ParseError as error:
        assert str(error)


def test_cut_short_it_is_refused() -> None:
    for text in ("", FILES[:-5], FILES[:40]):
        with pytest.raises(ParseError, match="cut short"):
            persisted(text)
    assert persisted(FILES.replace("\n", "\r\n")).settings == persisted(FILES).settings


def test_this_machine_answers_soon() -> None:
    argv = persisted.probe.command.argv  # type: ignore[attr-defined]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=10)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    persisted(done.stdout)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.1


def _fixes(files: str, parameters: str) -> dict[str, tuple[str, ...]]:
    raws = [Raw("n", "persisted", ("sh",), 0, files), Raw("n", "sysctls", ("sh",), 0, parameters)]
    return {one.check: one.fix for one in examine("n", raws, CHECKS).results}


def test_the_advice_names_the_file_the_line_and_the_value() -> None:
    other = FILES.replace("vm.swappiness = 1\n", "vm.swappiness = 10\n")
    assert other != FILES
    first, *rest = _fixes(other, PARAMETERS)["system.sysctl.persisted"]
    assert re.fullmatch(
        r"the running value is right: in /etc/sysctl.d/\S+:\d+ write vm.swappiness = 1 "
        "in place of 10",
        first,
    )
    assert rest[0].startswith("the file is right: sudo sysctl --system")
    unsaved = FILES.replace("net/core/somaxconn=65535", "# nothing")
    assert _fixes(unsaved, PARAMETERS)["system.sysctl.unsaved"] == (
        "echo 'net.core.somaxconn = 65535' | sudo tee -a /etc/sysctl.d/90-site.conf",
    )


def test_a_pass_is_a_sentence() -> None:
    raws = [Raw("n", "persisted", ("sh",), 0, FILES), Raw("n", "sysctls", ("sh",), 0, PARAMETERS)]
    told = [(one.measured, one.expected) for one in examine("n", raws, CHECKS).results]
    assert re.fullmatch(r"\d+ parameters of files, all as they are there", str(told[0][0]))
    assert re.fullmatch(r"none of \d+ that were looked at", str(told[1][0]))
    assert {expected for _, expected in told} == {"the same after a boot"}
