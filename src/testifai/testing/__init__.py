"""Contract tests for what a user adds: run them over your own from your own test suite."""

from testifai.testing.perturbations import check_perturbation, example_images, example_photographs

__all__ = ["check_perturbation", "example_images", "example_photographs"]
