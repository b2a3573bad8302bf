"""Our own measurements again, a module to a family of files below `benchmarks/grids`, each with a `record`."""
