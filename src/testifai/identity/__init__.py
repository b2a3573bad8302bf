"""What a run was made of: fingerprints, input hashes, provenance, environments."""
