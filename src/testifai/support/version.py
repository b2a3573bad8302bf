"""The version, said once: the package, its metadata and every run file take it from here."""

VERSION = "0.2.0.dev0"
