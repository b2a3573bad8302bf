"""Contract tests for what a user adds: run them over your own from your own test suite.

Each raises AssertionError with one line that says what is broken. They are what our own parts are tested by.
"""

from testifai.testing.executors import check_executor
from testifai.testing.models import check_data, check_model
from testifai.testing.oracles import check_measure, check_oracle
from testifai.testing.perturbations import check_perturbation, example_images, example_photographs, example_table
from testifai.testing.strategies import check_strategy
from testifai.testing.surrogates import check_surrogate
from testifai.testing.techniques import check_technique

__all__ = [
    "check_data",
    "check_executor",
    "check_measure",
    "check_model",
    "check_oracle",
    "check_perturbation",
    "check_strategy",
    "check_surrogate",
    "check_technique",
    "example_images",
    "example_photographs",
    "example_table",
]
