"""What can be wrong with a whole host: nothing could be asked, or the asking broke off.

The transport names the fault and tells what happened; what kind it is and what to type stands here.
"""

from __future__ import annotations

from msgspec import Struct

from preflight.model import Missing, MissingKind

#: The probe of a Raw that holds no answer, only why a host gave none.
CONNECTION = "connection"


class Fault(Struct, frozen=True):
    """`title`: what it is in few words. `do`: what to type, with HOST for the hosts' names."""

    kind: MissingKind
    title: str
    do: tuple[str, ...] = ()


FAULTS: dict[str, Fault] = {
    "name-unknown": Fault(
        "unreachable", "the name is unknown",
        ("look at its spelling", "what ssh makes of it: ssh -G HOST | grep ^hostname"),
    ),
    "refused": Fault(
        "unreachable", "the connection is refused",
        ("is sshd running there? systemctl status sshd", "another port? --hosts NAME:PORT"),
    ),
    "no-route": Fault(
        "unreachable", "there is no route", ("the way to the address above: ip route get ADDRESS",),
    ),
    "no-answer": Fault(
        "unreachable", "nothing answers", ("ping -c 3 HOST; is it up? look at its console or BMC",),
    ),
    "no-banner": Fault(
        "unreachable", "it takes the connection and says nothing",
        ("sshd there is overloaded or stuck: look at its console or BMC",),
    ),
    "not-ssh": Fault(
        "unreachable", "what answers is no SSH server", ("another port? --hosts NAME:PORT",),
    ),
    "proxy": Fault(
        "unreachable", "the way through the jump host fails", ("ssh -v HOST true",),
    ),
    "failed": Fault("unreachable", "the SSH connection fails", ("ssh -v HOST true",)),
    "key-exchange": Fault(
        "unreachable", "no encryption could be agreed on", ("ssh -v HOST true", "--ssh system"),
    ),
    "host-key-changed": Fault(
        "denied", "the host key is another than known_hosts has",
        ("was it installed anew? take its old key out, then connect once with ssh",
         "if not: somebody may be in between; ask who runs it"),
    ),
    "host-key-unknown": Fault(
        "denied", "the host key is not known",
        ("connect once with ssh and compare the key", "--accept-new-host-keys"),
    ),
    "denied": Fault(
        "denied", "it lets nobody in with these keys",
        ("ssh-add -l; ssh -v HOST true", "another user: USER@HOST; Kerberos: --ssh system"),
    ),
    "no-session": Fault(
        "exited", "it lets us in and opens no session", ("ssh HOST true",),
    ),
    "no-shell": Fault(
        "exited", "the login shell did not run the script", ("ssh HOST sh -c 'echo ok'",),
    ),
    "died": Fault(
        "exited", "the connection broke off", ("did it crash or reboot? last -x | head, on HOST",),
    ),
    "silent": Fault(
        "timeout", "it gave no answer in time",
        ("--host-timeout 120s; look at its console or BMC",),
    ),
    "same-host": Fault(
        "unreachable", "it is a host that was asked already",
        ("two names lead to one machine: ssh -G HOST | grep ^hostname", "name it once"),
    ),
    "interrupted": Fault("timeout", "it was interrupted"),
    "node-down": Fault("unreachable", "Slurm has it down", ("scontrol show node HOST",)),
    "node-unreached": Fault(
        "unreachable", "Slurm does not reach it",
        ("ping -c 3 HOST; is slurmd up there? scontrol show node HOST",),
    ),
    "node-drained": Fault(
        "unreachable", "Slurm has it drained", ("scontrol show node HOST",),
    ),
    "node-unknown": Fault("unreachable", "Slurm does not know it", ("sinfo -N -l",)),
    "node-elsewhere": Fault(
        "unreachable", "it is not in the allocation", ("squeue --me -o '%i %N'",),
    ),
    "node-failed": Fault("exited", "it failed while it was asked", ("scontrol show node HOST",)),
    "node-busy": Fault(
        "unreachable", "Slurm has no room on it now",
        ("squeue -w HOST; wait, or longer: --host-timeout 10m; or other nodes: --slurm-args",),
    ),
    "step-ended": Fault(
        "exited", "Slurm ended the job",
        ("was it scancel, the time limit, preemption? squeue --me; sacct -X; then again",),
    ),
    "no-task": Fault(
        "exited", "Slurm did not start the script there",
        ("srun -w HOST /bin/sh -c 'echo ok'", "the log of slurmd on HOST"),
    ),
}  # fmt: skip


def fault(name: str, text: str) -> Missing:
    """The Missing of a whole host; `text` says what was tried and what happened."""
    return Missing(FAULTS[name].kind, text, name)
