"""What a series of steps shows: times, slow steps, periods, changes. Pure functions on numbers."""
