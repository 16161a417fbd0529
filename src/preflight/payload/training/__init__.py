"""A small training run that does everything a large one does. Needs torch."""
