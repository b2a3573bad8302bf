"""Plan, execute, stop."""
