"""What names a person in the texts of the tools: e-mail addresses, accounts, homes, owners."""

from __future__ import annotations

import re

from preflight.redact.names import Match, rule

#: Accounts that an operating system or a cloud's image comes with: they are nobody's.
SYSTEM_USER = re.compile(
    r"(?i)root|nobody|nogroup|daemon|bin|sys|adm|lp|mail|sshd|dbus|messagebus|avahi|chrony|ntp|rpc"
    r"|rpcuser|polkitd?|munge|slurm|gdm|www-data|syslog|postfix|libvirt|docker|tss|uuidd|sudo|wheel"
    r"|video|render|disk|tty|users|systemd[\w+-]{0,24}|nvidia[\w-]{0,24}|ubuntu|ec2-user|opc"
    r"|azureuser|\d+"
)
# Killed by user request; a page fault for user address; of user space.
_NO_USER = re.compile(
    r"(?i)space|mode|memory|address(?:es)?|request(?:s|ed)?|app(?:lication)?s?|process(?:es)?|code"
    r"|program|defined|input|pages?|namespace|uid|session|slice|level|buffer|data|threads?|name"
    r"|interrupt|action|error|is|was|and|or|the|with|in|on|at|from|has|not|specified"
)
# Folders beside those of people.
_NO_OWNER = re.compile(r"lib|bin|conda|miniconda3?|anaconda3?|linuxbrew|runner|build|src|software")

_USER = r"(?P<v>[A-Za-z_](?:[\w.-]{0,62}\w)?)"
_COLUMN = r"(?P<v>[A-Za-z_][\w.-]{0,31}\+?)"


def _is_unit(match: Match) -> bool:
    # user@1000.service is a unit of systemd.
    return match["v"].endswith((".service", ".socket", ".scope", ".slice", ".target", ".timer"))


def _is_level(match: Match) -> bool:
    # `user  :warn  :` is a facility and a level of a log (dmesg -x).
    levels = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")
    return match["v"] in levels


def _is_word(match: Match) -> bool:
    return _NO_USER.fullmatch(match["v"]) is not None


def _is_shared(match: Match) -> bool:
    return _NO_OWNER.fullmatch(match["v"]) is not None


