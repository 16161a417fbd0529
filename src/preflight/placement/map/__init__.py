"""The machine as it is drawn: a tree of what hangs on what, and a table of links."""

from __future__ import annotations

from preflight.facts.host import Host
from preflight.model import Map, Missing
from preflight.placement.map.beside import beside_gpus
from preflight.placement.map.branches import branches
from preflight.placement.map.devices import devices_of
from preflight.placement.map.nodes import by_node
from preflight.placement.map.table import link_table
from preflight.placement.map.unknown import unknown


def map_of(host: Host) -> Map:
    """What of the host can be drawn, and what cannot be told here."""
    found = devices_of(host)
    domains = host.topology.domains
    return Map(
        nodes=by_node(host, beside_gpus(branches(host, found), host.topology)),
        table=link_table(host.topology),
        domains=() if isinstance(domains, Missing) else tuple(one.gpus for one in domains),
        unknown=unknown(host, found),
    )
