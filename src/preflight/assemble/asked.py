"""What a host is asked only where the user wants it. `asked`: whether preflight asked this host at
all, so that what is not there was left out; text that somebody gave simply does not hold it."""

from __future__ import annotations

from msgspec.structs import replace

from preflight.assemble.gpus.inventory import functions_on_pci
from preflight.facts.dcgm import DcgmDiag
from preflight.facts.gpu import Gpu
from preflight.facts.host import PciFunction
from preflight.facts.nccl import NcclLog
from preflight.facts.training import Training
from preflight.facts.watch import Watch
from preflight.model import NOT_IN_INPUT, Known, Missing

_TOLD = Missing("not-applicable", "nvidia-smi tells it of this GPU, and that is judged")
_NO_WATCH = Missing("not-asked", "needs --duration, such as --duration 60s")
#: It is work that the user asks for by name.
_NO_DIAG = Missing(
    "not-asked",
    "`dcgmi diag` loads the GPUs and is not run from here: on the drained host "
    "`sudo dcgmi diag -r 3 -j > diag.json`, then --from diag.json",
)
_NO_LOG = Missing(
    "not-asked", "needs the log of a job that ran with NCCL_DEBUG=INFO: --from nccl.log"
)

NO_TRAINING = Missing(
    "not-asked",
    "recorded without a training run; with one, where it is to be recorded: "
    "`preflight run --level standard --save FILE.capture.gz`",
)


def training_of(training: Known[Training], *, asked: bool) -> Known[Training]:
    """The run, or why there is none: nobody asked for it, or the host cannot train."""
    if training is NOT_IN_INPUT:
        return NO_TRAINING if asked else training
    if isinstance(training, Missing):
        return training
    if training.busy:  # active work never competes
        return Missing("busy", training.busy)
    if not training.cannot:
        return training
    # Without torch what there is to tell is how to get it.
    return Missing("no-tool" if training.lacks_torch else "exited", training.cannot)


def watch_of(
    watch: Known[Watch], pci: Known[tuple[PciFunction, ...]], *, asked: bool
) -> Known[Watch]:
    """The watch, or why there is none; without a GPU there is nothing to be watched."""
    if watch is NOT_IN_INPUT:
        return _NO_WATCH if asked else watch
    told = watch if isinstance(watch, Missing) else watch.gpus
    if isinstance(told, Missing) and functions_on_pci(pci)[0] == 0:
        return Missing("not-applicable", "no NVIDIA GPU on PCI")
    return watch


def told_once(watch: Known[Watch], gpus: Known[tuple[Gpu, ...]]) -> Known[Watch]:
    """The watch without the counters that nvidia-smi tells of the same GPUs."""
    if isinstance(watch, Missing) or isinstance(watch.gpus, Missing) or isinstance(gpus, Missing):
        return watch
    told = {gpu.index for gpu in gpus if isinstance(gpu.ecc.volatile_dram_uncorrected, int)}
    watched = (
        replace(one, ecc_uncorrected_before=_TOLD) if one.index in told else one
        for one in watch.gpus
    )
    return replace(watch, gpus=tuple(watched))


def diag_of(diag: Known[DcgmDiag], *, asked: bool) -> Known[DcgmDiag]:
    """DCGM's diagnostics, or why nobody has run them."""
    return _NO_DIAG if asked and diag is NOT_IN_INPUT else diag


def log_of_job(log: Known[NcclLog], *, asked: bool) -> Known[NcclLog]:
    """What NCCL wrote in a job, or how to get it: a host does not have it by itself."""
    return _NO_LOG if asked and log is NOT_IN_INPUT else log
