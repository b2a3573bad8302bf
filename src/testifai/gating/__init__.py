"""Gates in a test suite: measure until they are decided, remember it, and say why one does not hold."""
