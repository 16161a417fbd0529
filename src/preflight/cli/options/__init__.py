"""Every option once, a file for what it is of. Commands name the groups that they take."""

from preflight.cli.options.asked import Options, are_many
from preflight.cli.options.checkpoint import CHECKPOINT
from preflight.cli.options.estimate import DIAGNOSE, ESTIMATE
from preflight.cli.options.everywhere import HOSTS, JUDGE, RUN, TELL, WHERE, WRITE
from preflight.cli.options.fixing import FIX
from preflight.cli.options.network import BENCH
from preflight.cli.options.option import Option
from preflight.cli.options.rescue import RESCUE
from preflight.cli.options.signature import OPTIONS, command
from preflight.cli.options.storage import PROJECT, SHARD, STORE
from preflight.cli.options.stress import STRESS
from preflight.cli.options.training import TRAIN
from preflight.cli.options.words import ARGUMENTS

__all__ = [
    "ARGUMENTS",
    "BENCH",
    "CHECKPOINT",
    "DIAGNOSE",
    "ESTIMATE",
    "FIX",
    "HOSTS",
    "JUDGE",
    "OPTIONS",
    "PROJECT",
    "RESCUE",
    "RUN",
    "SHARD",
    "STORE",
    "STRESS",
    "TELL",
    "TRAIN",
    "WHERE",
    "WRITE",
    "Option",
    "Options",
    "are_many",
    "command",
]
