"""Ways to put commands to a host: each has run(commands) -> Iterator[Raw], nothing else differs."""
