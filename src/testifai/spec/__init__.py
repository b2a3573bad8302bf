"""The spec file and the options of a scan: one schema for Python and TOML."""
