"""What is known of a run: outcomes as bits, single trials, the run file."""
