"""Models of texts, each computed once, in batches of equal length: its outputs do not depend on the other texts."""
