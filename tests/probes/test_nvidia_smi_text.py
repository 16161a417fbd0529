"""The text of `nvidia-smi -q`: layouts that no sample has."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from preflight.facts.gpu import Gpu, MigInstance, Process
from preflight.model import NOT_IN_INPUT, Missing
from preflight.probes.nvidia_smi.text import nvidia_smi_text
from tests.probes.test_nvidia_smi_samples import at, seen

ABSENT = "not-in-input"


def only(text: str) -> Gpu:
    [gpu] = nvidia_smi_text(dedent(text)).gpus
    return gpu


NEWER = """\
    GPU 00000000:05:00.0
        GPU Recovery Action                                : None
        PCI
            Device Id                                      : 0x220310DE
            GPU Link Info
                PCIe Generation
                    Max                                    : 4
                    Current                                : 1
                Link Width
                    Max                                    : 16x
                    Current                                : 8x
        Utilization
            GPU                                            : 6 %
            Memory                                         : 1 %
        ECC Errors
            Volatile
                SRAM Uncorrectable Parity                  : 1
                SRAM Uncorrectable SEC-DED                 : 2
            Aggregate
                SRAM Threshold Exceeded                    : Yes
            Channel Repair Pending                         : No
            TPC Repair Pending                             : GPU requires reset
            Unrepairable Memory                            : Yes
        GPU Power Readings
            Average Power Draw                             : 24.78 W
            Instantaneous Power Draw                       : 24.74 W
            Current Power Limit                            : 450.00 W
        GPU Memory Power Readings\x20
            Average Power Draw                             : N/A
        Power Smoothing                                    : N/A
        Fabric
            State                                          : Completed
            Status                                         : Success
            Health
                Summary                                    : Limited Capacity
                Bandwidth                                  : Degraded
                Route Recovery in progress                 : True
                Route Unhealthy                            : False
                Access Timeout Recovery                    : N/A
                Incorrect Configuration                    : Insufficient Nvlink Resources
                Partition Assigned                         : False
        Processes
            GPU instance ID                   : N/A
            Compute instance ID               : N/A
            Process ID                        : 2203
                Type                          : M+C
                Name                          : python -c "a : b" :c [x]
                Used GPU Memory               : 22686 MiB
        Capabilities
            EGM                                            : disabled
    """

OLDER = """\
    GPU 0000:05:00.0
        Ecc Mode
            Current                     : Enabled
            Pending                     : Disabled
        ECC Errors
            Volatile
                Single Bit
                    Device Memory       : 5
                    Register File       : 0
                    L1 Cache            : 0
                    L2 Cache            : 1
                    Texture Memory      : 0
                    Total               : 6
                Double Bit
                    Device Memory       : 0
                    Register File       : 0
                    L1 Cache            : 0
                    L2 Cache            : N/A
                    Total               : 0
        Retired Pages
            Single Bit ECC              : 1
            Double Bit ECC              : 2
            Pending                     : Yes
        Clocks Throttle Reasons
            Idle                        : Not Active
            HW Slowdown                 : Active
                HW Thermal Slowdown     : Active
                HW Power Brake Slowdown : Not Active
        Power Readings
            Power Management            : Supported
            Power Draw                  : 60.00 W
            Power Limit                 : 100.00 W
            Enforced Power Limit        : 120.00 W
        Processes
            Process ID                  : 11
                Type                    : C
                Name                    : a
                Used GPU Memory         : 1 MiB
            Process ID                  : 12
                Type                    : G
                Name                    : b
                Used GPU Memory         : N/A
    """


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            NEWER,
            {
                "bus_id": "00000000:05:00.0",
                "recovery_action": "None",
                "pci_device": "0x220310de",
                "pcie.gen": 1,
                "pcie.width": 8,
                "utilization_percent": 6,
                "ecc.volatile_sram_uncorrected": 3,
                "ecc.volatile_sram_corrected": ABSENT,
                "ecc.sram_threshold_exceeded": True,
                "ecc.channel_repair_pending": False,
                "ecc.tpc_repair_pending": "unreadable",
                "ecc.unrepairable_memory": True,
                "answers": "unreadable",
                "reset_required": True,
                "unreadable": ("ECC Errors/TPC Repair Pending: GPU requires reset",),
                "power.draw_w": 24.78,
                "power.limit_w": 450.0,
                "fabric.state": "Completed",
                "fabric.health": "Limited Capacity",
                "fabric.bandwidth_degraded": True,
                "fabric.route_recovery": True,
                "fabric.route_unhealthy": False,
                "fabric.access_timeout_recovery": "not-applicable",
                "fabric.incorrect_configuration": "Insufficient Nvlink Resources",
                "fabric.partition_assigned": False,
                "processes": (Process(2203, "M+C", 'python -c "a : b" :c [x]', 22686 * 2**20),),
            },
        ),
        (
            OLDER,
            {
                "bus_id": "00000000:05:00.0",
                "ecc.mode": "Enabled",
                "ecc.mode_pending": "Disabled",
                "ecc.volatile_sram_corrected": 1,
                "ecc.volatile_dram_corrected": 5,
                "ecc.volatile_sram_uncorrected": 0,
                "ecc.aggregate_dram_uncorrected": ABSENT,
                "retired.total_pages": 3,
                "retired.pending": True,
                "throttle.hw_slowdown": True,
                "throttle.hw_thermal": True,
                "throttle.hw_power_brake": False,
                "throttle.sw_power_cap": ABSENT,
                "power.limit_w": 120.0,
                "power.limit_percent": 100 * 0.5,
                "processes": (
                    Process(11, "C", "a", 2**20),
                    Process(12, "G", "b", Missing("not-applicable", "nvidia-smi says N/A")),
                ),
            },
        ),
    ],
    ids=["580", "375"],
)
def test_layouts(text: str, facts: dict[str, Any]) -> None:
    gpu = only(text)
    assert {path: seen(at(gpu, path)) for path in facts} == facts


def test_mig_devices() -> None:
    gpu = only("""\
        GPU 00000000:01:00.0
            MIG Mode
                Current                       : Enabled
                Pending                       : Enabled
            MIG Device
                Index                         : 0
                GPU Instance ID               : 3
                Compute Instance ID           : 0
                Device Attributes
                    Shared
                        Multiprocessor count  : 14
                        Copy Engine count     : 1
                ECC Errors
                    Volatile
                        SRAM Uncorrectable    : 9
                Shared FB Memory Usage
                    Total                     : 19968 MiB
                    Used                      : 12 MiB
                Shared BAR1 Memory
                    Total                     : 1 MiB
            MIG Device
                Index                         : 1
                GPU Instance ID               : 4
                FB Memory Usage
                    Total                     : 9984 MiB
            FB Memory Usage
                Total                         : 81920 MiB
        """)
    assert gpu.mig.instances == (
        MigInstance(3, 14, 19968 * 2**20),
        MigInstance(4, NOT_IN_INPUT, 9984 * 2**20),
    )
    # What one slice has is no fact of the whole card.
    assert gpu.memory.total_bytes == 81920 * 2**20
    assert gpu.ecc.volatile_sram_uncorrected == NOT_IN_INPUT


@pytest.mark.parametrize(
    ("mode", "instances"),
    [("Disabled", ()), ("Enabled", NOT_IN_INPUT), ("ERR!", Missing("unreadable", "ERR!"))],
)
def test_no_mig_device_is_listed(mode: str, instances: Any) -> None:
    gpu = only(f"GPU 00000000:01:00.0\n    MIG Mode\n        Current : {mode}\n")
    assert gpu.mig.instances == instances
