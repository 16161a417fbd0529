"""Runs of the training harness with each injected fault, recorded once and kept compressed; what a
right diagnosis says of each, as report, as log in many styles, as traces, as a look at its PIDs."""
