"""Requirements on a tomogram, and measuring until they are decided."""
