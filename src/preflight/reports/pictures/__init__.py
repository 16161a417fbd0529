"""Charts of a run as shapes of a drawing: bars, series, maps of ranks."""
