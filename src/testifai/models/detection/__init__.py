"""Detectors: the forms of their outputs, how images are fitted to their canvas, and the choice among boxes."""
