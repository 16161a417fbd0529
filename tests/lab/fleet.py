"""The hosts of the SSH tests: sound ones of every kind, and one for each fault of a host."""

from __future__ import annotations

from tests.lab.ssh_hosts import LabHost

#: What is left of the conversation once half an answer is out: nothing.
_KILL_SSHD = """\
echo half; p=$$
until [ "$(/bin/cat /proc/$p/comm)" = sshd ]; do p=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$p/status)
done
kill -9 $p; sleep 5"""
#: No place to write to: full to the last byte, and nothing there may be run.
_NO_DISK = """\
for d in /tmp /dev/shm /srv/home/dash; do
  mount -t tmpfs -o noexec,mode=1777,size=64k tmpfs $d; head -c 1M /dev/zero >$d/x || :; done"""
_TWO_FACTORS = "AuthenticationMethods publickey,password\nPasswordAuthentication yes\n"
_REPLAY = "/bin/cat /srv/nvidia-smi.xml"

#: Nothing is wrong with these, whatever their login shell is and says.
SHELLS = {user: LabHost(user=user) for user in ("bash", "noisy", "tcsh", "csh", "fish", "zsh")}
SOUND = {
    "node-1": LabHost(),
    "node-2": LabHost(),
    **SHELLS,
    "inner-1": LabHost(reach="jump"),
    "inner-2": LabHost(reach="jump"),
    "full": LabHost(mounts=_NO_DISK),
    "holds": LabHost(tools={"nvidia-smi": f"setsid sleep 600 &\n{_REPLAY}"}),
}
#: By name: the host, and the fault that it has.
FAULTY = {
    "refuses": (LabHost(reach="refused"), "refused"),
    "routeless": (LabHost(reach="no-route"), "no-route"),
    "off": (LabHost(reach="dropped"), "no-answer"),
    "silent": (LabHost(reach="silent"), "no-banner"),
    "closes": (LabHost(reach="closing"), "no-banner"),
    "web": (LabHost(reach="http"), "not-ssh"),
    "beyond": (LabHost(reach="jump-refused"), "proxy"),
    "twofold": (LabHost(sshd=_TWO_FACTORS), "denied"),
    "crowded": (LabHost(sshd="MaxSessions 0\n"), "no-session"),
    "forced": (LabHost(sshd="ForceCommand echo 'Use the portal'\n"), "no-shell"),
    "stuck": (LabHost(reach="stuck"), "silent"),
    "keyless": (LabHost(user="keyless"), "denied"),
    "changed": (LabHost(key="changed"), "host-key-changed"),
    "stranger": (LabHost(key="unknown"), "host-key-unknown"),
    "nologin": (LabHost(user="nologin"), "no-shell"),
    "leaves": (LabHost(user="leaves"), "no-shell"),
    "dies": (LabHost(tools={"nvidia-smi": _KILL_SSHD}), "died"),
}
#: A name that stands nowhere.
NOWHERE = "nowhere"
#: An answer is what is wrong with these, not the host.
HANGS = LabHost(tools={"nvidia-smi": "touch /srv/home/dash/hangs; sleep 600"})
FLOODS = LabHost(tools={"nvidia-smi": "head -c 400000000 /dev/zero | tr '\\0' x"})
TWIN = LabHost(hostname="twin", boot_id="11111111-2222-4333-8444-555555555555")
#: Does as told, and tells what it was asked to run.
SUDO = LabHost(tools={"sudo": 'echo "$*" >>/srv/home/dash/sudo.log; shift; exec "$@"'})
OTHERS = {
    "hangs": HANGS,
    "floods": FLOODS,
    "twin-a": TWIN,
    "twin-b": TWIN,
    "ported": LabHost(mounts=":"),
    "sudoer": SUDO,
    "ahead": LabHost(clock_ahead_s=86400),
    **{f"off-{number:02}": LabHost(reach="dropped") for number in range(1, 81)},
}
HOSTS = {**SOUND, **{name: host for name, (host, _) in FAULTY.items()}, **OTHERS}
