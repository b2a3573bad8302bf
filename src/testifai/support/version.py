"""The version of the package, its metadata and its run files."""

VERSION = "0.2.0.dev0"
