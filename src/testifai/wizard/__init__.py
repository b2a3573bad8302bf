"""`testifai init`: inspects a model and a data set and writes a spec."""
