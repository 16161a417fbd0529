"""Networks: which adapters and interfaces were found, which network was taken, by what plugin."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from preflight.facts.nccl import NcclAdapter, NcclSelection, NcclVariable
from preflight.logs.nccl.lines import Line
from preflight.model import NOT_IN_INPUT, Known

#: NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>
_USING = re.compile(r"NET/(?P<net>[\w-]+) ?: Using (?P<list>\[\d+\].*)")
#: Of NICs that NCCL merged: [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}
_ADAPTER = re.compile(r"\[\d+\] ?(?P<name>[A-Za-z]\w*):(?P<port>\d+)/(?P<layer>[A-Za-z]+)")
_INTERFACE = re.compile(r"\[\d+\](?P<name>[\w.@-]+):")
_OOB = re.compile(r"OOB (?P<name>[\w.@-]+):")
_NETWORK = re.compile(r"Using (?:internal )?[Nn]etwork (?P<name>[^\n,:]{1,60}?)(?: plugin\.?)?$")
_ASSIGNED = re.compile(r"Assigned NET plugin (?P<name>[^\n]{1,60}) to comm")
_PLUGIN = re.compile(r"NET/Plugin ?: Loaded net plugin (?P<name>[^\n]{1,60})")
_NO_PLUGIN = re.compile(
    r"NET/Plugin ?: (?:No plugin found|Could not find"
    r"|Using internal network plugin)"
)
_OFI = re.compile(r"NET/OFI (?:Initializing|Using) (?P<version>aws-ofi-nccl[ v]+\S{1,30})")
_PROVIDER = re.compile(r"NET/OFI Selected [Pp]rovider is (?P<name>[\w;-]{1,60})")
_ENVIRONMENT = re.compile(
    r"(?P<name>NCCL_[A-Z0-9_]{1,60}) set (?:by (?:environment|config file[^\n]{0,80}?) )?to "
    r"(?P<value>[^\n]{0,200}?)\.?$"
)
_IB, _SOCKET = "IB", "Socket"
_BOND = re.compile(r"bond", re.IGNORECASE)


class _Found(Struct):
    """What one process found."""

    network: str
    device: int
    adapters: tuple[NcclAdapter, ...]
    interfaces: tuple[str, ...]
    oob: Known[str]
    relaxed: bool
    line: int
    name: str
    probe: str


class Networks(Struct):
    """What all processes said of networks."""

    found: dict[tuple[str, int, str], _Found] = field(default_factory=dict)
    chosen: dict[str, dict[str, int]] = field(default_factory=dict)  # host -> network -> line
    plugins: dict[str, str] = field(default_factory=dict)
    plugin_versions: dict[str, str] = field(default_factory=dict)
    providers: dict[str, dict[str, None]] = field(default_factory=dict)  # of each host
    variables: dict[tuple[str, str, str], NcclVariable] = field(default_factory=dict)

    def take(self, line: Line) -> None:
        """One line that speaks of a network, or of a variable."""
        if using := _USING.match(line.text):
            self._using(line, using["net"], using["list"])
        elif chosen := _NETWORK.match(line.text) or _ASSIGNED.match(line.text):
            self._chosen(line, chosen["name"])
        elif plugin := _PLUGIN.match(line.text):
            self.plugins[line.host] = plugin["name"].strip()
        elif _NO_PLUGIN.match(line.text):
            self.plugins.setdefault(line.host, "none")
        elif version := _OFI.match(line.text):
            self.plugin_versions[line.host] = version["version"].replace(" v", " ")
        elif provider := _PROVIDER.match(line.text):
            self.providers.setdefault(line.host, {})[provider["name"]] = None
        elif told := _ENVIRONMENT.match(line.text):
            key = (line.host, told["name"], told["value"])
            one = NcclVariable(told["name"], told["value"], line.host, line.number, line.probe)
            self.variables.setdefault(key, one)

    def _using(self, line: Line, network: str, listed: str) -> None:
        adapters = tuple(
            NcclAdapter(one["name"], int(one["port"]), one["layer"])
            for one in _ADAPTER.finditer(listed)
        )
        names = () if adapters else tuple(one["name"] for one in _INTERFACE.finditer(listed))
        oob = _OOB.search(listed)
        key = (*line.process, f"{network} {'' if line.host else line[:1] + line[-1:]}".strip())
        if line.host and network == _SOCKET and (*line.process, _IB) in self.found:
            return
        if line.host and network == _IB:  # up to 2.4 sockets are listed in any case
            self.found.pop((*line.process, _SOCKET), None)
        self.found[key] = _Found(
            network, line.device, adapters, names, oob["name"] if oob else NOT_IN_INPUT,
            "[RO]" in listed, line.number, line.subject, line.probe,
        )  # fmt: skip

    def _chosen(self, line: Line, name: str) -> None:
        self.chosen.setdefault(line.host, {}).setdefault(name.strip(), line.number)

    def network_of(self, host: str, ways: Iterable[str]) -> Known[str]:
        """What the host's processes took, else what they found, else what their connections say."""
        names = list(self.chosen.get(host, ()))
        if not names:
            names = list(dict.fromkeys(one.network for key, one in self.found.items()
                                       if key[0] == host))  # fmt: skip
        names = names or list(set(ways))
        return ", ".join(sorted(names)) if names else NOT_IN_INPUT

    def provider_of(self, host: str) -> Known[str]:
        """What libfabric goes over, by all of the host's processes."""
        return ", ".join(sorted(self.providers.get(host, ()))) or NOT_IN_INPUT

    def selections(self) -> Iterator[NcclSelection]:
        """Once for each host where its processes agree, else for each that differs."""
        for host in dict.fromkeys(key[0] for key in self.found):
            mine = [one for key, one in self.found.items() if key[0] == host]
            told: dict[tuple[object, ...], _Found] = {}
            for one in mine:
                what = (one.network, one.adapters, one.interfaces, "" if host else one.line)
                told.setdefault(what, one)
            for one in told.values():
                yield _selection(one, host, one.name if len(told) > 1 or not host else host)


def _selection(one: _Found, host: str, name: str) -> NcclSelection:
    bonds = tuple(each.name for each in one.adapters if _BOND.search(each.name))
    alone = len(bonds) == len(one.adapters)
    counted = [each for each in one.adapters if alone or each.name not in bonds]
    return NcclSelection(
        name, host, one.network, one.adapters, one.interfaces,
        ", ".join(sorted({each.layer for each in counted if each.layer})),
        () if alone else bonds, one.oob, one.relaxed, one.line, one.probe,
    )  # fmt: skip
