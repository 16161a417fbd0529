"""What may be shown of a report or a capture: never secrets and, on demand, no names either."""
