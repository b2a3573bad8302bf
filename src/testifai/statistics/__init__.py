"""Numbers in, numbers out: intervals, clustered means, looks, differences, corrections for many tests, independence."""
