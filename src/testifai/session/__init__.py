"""Run sessions: assembly, the run loop, dry runs, stored runs, hunting."""
