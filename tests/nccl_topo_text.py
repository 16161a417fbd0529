"""NCCL topology files: as NCCL writes one on bare metal, as clouds ship one for a virtual machine.

Written in the form of NCCL 2.2x (src/graph/xml.cc) and of Azure's ndv5-topo.xml.
"""

from __future__ import annotations

#: Of the host of tests/lspci_text.py: a GPU and a NIC below one switch.
DUMP = """\
<system version="1">
  <cpu host_hash="0x9a77867c7a11a438" numaid="0" affinity="0000ffff,ffffffff" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
    <pci busid="0000:16:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x100b" link_speed="32.0 GT/s PCIe" link_width="16">
      <pci busid="0000:18:00.0" class="0x020000" vendor="0x15b3" device="0x1021" subsystem_vendor="0x15b3" subsystem_device="0x0041" link_speed="32.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" latency="0.000000" speed="400000" port="1" guid="0x9a2c3d0003a1420c" maxconn="131072" gdr="1"/>
        </nic>
      </pci>
      <pci busid="0000:19:00.0" class="0x030200" vendor="0x10de" device="0x2330" subsystem_vendor="0x10de" subsystem_device="0x16c1" link_speed="32.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="90" rank="0" gdr="1">
          <nvlink target="0000:07:00.0" count="5" tclass="0x068000"/>
          <nvlink target="0000:06:00.0" count="4" tclass="0x068000"/>
          <nvlink target="0000:05:00.0" count="4" tclass="0x068000"/>
          <nvlink target="0000:08:00.0" count="5" tclass="0x068000"/>
        </gpu>
      </pci>
    </pci>
  </cpu>
</system>
"""  # noqa: E501 - as NCCL writes it
#: Two pairs of a virtual machine, below bridges that do not exist.
CLOUD = """\
<system version="1">
  <cpu numaid="0" affinity="00000000,00ffffff" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
    <pci busid="ffff:ff:01.0" class="0x060400" link_speed="16 GT/s" link_width="16">
      <pci busid="0003:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
      <pci busid="0103:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
    </pci>
  </cpu>
  <cpu numaid="1" affinity="ffff0000,00000000" arch="x86_64" vendor="AuthenticAMD" familyid="23" modelid="49">
    <pci busid="ffff:ff:02.0" class="0x060400" link_speed="16 GT/s" link_width="16">
      <pci busid="0001:00:00.0" class="0x030200" link_speed="16 GT/s" link_width="16"/>
      <pci busid="0101:00:00.0" class="0x020700" link_speed="16 GT/s" link_width="16"/>
    </pci>
  </cpu>
</system>
"""  # noqa: E501


def answer(file: str, *, named: str = "shell", path: str = "/opt/topo.xml") -> str:
    """The answer of the question on a host that has this file."""
    return f"named {named}\npath {path}\nstate read\n{file}\nend\n"


def naming(*addresses: str) -> str:
    """A file that names GPUs at these addresses, as the file of a cloud does."""
    gpus = "".join(
        f'    <pci busid="{at}" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"/>\n'
        for at in addresses
    )
    return f'<system version="1">\n  <cpu numaid="0">\n{gpus}  </cpu>\n</system>\n'
