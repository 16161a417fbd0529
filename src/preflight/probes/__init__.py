"""One file per tool: what to run, how to read it. A parser sees text and nothing else."""
