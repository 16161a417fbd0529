"""Records of a run that stands still: dumps of collectives, words of watchdogs, stacks."""
