"""The command line: the only place that prints, reads the clock and knows typer."""
