"""Numbers in, numbers out: intervals, looks, differences, corrections for many tests, independence."""
