"""How texts look that tell of network adapters and interfaces: rows of signatures.TOOLS."""

from __future__ import annotations

#: As signatures.TOOLS.
TOOLS: dict[str, tuple[str, ...]] = {
    "ibstat": (r"CA '[\w.-]{1,64}'[ \t]*$", r"ibpanic: \[\d+\] \w+: stat of IB device '"),
    "ibstatus": (r"Infiniband device '[\w.-]{1,64}' port \d{1,3} status:",),
    "ibv_devinfo": (r"hca_id:\s", r"No IB devices found[ \t]*$"),
    "rdma-link": (
        r"(?:link |\d{1,4}/\d{1,3}: )[\w.-]{1,64}/\d{1,3}:? (?:state|subnet_prefix|netdev) ",
        r"\[\s*\{\s*\"ifindex\": ?\d+,\s*\"ifname\": ?\"[\w.-]{1,64}\",\s*\"port\": ?\d",
    ),
    "show-gids": (
        r"DEV\s+PORT\s+INDEX\s+GID\b",
        r"[\w.-]{1,64}\s+\d{1,3}\s+\d{1,4}\s+(?:[\da-f]{4}:){7}[\da-f]{4}\s",
    ),
    "ibdev2netdev": (
        r"(?:[\da-f:.]{12} )?[\w.-]{1,64} (?:\([^\n]{1,120})?port \d{1,3} [^\n]{0,60}?==> ",
    ),
    "ethtool": (
        r"(?:Settings for|Ring parameters for|Channel parameters for|Pause parameters for) "
        r"[^\s:]{1,32}:[ \t]*$",
        r"driver: \S{1,32}[ \t]*\n[\s>]{0,40}version:",
        r"NIC statistics:[ \t]*$",
    ),
    "ip-addr": (r"\d{1,6}: [^\s:@]{1,32}(?:@[^\s:]{1,32})?: <[A-Z_,\d-]{0,200}> mtu \d",),
    "bonding": (r"Ethernet Channel Bonding Driver: ",),
    "mlnx-qos": (r"DCBX mode: ", r"Priority trust state: (?:pcp|dscp)\b"),
}
#: As signatures.GOES_ON: what they hold of the shapes of others, such as an address.
GOES_ON: dict[str, str] = {
    "ibv_devinfo": r"[ \t]*(?:GID\[|[a-z_]{2,30}:[ \t])",
    "ibstat": r"[ \t]+(?:Port \d+:|[A-Z][\w ]{2,30}: )",
    "ethtool": r"[ \t]+[A-Za-z][\w ./-]{0,60}:",
    "ip-addr": r"[ \t]+(?:inet6? |link/|valid_lft |altname )",
}
#: Probe -> what stands in it once, and what is typed for one: as software_signatures.SINGLE.
SINGLE = {
    "ibstat": (r"^[ \t]*(CA '[\w.-]{1,64}')", "ibstat"),
    "ibstatus": (r"^[ \t]*(Infiniband device '[\w.-]{1,64}' port \d{1,3})", "ibstatus"),
    "ibv_devinfo": (r"^[ \t]*(hca_id:\s+\S{1,64})", "ibv_devinfo"),
    "rdma-link": (r"^[ \t]*(link [\w.-]{1,64}/\d{1,3}) state", "rdma link"),
}
