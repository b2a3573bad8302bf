"""What measures the recorded grids again, a module to a family of grids, each with a `record(out, data, device)`."""
