"""Other tools that runs are handed to."""
