"""What to type for a signal of a hang that is not there."""

DUMPS = (
    "dumps of all ranks: TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 "
    "TORCH_FR_DUMP_TEMP_FILE=/shared/dump_rank_"
)
#: Of every rank, so that the ones that do not wait can be told from those that do.
ALL_STACKS = (
    "on every host, for each rank: py-spy dump --pid PID > rank0.txt, then all files together; or "
    "preflight diagnose-step-time --hosts HOSTS while it stands"
)
AGAIN = "the same stacks a minute later, both given together: py-spy dump --pid PID > rank0_2.txt"
