"""Commands of the command line, one file to a subject; `testifai.cli` registers them."""