#: A script that the driver names with an Xid; people name them after themselves and their projects.
SCRIPT = re.compile(
    r"\bXid [^\n]{0,100}?\bname='?(?P<v>[\w.+-]{1,64}\.(?:py|sh|pl|jl|R|lua|ipynb))(?![\w.])"
)
#: In the order in which they are to be applied, after the names of hosts.
EMAIL = rule(
    "email", "@",
    r"(?<![\w.+-])(?P<v>[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,8}"
    r"\.[A-Za-z]{2,24})\b",
    _is_unit,
)  # fmt: skip
USERS = (
    # /home, /homes/j/jdoe, /nfs_home1, /Users
    rule(
        "user", "home|users",
        r"/(?:[\w-]{0,20}homes?\d{0,2}|[Uu]sers)/(?:(?P<first>[a-z])/(?=(?P=first)))?"
        r"(?P<v>[A-Za-z_][\w.-]{0,62}\w)",
        _is_shared,
    ),
    # With or without a Windows domain before it.
    rule(
        "user", "user|logname|owner",
        r"(?i)\b(?:(?:sudo_|r)?user(?:name|_?id)?|logname|owner)[\"']?[ \t]{0,8}[=:][ \t]{0,8}"
        r"[\"']?(?P<v>(?:[a-z][\w.-]{0,30}\\{1,2})?[a-z_][\w.-]{0,62}\w)",
        _is_level,
    ),
    rule(
        "user", "id=|groups=",
        r"(?:\b(?:e?uid|e?gid|groups)=|(?<=\),))\d{1,10}\((?P<v>[^)\s]{1,64})\)",
    ),
    # audit: acct="jdoe" AUID="jdoe"
    rule(
        "user", "acct=|uid=",
        r"(?i)\b(?:acct|auid|[efs]?s?uid)=[\"'](?P<v>[a-z_][\w.-]{0,62}\w)",
    ),
    rule(
        "user", "user ",
        r"(?i)\b(?:for|by|of|from|invalid|authenticating) (?:(?:invalid|authenticating) )?user "
        r"(?P<v>[a-z_][\w.-]{0,62}\w)",
        _is_word,
    ),
    rule("user", "user slice", rf"\bUser Slice of {_USER}", _is_word),
    rule("user", " from", r"\b(?:Accepted|Failed) [\w/-]{1,32} for (?P<v>[\w.-]{1,64}) from\b"),
    # What ssh and we say of the way to a host.
    rule("host", "jump host", r"\bjump host (?:[\w.+-]{1,64}@)?(?P<v>[A-Za-z0-9_][\w.-]{0,252})"),
    rule("host", "jump host", r"\bjump host \S{1,320}: (?P<v>[A-Za-z0-9_][\w.-]{0,252}): "),
    rule("host", "resolve", r"\bCould not resolve hostname (?P<v>[A-Za-z0-9_][\w.-]{0,252})"),
    rule("user", "sudo", r"\bsudo(?:\[\d{1,10}\])?:[ \t]{1,8}(?P<v>[\w.-]{1,64}) : "),
    rule("user", "(to ", r"\(to [\w.-]{1,64}\) (?P<v>[\w.-]{1,64}) on "),
    rule("user", ") cmd", r"\((?P<v>[\w.-]{1,64})\) CMD "),
    # Rows of ps aux, ps -ef, top, ls -l, fuser -v, lsof
    rule(
        "user", "pid",
        rf"(?m)^{_COLUMN}[ \t]+\d{{1,8}}[ \t]+\d{{1,4}}(?:\.\d)?[ \t]+\d{{1,3}}\.\d[ \t]+\d{{1,12}}"
        r"[ \t]+\d{1,12}[ \t]",
    ),
    rule(
        "user", "pid",
        rf"(?m)^{_COLUMN}[ \t]+\d{{1,8}}[ \t]+\d{{1,8}}[ \t]+\d{{1,3}}[ \t]+"
        r"(?:\d\d:\d\d|[A-Z][a-z]{2}\d\d|\d{4})[ \t]",
    ),
    rule(
        "user", "pid",
        rf"(?m)^[ \t]{{0,16}}\d{{1,8}}[ \t]+{_COLUMN}[ \t]+(?:rt|-?\d{{1,3}})[ \t]+-?\d{{1,3}}"
        r"[ \t]+[\d.]{1,12}[gtm]?[ \t]",
    ),
    rule(
        "user", "rw|r-x|r--",
        rf"(?m)^[bcdlps-][rwxsStT-]{{9}}[.+@]?[ \t]+\d{{1,9}}[ \t]+{_COLUMN}[ \t]",
    ),
    rule(
        "user", "/dev/",
        rf"(?m)^(?:/dev/[^\s:]{{1,60}}:)?[ \t]{{1,40}}{_COLUMN}[ \t]+\d{{1,8}}[ \t]+"
        r"[Fcefrm.]{4,6}[ \t]",
    ),
    rule(
        "user", "pid",
        rf"(?m)^\S{{1,40}}[ \t]+\d{{1,8}}[ \t]+{_COLUMN}[ \t]+"
        r"(?:cwd|rtd|txt|mem|DEL|\d{1,6}\w{0,2})[ \t]+"
        r"(?:REG|DIR|CHR|BLK|FIFO|IPv[46]|unix|sock|a_inode)\b",
    ),
    rule("user", "@", r"(?<![\w.+-])(?P<v>[\w.+-]{1,64})@(?=host-(?:[0-9a-f]{4}-)?\d)"),
    # After a file server its share, and what a file system is called in Lustre.
    rule(
        "file", "//",
        r"(?<!:)//(?:host|ipv4)-(?:[0-9a-f]{4}-)?\d+/(?P<v>[\w.$-]{1,80})(?![\w.$-])",
    ),
    rule(
        "file", "-mdt|-ost|-mgs|-mdd",
        r"(?<![\w-])(?P<v>[A-Za-z0-9_]{1,8})-(?=(?:MDT|OST|MGS|MDD)(?:[0-9a-f]{4})?(?![A-Za-z0-9]))",
    ),
    rule("file", "@tcp|@o2ib", r"@(?:tcp|o2ib)\d{0,3}:/(?P<v>\w{1,8})\b"),
)  # fmt: skip
