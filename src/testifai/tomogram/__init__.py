"""The finished result of a run, its answers to queries, and what can be concluded from it."""

from testifai.tomogram.answers import Answer, Excluded, Sigma
from testifai.tomogram.estimator import EstimatorSettings
from testifai.tomogram.tomogram import Tomogram

__all__ = ["Answer", "EstimatorSettings", "Excluded", "Sigma", "Tomogram"]
