"""A scan from its options to its result: spec, session, dry run, replay."""
