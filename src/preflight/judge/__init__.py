"""Facts in, results out: the only place, with diagnosis, that calls anything good or bad."""
