"""Tables of GPUs or disks that were recorded while a run went on."""
