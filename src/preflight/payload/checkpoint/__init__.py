"""The files of checkpoints, read byte for byte: nothing is unpickled, nothing is executed."""
