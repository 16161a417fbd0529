"""What goes wrong in what a run learns: events in its series, and what may have caused them."""
