"""Names get stable stand-ins; what a tool needs to judge stays as it was."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from preflight.redact.redactor import Redactor

UUID = "GPU-1a2b3c4d-1111-2222-3333-444455556666"


def full(text: str, *hosts: str, users: tuple[str, ...] = ()) -> str:
    return Redactor(hosts, users).full(text)


NAMED = [
    ("peer {}:29500 is {}.", "10.0.0.1", "ipv4-1"),
    ("Using eth0:{}<0>", "192.168.1.7", "ipv4-1"),
    ("server {}/24", "8.8.8.8", "ipv4-1"),
    ("::ffff:{}", "10.1.2.3", "ipv4-1"),
    ("addr {}%ib0", "fe80::1ff:fe23:4567:890a", "ipv6-1"),
    ("gid {}", "fd00:0000:0000:0029:506b:4b03:00c0:ffee", "ipv6-1"),
    ("gid fe80:0000:0000:0000:{}\tv2", "506b:4b03:00c0:ffee", "guid-1"),
    ("\t\tGID[  1]:\t\tfe80::{}, RoCE v2", "506b:4b03:c0:ffee", "guid-1"),
    ("mlx5_0/ports/1/gids/1:fe80:0000:0000:0000:{}", "506b:4b03:00c0:ffee", "guid-1"),
    ("mlx5_0/ports/1/gids/3:0000:0000:0000:0000:0000:ffff:{} v2", "0a00:000b", "ipv4-1"),
    ("[{}]:22", "2001:db8::7", "ipv6-1"),
    ("(Recv) remoteGids{} hca mlx5_1", "fd00:29:87::88", "ipv6-1"),
    ("link/ether {} brd ff:ff:ff:ff:ff:ff", "52:54:00:12:34:56", "mac-1"),
    ("{}", "80:00:00:29:fe:80:00:00:00:00:00:00:0c:42:a1:03:00:79:52:34", "mac-1"),
    ("mac {}", "0C-42-A1-79-52-34", "mac-1"),
    ("GPU 0: H100 (UUID: {})", UUID, "uuid-1"),
    ("{}", "MIG-5a5f8a2c-1111-2222-3333-444455556666", "uuid-1"),
    ("{}/1/0", "MIG-GPU-5a5f8a2c-1111-2222-3333-444455556666", "uuid-1"),
    ("<serial>{}</serial>", "1324021000000", "serial-1"),
    ("<module_serial_number>{}</module_serial_number>", "AB12", "serial-1"),
    ("    Serial Number                         : {}", "1322621", "serial-1"),
    ("NVRM: GPU 0000:91:00.0: GPU serial number is {}.", "1101221824837", "serial-1"),
    ("NVRM: GPU Board Serial Number: {}", "1443225130333", "serial-1"),
    ("[1b4 v1] Device Serial Number {}", "9c-63-c0-ff-ff-aa-bb-cc", "serial-1"),
    ("Product Serial        : {}", "S452ABC", "serial-1"),
    ("cable {}", "MT2230J14118", "serial-1"),
    ("[VU] Vendor specific: {}MLNXS0D0F0", "MT2340J88735", "serial-1"),
    ("[V3] Vendor specific: {}", "d610e4f45c66ee118000a088c2b8a0c4", "uuid-1"),
    ("Node GUID: 0x{}", "506b4b0300c0ffee", "guid-1"),
    ("node_guid: {}", "506b:4b03:00c0:ffee", "guid-1"),
    ('"H-{}"[1]', "506b4b0300c0ffee", "guid-1"),
    ("0x{}   1    1[  ] ==(", "248a0703009c2f0c", "guid-1"),
    ("<pdi>0x{}</pdi>", "1234567890abcdef", "guid-1"),
    ("    PDI                 : 0x{}", "1234567890abcdef", "guid-1"),
    ("<gpu_fabric_guid>0x{}</gpu_fabric_guid>", "1234567890abcdef", "guid-1"),
    ("    GPU Fabric GUID     : 0x{}", "1234567890abcdef", "guid-1"),
    ("<chassis_serial_number>{}</chassis_serial_number>", "1820325191234", "serial-1"),
    ("    Chassis Serial Number                 : {}", "1820325191234", "serial-1"),
    ('"chassisSerialNumber": "{}"', "1820325191234", "serial-1"),
    ("<clusterUuid>{}</clusterUuid>", UUID[4:], "uuid-1"),
    ("    ClusterUUID         : {}", UUID[4:], "uuid-1"),
    ("BOOTIF=01-{} ip=dhcp", "52-54-00-12-34-56", "mac-1"),
    ("eth0: renamed to enx{}", "525400123456", "mac-1"),
    ("disk wwn-0x{}", "5000c500a1b2c3d4", "guid-1"),
    ("nvme0n1: eui.{}", "0025385b71b0d2a3", "guid-1"),
    ("target iqn.2010-10.{} up", "com.acme:storage.lun1", "serial-1"),
    ("nqn.2014-08.{}", "com.acme:nvme:disk7", "serial-1"),
    ("instance {} in zone a", "i-0abcdef0123456789", "serial-1"),
    ("IP Address              : {}", "10.4.0.17", "ipv4-1"),
    ("BMC MAC Address         : {}", "3c:ec:ef:12:34:56", "mac-1"),
    ("mail {} now", "jo.doe@example.com", "email-1"),
    ("/lustre/home/{}/x.py", "jdoe", "user-1"),
    ("USER={} LOGNAME={}", "jdoe", "user-1"),
    ("UserId={}(1000) uid=1000({})", "jdoe", "user-1"),
    ("sshd[1]: Accepted publickey for {} from 127.0.0.1", "jdoe", "user-1"),
    ("held by user {}", "jdoe", "user-1"),
    ("{} up", "ip-10-0-3-17", "host-1"),
]


@pytest.mark.parametrize(("text", "name", "stand_in"), NAMED)
def test_names_get_stand_ins(text: str, name: str, stand_in: str) -> None:
    redactor = Redactor()
    shown = text.replace("{}", stand_in)
    assert redactor.full(text.replace("{}", name)) == shown
    assert redactor.full(shown) == shown


def test_two_addresses_are_two_stand_ins() -> None:
    assert full("10.0.0.1-10.0.0.9/24") == "ipv4-1-ipv4-2/24"
    assert full("jdoe@node-07:~$ ls") == "user-1@host-1:~$ ls"


@pytest.mark.parametrize(
    "text",
    [
        "00000000:91:00.0 0000:1b:00.0 PCI:0000:3b:00 10de:2330 domain 0001:00:00.0",
        "driver 535.161.08, VBIOS Version : 96.00.74.00.01, Inforom G520.0200.00.05",
        "nvidia-cudnn-cu12==9.1.0.70 CUDNN_VERSION=8.9.5.29 tensorrt 10.0.1.6",
        "nvidia-cublas-cu12        12.4.5.8",
        "MLNX.OFED.LINUX-23.10-2.1.3.1, FWVersion(04.103.00.00), mpt3sas version 40.100.00.00",
        "hca_core_clock: 0x0000000000002081 0x00062ed1a6bd6b51 mask 0xffffffffffffffff",
        "2025-01-17T15:36:23,791030+00:00 12:34:56 [Sun Feb 23 16:24:18 2025]",
        "localhost 127.0.0.1 0.0.0.0 255.255.255.0 ::1 [::]:22",
        "00:00:00:00:00:00 ff:ff:ff:ff:ff:ff 0000:0000:0000:0000",
        "terminate: c10::Error at::cuda std::vector<int> abc::def",
        "Serial: 8250/16550 driver, 32 ports; SerialNumber: 0000:00:14.0; Serial Number : N/A",
        "systemd[1]: user@1000.service: Failed; Created slice /system/serial-getty",
        "NVRM: Xid (PCI:0000:3b:00): 31, pid=4711, name=python, Ch 00000010, engine CE3",
        "user  :warn  : 2025-01-17 x; USER=root /home/shared/data owner: root",
        "<board_id>0x8100</board_id> <pdi>N/A</pdi> <clusterUuid>N/A</clusterUuid>",
        "<gpu_fabric_guid>0x0000000000000000</gpu_fabric_guid> board_id: MT_0000000223",
        "<chassis_serial_number></chassis_serial_number> nqn.2014-08.org.nvmexpress.discovery",
        "JobName=llm-acme-7b /mnt/acme-llm on /mnt/acme-llm Account=acme",
        "gpu[0-7] systemd[1] mlx5_[0-3] Xid[79] data[12]",
        "ts 1700000300123456 0x7fbf1d214b75 1322621000000",
    ],
)
def test_what_a_tool_needs_stays(text: str) -> None:
    assert full(text) == text


def test_the_same_name_is_the_same_stand_in_everywhere() -> None:
    redactor = Redactor(["node-07"])
    assert redactor.full("10.0.0.1 10.0.0.2") == "ipv4-1 ipv4-2"
    assert redactor.full("again 10.0.0.2 on node-07") == "again ipv4-2 on host-1"
    assert redactor.full("Node GUID: 0x506B4B0300C0FFEE") == "Node GUID: 0xguid-1"
    assert redactor.full("guid: 506b:4b03:00c0:ffee") == "guid: guid-1"


def test_one_interface_is_one_stand_in_however_it_is_written() -> None:
    told = "BOOTIF=01-52-54-00-12-34-56 link/ether 52:54:00:12:34:56 enx525400123456"
    assert full(told) == "BOOTIF=01-mac-1 link/ether mac-1 enxmac-1"


def test_a_serial_once_named_is_known_without_its_name() -> None:
    redactor = Redactor()
    redactor.full("Serial Number : 1322621000000")
    assert redactor.full("replaced 1322621000000 today") == "replaced serial-1 today"
    redactor.full("Product Serial : S452ABC99X")
    assert redactor.full("nvme-MZ_S452ABC99X-part1") == "nvme-MZ_serial-2-part1"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("node-07 and NODE-07", "host-1 and host-1"),
        ("node-07.corp.example.com:22", "host-1:22"),
        ("node-07.log job-node-07-rank0 node-07:1", "host-1.log job-host-1-rank0 host-1:1"),
        ("node-070 xnode-07 node-0", "node-070 xnode-07 node-0"),
        ("db1.site.org db1 db1.other.org", "host-2 host-2 host-4"),
        (
            "preflight-node-07.capture.gz node-07.tar.zst",
            "preflight-host-1.capture.gz host-1.tar.zst",
        ),
        ("node-07.lan node-07.lan.log", "host-1 host-1.log"),
        ("failed on node-[07-08,99]", "failed on host-[1,3],node-99"),
    ],
)
def test_told_hosts_are_replaced_in_short_and_in_full(text: str, shown: str) -> None:
    assert full(text, "node-07", "db1.site.org", "node-08") == shown


def test_two_hosts_with_one_short_name_are_two() -> None:
    redactor = Redactor(["n1.east", "n1.west"])
    assert redactor.full("n1.east n1.west") == "host-1 host-2"
    assert Redactor(["n1.east", "n1"]).full("n1.east n1") == "host-1 host-1"


def test_names_that_are_words_of_every_log_are_left_alone() -> None:
    redactor = Redactor(["gpu", "localhost", "gpu7", "7", "input"], users=["root"])
    text = "gpu 7 of localhost: gpu7 root input"
    assert redactor.full(text) == text
    assert redactor.host("gpu7") == "host-1"


@pytest.mark.parametrize(
    "text",
    [
        "Jan  2 03:04:05 atlas kernel: NVRM: Xid (PCI:0000:3b:00): 79",
        "2025-01-17T17:39:30+0000 atlas kernel: nvidia-peermem error",
        "atlas:4711:4799 [0] NCCL INFO Bootstrap",
        "#  Rank  0 Pid  10 on  atlas device  0 [0x1b]",
        "hostname atlas",
        "kernel.hostname = atlas",
        "Linux atlas 5.15.0-105-generic #115-Ubuntu",
        "SLURM_JOB_NODELIST=atlas",
        "ssh: connect to host atlas port 22: Connection refused",
    ],
)
def test_a_host_that_names_itself_is_learnt(text: str) -> None:
    redactor = Redactor()
    assert redactor.full(f"{text}\nseen by atlas") == text.replace("atlas", "host-1") + (
        "\nseen by host-1"
    )


@pytest.mark.parametrize(
    "text",
    [
        "nfs: server atlas not responding, still trying",
        "atlas:/export/home /home nfs4 rw,relatime 0 0",
        "atlas:/export on /mnt/x type nfs (rw)",
        "srun: error: atlas: task 3: Exited with exit code 1",
        "slurmstepd: error: *** JOB 4711 ON atlas CANCELLED AT 2026-01-02T03:04:05 ***",
        "AllocNode:Sid=atlas:4711",
        "torchrun --master_addr=atlas --nnodes=2",
        "failed to connect to any network address of (atlas, 29500)",
        "[atlas:04711] Set MCA parameter",
        "atlas slots=8",
        '"MF0;atlas:MQM9700/U1"',
        "CA: atlas mlx5_0:",
        "Node Description:........atlas HCA-1",
        "pam_unix(sshd:auth): rhost=atlas",
        "VM Name                     : atlas",
    ],
)
def test_hosts_in_storage_schedulers_and_fabrics_are_learnt(text: str) -> None:
    shown = Redactor().full(f"{text}\nseen by atlas")
    assert shown == text.replace("atlas", "host-1") + "\nseen by host-1"


def test_a_host_that_is_called_like_hardware_does_not_rename_it() -> None:
    redactor = Redactor(["a100", "h200", "node1"])
    told = "NVIDIA A100-SXM4-80GB, NVIDIA H200, NUMA node1 CPU(s): 24-47, /sys/x/node/node1/y"
    assert redactor.full(told) == told
    assert redactor.full("node1 is down") == "host-3 is down"


def test_a_host_called_vm_does_not_rename_the_memory_of_a_killed_process() -> None:
    told = "vm kernel: Killed process 812 (python) total-vm:1000kB, anon-rss:900kB"
    shown = Redactor(["vm"]).full(told)
    assert shown == told.replace("vm kernel", "host-1 kernel")


def test_a_list_of_nodes_is_learnt_with_all_its_names() -> None:
    redactor = Redactor()
    assert redactor.full("SLURM_JOB_NODELIST=dgx[01-03]") == "SLURM_JOB_NODELIST=host-[1-3]"
    assert redactor.full("lost dgx02") == "lost host-2"


def test_told_users_are_replaced_anywhere() -> None:
    assert full("pid 4711 of jdoe (/scratch/jdoe/x)", users=("jdoe",)) == (
        "pid 4711 of user-1 (/scratch/user-1/x)"
    )


def test_the_tag_goes_into_every_stand_in_and_redacting_twice_changes_nothing() -> None:
    told = "node-07 10.0.0.1 user=jdoe Serial Number : 1322621000000 node-[07-08]\njdoe@node-07:~$"
    redactor = Redactor(["node-07", "node-08"], tag="7c3f")
    once = redactor.full(told)
    assert once == (
        "host-7c3f-1 ipv4-7c3f-1 user=user-7c3f-1 Serial Number : serial-7c3f-1 host-7c3f-[1-2]\n"
        "user-7c3f-1@host-7c3f-1:~$"
    )
    assert redactor.host("host-7c3f-1") == "host-7c3f-1"
    assert redactor.full(once) == Redactor().full(once) == Redactor(tag="00ff").full(once) == once


@pytest.mark.parametrize("tag", ["7C3F", "7c3", "7c3f1", "wxyz", "7c3f\n"])
def test_a_tag_is_four_hex_digits(tag: str) -> None:
    with pytest.raises(ValueError, match="is no tag: expected four hex digits"):
        Redactor(tag=tag)


def test_a_stand_in_that_is_there_already_is_not_given_to_another() -> None:
    redactor = Redactor()
    redactor.keep_clear_of("host-1 saw ipv4-2 in file-1")
    assert redactor.host("node-07") == "host-2"
    assert redactor.full("10.0.0.1 10.0.0.2") == "ipv4-1 ipv4-3"
    assert redactor.file("dmesg.txt") == "file-2"


@given(st.text(max_size=300))
def test_any_text_can_be_redacted(text: str) -> None:
    once = Redactor(["node-1"]).full(text)
    assert once.count("\n") == text.count("\n")


PIECES = [
    *("a", "a-", "a.", "1.", "1:", "password=", "password='", "-----BEGIN PRIVATE KEY-----"),
    *("a.b-", "a.com", ".local", "home/", "user ", "MF0;a", ":/", "-rwxr-xr-x ", "a/b.txt", "0-"),
    *("://a:", "@", "n[1", "serial ", "0x0300", "--a-", "<a", "Linux a ", "eyJaaaaaaaa."),
]


@pytest.mark.parametrize("piece", PIECES)
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    start = time.process_time()
    Redactor(["node-1", "n1"]).full(text)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Command line: ro ip=10.9.8.7::10.9.8.1:255.255.255.0:nodealpha42:eth0", "nodealpha42"),
        ("Command line: ip=:::::nodealpha:eth0 ip=1.2.3.4:::255.0.0.0:nodealpha", "nodealpha"),
        ("CIFS: Attempting to mount //fileserver01/users-bob", "fileserver01"),
        ("CIFS: Attempting to mount //fileserver01/users-bob", "bob"),
        ("//filer/home /mnt cifs rw 0 0", "filer/"),
        ("NFS: mounting nfs-prod-03:/export/home", "nfs-prod"),
        ("store-a-01:/vol1 is full", "store-a"),
        ("LustreError: 11-0: lfs01-MDT0000-mdc-ffff: operation failed", "lfs01"),
        ("mount 10.1.2.3@o2ib:/lfs01 failed", "lfs01"),
        ("NVRM: Xid (PCI:0000:4c:00): 31, pid=1234, name=train_carol.py, Ch 8", "carol"),
    ],
)
def test_servers_shares_and_scripts_are_not_shown(text: str, secret: str) -> None:
    assert secret not in full(text)


@pytest.mark.parametrize(
    "text",
    [
        "exec //lib64/ld-linux.so",
        "see https://docs.nvidia.com/x and /usr//lib/x",
        "NVRM: Xid (PCI:0000:4c:00): 31, pid=1234, name=python3, Ch 8",
        "PATH:/usr/bin error:/var/log/x",
    ],
)
def test_paths_and_programs_stay(text: str) -> None:
    assert full(text) == text


def test_a_script_is_known_wherever_it_stands() -> None:
    redactor = Redactor()
    redactor.know_scripts("NVRM: Xid (PCI:0000:4c:00): 31, pid=1, name=train_carol.py, Ch 8")
    assert "carol" not in redactor.full("once by train_carol.py")
